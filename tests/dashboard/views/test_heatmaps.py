"""Heatmaps: their numbers, their costs, their messages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from components.analysis import block_change
from components.analysis.pooling import pool
from components.analysis.similarity import calibration
from components.arrays import cosine
from components.model import tokenization
from dashboard import caching, ready_made
from dashboard.views.heatmaps import blocks, similarity, together
from tests.support.closeness import assert_close
from tests.support.pages import BANK, Open, backend, charts, choose_view, figures, texts

THREE_GROUPS = ready_made.ready_made_sets()["three-groups"].sentences


def pictures_of(figure: dict[str, Any]) -> list[np.ndarray]:
    """The cosines of each block that “Before and after a block” draws, with its diagonal, which is drawn apart."""
    found = []
    for axis in ("x", "x2"):
        traces = [item for item in figure["data"] if item.get("xaxis") == axis and item["type"] == "heatmap"]
        if axis == "x2" and figure["layout"]["xaxis2"]["title"]["text"] != "comes out":
            continue  # the strip of each token by block
        if traces:
            matrix = np.array(traces[0]["z"], float)
            np.fill_diagonal(matrix, traces[1]["z"])
            found.append(matrix)
    return found


def scales_of(figure: dict[str, Any]) -> list[tuple[float, float]]:
    """The ends of the colours of the first picture's others and diagonal, then of the second's."""
    first, second = ([item for item in figure["data"] if item.get("xaxis") == axis][:2] for axis in ("x", "x2"))
    return [(item["zmin"], item["zmax"]) for item in (*first, *second)]


def heads_of(figure: dict[str, Any]) -> list[str]:
    """The lines above the pictures, without markup."""
    return [re.sub(r"<br>", "\n", item["text"]) for item in figure["layout"]["annotations"]]


def test_first_and_last_block_side_by_side_on_one_scale_until_each_has_its_own(open_page: Open) -> None:
    app = open_page("heatmaps")
    figure = figures(app)[0]
    hidden = backend().trace([BANK[0]], [None]).hidden_states[:, 0]
    for drawn, block in zip(pictures_of(figure), (0, 5), strict=True):
        expected = cosine(hidden[block][:, None], hidden[block + 1][None])
        np.testing.assert_allclose(drawn, expected, atol=1e-5)
    scales = scales_of(figure)
    assert scales[:2] == scales[2:]
    assert scales[1][0] == pytest.approx(0.3)
    across = caching.baseline(backend()).tokens.across
    heads = heads_of(figure)
    assert f"by chance (other sentences) <b>{across[0]:.2f}</b>" in heads[0]
    assert f"by chance (other sentences) <b>{across[5]:.2f}</b>" in heads[1]
    assert "itself <b>0.86</b>" in heads[0]
    assert "another <b>0.12</b>" in heads[1]
    # Frames, and no lines between the texts of a pair.
    assert {shape["type"] for shape in figure["layout"]["shapes"]} == {"rect"}
    app.toggle(key="w_own_scale").set_value(True).run()
    scales = scales_of(figures(app)[0])
    assert scales[:2] != scales[2:]
    for (low, high), drawn in zip(scales[1::2], pictures_of(figures(app)[0]), strict=True):
        assert_close((low, high), (np.diagonal(drawn).min(), np.diagonal(drawn).max()))


def test_the_strongest_other_cells_are_framed_and_named_where_cells_have_no_numbers(open_page: Open) -> None:
    text = "We will rob a bank next week, and put all the money in a bank abroad!"
    app = open_page("heatmaps", s=[text])
    figure = figures(app)[0]
    matrix = pictures_of(figure)[1]
    np.fill_diagonal(matrix, -1)
    row, column = np.unravel_index(matrix.argmax(), matrix.shape)
    frames = [
        (math.ceil(shape["y0"]), math.ceil(shape["x0"]))
        for shape in figure["layout"]["shapes"]
        if shape["xref"] == "x2"
    ]
    assert (row, column) in frames
    pieces = [token.piece for token in backend().tokenize([text])[0].tokens]
    assert f"Strongest in block 5, from in to out: {pieces[row]} → {pieces[column]} **{matrix.max():.2f}**" in texts(
        app
    )
    assert "Strongest in block" not in texts(open_page("heatmaps"))


def test_a_phone_has_the_same_pictures_below_each_other_the_last_block_first(open_page: Open) -> None:
    app = open_page("heatmaps")
    (stacked,) = [chart for chart in app.get("plotly_chart") if chart.proto.id.endswith("-phone_block_change")]
    on_phone, wide = json.loads(stacked.proto.spec), figures(app)[0]
    heads = [item["text"] for item in on_phone["layout"]["annotations"]]
    assert heads[:2] == [item["text"] for item in wide["layout"]["annotations"]][1::-1]
    assert len(on_phone["data"]) == len(wide["data"])
    assert stacked.proto.alt == charts(app)[0].proto.alt
    axes = [axis.get("title", {}).get("text") for name, axis in on_phone["layout"].items() if "axis" in name]
    assert sorted(filter(None, axes)) == ["block", "comes out", "comes out", "goes in", "goes in"]
    assert "block_change" in app.session_state["_figures_drawn"]
    assert "phone_block_change" not in app.session_state["_figures_drawn"]


def test_a_long_text_is_sent_once_and_a_phone_swipes(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure that a phone shows in another's place is sent to every screen."""
    for most, count in ((10, 1), (9, 0)):
        monkeypatch.setattr(blocks, "ON_PHONE", most)
        drawn = [chart.proto.id for chart in open_page("heatmaps").get("plotly_chart")]
        assert sum("-phone_" in each for each in drawn) == count


def test_of_many_cosines_the_ends_and_the_ranks_are_kept() -> None:
    values = np.random.default_rng(0).normal(size=100_000)
    few = blocks._thinned(values)
    assert few.size == blocks.RANKS
    assert (few[0], few[-1]) == (values.min(), values.max())
    shares = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(np.quantile(few, shares), np.quantile(values, shares), atol=0.01)
    np.testing.assert_array_equal(blocks._thinned(values[: blocks.RANKS]), values[: blocks.RANKS])


def test_blocks_with_own_colours_are_read_one_by_one(open_page: Open) -> None:
    app = open_page("heatmaps", own="1")
    said = texts(app)
    ends = scales_of(figures(app)[0])
    for block, (low, high) in zip((0, 5), ends[1::2], strict=True):
        assert f"Block {block}: Blue: a token with itself, from {low:.2f} to {high:.2f}. Orange: " in said
    assert "The colour bars are those of the first picture; the last picture has a scale of its own." in said
    assert "The colour bars are those" not in texts(open_page("heatmaps"))


def test_a_click_on_a_column_of_the_strip_shows_that_block(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: dict[str, int] = {}
    monkeypatch.setattr(blocks.state, "put", taken.__setitem__)
    for sent, expected in (([4, 3], 3), ([4, 6], None), ([4, True], None), (["x"], None), (None, None), ([1, 0], 0)):
        taken.clear()
        selected = {"block_change": {"selection": {"points": [{"customdata": sent}]}}}
        selected["phone_block_change"] = {"selection": {"points": [{"customdata": [4, 2]}]}}
        monkeypatch.setattr(blocks.st, "session_state", selected)
        for key, block in (("block_change", expected), ("phone_block_change", 2), ("another_figure", None)):
            taken.clear()
            blocks._take_block(5, key)
            assert taken == ({} if block is None else {"second_block": block}), (sent, key)
    monkeypatch.setattr(blocks.st, "session_state", {"block_change": {"selection": {"points": []}}})
    taken.clear()
    blocks._take_block(5)
    assert taken == {}


def test_colours_mean_the_same_whatever_blocks_are_shown(open_page: Open) -> None:
    app = open_page("heatmaps")
    before = scales_of(figures(app)[0])
    app.number_input(key="w_second_block").set_value(2).run()
    assert scales_of(figures(app)[0]) == before


@pytest.mark.parametrize("view", ["blocks", "tokens", "pairs"])
def test_a_text_without_tokens_is_no_fault(open_page: Open, view: str) -> None:
    app = open_page("heatmaps", s=["\u200b"], sp="0", view=view)
    assert "has no tokens of its own" in texts(app)
    assert not app.error


def test_inside_a_block_needs_no_attentions(open_page: Open) -> None:
    open_page("heatmaps", v="inside-block", s=["A text of this test alone."])
    store = backend().store
    kept = [store.find(key) for key in list(store._kept) if "A text of this test alone." in key]
    assert kept
    assert all(record.attentions is None for record in kept)


def test_the_diagonal_over_all_blocks(open_page: Open) -> None:
    app = open_page("heatmaps", sp="0")
    hidden = backend().trace([BANK[0]], [None]).hidden_states[:, 0, 1:-1]
    expected = cosine(hidden[:-1], hidden[1:])  # [block, token]
    lines = figures(app)[1]["data"]
    np.testing.assert_allclose([line["y"] for line in lines[:-1]], expected.T, atol=1e-5)
    np.testing.assert_allclose(lines[-1]["y"], expected.mean(axis=1), atol=1e-5)
    assert lines[4]["name"] == "5 bank"


def test_moving_blocks_and_layers_costs_no_forward_pass(open_page: Open) -> None:
    app = open_page("heatmaps")
    model = backend()
    model.trace(BANK)
    model.inside(BANK[0], attentions=False)
    before = model.forward_passes
    app.number_input(key="w_first_block").set_value(3).run()
    choose_view(app, "token-pairs")
    app.number_input(key="w_layer").set_value(2).run()
    choose_view(app, "inside-block")
    app.number_input(key="w_first_block").set_value(1).run()
    choose_view(app, "layer-pairs")
    choose_view(app, "sentence-pairs")
    assert not app.error
    assert model.forward_passes == before


def test_inside_a_block_the_first_figure_answers_the_title(open_page: Open) -> None:
    app = open_page("heatmaps", v="inside-block", b1="2", b2="4")
    record = backend().inside(BANK[0])
    turns, lengths = figures(app)

    def bars(figure: dict[str, Any], block: int) -> dict[str, np.ndarray]:
        """The numbers that the bars and marks of a block have in the hover: a bar may be broken."""
        kept = [item for item in figure["data"] if item.get("xaxis") == ("x" if block == 2 else "x2")]
        return {
            item["name"]: np.array([float(hint[1].replace(",", "")) for hint in item["customdata"]]) for item in kept
        }

    for block in (2, 4):
        attention = np.degrees(np.arccos(cosine(record.hidden_states[block], record.after_attention[block])))
        feed_forward = np.degrees(np.arccos(cosine(record.after_attention[block], record.hidden_states[block + 1])))
        drawn = bars(turns, block)
        np.testing.assert_allclose(drawn["attention"], attention, atol=6e-4)
        np.testing.assert_allclose(drawn["feed-forward"], feed_forward, atol=6e-4)
        larger = "attention" if attention.mean() > feed_forward.mean() else "feed-forward"
        most, least = sorted((attention.mean(), feed_forward.mean()), reverse=True)
        assert f"in block {block} ({most:.0f}° against {least:.0f}°)" in texts(app)
        assert larger in texts(app).split(f" in block {block} (")[0].splitlines()[-1].lower()
        assert f"<b>{attention.mean():.0f}°</b>" in " ".join(heads_of(turns))
        assert f"<b>{feed_forward.mean():.0f}°</b>" in " ".join(heads_of(turns))
        drawn = bars(lengths, block)
        for name, part in (
            ("attention", record.attention_output[block]),
            ("feed-forward", record.feed_forward_output[block]),
        ):
            np.testing.assert_allclose(drawn[name], np.linalg.norm(part.astype(np.float64), axis=-1), atol=6e-4)
        mark = drawn["length of what it is added to, attention"]
        expected = np.linalg.norm(record.hidden_states[block].astype(np.float64), axis=-1)
        assert all(np.abs(expected - value).min() < 6e-4 for value in mark)  # those beyond the axis are left out
    assert "In block 2 feed-forward adds" in texts(app)
    assert "residual" not in texts(app)


def test_a_length_that_leaves_the_others_no_room_is_broken_and_named(open_page: Open) -> None:
    app = open_page("heatmaps", v="inside-block")
    record = backend().inside(BANK[0])
    length = np.linalg.norm(record.feed_forward_output[0, 0])
    assert f"adds a vector of length {length:.0f} to" in texts(app)
    drawn = figures(app)[1]
    assert f"<b>{length:.0f} //</b>" in [item["text"] for item in drawn["layout"]["annotations"]]
    assert max(max(item["x"]) for item in drawn["data"] if item["type"] == "bar") < 40


def test_two_pictures_have_cells_of_one_width_unless_one_would_be_very_narrow() -> None:
    left, right = blocks.cell_widths([13, 9])
    cells = [(width - blocks.AROUND_CELLS) / count for width, count in ((left, 13), (right, 9))]
    assert cells[0] == pytest.approx(cells[1])
    assert blocks.cell_widths([40, 4]) == [1 + blocks.AROUND_CELLS, blocks.NARROWEST + blocks.AROUND_CELLS]
    assert len(set(blocks.cell_widths([5, 9, 7]))) == 1


def test_a_query_beside_two_documents(open_page: Open) -> None:
    app = open_page("heatmaps", v="token-pairs", l="4")
    first, second = figures(app)
    hidden = backend().trace(BANK).hidden_states[4]
    np.testing.assert_allclose(first["data"][0]["z"], cosine(hidden[0, :10, None], hidden[1, None, :13]), atol=1e-5)
    np.testing.assert_allclose(second["data"][0]["z"], cosine(hidden[0, :10, None], hidden[2, None, :9]), atol=1e-5)
    assert first["data"][0]["zmax"] == second["data"][0]["zmax"]


FIVE = (*BANK, "A river bank floods.", "The bank lends money.", "Robbers ran to the bank.")


def test_pairs_read_together_equal_plain_transformers_on_one_scale(open_page: Open, embedded_folder: Path) -> None:
    app = open_page("heatmaps", v="read-together", s=list(FIVE), l="4", sp="1")
    assert not app.error
    drawn = figures(app)
    assert [item["layout"]["title"]["text"] for item in drawn] == [f"1 + {number}, layer 4" for number in (2, 3, 4, 5)]
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder)
    model = AutoModel.from_pretrained(embedded_folder).eval()
    alone = []
    for text in FIVE:
        with torch.inference_mode():
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[4][0]
        alone.append(states.numpy()[1:-1])
    means = texts(app).partition("Mean of all cells but those of special tokens: ")[2]
    for number, (item, text) in enumerate(zip(drawn, FIVE[1:5], strict=True), start=2):
        inputs = tokenizer(FIVE[0], text, return_tensors="pt")
        with torch.inference_mode():
            states = model(**inputs, output_hidden_states=True).hidden_states[4][0].numpy()
        heat = item["data"][0]
        second = inputs["token_type_ids"][0].tolist().index(1)
        np.testing.assert_allclose(heat["z"], cosine(states[:second, None], states[None, second:]), atol=1e-5)
        assert next(iter(heat["x"])).split()[0] == str(second)  # A's tokens are the rows, the other's the columns
        assert len(heat["y"]) == second
        kinds = inputs.sequence_ids(0)
        rows, columns = ([place for place, kind in enumerate(kinds) if kind == half] for half in (0, 1))
        mean = float(cosine(states[rows][:, None], states[columns][None]).mean())
        # With as many decimals as tell the pairs apart.
        said = re.search(rf"(\d\.(\d{{2,3}})) with sentence {number} \(read apart (\d\.\d\d)\)", means)
        assert said is not None
        assert said[1] == f"{mean:.{len(said[2])}f}"
        assert said[3] == f"{cosine(alone[0][:, None], alone[number - 1][None]).mean():.2f}"
    assert len({(item["data"][0]["zmin"], item["data"][0]["zmax"]) for item in drawn}) == 1


def test_pairs_read_together_and_apart_cost_two_passes_and_no_more_for_layers(open_page: Open) -> None:
    before = backend().forward_passes
    app = open_page("heatmaps", v="read-together", s=["One pass for", "all of", "these four", "pairs of this", "test."])
    assert backend().forward_passes == before + 2
    limits = figures(app)[0]["data"][0]["zmin"]
    app.number_input(key="w_layer").set_value(2).run()
    app.toggle(key="w_include_special").set_value(False).run()
    assert backend().forward_passes == before + 2
    app.toggle(key="w_include_special").set_value(True).run()
    assert figures(app)[0]["data"][0]["zmin"] == limits  # one scale for all layers


def test_the_sentences_that_a_is_read_with_can_be_chosen(open_page: Open) -> None:
    app = open_page("heatmaps", v="read-together", s=list(FIVE), sa="1", sb="1", pb=["5", "2"])
    titles = [item["layout"]["title"]["text"] for item in figures(app)]
    assert titles == ["Sentences 2 and 6, layer 6", "Sentences 2 and 3, layer 6"]
    app.multiselect(key="w_partners").set_value([]).run()  # the sentence chosen as B is among the next four already
    titles = [item["layout"]["title"]["text"] for item in figures(app)]
    assert titles == ["2 + 1, layer 6", "2 + 3, layer 6", "2 + 4, layer 6", "2 + 5, layer 6"]
    app = open_page("heatmaps", v="read-together", s=["a bank"])
    assert [item["layout"]["title"]["text"] for item in figures(app)] == ["Sentences 1 and 1, layer 6"]


def test_as_many_pairs_are_drawn_as_the_page_has_room_for(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MOST_CELLS", 2_500)  # in place of 360,000
    app = open_page("heatmaps", v="read-together", s=[f"bank {'river ' * 24}{number}" for number in range(5)])
    cells = [item["data"][0]["z"] for item in figures(app)]
    own = [(rows - 2) * (columns - 1) for rows, columns in map(np.shape, cells)]  # without special tokens
    assert sum(own) <= together.MOST_CELLS < sum(own) + own[0]
    assert f"Only {len(cells)} pairs of 4" in texts(app)
    app = open_page("heatmaps", v="read-together", s=["bank " * 200, "river " * 200, "money"], len="80")
    assert not app.error
    assert "of sentence 1: it is longer" in texts(app)
    assert "Sentences 1 and 2" in figures(app)[0]["layout"]["title"]["text"]


def test_a_block_of_a_pair_has_the_lines_between_its_texts(open_page: Open) -> None:
    app = open_page("heatmaps", sb="2")
    second = backend().tokenize([BANK[0]])[0]
    lines = [shape for shape in figures(app)[0]["layout"]["shapes"] if shape["type"] == "line"]
    assert [line["x0"] for line in lines if line["x0"] > 0] == 2 * [len(second) - 0.5]


def test_cka_warns_of_few_tokens_and_compares_two_models(open_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    app = open_page("heatmaps", v="layer-pairs", m2=str(tiny_folder("roberta")), s=list(THREE_GROUPS))
    own, both = figures(app)
    matrix = own["data"][0]["z"]
    assert_close(np.diag(matrix), 1)
    assert_close(matrix, matrix.T)
    assert both["data"][0]["z"].shape == (7, 4)
    assert re.search(
        r"With only \d+ tokens even unrelated layers reach about 0\.\d\d: only values above that count\.", texts(app)
    )
    assert any("geometry (linear CKA)" in item.proto.body for item in app.get("html"))
    assert re.search(r"About [\d,]+ tokens (would )?bring this below 0\.1", texts(app))
    assert "few hundred" not in texts(app)
    assert "no linear relation" in texts(app)


def test_the_block_that_changes_the_arrangement_most_is_named_and_what_chance_reaches() -> None:
    matrix = np.array([[1.0, 0.5, 0.4], [0.5, 1.0, 0.9], [0.4, 0.9, 1.0]])
    compared: Any = SimpleNamespace(matrix=matrix, chance=np.full((3, 3), 0.31), judgement="enough")
    said = similarity._answer(compared)
    assert (
        said
        == "Block 0 changes the similarities of tokens most: CKA **0.50** from layer 0 to 1, 0.40 from layer 0 to 2."
    )
    assert similarity._limits([compared]) == (0.3, 1.0)
    compared.judgement, compared.matrix = "few", matrix[::-1, ::-1]
    assert similarity._answer(compared) == (
        "The last block changes the similarities of tokens most: CKA **0.50** from layer 1 to 2, 0.40 from layer 0 to 2."
    )


def test_two_tokens_are_too_few_for_cka(open_page: Open) -> None:
    app = open_page("heatmaps", v="layer-pairs", s=["a bank"])
    assert app.error
    assert "Something went wrong" not in texts(app)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_three_groups_show(open_page: Open, clustered: bool) -> None:
    app = open_page("heatmaps", v="sentence-pairs", s=list(THREE_GROUPS), clu=str(int(clustered)))
    heat = figures(app)[0]["data"][0]
    order = [int(number) - 1 for number in heat["x"]]
    vectors = pool(backend().trace(THREE_GROUPS), "mean")[6]
    expected = cosine(vectors[:, None], vectors[None])
    itself = np.eye(9, dtype=bool)
    np.testing.assert_allclose(heat["z"], np.where(itself, np.nan, expected[np.ix_(order, order)]), atol=1e-5)
    group = np.array(order) // 3
    assert [int(name) for name in group] in ([[0, 0, 0, 1, 1, 1, 2, 2, 2]] if not clustered else _blocks_of_three())
    same = group[:, None] == group[None]
    assert np.nanmin(heat["z"][same]) > heat["z"][~same].max()
    pairs = app.dataframe[0].value
    assert len(pairs) == 36
    assert list(pairs["cosine"]) == sorted(pairs["cosine"], reverse=True)
    within = {tuple(sorted((3 * g + a + 1, 3 * g + b + 1))) for g in range(3) for a in range(3) for b in range(a)}
    assert {tuple(map(int, pair.split(" – "))) for pair in pairs["pair"][:9]} == within


def _blocks_of_three() -> list[list[int]]:
    from itertools import permutations

    return [[name for name in order for _ in range(3)] for order in permutations(range(3))]


def test_a_pair_is_read_as_one_input(open_page: Open) -> None:
    pair = ready_made.ready_made_sets()["pair"].sentences
    app = open_page("heatmaps", s=list(pair))
    rows = figures(app)[0]["data"][0]["y"]
    tokens = backend().tokenize([pair[0]], [pair[1]])[0].tokens
    assert [row.split(" ", 1)[1] for row in rows] == [token.piece for token in tokens]


def test_one_sentence_has_no_sentence_matrix(open_page: Open) -> None:
    app = open_page("heatmaps", v="sentence-pairs", s=["one bank"])
    assert "Add a second one" in texts(app)
    assert not app.error


def test_five_hundred_tokens_stay_small_on_the_wire(open_page: Open) -> None:
    app = open_page("heatmaps", v="token-pairs", s=["bank river money " * 200], ag="0", len="512")
    chart = app.get("plotly_chart")[0].proto.spec
    assert len(chart) < 3 * 2**20
    assert figures(app)[0]["data"][0]["z"].shape == (512, 512)
    assert len(figures(app)[0]["layout"]["xaxis"]["tickvals"]) <= 20


def test_two_pictures_that_are_too_large_together_are_shown_in_turn(open_page: Open) -> None:
    app = open_page("heatmaps", s=["bank river money " * 200], len="512")
    figure = figures(app)[0]
    assert figure["layout"]["title"]["text"] == "Before and after block 0"
    assert len(pictures_of(figure)) == 1
    assert sum(len(chart.proto.spec) for chart in app.get("plotly_chart")) < 3 * 2**20
    app.segmented_control(key="w_one_side").set_value("right").run()
    figure = figures(app)[0]
    assert figure["layout"]["title"]["text"] == "Before and after block 5"
    assert len(pictures_of(figure)) == 1


def test_the_sentence_matrix_has_the_same_colours_at_every_layer_and_its_pairs_in_a_table(open_page: Open) -> None:
    def ends(app: Any) -> tuple[float, float]:
        heat = next(item["data"][0] for item in figures(app) if item["data"][0]["type"] == "heatmap")
        return heat["zmin"], heat["zmax"]

    app = open_page("heatmaps", v="sentence-pairs")
    assert [list(table.value.columns) for table in app.table] == [["cosine", "pair", "first", "second"]]
    assert len(app.table[0].value) == 3
    vectors = pool(backend().trace(BANK), "mean")
    every = cosine(vectors[:, :, None], vectors[:, None])[:, ~np.eye(3, dtype=bool)]
    np.testing.assert_allclose(ends(app), (every.min(), every.max()), atol=1e-5)
    before = ends(app)
    app.number_input(key="w_layer").set_value(1).run()
    assert ends(app) == before


def test_play_begins_with_the_next_block_and_from_the_last_with_the_first(open_page: Open) -> None:
    app = open_page("heatmaps", b1="4")
    app.button(key="play_first_block").click().run()
    assert figures(app)[0]["layout"]["title"]["text"] == "Before and after block 5"
    app.button(key="play_first_block").click().run()
    assert app.number_input(key="w_first_block").value == 0


def test_many_pairs_are_a_list(open_page: Open) -> None:
    app = open_page("heatmaps", v="sentence-pairs", s=[f"sentence {number}" for number in range(7)])
    assert not app.table
    assert [len(frame.value) for frame in app.dataframe] == [21]


@pytest.mark.parametrize("view", ["sentences", "tokens"])
def test_percentiles_are_shares_of_the_unrelated_pairs(open_page: Open, view: str) -> None:
    shown = [
        np.asarray(figures(open_page("heatmaps", view=view, l="3", pct=switch))[0]["data"][0]["z"], float)
        for switch in ("0", "1")
    ]
    baselines = caching.baseline(backend())
    baseline = baselines.tokens if view == "tokens" else baselines.sentences["mean", True]
    unrelated = baseline.raw.cosines[3]
    known = ~np.isnan(shown[0])
    expected = [100 * np.mean(unrelated < value) for value in shown[0][known]]
    np.testing.assert_allclose(shown[1][known], expected, atol=0.1)
    assert len(expected) >= 6


@pytest.mark.parametrize("sentences", [BANK, THREE_GROUPS])  # a table, and a list
def test_the_pairs_have_the_percentiles_of_the_matrix(open_page: Open, sentences: tuple[str, ...]) -> None:
    app = open_page("heatmaps", v="sentence-pairs", s=list(sentences), pool="cls", l="1", pct="1")
    matrix = np.asarray(figures(app)[0]["data"][0]["z"], float)
    pairs = (app.table or app.dataframe)[0].value
    expected = [matrix[int(first) - 1, int(second) - 1] for first, second in pairs["pair"].str.findall(r"\d+")]
    if app.table:
        assert list(pairs["percentile"]) == [calibration.rounded(value / 100) for value in expected]
    else:
        np.testing.assert_allclose(pairs["percentile"], np.minimum(expected, 99.99), atol=0.006)
        assert pairs["percentile"].max() < 100


def test_the_colour_bar_has_a_line_only_for_one_model(open_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    """Two models have two levels, and one bar; each finding names that of its model."""
    for address, count in (({}, 1), ({"m2": str(tiny_folder("roberta"))}, 0)):
        app = open_page("heatmaps", v="sentence-pairs", **address)
        (bar,) = [item.proto.body for item in app.get("html") if "bi-scale" in item.proto.body]
        assert (bar.count("(line: "), bar.count("<b style")) == (2 * count, count)
        assert not app.exception


def test_only_a_chosen_pair_has_a_frame(open_page: Open) -> None:
    app = open_page("heatmaps", v="sentence-pairs")
    assert "shapes" not in figures(app)[0]["layout"]
    app.run()
    assert "shapes" not in figures(app)[0]["layout"]
    app.selectbox(key="why_pair").select_index(1).run()
    assert len(figures(app)[0]["layout"]["shapes"]) == 4  # two frames of two lines each
    chosen = app.selectbox(key="why_pair").value
    first, second = map(int, chosen.split("-"))
    centres = {
        ((item["x0"] + item["x1"]) / 2, (item["y0"] + item["y1"]) / 2) for item in figures(app)[0]["layout"]["shapes"]
    }
    assert centres == {(first, second), (second, first)}
    choose_view(app, "layer-pairs")
    choose_view(app, "sentence-pairs")
    assert app.selectbox(key="why_pair").value == chosen  # the box and the frame agree
    assert len(figures(app)[0]["layout"]["shapes"]) == 4


@pytest.mark.parametrize("view", ["blocks", "tokens", "pairs"])
def test_long_texts_are_drawn_in_cells_that_are_means(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    """With a limit of 64 cells in place of 360,000: 8 x 8 tokens still have a cell each, more do not."""
    drawn = figures(open_page("heatmaps", view=view))[0]
    whole = drawn["data"][0] | ({"z": pictures_of(drawn)[0]} if view == "blocks" else {})
    monkeypatch.setattr(blocks, "MOST_CELLS", 64)
    monkeypatch.setattr(blocks, "COARSE", 4)
    app = open_page("heatmaps", view=view)
    cells = figures(app)[0]["data"][0]
    rows, columns = whole["z"].shape
    factor = -(-max(rows, columns) // 4)
    assert factor > 1
    expected = [
        [whole["z"][i : i + factor, j : j + factor].mean() for j in range(0, columns, factor)]
        for i in range(0, rows, factor)
    ]
    assert_close(cells["z"], expected)
    assert cells["y"][0] == f"0–{factor - 1}"
    assert f"each cell is the mean of {factor} × {factor}" in texts(app)


def test_the_most_alike_words_of_a_pair_stand_beside_the_same_words_read_apart(open_page: Open) -> None:
    app = open_page("heatmaps", v="read-together", l="6", pb=["1", "2"])
    together = backend().trace([BANK[0]] * 2, list(BANK[1:])).hidden_states[6]
    apart = backend().trace(BANK).hidden_states[6]
    said = texts(app)
    read_apart = [float(cosine(apart[0, 5], apart[row, column])) for row, column in ((1, 7), (2, 6))]
    assert f", more than when read apart ({read_apart[0]:.2f} and {read_apart[1]:.2f})." in said
    assert f"most alike: **{cosine(together[0, 5], together[0, 16]):.2f}** with sentence 2 and " in said
    assert f" and {cosine(together[1, 5], together[1, 15]):.2f} with sentence 3, " in said
    assert (
        f"Special tokens are higher: [SEP] with [SEP] of sentence 2 ({cosine(together[0, 9], together[0, 21]):.2f})."
        in said
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [(0.3, ", less than when read apart ({} and {})."), (0.01, " (read apart {} and {})."), (-0.01, " (read apart ")],
)
def test_words_that_are_less_or_as_alike_as_when_read_apart(more: float, said: str) -> None:
    trace = backend().trace([BANK[0]] * 2, list(BANK[1:]))
    between = [block_change.between_texts(trace, 6, row) for row in range(2)]
    apart = [pair.matrix + more for pair in between]
    names = ["sentence 2", "sentence 3"]
    text = together._most_alike(trace, between, apart, names, dict(enumerate(between)))
    cosines = re.findall(r"(\d\.\d\d)(?:\*\*)? with sentence", text)
    assert said.format(*(f"{float(found) + more:.2f}" for found in cosines)) in text
    assert "more than" not in text


def test_a_pair_with_a_text_without_tokens_has_no_mean(open_page: Open) -> None:
    app = open_page("heatmaps", v="read-together", s=["a bank", "\u200b", "a river"], sa="0", pb=["1", "2"])
    assert "A text without tokens has no cosine: sentence 2. Of the words, the two “a” are most alike: **" in texts(app)
    assert " with sentence 3 (read apart " in texts(app)
    assert "Mean of all cells but those of special tokens: " in texts(app)
    assert " with sentence 2" not in texts(app)


@pytest.mark.parametrize(
    ("sentences", "finding", "captions"),
    [
        (["\u200b", "a bank", "\u200b"], "A text without tokens has no cosine: sentence 1 and sentence 3.", 0),
        (["...", "!", "?"], "Mean of all cells but those of special tokens: ", 0),
        (["a bank", "!", "a river"], "Of the words, the two “a” are most alike: ", 1),
    ],
)
def test_pairs_without_words_have_their_mean_once_or_none(
    open_page: Open, sentences: list[str], finding: str, captions: int
) -> None:
    app = open_page("heatmaps", v="read-together", s=sentences, sp="1")
    assert not app.exception
    assert finding in texts(app)
    assert [item.value.startswith("Mean of all cells") for item in app.caption].count(True) == captions
    assert texts(app).count("Mean of all cells") == captions + finding.startswith("Mean")


def test_the_most_alike_pieces_of_words_are_named_as_pieces(open_page: Open) -> None:
    app = open_page("heatmaps", v="read-together", s=["embeddings", "embeddings"])
    assert re.search(r"Of the words, the two “\\#\\#[a-z]+” of “embeddings” are most alike: ", texts(app))


def test_pairs_are_read_apart_also_where_all_sentences_are_too_long_to_read_at_once(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (together, tokenization):
        monkeypatch.setattr(module, "MAX_CHARACTERS", 55)
    app = open_page("heatmaps", v="read-together", s=["a bank", "a river", "money", "w" * 40])
    assert not app.error
    assert [item["layout"]["title"]["text"][:18] for item in figures(app)] == [
        "Sentences 1 and 2,",
        "Sentences 1 and 3,",
    ]
    assert "(read apart " in texts(app)
