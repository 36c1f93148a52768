"""Heatmaps: their numbers, their costs, their messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from components.analysis.pooling import pool
from components.analysis.similarity import calibration
from components.arrays import cosine
from components.charts import theme
from dashboard import caching, ready_made
from dashboard.views.heatmaps import blocks, together
from tests.support.closeness import assert_close
from tests.support.pages import BANK, Open, backend, choose_view, figures, texts

THREE_GROUPS = ready_made.ready_made_sets()["three-groups"].sentences


def test_first_and_last_block_side_by_side_on_one_scale_until_each_has_its_own(open_page: Open) -> None:
    app = open_page("heatmaps")
    first, last = figures(app)[:2]
    hidden = backend().trace([BANK[0]], [None]).hidden_states[:, 0]
    for figure, block in ((first, 0), (last, 5)):
        expected = cosine(hidden[block][:, None], hidden[block + 1][None])
        np.testing.assert_allclose(figure["data"][0]["z"], expected, atol=1e-5)
    assert (first["data"][0]["zmin"], first["data"][0]["zmax"]) == (last["data"][0]["zmin"], last["data"][0]["zmax"])
    mean = caching.baseline(backend()).tokens.raw.mean
    assert f"Two unrelated tokens: {mean[0]:.2f} at layer 0, {mean[1]:.2f} at layer 1" in texts(app)
    assert "shapes" not in first["layout"]  # lines are between the texts of a pair
    # One colour bar for both.
    assert [figure["data"][0]["showscale"] for figure in (first, last)] == [False, False]
    low, high = (first["data"][0][end] for end in ("zmin", "zmax"))
    (bar,) = [item for item in app.get("html") if 'class="bi-scale"' in item.proto.body]
    assert f"<span>{theme.number(low, 2)}</span>" in bar.proto.body
    assert f"<span>{theme.number(high, 2)}</span>" in bar.proto.body
    app.toggle(key="w_own_scale").set_value(True).run()
    first, last = figures(app)[:2]
    assert first["data"][0]["zmin"] != last["data"][0]["zmin"]
    assert [figure["data"][0]["showscale"] for figure in (first, last)] == [True, True]
    assert not [item for item in app.get("html") if 'class="bi-scale"' in item.proto.body]


def test_colours_mean_the_same_whatever_blocks_are_shown(open_page: Open) -> None:
    app = open_page("heatmaps")
    before = figures(app)[0]["data"][0]
    app.number_input(key="w_second_block").set_value(2).run()
    after = figures(app)[0]["data"][0]
    assert (before["zmin"], before["zmax"]) == (after["zmin"], after["zmax"])


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
    lines = figures(app)[2]["data"]
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
    app = open_page("heatmaps", v="inside-block", b1="2")
    record = backend().inside(BANK[0])
    turns, lengths = ({trace["name"]: trace["y"] for trace in figure["data"]} for figure in figures(app))
    attention = np.degrees(np.arccos(cosine(record.hidden_states[2], record.after_attention[2])))
    feed_forward = np.degrees(np.arccos(cosine(record.after_attention[2], record.hidden_states[3])))
    np.testing.assert_allclose(turns["attention step"], attention, rtol=1e-4)
    np.testing.assert_allclose(turns["feed-forward step"], feed_forward, rtol=1e-4)
    larger = "attention" if attention.mean() > feed_forward.mean() else "feed-forward"
    assert f"In block 2 the {larger} step changes the tokens more" in texts(app)
    assert f"attention turns their vectors by {attention.mean():.0f}°" in texts(app)
    for name, part in (
        ("before the block", record.hidden_states[2]),
        ("added by attention", record.attention_output[2]),
        ("added by feed-forward", record.feed_forward_output[2]),
    ):
        np.testing.assert_allclose(lengths[name], np.linalg.norm(part, axis=-1), rtol=1e-5)
    assert "residual" not in texts(app)


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
    for item, text in zip(drawn, FIVE[1:], strict=False):
        inputs = tokenizer(FIVE[0], text, return_tensors="pt")
        with torch.inference_mode():
            states = model(**inputs, output_hidden_states=True).hidden_states[4][0].numpy()
        heat = item["data"][0]
        np.testing.assert_allclose(heat["z"], cosine(states[:, None], states[None]), atol=1e-5)
        second = inputs["token_type_ids"][0].tolist().index(1)
        assert item["layout"]["shapes"][2]["x0"] == second - 0.5  # the frame: A's rows in the other's columns
        assert item["layout"]["shapes"][2]["y1"] == second - 0.5
        assert list(heat["y"])[second].split()[0] == str(second)
        kinds = inputs.sequence_ids(0)
        rows, columns = ([place for place, kind in enumerate(kinds) if kind == half] for half in (0, 1))
        mean = float(cosine(states[rows][:, None], states[columns][None]).mean())
        assert f"**{mean:.2f}** on average" in texts(app)
    assert len({(item["data"][0]["zmin"], item["data"][0]["zmax"]) for item in drawn}) == 1


def test_pairs_read_together_cost_one_pass_and_no_more_for_layers(open_page: Open) -> None:
    before = backend().forward_passes
    app = open_page("heatmaps", v="read-together", s=["One pass for", "all of", "these four", "pairs of this", "test."])
    assert backend().forward_passes == before + 1
    limits = figures(app)[0]["data"][0]["zmin"]
    app.number_input(key="w_layer").set_value(2).run()
    app.toggle(key="w_include_special").set_value(False).run()
    assert backend().forward_passes == before + 1
    app.toggle(key="w_include_special").set_value(True).run()
    assert figures(app)[0]["data"][0]["zmin"] == limits  # one scale for all layers


def test_the_sentences_that_a_is_read_with_can_be_chosen(open_page: Open) -> None:
    app = open_page("heatmaps", v="read-together", s=list(FIVE), sa="1", sb="1", pb=["5", "2"])
    titles = [item["layout"]["title"]["text"] for item in figures(app)]
    assert titles == ["2 + 6, layer 6", "2 + 3, layer 6"]
    app.multiselect(key="w_partners").set_value([]).run()  # the sentence chosen as B is among the next four already
    titles = [item["layout"]["title"]["text"] for item in figures(app)]
    assert titles == ["2 + 1, layer 6", "2 + 3, layer 6", "2 + 4, layer 6", "2 + 5, layer 6"]
    app = open_page("heatmaps", v="read-together", s=["a bank"])
    assert [item["layout"]["title"]["text"] for item in figures(app)] == ["1 + 1, layer 6"]


def test_as_many_pairs_are_drawn_as_the_page_has_room_for(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "MOST_CELLS", 10_000)  # in place of 360,000
    app = open_page("heatmaps", v="read-together", s=[f"bank {'river ' * 24}{number}" for number in range(5)])
    sizes = [len(item["data"][0]["y"]) for item in figures(app)]
    assert sum(size**2 for size in sizes) <= together.MOST_CELLS < (len(sizes) + 1) * sizes[0] ** 2
    assert f"Only {len(sizes)} pairs of 4" in texts(app)
    app = open_page("heatmaps", v="read-together", s=["bank " * 200, "river " * 200, "money"], len="80")
    assert not app.error
    assert "of sentence 1: it is longer" in texts(app)
    assert "1 + 2" in figures(app)[0]["layout"]["title"]["text"]


def test_a_block_of_a_pair_has_the_lines_between_its_texts(open_page: Open) -> None:
    app = open_page("heatmaps", sb="2")
    second = backend().tokenize([BANK[0]])[0]
    assert figures(app)[0]["layout"]["shapes"][0]["x0"] == len(second) - 0.5


def test_cka_warns_of_few_tokens_and_compares_two_models(open_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    app = open_page("heatmaps", v="layer-pairs", m2=str(tiny_folder("roberta")), s=list(THREE_GROUPS))
    own, both = figures(app)
    matrix = own["data"][0]["z"]
    assert_close(np.diag(matrix), 1)
    assert_close(matrix, matrix.T)
    assert both["data"][0]["z"].shape == (7, 4)
    assert re.search(r"With only \d+ tokens unrelated layers would reach about 0\.\d\d", texts(app))
    assert any("geometry (linear CKA)" in item.proto.body for item in app.get("html"))
    assert re.search(r"About [\d,]+ tokens (would )?bring this below 0\.1", texts(app))
    assert "few hundred" not in texts(app)
    assert "no linear relation" in texts(app)


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
    app = open_page("heatmaps", v="token-pairs", s=["bank river money " * 200], ag="0")
    chart = app.get("plotly_chart")[0].proto.spec
    assert len(chart) < 3 * 2**20
    assert figures(app)[0]["data"][0]["z"].shape == (512, 512)
    assert len(figures(app)[0]["layout"]["xaxis"]["tickvals"]) <= 20


def test_two_pictures_that_are_too_large_together_are_shown_in_turn(open_page: Open) -> None:
    app = open_page("heatmaps", s=["bank river money " * 200])
    pictures = [figure for figure in figures(app) if figure["data"][0]["type"] == "heatmap"]
    assert [picture["layout"]["title"]["text"] for picture in pictures] == ["Block 0: layer 0 to layer 1"]
    assert sum(len(chart.proto.spec) for chart in app.get("plotly_chart")) < 3 * 2**20
    app.segmented_control(key="w_one_side").set_value("right").run()
    pictures = [figure for figure in figures(app) if figure["data"][0]["type"] == "heatmap"]
    assert [picture["layout"]["title"]["text"] for picture in pictures] == ["Block 5: layer 5 to layer 6"]


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
    assert figures(app)[0]["layout"]["title"]["text"] == "Block 5: layer 5 to layer 6"
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
    expected = [matrix[int(first) - 1, int(second) - 1] for first, second in pairs["pair"].str.split(" – ")]
    if app.table:
        assert list(pairs["percentile"]) == [calibration.rounded(value / 100) for value in expected]
    else:
        np.testing.assert_allclose(pairs["percentile"], np.minimum(expected, 99.99), atol=0.006)
        assert pairs["percentile"].max() < 100


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
    whole = figures(open_page("heatmaps", view=view))[0]["data"][0]
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
