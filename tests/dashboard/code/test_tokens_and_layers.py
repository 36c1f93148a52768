"""Layers, Heatmaps, Attention, Tokens, Model: the code gives the numbers that the figures show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.model.backend import Backend
from tests.dashboard.code.shown import PRECISION, SENTENCES, codes, figure, numbers, same, x, y, z
from tests.support.pages import Open
from tests.support.snippets import Run

NINE = [f"{text} {number}" for number in range(3) for text in SENTENCES]


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ({}, "words_0"),
        ({"view": "within", "word": "0", "len": "8"}, "words_0"),
        ({"view": "sentences", "pool": "max", "sp": "0"}, "sentences_0"),
        ({"view": "sentences", "pct": "1"}, "sentences_0"),
    ],
)
def test_curves(open_page: Open, run: Run, address: dict[str, str], key: str) -> None:
    app = open_page("layers", s=SENTENCES, **address)
    names = run(codes(app)[key].snippet)
    shown = y(app, key)
    has_band = "pct" not in address
    assert len(shown) == len(names["values"]) + 3 * has_band
    same(names["values"], shown[3 * has_band :], 2e-4 if "pct" in address else PRECISION)
    if has_band:
        band = names["band"]
        same([band.high, band.low, band.mean], shown[:3])


@pytest.mark.parametrize("address", [{}, {"c": "1"}, {"pct": "1"}])
def test_a_token_with_all_others(open_page: Open, run: Run, address: dict[str, str]) -> None:
    app = open_page("layers", s=SENTENCES, v="one-against-all", **address)
    names = run(codes(app)["words_0"].snippet)
    shown = z(app, "words_0")
    same(names["values"], shown[1:], 2e-4 if "pct" in address else PRECISION)  # the first row is the token itself


@pytest.mark.parametrize("address", [{}, {"c": "1"}, {"pct": "1"}])
def test_a_matrix_of_many_sentences(open_page: Open, run: Run, address: dict[str, str]) -> None:
    app = open_page("layers", s=NINE, v="sentence-curves", l="4", **address)
    code = codes(app)["sentences_matrix_0"]
    assert "layer 4" in code.title
    shown = z(app, "sentences_matrix_0")
    of_others = ~np.isnan(shown)
    same(run(code.snippet)["values"][of_others], shown[of_others], 1e-3 if "pct" in address else PRECISION)


def test_of_two_models_each_figure_has_its_own(open_page: Open, run: Run, tiny_folder: Callable[[str], Path]) -> None:
    app = open_page("layers", s=SENTENCES, m2=str(tiny_folder("bert")))
    for number in range(2):
        same(run(codes(app)[f"words_{number}"].snippet)["values"], y(app, f"words_{number}", 3))


@pytest.mark.parametrize(
    ("page", "address", "key"),
    [
        ("heatmaps", {"view": "tokens", "l": "3", "ag": "2"}, "tokens_0"),
        ("heatmaps", {"view": "tokens", "ag": "0", "sp": "0"}, "tokens_0"),
        ("heatmaps", {"view": "tokens", "ag2": "3", "pct": "1"}, "tokens_1"),
        ("heatmaps", {"view": "pairs", "l": "5"}, "together_1"),
        ("heatmaps", {"view": "sentences", "l": "4", "clu": "1"}, "sentences_0"),
        ("heatmaps", {"view": "sentences", "pool": "cls", "pct": "1"}, "sentences_0"),
        ("attention", {"view": "matrix", "agg": "mean", "bs": ["1", "2"], "word": "1", "sp": "hidden"}, "head_matrix"),
        ("attention", {"view": "matrix", "agg": "max", "hs": "4", "sp": "renormalised"}, "head_matrix"),
        ("attention", {"view": "matrix", "sb": "2", "f": "ab", "word": "1", "sp": "renormalised"}, "head_matrix"),
        ("attention", {"view": "flow", "ff": "all", "fl": "norms", "fs": "1", "sb": "2", "f": "ab"}, "flow_matrix"),
        ("attention", {"view": "mask", "mp": "2", "l": "3", "h": "2", "mw": "1"}, "mask_change"),
    ],
)
def test_matrices(open_page: Open, run: Run, page: str, address: dict[str, Any], key: str) -> None:
    same_matrix(open_page(page, s=SENTENCES, **address), run, key, 1e-3 if "pct" in address else PRECISION)


def same_matrix(app: AppTest, run: Run, key: str, precision: float) -> None:
    """The code of a heatmap gives its cells."""
    shown = z(app, key)
    kept = ~np.isnan(shown)
    assert kept.sum() >= 6
    found = numbers(run(codes(app)[key].snippet)["values"])
    assert found.shape == shown.shape
    same(found[kept], shown[kept], 2e-5 if "flow" in key else precision)


# The page, its address, its heatmaps, and its other figures with what of the code's names their bars or points show and how
# many traces come first or last that are not of these.
WHOLE = slice(None)
HEIGHTS: list[tuple[str, dict[str, Any], list[str], dict[str, tuple[str, slice]]]] = [
    # The last trace is the mean.
    ("heatmaps", {"sp": "0", "sa": "0", "sb": "2"}, [], {"diagonal": ("values", slice(-1))}),
    ("attention", {"view": "flow", "ff": "all", "fb": "2"}, ["flow_matrix"], {}),
    *(
        # The bars, the lines across them, and the numbers above both.
        ("attention", address, [], {"flow_bars": ("[*values, *others, *map(max, values, others)]", WHOLE)})
        for address in (
            {"view": "flow", "fb": "1", "ft": "3"},
            {"view": "flow", "fl": "through", "ft": "3"},
        )
    ),
    (
        "attention",
        {"view": "flow", "fl": "norms", "fh": "one", "h": "5", "fs": "1"},
        [],
        {"flow_bars": ("values", WHOLE)},
    ),
    (
        "attention",
        {"view": "matrix", "qt": ["1", "3"], "l": "1", "h": "3", "len": "9"},
        ["head_matrix"],
        {"received": ("received", WHOLE)},
    ),
    ("attention", {"view": "mask", "mp": "3"}, [], {"mask_vectors": ("values", WHOLE)}),
    ("model", {"view": "vectors", "l": "2", "n": "1"}, [], {"vector": ("values", WHOLE)}),
    (
        "model",
        {"view": "zero", "n": "1"},
        [],
        # Layer 0 is not drawn.
        {"part_norms": ("list(values.values())[:-1]", WHOLE), "part_cosines": ("values", WHOLE)},
    ),
    (
        "model",
        {"view": "inner", "fb": "2", "n": "1"},
        [],
        {"inner_distribution": ("counts", WHOLE), "inner_strongest": ("values", WHOLE)},
    ),
    ("attention", {"view": "scores", "l": "2", "h": "3", "sb": "2"}, [], {"score_bars": ("values", slice(-1, None))}),
]


def test_the_head_view_shares_its_head(open_page: Open, run: Run) -> None:
    for more in ({}, {"sb": "2", "f": "ab"}):
        app = open_page("attention", s=SENTENCES, view="head", l="2", h="3", **more)
        app.session_state["data_head_view"] = True
        app.run()
        (shown,) = (table.value for table in app.dataframe if "query" in table.value)
        same(
            run(codes(app)["head_view"].snippet)["values"], shown.drop(columns="query").to_numpy(), 6e-6
        )  # rounded to five digits


@pytest.mark.parametrize(("page", "address", "matrices", "heights"), HEIGHTS)
def test_matrices_with_lines_and_bars(
    open_page: Open,
    run: Run,
    page: str,
    address: dict[str, Any],
    matrices: list[str],
    heights: dict[str, tuple[str, slice]],
) -> None:
    """A figure may divide its values among traces in any order, so that all of them are compared by size."""
    app = open_page(page, s=SENTENCES, **address)
    for key in matrices:
        same_matrix(app, run, key, PRECISION)
    for key, (values, traces) in heights.items():
        shown = np.concatenate(y(app, key)[traces])
        found = numbers(eval(values, run(codes(app)[key].snippet))).ravel()
        same(np.sort(found), np.sort(shown[~np.isnan(shown)]), 1e-5 * max(1, np.abs(found).max()))


@pytest.mark.parametrize("address", [{"b1": "2"}, {"sp": "0", "sa": "0", "sb": "2", "b2": "1"}])
def test_two_blocks_before_and_after(open_page: Open, run: Run, address: dict[str, str]) -> None:
    app = open_page("heatmaps", s=SENTENCES, **address)
    names, traces = run(codes(app)["block_change"].snippet), figure(app, "block_change")["data"]
    for matrix, axis in zip(names["values"], ("x", "x2"), strict=True):
        others, own = [item for item in traces if item.get("xaxis") == axis][:2]
        same(np.diagonal(matrix), own["z"])
        of_others = ~np.eye(len(matrix), dtype=bool)
        same(matrix[of_others], numbers(others["z"])[of_others])
    strip = next(item for item in traces if item.get("xaxis") == "x3")
    same(names["itself"].T, strip["z"])


def test_what_two_blocks_add_and_how_far_they_turn(open_page: Open, run: Run) -> None:
    app = open_page("heatmaps", view="inside", s=SENTENCES, b1="3", b2="4", sb="2", len="8")

    def shown(key: str) -> list[np.ndarray]:
        """The numbers of the hover: a bar may be broken."""
        bars = [item for item in figure(app, key)["data"] if item["type"] == "bar"]
        return [numbers([hint[1].replace(",", "") for hint in item["customdata"]]) for item in bars]

    names = run(codes(app)["inside_norms"].snippet)
    same(names["values"].swapaxes(0, 1).reshape(4, -1), shown("inside_norms"), 6e-4)  # [block, part, token]
    names = run(codes(app)["inside_turns"].snippet)
    turned = [names[name][block] for block in range(2) for name in ("attention", "feed_forward")]
    same(turned, shown("inside_turns"), 6e-4)


def test_the_parameters(open_page: Open, run: Run) -> None:
    app = open_page("model")
    same(np.sort(run(codes(app)["parameters"].snippet)["values"]), np.sort(x(app, "parameters")))


def test_the_layers_of_two_models(open_page: Open, run: Run) -> None:
    app = open_page("heatmaps", s=NINE, v="layer-pairs", m2="embedded-cross-encoder")
    for number in range(2):
        same(run(codes(app)[f"cka_{number}"].snippet)["values"], z(app, f"cka_{number}"), 2e-5)


def test_the_input_tensors_of_a_pair(open_page: Open, run: Run, embedded: Backend) -> None:
    app = open_page("tokens", s=SENTENCES, v="input-tensors", rd="together", sb="3")
    names = run(codes(app)["tensors"].snippet)
    tokens = embedded.tokenize([SENTENCES[0]], [SENTENCES[2]])
    ids, mask, segments = embedded.tokenization.arrays(tokens)
    for name, expected in {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}.items():
        np.testing.assert_array_equal(names[name], expected)


@pytest.mark.parametrize("address", [{}, {"sb": "2", "f": "ab", "p": "separators"}, {"pa": "1"}])
def test_the_scores_of_all_heads(open_page: Open, run: Run, address: dict[str, str]) -> None:
    app = open_page("attention", s=SENTENCES, v="head-patterns", **address)
    scored = run(codes(app)["patterns"].snippet)["scored"]
    (table,) = (item.value for item in app.dataframe)
    first = table.iloc[0]
    best = scored.top(address.get("p", "previous"), 1)[0]
    assert (first["block"], first["head"], first["share"]) == (best.block, best.head, f"{100 * best.score:.1f} %")
    assert first["entropy (nats)"] == round(float(scored.entropy[best.block, best.head]), 2)
