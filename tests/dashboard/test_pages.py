"""Every page under AppTest: what it shows, what it costs, what it says when something is wrong."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from components import VERSION, packing
from components.analysis.pooling import pool
from components.analysis.similarity import cosines
from components.arrays import cosine
from components.charts import curves
from components.model.files import example_tokenizers
from dashboard import caching, ready_made, state
from dashboard.declared import table
from dashboard.ui import figures as feedback
from dashboard.ui import sidebar
from dashboard.ui.waiting import progress
from dashboard.views.about import text as about
from dashboard.views.layers import layer_figures
from dashboard.views.layers import sections as layer_sections
from dashboard.views.model import sections as model_sections
from dashboard.views.tokens import sections
from tests.dashboard.page_states import small_corpus
from tests.support.closeness import assert_close
from tests.support.pages import (
    BANK,
    Open,
    backend,
    charts,
    chips,
    choose_view,
    figures,
    go_to,
    plain_table,
    read_texts,
    setting,
    texts,
    traces,
    type_sentences,
)
from tests.support.places import ROOT
from tests.support.tiny import save_tiny

TITLES = {
    "home": "See what BERT makes of your words",
    "lessons": "What can be learnt here?",
    "pieces": "How does text become numbers?",
    "model-facts": "What is inside the model?",
    "one-word": "How does a word's vector change?",
    "block": "What does a block do to each token?",
    "head-view": "Which token attends to which?",
    "two-layers": "How do blocks rearrange the tokens?",
    "score-split": "What makes these two texts similar?",
    "hits": "Which sentences come closest?",
    "failed-search": "Which queries fail, and what do they share?",
    "layer-grid": "Which layer and pooling retrieve best?",
    "training-data": "What does the model learn from?",
    "laboratory": "What do you want to know?",
    "one-input": "What is a cross-encoder given?",
    "lecture": "My lecture",
    "glossary": "Glossary",
    "about": "About BERT Internals",
}


def complete_figures(app: AppTest) -> int:
    """How many figures a page has, each with a title, names of its axes and an alternative text."""
    drawn = figures(app)
    for chart, figure in zip(charts(app), drawn, strict=True):
        assert figure["layout"]["title"]["text"]
        assert chart.proto.alt
        axes = [figure["layout"][axis].get("title", {}).get("text") for axis in ("xaxis", "yaxis")]
        assert all(axes), figure["layout"]["title"]
    return len(drawn)


@pytest.mark.parametrize("view", TITLES)
def test_a_page_opens_with_its_title_without_errors_and_with_the_controls_of_what_it_uses(
    open_page: Open, view: str
) -> None:
    address = {"by": "pca"} if view == "two-layers" else {}  # UMAP would be compiled first
    if view in {"hits", "failed-search", "layer-grid"}:
        address = {"corpus": small_corpus()}
    app = open_page(view, **address)
    assert [item.value for item in app.title] == [TITLES[view]]
    assert not app.exception
    assert not app.error
    assert not app.warning
    if view in (drawn := {"one-word": 1, "model-facts": 1, "block": 2}):
        assert complete_figures(app) == drawn[view]
    if view not in {"lessons", "lecture", "glossary", "about"}:
        models = {item.key for item in app.sidebar.selectbox}
        assert ("w_model2" in models) == (view in {"one-word", "hits"})
        assert "w_model" in models
        of_corpora = {"hits", "failed-search", "layer-grid", "training-data", "laboratory", "one-input"}
        uses_sentences = view not in {"home", *of_corpora}
        assert ("w_set" in {item.key for item in app.main.selectbox}) == uses_sentences
        editors = [item for item in app.get("bidi_component") if "One sentence per line" in item.proto.json]
        assert len(editors) == uses_sentences


def test_every_page_is_opened() -> None:
    assert {table.place_of(view) for view in TITLES} == table.PAGE_BY_KEY.keys()


def test_figures_of_other_views_have_a_title_axes_and_an_alternative_text(open_page: Open) -> None:
    nine = list(ready_made.ready_made_sets()["nine-scenes"].sentences)
    for page, address in (
        ("heatmaps", {"view": "sentences"}),
        ("attention", {"view": "matrix"}),
        ("attention", {"view": "flow"}),
        ("layers", {"s": nine}),
    ):
        assert complete_figures(open_page(page, **address)) == 1, (page, address)


# --- Layers


def test_the_bank_curves_read_what_plain_transformers_gives(read_page: Open) -> None:
    curves = traces(read_page("layers"))
    expected = {
        "bank (rob) – bank (river)": [0.966, 0.878, 0.841, 0.834, 0.836, 0.882, 0.773],
        "bank (rob) – bank (money)": [0.988, 0.964, 0.897, 0.883, 0.893, 0.913, 0.856],
        "bank (river) – bank (money)": [0.989, 0.921, 0.849, 0.818, 0.810, 0.835, 0.745],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(curves[name], values, atol=0.002)


def test_the_band_is_the_models_baseline(read_page: Open) -> None:
    curves = traces(read_page("layers"))
    band = caching.baseline(backend()).tokens.raw
    assert_close(curves["unrelated tokens"], band.mean)
    assert_close(curves["5 %"], band.low)
    assert_close(curves["95 %"], band.high)


def test_controls_cost_no_forward_pass(open_page: Open) -> None:
    app = open_page("layers")
    model = backend()
    caching.baseline(model)
    before = model.forward_passes
    app.toggle(key="w_centred").set_value(True).run()
    app.toggle(key="w_whole_word").set_value(False).run()
    app.toggle(key="w_show_baseline").set_value(False).run()
    app.session_state["tokens"] = (1, 2, 3)
    app.run()
    choose_view(app, "sentence-curves")
    for pooling in ("cls", "max", "mean"):
        app.segmented_control(key="w_pooling").set_value(pooling).run()
    app.toggle(key="w_include_special").set_value(False).run()
    go_to(app, "model")
    choose_view(app, "output-vectors")
    app.slider(key="w_layer").set_value(2).run()
    assert not app.error
    assert model.forward_passes == before


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_sentence_curves_are_the_pooled_cosines(open_page: Open, pooling: str) -> None:
    app = open_page("layers", v="sentence-curves", pool=pooling)
    assert complete_figures(app) == 3  # the other two poolings stand small beside it
    trace = backend().trace(BANK)
    vectors = pool(trace, pooling)
    for small, other in zip(
        figures(app)[1:], [name for name in ("mean", "cls", "max") if name != pooling], strict=True
    ):
        of_other = pool(trace, other)
        *band, _, curve, _ = small["data"]  # the three curves lie on the band of unrelated sentences in that pooling
        assert_close(np.array(curve["y"], np.float64), cosine(of_other[:, 0], of_other[:, 2]))
        levels = caching.sentence_baseline(backend(), other, True).raw
        edges = [np.asarray(each["y"], float) for each in band]
        assert all(any(np.allclose(edge, level, atol=1e-6) for edge in edges) for level in (levels.low, levels.high))
        drawn = np.concatenate([np.asarray(each["y"], float) for each in small["data"]])
        low, high = small["layout"]["yaxis"]["range"]  # its own scale, which it fills
        assert low < drawn.min() < drawn.max() < high
        assert np.ptp(drawn) > 0.8 * (high - low)
    curves = traces(app)
    names = ("We will rob a bank …", "The children skipped …", "I put money in the …")
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert_close(curves[f"{names[a]} – {names[b]}"], cosine(vectors[:, a], vectors[:, b]))


def test_centred_curves_subtract_the_samples_mean(open_page: Open) -> None:
    app = open_page("layers", c="1")
    centre = caching.baseline(backend()).tokens.centre
    trace = backend().trace(BANK)
    a = trace.token_vectors(0, [5])[:, 0] - centre
    b = trace.token_vectors(2, [6])[:, 0] - centre
    np.testing.assert_allclose(traces(app)["bank (rob) – bank (money)"], cosine(a, b), atol=1e-5)


def test_a_chosen_token_changes_the_curves_and_the_address(open_page: Open) -> None:
    app = open_page("layers", t=["3", "3", "2"])
    assert [row["words"][3]["tokens"][0]["picked"] for row in chips(app)["rows"]][:2] == [True, True]
    assert "rob – skipped" in traces(app)
    assert app.query_params["t"] == ["3", "3", "2"]


def test_two_tokens_of_one_sentence(open_page: Open, read_page: Open) -> None:
    app = open_page("layers", v="two-tokens", t=["5", "7", "6"], t2="3")
    trace = backend().trace(BANK)
    expected = cosine(trace.token_vectors(0, [5])[:, 0], trace.token_vectors(0, [3])[:, 0])
    assert_close(traces(app)["bank – rob"], expected)
    assert set(traces(read_page("layers", v="two-tokens"))) >= {"bank – stones"}  # the default: two content words


def test_two_tokens_no_more_similar_than_unrelated_ones_are_said_so() -> None:
    pair = cosines.pair_curves(np.array([[[1.0, 0], [1, 1]], [[1, 0], [1, 3]]], np.float32), ["a", "b"])
    for high, is_within in ((0.8, True), (0.6, False)):  # the cosine at layer 0 is 0.71
        band = curves.BandData(np.zeros(2), np.zeros(2), np.full(2, high), "two unrelated tokens")
        assert ("; at no layer above 95 % of two unrelated tokens." in layer_figures.summary(pair, band)) is is_within


def test_cls_is_said_to_start_at_1_only_where_its_curves_do(open_page: Open) -> None:
    said = "every curve of [CLS] starts at exactly 1"
    assert said in texts(open_page("layers", v="sentence-curves", pool="cls"))
    assert said not in texts(open_page("layers", v="sentence-curves", pool="cls", c="1"))  # NaN at layer 0
    other = backend().trace(["A bank.", "The river."])
    moved = other.hidden_states.copy()
    moved[0, 1, 0] += 0.1
    assert layer_sections.starts_at_one([other])
    unit = other.hidden_states[:, :, 0] / np.linalg.norm(other.hidden_states[:, :, 0], axis=-1, keepdims=True)
    until = int(np.argmin((unit[:, 0] * unit[:, 1]).sum(axis=-1) >= 0.99)) - 1
    assert f"Up to layer {until} they stay above 0.99: " in layer_sections.why_at_one([other])
    apart = other.hidden_states.copy()
    apart[1, 1, 0] = -apart[1, 1, 0]
    assert layer_sections.why_at_one([replace(other, hidden_states=apart)]).endswith("starts at exactly 1.")
    assert not layer_sections.starts_at_one([replace(other, hidden_states=moved)])


def test_one_token_against_all_others(open_page: Open, read_page: Open) -> None:
    app = read_page("layers", v="one-against-all")
    trace = backend().trace(BANK)
    own = trace.token_vectors(1, [7])[:, 0]  # the bank of the river, which differs most
    (figure,) = figures(app)
    assert figure["layout"]["title"]["text"] == "“bank” in “The children skipped<br>stones by the bank of the river.”"
    rows = strip_rows(figure)
    assert len(rows) == len(trace.sentences[1]) - 1
    assert "bank" not in rows  # itself
    for name, position in (("river", 10), ("[CLS]", 0), ("children", 2)):
        np.testing.assert_allclose(rows[name], cosine(own, trace.token_vectors(1, [position])[:, 0]), atol=1e-5)
    last = [values[-1] for values in rows.values()]
    assert last == sorted(last, reverse=True)
    said = read_texts(app)
    assert "After the last block “bank” of sentence 2 is most like “river”" in said
    chosen = open_page("layers", v="one-against-all", t=["5", "7", "6"])
    assert len(strip_rows(figures(chosen)[0])) == len(trace.sentences[0]) - 1  # as before: that of the first sentence


def strip_rows(figure: dict[str, Any]) -> dict[str, np.ndarray]:
    """The rows of a strip by the names that a person sees where they point."""
    heat = figure["data"][0]
    names = [row[0][0] for row in heat["customdata"]]
    return dict(zip(names, np.asarray(heat["z"], np.float64), strict=True))


def test_equal_words_of_one_sentence_are_told_apart_by_position(open_page: Open) -> None:
    app = open_page("layers", s=["the cat saw the other cat"], v="one-against-all")
    (figure,) = figures(app)
    assert {"saw", "the (1)", "the (4)", "cat (6)"} <= set(strip_rows(figure))


def test_a_link_of_an_older_form_opens_its_view(read_page: Open) -> None:
    for older, view in (("within", "two-tokens"), ("against", "one-against-all"), ("sentences", "sentence-curves")):
        app = read_page("layers", view=older)
        assert app.session_state[table.view_setting(table.place_of(view))] == view
        assert not app.warning
        assert dict(app.query_params) == {"v": view}


def test_sentences_are_named_by_the_words_that_differ(open_page: Open) -> None:
    weather = ready_made.ready_made_sets()["weather"].sentences
    assert {"… nice today. – … bad today.", "… bad today. – … lovely today."} < set(
        traces(open_page("layers", s=list(weather), v="sentence-curves"))
    )
    assert layer_figures.short_names(["a b", "a b"]) == ["1 a b", "2 a b"]
    assert layer_figures.short_names(["The soup is hot", "The soup is hot today"]) == [
        "The soup is hot",
        "The soup is hot today",
    ]
    assert layer_figures.short_names(["Donaudampfschifffahrtsgesellschaft"]) == ["Donaudampfschifffahrts …"]


@pytest.mark.parametrize(
    ("key", "shown_in", "left_out_in"),
    [
        ("weather", "across", "within"),
        ("bank", "across", "pieces"),
        ("idiom", "sentences", "across"),
        ("numbers", "pieces", "sentences"),
    ],
)
def test_a_hint_is_shown_only_where_it_belongs(open_page: Open, key: str, shown_in: str, left_out_in: str) -> None:
    item = ready_made.ready_made_sets()[key]
    for view, is_shown in ((shown_in, True), (left_out_in, False)):
        page, address = ("tokens", {}) if view == "pieces" else ("layers", {"view": view})
        assert (item.look_for in texts(open_page(page, s=list(item.sentences), **address))) is is_shown, view


# --- Layers


def test_a_comparison_of_different_words_is_called_one(open_page: Open) -> None:
    three = ["She sat by the table.", "He swims fast.", "A banana is yellow."]
    app = open_page("layers", s=three, t=["5", "2", "2"])
    assert (
        figures(app)[0]["layout"]["title"]["text"].replace("<br>", " ") == "Three different words: table, swims, banana"
    )
    assert "three different words (table, swims, banana): no curve shows how one word changes." in read_texts(app)
    ducks = ["The duck swims.", "They duck under the table.", "Fruit flies like a banana."]
    app = open_page("layers", s=ducks, t=["2", "2", "5"])
    assert "duck (swims) – duck (table)" in traces(app)
    assert "only a curve of equal words shows" in read_texts(app)
    app = open_page("layers", s=ducks)
    assert [name for name in traces(app) if " – " in name] == ["duck (swims) – duck (table)"]
    assert "different words" not in read_texts(app)
    app = open_page("layers", s=["A bat flew over the house.", "Bats sleep by day."])
    assert figures(app)[0]["layout"]["title"]["text"] == "“bat” and “Bats” across sentences"
    assert "different words" not in read_texts(app)


def test_different_words_are_never_compared_by_themselves(open_page: Open) -> None:
    app = open_page("layers", s=["She sat by the table.", "He swims fast.", "A banana is yellow."])
    said = read_texts(app)
    assert "different words" not in said
    assert "“swims” occurs once; the nearest content word of its sentence is fast" in said
    app = open_page("layers", s=["The seal broke the seal on the letter."])
    assert [name for name in traces(app) if " – " in name] == ["seal (broke) – seal (on)"]
    assert "The two “seal”" in read_texts(app)


def test_a_click_on_a_word_compares_its_occurrences(open_page: Open) -> None:
    app = open_page("layers")
    (words,) = [item for item in app.button_group if item.key == "ready_words"]
    assert words.options[:4] == ["bank ×3", "the ×4", "rob", "week"]
    words.set_value("7").run()
    assert app.query_params["t"] == ["5", "10", "6"]
    assert app.query_params["n"] == "1"
    assert "“river” occurs once" in read_texts(app)
    (words,) = [item for item in app.button_group if item.key == "ready_words"]
    words.set_value("1").run()
    assert len([name for name in traces(app) if " – " in name]) == 6  # "the" stands four times


def test_many_sentences_become_a_matrix_by_layer(open_page: Open) -> None:
    nine = ready_made.ready_made_sets()["nine-scenes"].sentences
    app = open_page("layers", s=list(nine), v="sentence-curves", l="4")
    figure = figures(app)[0]
    assert figure["data"][0]["type"] == "heatmap"
    vectors = pool(backend().trace(nine), "mean")[4]
    expected = cosine(vectors[:, None], vectors[None])
    off_diagonal = ~np.eye(len(nine), dtype=bool)
    drawn = np.asarray(figure["data"][0]["z"])
    np.testing.assert_allclose(drawn[off_diagonal], expected[off_diagonal], atol=1e-5)
    assert np.isnan(np.diag(drawn)).all()  # grey: each sentence with itself


def test_many_tokens_against_one_become_rows(open_page: Open) -> None:
    text = ready_made.ready_made_sets()["paragraph"].sentences[0]
    figure = figures(open_page("layers", s=[text], v="one-against-all"))[0]
    assert figure["data"][0]["type"] == "heatmap"
    assert figure["data"][0]["z"].shape[1] == 7


def test_one_sentence_is_compared_within_itself(open_page: Open) -> None:
    app = open_page("layers", s=["The cat sat on the mat."])
    assert "“mat” occurs once; the nearest content words of its sentence are" in texts(app)
    (figure,) = figures(app)
    trace = backend().trace(["The cat sat on the mat."])
    mat = trace.token_vectors(0, [6])[:, 0]
    assert_close(traces(app)["cat"], cosine(mat, trace.token_vectors(0, [2])[:, 0]))
    assert len(figure["layout"]["annotations"]) == 3  # two words and the band, at the ends of their curves
    choose_view(app, "sentence-curves")
    assert "Add a second one" in texts(app)
    assert not figures(app)


def test_a_second_model_stands_beside_the_first_on_one_scale(
    open_page: Open, tiny_folder: Callable[[str], Path]
) -> None:
    folder = tiny_folder("roberta")
    app = open_page("layers", m2=str(folder))
    first, second = figures(app)
    assert first["layout"]["yaxis"]["range"] == second["layout"]["yaxis"]["range"]
    assert len(first["data"][-1]["x"]) == 7
    assert len(second["data"][-1]["x"]) == 4
    assert folder.name in second["layout"]["title"]["text"]


def test_data_comes_as_a_table_with_all_layers(open_page: Open) -> None:
    app = open_page("layers")
    app.session_state["data_words_0"] = True
    app.run()
    frame = app.dataframe[0].value
    assert list(frame["pair"][:3]) == [
        "bank (rob) – bank (river)",
        "bank (rob) – bank (money)",
        "bank (river) – bank (money)",
    ]
    assert frame["layer 6"][0] == pytest.approx(0.773, abs=0.002)
    assert frame["lowest"][0] == 6
    assert frame["highest"][1] == 0


# --- Tokens


def test_chips_are_the_tokenizers_pieces(open_page: Open) -> None:
    app = open_page("tokens", s=["An unputdownable book 😀"])
    words = chips(app)["rows"][0]["words"]
    assert [token["piece"] for token in words[2]["tokens"]] == ["un", "##put", "##down", "##able"]
    assert words[0]["tokens"][0]["marks"] == ["special"]
    assert "unknown" in words[4]["tokens"][0]["marks"]
    assert "not in the vocabulary: “😀”" in texts(app)


def test_a_picked_token_shows_its_facts(open_page: Open) -> None:
    app = open_page("tokens", n="1", t=["5", "7", "6"])
    shown = {
        label.value: value.value
        for column in app.main.columns
        for label, value in zip(column.caption, column.text, strict=False)
    }
    assert shown == {
        "Piece": "bank",
        "Id": "2924",
        "Position (from 0)": "7",
        "Characters (from 0)": "35 to 38",
        "Stands for": "bank",
        "Sentence": "2",
        "Word": "bank",
        "Token type (segment)": "0",
        "Attention mask": "1",
        "Special token": "no",
    }


def test_chips_of_pieces_have_ids_and_say_where_they_count_from(open_page: Open, read_page: Open) -> None:
    shown = chips(open_page("tokens"))
    ids = ["101", "1045", "2404", "2769", "1999", "1996", "2924", "1012", "102"]
    assert [word["tokens"][0]["under"] for word in shown["rows"][2]["words"]] == [[number] for number in ids]
    assert (
        shown["rows"][0]["words"][5]["tokens"][0]["hint"] == "id 2924, position 5, characters 14 to 17 (counted from 0)"
    )
    assert BANK[0][14:18] == "bank"
    rows = chips(read_page("layers"))["rows"]
    assert not any(token["under"] for row in rows for word in row["words"] for token in word["tokens"])


def test_words_are_counted_without_punctuation(open_page: Open) -> None:
    app = open_page("tokens", s=["Well, yes!", "An unputdownable book."])
    counts = "15 pieces, the added ones included · 5 words · 1.60 pieces per word · 1 split word · 0.0 % unknown pieces"
    assert counts in texts(app)


def test_tensor_grids_show_ids_and_grey_padding(open_page: Open) -> None:
    app = open_page("tokens", v="input-tensors")
    html = next(item.proto.body for item in app.get("html") if "bi-grids" in item.proto.body)
    assert html.count('class="pad"') == 3 * (3 + 4)  # padding of two shorter sentences, in three tensors
    for name in ("input_ids", "token_type_ids", "attention_mask"):
        assert name in html
    assert 'title="bank">2924<' in html


def test_markup_in_a_sentence_is_text(open_page: Open) -> None:
    app = open_page("tokens", s=["<img src=x onerror=alert(1)> & <script>"], v="input-tensors")
    html = next(item.proto.body for item in app.get("html") if "bi-grids" in item.proto.body)
    assert "<img" not in html
    assert "<script" not in html


def test_decoding_names_what_was_lost(open_page: Open) -> None:
    app = open_page("tokens", s=["Hello  Zoë <i>", "plain words"], v="decoding")
    html = next(item.proto.body for item in app.get("html") if "bi-texts" in item.proto.body)
    parts = re.findall(r"<h6>(.*?)<span>(.*?)</span></h6>.*?<p>(.*?)</p>.*?<p>(.*?)</p>", html)
    assert parts == [
        (
            "Sentence 1:",
            "2 capitals and 1 accent lost; spaces differ",
            "<mark>H</mark>ello  <mark>Z</mark>o<mark>ë</mark> &lt;i&gt;",
            "<i>[CLS]</i> <mark>h</mark>ello <mark>z</mark>o<mark>e</mark> &lt; i &gt; <i>[SEP]</i>",
        ),
        ("Sentence 2:", "nothing is lost", "plain words", "<i>[CLS]</i> plain words <i>[SEP]</i>"),
    ]
    said = "Not exactly: 2 capitals and 1 accent (orange) do not come back; the spaces of 1 sentence differ."
    assert said in texts(app)
    (roles,) = (table.value.map(lambda cell: str(cell).replace("\\", "")) for table in app.table)
    assert dict(zip(roles["token"], roles["id"], strict=True))["[MASK]"] == "103"


def test_decoding_strikes_out_what_was_cut_off_and_says_when_all_comes_back(open_page: Open) -> None:
    app = open_page("tokens", s=["one two three <b>"], v="decoding", len="4")
    html = next(item.proto.body for item in app.get("html") if "bi-texts" in item.proto.body)
    assert "<p>one two <s>three &lt;b&gt;</s></p>" in html
    assert "Not exactly: 4 pieces are cut off." in texts(app)
    app = open_page("tokens", s=["a bank"], v="decoding")
    assert "Yes: decoding returns every sentence as it was typed." in texts(app)


def known(app: AppTest) -> dict[str, tuple[str, str, str]]:
    """The lines of the vocabulary's picture: by what is named, its id, its ticks in per cent, and what begins alike."""
    html = next(item.proto.body for item in app.get("html") if "bi-known" in item.proto.body)
    lines = re.findall(
        r'<th scope="row"[^>]*>(.*?)</th>(?:<td>(.*?)</td>)?<td class="stands"><u>(.*?)</u></td><td>(.*?)</td>', html
    )
    return {
        re.sub("<[^>]+>", "", name): (
            number,
            " ".join(re.findall(r"left: ([\d.]+)%", ticks)),
            re.sub("<[^>]+>", "", others),
        )
        for name, number, ticks, others in lines
    }


def test_the_vocabulary_tells_of_the_words_that_were_typed(open_page: Open) -> None:
    app = open_page("tokens", s=["An unputdownable bank"], v="vocabulary")
    names = sorted(backend().tokenization.vocabulary)
    drawn = known(app)
    for piece in ("an", "un", "##put", "##down", "##able", "bank"):
        number, ticks, others = drawn[piece]
        at = backend().tokenization.vocabulary.index(piece)
        assert number == f"{at:,}"
        assert ticks == f"{100 * at / (len(names) - 1):.2f}"
        assert others.split()[0] == f"{sum(name.startswith(piece) for name in names) - 1:,}".replace(
            "0", "none", 1
        ) or (others.split()[0] == f"{sum(name.startswith(piece) for name in names) - 1:,}")
    asked = "begins with “" + str(app.text_input(key="w_vocabulary_query").value) + "”"
    assert len(drawn[asked][1].split()) == len(app.dataframe[0].value)
    said = texts(app).replace("\\", "")
    assert (
        "1 of the 3 words of sentence 1 is not in the vocabulary whole: “unputdownable” is built from 4 pieces." in said
    )
    continuing = sum(name.startswith("##") and name != "##" for name in names)
    assert f"{continuing:,} of the 30,522 pieces begin with ##: they continue a word." in said


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (
            "The bank and the bank",
            "All 5 words of sentence 1 (3 different) are in the vocabulary whole; “bank” has the highest id, 2,924 of 30,522.",
        ),
        ("bank", "“bank” is in the vocabulary whole: id 2,924 of 30,522."),
        (
            "unputdownable",
            "The only word of sentence 1 is not in the vocabulary whole: “unputdownable” is built from 4 pieces.",
        ),
        ("a 😀", "“😀” is not among the 30,522 pieces of the vocabulary."),
        ("!?", "Sentence 1 has no word to look up among 30,522 pieces."),
    ],
)
def test_what_is_said_of_words_in_the_vocabulary(open_page: Open, typed: str, expected: str) -> None:
    assert expected in texts(open_page("tokens", s=[typed], v="vocabulary")).replace("\\", "")


def test_vocabulary_search(open_page: Open) -> None:
    app = open_page("tokens", v="vocabulary", vq="bankr")
    assert set(app.dataframe[0].value["piece"]) >= {"bankrupt", "bankruptcy"}
    app.segmented_control(key="w_vocabulary_mode").set_value("id").run()
    assert "is not an id" in texts(app)
    app.text_input(key="w_vocabulary_query").set_value("2924").run()
    assert list(app.dataframe[0].value["piece"]) == ["bank"]
    app.text_input(key="w_vocabulary_query").set_value("").run()
    assert app.text_input(key="w_vocabulary_query").value == ""
    assert "Type something to search the 30,522 pieces" in texts(app)


def test_the_vocabulary_begins_with_the_chosen_token_and_needs_no_sentence(open_page: Open) -> None:
    app = open_page("tokens", v="vocabulary", n="1", t=["5", "10", "6"])
    field = app.text_input(key="w_vocabulary_query")
    assert field.value == "river"
    assert field.proto.live_debounce_ms > 0
    assert set(app.dataframe[0].value["piece"]) >= {"river", "rivers"}
    assert "q" not in app.query_params
    app.segmented_control(key="w_vocabulary_mode").set_value("id").run()
    assert list(app.dataframe[0].value["piece"]) == ["river"]
    app = open_page("tokens", v="vocabulary", s=[""])
    assert "bank" in list(app.dataframe[0].value["piece"])
    assert "No sentence yet" not in texts(app)


def aligned(app: AppTest) -> list[list[str]]:
    """The columns of the comparison: the text, with a star where it is split differently, and the pieces of both."""
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-aligned" in item.proto.body]
    columns = re.findall(r'<div class="(different)?"><b>(.*?)</b><span>(.*?)</span><span>(.*?)</span></div>', drawn)
    plain = [[re.sub("<[^>]+>", "", re.sub("</i><i", "</i> <i", part)) for part in column[1:]] for column in columns]
    return [[("*" if column[0] else "") + row[0], *row[1:]] for column, row in zip(columns, plain, strict=True)]


def counts(app: AppTest) -> dict[str, str]:
    """How many pieces each tokenizer makes, by its name."""
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-aligned" in item.proto.body]
    return dict(re.findall(r"<span>([^<]+): <b>([^<]+)</b></span>", drawn))


def test_another_tokenizer_is_aligned(open_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    app = open_page("tokens", s=["a bank"], v="two-tokenizers", m2=str(tiny_folder("roberta")))
    assert app.segmented_control(key="w_other_tokenizer").value == "model"
    assert aligned(app) == [["a", "a", "a"], ["bank", "bank", "Ġbank"]]
    assert "no model's tokenizer" not in texts(app)  # it is one


def test_another_tokenizer_needs_no_second_model(open_page: Open) -> None:
    app = open_page("tokens", s=["An unputdownable bank"], v="two-tokenizers")
    columns = aligned(app)
    assert " ".join(column[1] for column in columns).split() == ["an", "un", "##put", "##down", "##able", "bank"]
    assert "".join(column[2] for column in columns).replace(" ", "") == "AnĠunputdownableĠbank"
    assert "".join(column[0].removeprefix("*") for column in columns) == "Anunputdownablebank"
    app.segmented_control(key="w_other_tokenizer").set_value("characters").run()
    columns = aligned(app)
    assert "".join(column[2] for column in columns).replace(" ", "") == "Anunputdownablebank"
    assert columns[-1] == ["*bank", "bank", "b a n k"]
    assert app.query_params["with"] in ("characters", ["characters"])
    assert counts(app) == {"all-MiniLM-L6-v2": "6 pieces", "Characters": "21 pieces"}
    app = open_page("tokens", v="two-tokenizers", **{"with": "model"})  # a link that names a model, but not which
    assert "second model's tokenizer is not available" in texts(app).replace("\\", "")
    assert app.segmented_control(key="w_other_tokenizer").value == "bytes"


def test_another_tokenizer_opens_with_a_difference_and_marks_it(open_page: Open) -> None:
    app = open_page("tokens", v="two-tokenizers")
    assert app.selectbox(key="w_sentence").value == 1  # the first sentence is split in the same way by both
    assert "n" not in app.query_params
    said = [item.value.replace("\\", "") for item in app.markdown]
    assert sum("2 of 10 words split differently" in text for text in said) == 1
    assert sum(example_tokenizers.limits("bytes") in text for text in said) == 1  # below the picture that it limits
    assert "“skipped”, “stones”" in texts(app)
    assert "Ġ means that a space comes before the piece." in texts(app)
    assert [column[0] for column in aligned(app) if column[0].startswith("*")] == ["*skipped", "*stones"]
    app.selectbox(key="w_sentence").set_value(0).run()
    assert app.query_params["n"] in ("0", ["0"])
    assert "Both tokenizers split this sentence in the same way" in texts(app)
    app.button(key="different_set").click().run()
    assert "split differently" in texts(app)
    assert "## means that the piece continues a word" in texts(app).replace("\\", "")


def test_truncated_text_is_shown_exactly(open_page: Open) -> None:
    app = open_page("tokens", s=["one two three four five six"], len="5")
    assert "**3 tokens are truncated** of sentence 1" in texts(app)
    assert "all after the first 14 characters" in texts(app)
    assert "four five six" in [item.value for item in app.text]
    assert app.get("popover")  # the text does not move the figure down


# --- Model


def test_sizes_of_the_embedded_model(read_page: Open) -> None:
    app = read_page("model")
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown == {
        "Blocks": "6",
        "Attention heads": "12",
        "Hidden size": "384",
        "Feed-forward size": "1,536",
        "Maximum positions": "512",
        "Vocabulary size": "30,522",
        "Segments": "2",
        "Parameters": "22,713,216",
    }
    bars = figures(app)[0]["data"]
    assert sum(int(np.sum(bar["x"])) for bar in bars) == 22_713_216


def test_bert_base_is_known_without_a_download(open_page: Open) -> None:
    app = open_page("model", v="available-models")
    assert not app.dataframe  # which would cut long texts
    what, sizes = (plain_table(app, number) for number in range(2))
    row = sizes[sizes["name on the hub"] == "google-bert/bert-base-uncased"].iloc[0]
    names = ("model", "blocks", "heads", "hidden", "feed-forward", "positions", "vocabulary")
    assert [row[name] for name in names] == ["BERT base", 12, 12, 768, 3072, 512, 30522]
    assert what.set_index("model").loc["BERT base", "parameters"] == "109.5\N{NO-BREAK SPACE}million"
    included = what.iloc[0]
    assert (included["model"], included["files"]) == ("all-MiniLM-L6-v2", "included")
    assert "embedded" not in what.to_string() + sizes.to_string()


def test_output_shapes_and_a_vectors_values(open_page: Open) -> None:
    app = open_page("model", v="output-vectors", n="1", l="3", t=["5", "7", "6"])
    table = plain_table(app)
    shapes = dict(zip(table["output"], table["shape"], strict=True))
    assert shapes == {
        "hidden_states": "7 layers × 3 sentences × 13 tokens × 384 numbers",
        "last_hidden_state": "3 sentences × 13 tokens × 384 numbers",
        "pooler_output": "3 × 384 numbers",
        "attentions": "6 blocks × 3 sentences × 12 heads × 13 queries × 13 keys",
    }
    sizes = [4 * (7 * 3 * 13 * 384 + 3 * 384) / 1024, 4 * 6 * 3 * 12 * 13 * 13 / 1024]
    assert "{:.0f} KiB, and the attentions {:.0f} KiB more".format(*sizes) in texts(app)
    assert complete_figures(app) == 1
    values = backend().trace(BANK).token_vectors(1, [7])[3, 0]
    np.testing.assert_array_equal(figures(app)[0]["data"][0]["y"], values)
    assert app.metric[0].value == f"{np.linalg.norm(values.astype(float)):.3f}"
    far = np.flatnonzero(np.abs(values) > 3 * np.sqrt(np.mean(values.astype(float) ** 2)))
    said = f"stand{'s' * (len(far) == 1)} out, with more than 3 times the usual distance from 0"
    assert re.search(rf"\*\*{len(far)}\*\* of the 384 numbers of “\w+” {said}", texts(app))


def test_a_vector_without_large_numbers_is_said_to_have_none() -> None:
    said = model_sections.vector_in_words(np.array([1.0, -1.0, 1.0]), "cat")
    assert said == ("None of the 3 numbers of “cat” has more than 3 times the usual distance from 0 (1.00).")
    many = np.concatenate([np.full(100, 0.1), [9.0, -8.0, 7.0, 6.0]])
    assert "**4** of the 104 numbers of “cat” stand out, with more than 3 times" in model_sections.vector_in_words(
        many, "cat"
    )
    assert model_sections.vector_in_words(many, "cat").endswith("most of all dimensions 100, 101 and 102.")


@pytest.mark.parametrize(
    ("page", "options", "said", "unsaid"),
    [
        ("layers", {}, "the same in every sentence, but for its position", "every sentence. Block"),
        ("model", {"view": "zero"}, "layer 0 is identical at the same position", "The position parts differ"),
        ("heatmaps", {"view": "inside"}, "added to what that LayerNorm gives", "The other two are added to it"),
        (
            "attention",
            {"view": "flow", "fl": "norms"},
            "point in opposite directions and cancel",
            "How much each key adds",
        ),
        (
            "map",
            {"view": "through", "by": "pca"},
            "can move although its neighbours in the model stay",
            "if a token moves",
        ),
    ],
)
def test_pages_claim_no_more_than_is_true(
    open_page: Open, read_page: Open, page: str, options: dict[str, str], said: str, unsaid: str
) -> None:
    opened = read_page if (page, options) in (("layers", {}), ("model", {"view": "zero"})) else open_page
    shown = texts(opened(page, **options))
    assert said in shown
    assert unsaid not in shown


def test_the_baseline_says_what_it_compares() -> None:
    assert "different forms" in caching.glossary()["baseline"]
    assert "begin with its word vector" in caching.glossary()["baseline"]


def test_layer_zero_parts(read_page: Open) -> None:
    app = read_page("model", v="layer-zero")
    assert complete_figures(app) == 2
    norms, similar = figures(app)
    parts = backend().trace(BANK).embedding_parts
    by_name = {trace["name"]: trace["y"] for trace in norms["data"]}
    np.testing.assert_allclose(by_name["position"], np.linalg.norm(parts.position[0, :10], axis=-1), rtol=1e-5)
    assert list(by_name) == ["word", "position", "segment", "sum"]  # of one size, unlike layer 0
    lengths = np.linalg.norm(backend().trace(BANK).hidden_states[0, 0, :10], axis=-1)
    assert f"have lengths from {lengths.min():.1f} to {lengths.max():.1f}" in texts(app)
    # [CLS] is the only token at which the position part is longer than the word part.
    assert np.flatnonzero(np.array(by_name["position"]) > np.array(by_name["word"])).tolist() == [0]
    at_first = f"({by_name['position'][0]:.1f} against {by_name['word'][0]:.1f})"
    assert f"only at “[CLS]” is the position part longer {at_first}" in texts(app).replace("\\", "")
    first_pair = dict(zip(similar["data"][0]["x"], similar["data"][0]["y"], strict=True))
    assert_close(first_pair["word"], 1)
    assert first_pair["position"] < 0.9
    assert 0.95 < first_pair["layer 0"] < 1
    means = {
        part: np.mean([dict(zip(pair["x"], pair["y"], strict=True))[part] for pair in similar["data"]])
        for part in first_pair
    }
    least = min(("word", "position", "segment"), key=means.__getitem__)
    assert (
        f"have a cosine of **{means['layer 0']:.2f}** on average: their word and segment parts are the most alike (1.00)"
        in texts(app)
    )
    assert f"their {least} parts the least ({means[least]:.2f})" in texts(app)


def test_a_part_is_the_longest_without_exception_only_where_it_is() -> None:
    sentence, structure = backend().tokenize(["a cat"])[0], backend().structure
    lengths = {"word": np.array([2.0, 2.0, 2.0, 2.0]), "position": np.array([1.0, 1.0, 1.0, 1.0])}
    said = model_sections.longest_part(lengths, np.ones(4), structure, sentence)
    assert said.startswith("The **word** part is the longest: 2.0 on average, against 1.0 (position). LayerNorm")
    lengths["position"] = np.array([3.0, 2.5, 1.0, 1.0])
    said = model_sections.longest_part(lengths, np.ones(4), structure, sentence)
    assert "against 1.9 (position); at 2 of 4 tokens another part is longer. " in said


def test_the_text_on_parameters_names_every_kind_of_bar(read_page: Open) -> None:
    app = read_page("model")
    groups = {group for bar in figures(app)[0]["data"] for group in bar["y"]}
    assert any("ooler" in group for group in groups)
    assert "one for the pooler" in texts(app)


# --- About, Glossary


def test_about_has_version_and_licence(open_page: Open) -> None:
    app = open_page("about")
    said = texts(app)
    assert f"Version {VERSION}" in said
    assert f"version = {{{VERSION}}}" in app.code[0].value
    assert "licence Apache-2.0" in said
    # What is cited is what CITATION.cff says.
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    authors = re.findall(r"- name: (.+)", citation)
    licence = re.search(r"^license: (.+)$", citation, re.MULTILINE)
    assert licence is not None
    assert f"author  = {{{{{' and '.join(authors)}}}}}" in app.code[0].value
    assert f"license = {{{licence[1]}}}" in app.code[0].value
    assert f"has the {licence[1]} licence" in said


def test_a_term_of_the_glossary_is_seen_in_a_view(open_page: Open) -> None:
    assert set(about.SEEN_IN) <= set(caching.glossary())
    assert set(about.SEEN_IN.values()) <= set(table.VIEWS)
    app = open_page("glossary")
    assert app.button(key="seen_attention").label == "See it in “Attention: All heads”"
    app.button(key="seen_query, key and value").click().run()
    assert app.title[0].value == "How is an attention weight computed?"


def test_the_glossary_is_searched(open_page: Open) -> None:
    app = open_page("glossary")
    said = texts(app)
    for term in caching.glossary():
        assert f"**{term}**" in said
    app.text_input(key="glossary_query").set_value("pooling").run()
    terms = [item.value.split("**")[1] for item in app.markdown if item.value.startswith("**") and "  \n" in item.value]
    assert terms[0] == "pooling"
    assert "layer" not in terms
    app.text_input(key="glossary_query").set_value("xyz").run()
    assert "No term has this text" in texts(app)
    assert not app.error


# --- The frame


def test_sentences_and_model_stay_when_the_page_changes(open_page: Open) -> None:
    app = open_page("tokens")
    type_sentences(app, "a river bank\n\n  \na money bank")
    for page in ("model", "layers", "home", "tokens"):
        go_to(app, page)
        assert app.session_state["sentences"] == ("a river bank", "a money bank")
    assert app.query_params["s"] == ["a river bank", "a money bank"]


def test_a_ready_made_set_and_its_hint(open_page: Open) -> None:
    app = open_page("layers")
    app.selectbox(key="w_set").set_value("weather").run()
    assert app.session_state["sentences"] == ready_made.ready_made_sets()["weather"].sentences
    assert "Do opposite words separate" in texts(app)
    assert "nice – bad" in traces(app)


def open_arranging(app: AppTest) -> None:
    app.session_state["arrange"] = True
    app.run()


def test_reorder_remove_and_reset(open_page: Open) -> None:
    app = open_page("layers")
    open_arranging(app)
    app.button(key="move_down").click().run()
    assert app.session_state["sentences"] == (BANK[1], BANK[0], BANK[2])
    assert app.selectbox(key="w_arrange").value == 1  # the sentence that moved stays chosen
    app.button(key="remove_sentence").click().run()
    assert app.session_state["sentences"] == (BANK[1], BANK[2])
    app.toggle(key="w_centred").set_value(True).run()
    app.session_state["more_settings"] = True
    app.run()
    app.button(key="reset").click().run()
    assert dict(app.query_params) == {"v": "one-word"}
    assert "bank (rob) – bank (money)" in traces(app)


def test_a_choice_follows_its_sentence(open_page: Open) -> None:
    app = open_page("layers", t=["3", "3", "2"])
    open_arranging(app)
    app.button(key="move_down").click().run()
    assert "skipped – rob" in traces(app)


@pytest.mark.parametrize("page", ["tokens", "layers"])
def test_no_sentence_is_an_empty_state_with_a_way_out(open_page: Open, page: str) -> None:
    app = open_page(page, s=[""])
    assert "No sentence yet" in texts(app)
    assert not app.error
    app.button(key="start_example").click().run()
    assert app.session_state["sentences"] == BANK


@pytest.mark.parametrize(
    ("sentences", "words"),
    [
        ("\n".join(f"sentence {number}" for number in range(65)), "There are 65 sentences"),
        ("word " * 4_100, "At most 20,000 characters can be shown"),
    ],
)
def test_limits_are_said_and_the_page_lives_on(open_page: Open, sentences: str, words: str) -> None:
    app = open_page("layers")
    type_sentences(app, sentences)
    assert words in texts(app).replace("\\", "")
    assert not app.exception
    app.selectbox(key="w_set_own").set_value("bank").run()
    assert not app.error


@pytest.mark.parametrize(
    "unusual", [["שלום עולם"], ["😀😀"], ["a\x00b\x07c\u200bd", "你好", "Ⅷ ½ ﬁ", "e\u0301\u0301", "\u202eabc"]]
)
def test_unusual_text_gives_a_page_not_an_error(open_page: Open, unusual: list[str]) -> None:
    app = open_page("layers", s=[*unusual, "a bank"])
    assert not app.error
    assert not app.exception
    assert len(figures(app)) == 1


def test_a_bad_link_falls_back_with_a_notice(open_page: Open) -> None:
    app = open_page("layers", v="one-word", l="median", m="a b c", t=["x"])
    (notice,) = (item.value for item in app.warning)
    for value in ("layer \\(“l=median”", "model \\(“m=a b c”", "chosen tokens \\(“t=x”"):
        assert f"value for the {value}" in notice
    assert app.session_state["_address"] == ("meaning", {"v": ["one-word"]})
    assert "bank (rob) – bank (river)" in traces(app)


def test_every_drawing_of_a_view_is_counted(open_page: Open) -> None:
    """By the count a progress bar of a view that was left is known, and draws nothing (test_progress.py)."""
    app = open_page("tokens")
    before = app.session_state[progress.DRAWING]
    choose_view(app, "input-tensors")
    assert app.session_state[progress.DRAWING] > before


def test_an_absent_model_gives_one_clear_screen(open_page: Open) -> None:
    app = open_page("layers", m="google-bert/bert-base-uncased")
    said = texts(app).replace("\\", "")
    assert "This model could not be loaded" in said
    assert "hf download google-bert/bert-base-uncased" in said
    assert "109,482,240 parameters" in said
    assert not figures(app)
    app.button(key="fallback_model").click().run()
    assert "bank (rob) – bank (river)" in traces(app)


def test_an_absent_second_model_leaves_the_first_working(open_page: Open) -> None:
    app = open_page("layers", m2="google-bert/bert-base-uncased")
    assert "cannot be reached" in texts(app)
    assert len(figures(app)) == 1
    app.button(key="fallback_model2").click().run()
    assert not app.error


def test_an_operator_can_keep_people_to_the_list(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BERT_INTERNALS_FREE_MODELS", "0")
    folder = save_tiny(tmp_path / "tiny")
    app = open_page("layers", m=str(folder), m2=str(folder))
    assert app.selectbox(key="w_model").value == "embedded"
    assert len(figures(app)) == 1
    assert texts(app).count("only the models of the list are allowed") == 2
    assert not app.error


def test_projector_mode_and_back(open_page: Open) -> None:
    app = open_page("layers")
    size = figures(app)[0]["layout"]["font"]["size"]
    app.button(key="projector_on").click().run()
    assert app.query_params["proj"] == "1"
    assert figures(app)[0]["layout"]["font"]["size"] > size
    app.button(key="leave_projector").click().run()
    assert figures(app)[0]["layout"]["font"]["size"] == size


def test_a_fault_is_said_without_a_traceback_and_logged(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = open_page("tokens")

    def broken(*_: Any) -> None:
        raise RuntimeError("secret path /x/y")

    monkeypatch.setattr("dashboard.views.tokens.sections.pieces", broken)
    app.run()
    assert "Something went wrong while drawing “Pieces”" in texts(app)
    assert "secret" not in texts(app)
    assert not app.exception
    assert "secret path /x/y" in caplog.text


def test_what_a_browser_sends_for_the_picker_is_checked_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BERT_INTERNALS_FREE_MODELS", "0")
    folder = str(save_tiny(tmp_path / "tiny"))
    session = {"w_model": folder}  # no option of the list, but Streamlit hands on any text a browser sends
    monkeypatch.setattr("streamlit.session_state", session)
    sidebar._choose_model("model")
    assert "model" not in session
    assert "only the models of the list" in session["_model_problem"]


def test_a_folder_that_disappears_is_said_and_the_way_out_works(open_page: Open, tmp_path: Path) -> None:
    import shutil

    folder = save_tiny(tmp_path / "tiny")
    app = open_page("model", m=str(folder))
    shutil.rmtree(folder)
    loader = caching.models()
    loader.jobs.drop(job for job in loader.jobs.finished() if job.key == str(folder))
    app.run()
    assert not app.exception
    assert "cannot be read: No such file or directory" in texts(app).replace("\\", "")
    app.button(key="fallback_model").click().run()
    assert not app.error


def test_what_was_wrong_in_a_link_is_said_in_one_box(open_page: Open) -> None:
    app = open_page("attention", v="head-view", m="/no/such/folder", b="99")
    (box,) = app.warning
    assert "The link's value for the model" in box.value.replace("\\", "")
    assert "Block 99 is not available here" in box.value


def test_a_link_to_a_model_outside_the_list_asks_first(open_page: Open) -> None:
    app = open_page("layers", m="somebody/unknown-model")
    assert "This link asks for somebody/unknown-model" in texts(app).replace("\\", "")
    assert caching.models().jobs.find("somebody/unknown-model") is None
    app.button(key="fetch_model").click().run()
    assert caching.models().jobs.find("somebody/unknown-model") is not None
    assert "cannot be reached" in texts(app)


def test_a_word_that_the_second_model_never_got_has_no_curve(
    open_page: Open, tiny_folder: Callable[[str], Path]
) -> None:
    folder = tiny_folder("bert")  # for short texts
    long = "the cat sat by the river . " * 12 + "bank"
    place = len(backend().tokenize([long])[0]) - 2
    app = open_page("layers", s=[long, "a red bank"], t=[str(place), "3"], m2=str(folder))
    said = texts(app).replace("\\", "")
    assert f"{folder.name} has no token for “bank”" in said
    assert f"{folder.name}'s maximum length" in said
    first, second = traces(app, 0), traces(app, 1)
    assert not np.isnan(first["bank (river) – bank (red)"]).any()
    assert np.isnan(second["bank (river) – bank (red)"]).all()


def test_the_same_model_twice_is_said(open_page: Open) -> None:
    app = open_page("layers", m2="embedded")
    assert "The second model is the same as the first" in texts(app)
    assert len(figures(app)) == 1


def test_a_length_too_small_falls_back_with_a_notice(open_page: Open) -> None:
    app = open_page("tokens", len="0")
    assert "not a whole number from 3" in texts(app)
    assert "truncated" not in texts(app)


# Twenty thousand characters that no compression makes short.
LONG_TEXT = "\n".join(random.Random(number).randbytes(150).hex() for number in range(60))


def test_a_long_text_is_packed_into_the_address(open_page: Open) -> None:
    sentences = [f"The {number}th sentence is about a river, and a bank." for number in range(60)] + ["a,b&c <i>"] * 4
    app = type_sentences(open_page("tokens", v="input-tensors", len="9"), "\n".join(sentences))
    assert state.size_of([("s", text) for text in sentences]) < state.ADDRESS_LIMIT
    assert app.query_params["s"] == sentences  # as long as they fit, in words
    sentences = [f"{text} {text} {text}" for text in sentences]
    type_sentences(app, "\n".join(sentences))
    assert app.query_params.keys() == {"v", "len", state.PACKED}
    assert state.size_of([(state.PACKED, app.query_params[state.PACKED][0])]) < 2_000
    other = open_page("tokens", **app.query_params)
    assert list(setting(other, "sentences")) == sentences
    assert not other.warning
    assert other.query_params == app.query_params


@pytest.mark.parametrize(
    "word",
    ["1x", "", "x" * 9_000, ["1abc", "1abc"], packing.pack({"s": ["a" * 300_000]}), packing.pack({"nothing": []})],
)
def test_packed_texts_that_are_damaged_or_too_large_are_ignored(open_page: Open, word: str | list[str]) -> None:
    app = open_page("tokens", z=word, v="input-tensors")
    assert setting(app, "sentences") in (None, BANK)
    assert setting(app, "text_view") == "input-tensors"
    assert "were ignored" in texts(app) or "does not use the link's “nothing”" in texts(app)
    assert not app.exception


def test_links_that_are_too_long_cannot_be_copied(open_page: Open) -> None:
    app = open_page("tokens")
    type_sentences(app, LONG_TEXT)
    raw = next(item.proto.json for item in app.get("bidi_component") if "Copy link" in item.proto.json)
    tools = json.loads(raw)
    assert tools["link"]["enabled"] is False
    assert not {"s", "z"} & app.query_params.keys()
    assert "at the top saves them as a file" in texts(app)


def test_a_csv_holds_no_formulas() -> None:
    formulas = ["=1+1", "-2", "@SUM(A1)", "+2", "\t=1+1", " =1+1", "＝1+1"]
    formulas += [f"{unseen}=1+1" for unseen in "\u200b\u200e\ufeff\xad\x00\u2060\xa0\x7f"]
    plain = ["plain", "a=b", "x;=1+1", 'say "=1"', "\u200bword"]
    frame = pd.DataFrame({"=name": [*formulas, *plain], "n": range(-4, len(formulas) + len(plain) - 4)})
    content = feedback._csv(frame).decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(content, newline="")))
    assert rows[0] == ["'=name", "n"]
    assert [row[0] for row in rows[1:]] == [*(f"'{text}" for text in formulas), *plain]
    assert [row[1] for row in rows[1:]] == [str(number) for number in frame["n"]]
    # Where semicolons separate, no text is cut in its middle: each begins and ends with a quotation mark.
    assert all(line.startswith('"') for line in content.splitlines())
    assert '"x;=1+1",' in content


def test_what_a_page_does_not_use_stays_for_the_others(open_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    folder = str(tiny_folder("bert").resolve())
    app = open_page("layers", m2=folder, s=["a river bank", "a money bank"])
    app.session_state["corpus"] = small_corpus()
    for page, in_address in (("search", {"m2"}), ("attention", {"s"}), ("evaluate", set()), ("layers", {"m2", "s"})):
        go_to(app, page)
        assert {"m2", "s"} & set(app.query_params) == in_address
        assert app.session_state["model2"] == folder
        assert app.session_state["sentences"] == ("a river bank", "a money bank")


def test_an_older_link_with_sentences_is_taken_without_a_word(open_page: Open) -> None:
    app = open_page("search", s=["a river bank"], k="5", corpus=small_corpus())
    assert not app.warning
    assert "s" not in app.query_params
    go_to(app, "tokens")
    assert app.session_state["sentences"] == ("a river bank",)
    (notice,) = open_page("search", s=["x"] * 65, corpus=small_corpus()).warning  # a bad value is said on every page
    assert "“s=x, x" in notice.value


def test_chips_stand_in_the_direction_of_their_text(open_page: Open) -> None:
    app = open_page("tokens", s=["A bank.", "البنك هنا", "123 שלום"])
    assert [row["direction"] for row in chips(app)["rows"]] == ["ltr", "rtl", "rtl"]
    script = (ready_made.ASSETS / "web" / "chips.js").read_text(encoding="utf-8")
    assert "flow.dir = row.direction" in script


def test_the_role_of_a_special_token_does_not_repeat_its_name(open_page: Open) -> None:
    app = open_page("tokens", v="decoding")
    tables = (plain_table(app, number) for number in range(len(app.table)))
    table = next(table for table in tables if "role" in table)
    roles = dict(zip(table["token"], table["role"], strict=True))
    assert roles["[CLS]"].startswith("starts the input")
    assert sections._role("cls", "<s>").startswith("CLS: ")


def test_pairs_of_layers_say_what_a_cell_is(open_page: Open) -> None:
    app = open_page("heatmaps", v="layer-pairs")
    assert complete_figures(app) == 1
    assert app.caption[0].value.startswith("Each cell compares two layers. CKA 1: ")


def test_curves_as_percentiles_are_shares_of_the_unrelated_pairs(open_page: Open) -> None:
    app = open_page("layers", v="sentence-curves", pool="mean", pct="1")
    vectors = pool(backend().trace(BANK), "mean")
    unrelated = caching.baseline(backend()).sentences["mean", True].raw.cosines  # [layer, pair]
    cosines = cosine(vectors[:, 0], vectors[:, 1])  # [layer]
    expected = [100 * np.mean(row < value) for row, value in zip(unrelated, cosines, strict=True)]
    (curve,) = (values for name, values in traces(app).items() if "rob" in name and "children" in name)
    np.testing.assert_allclose(curve, expected, atol=0.1)
    assert figures(app)[0]["layout"]["yaxis"]["title"]["text"].startswith("% of unrelated pairs")
    assert "two unrelated sentences" not in traces(app)
    assert app.toggle(key="w_show_baseline").disabled


def test_a_browser_holds_the_parts_of_a_page_for_many_runs() -> None:
    """What it has said to hold must be there when a run that began later names it (see .streamlit/config.toml)."""
    from streamlit import config
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from streamlit.runtime import app_session

    message = ForwardMsg()
    app_session._populate_config_msg(message.new_session.config)
    assert config.get_option("global.maxCachedMessageAge") == message.new_session.config.max_cached_message_age == 100


def test_pages_are_not_searched_for_bare_expressions(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """For that Streamlit parses them, which fails now and then while another thread parses (see .streamlit/config.toml)."""
    from streamlit.runtime.scriptrunner import magic

    def failing(*_: Any) -> None:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(magic, "add_magic", failing)
    assert "Glossary" in texts(open_page("glossary"))
