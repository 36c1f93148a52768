"""Maps: points are where plain PCA puts them, layers cost nothing, selections hold, senses are measured."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.analysis import word_senses
from components.analysis.maps import drawing as drawings
from components.analysis.maps import token_set
from components.analysis.maps.map_trust import map_trust, true_neighbours
from components.analysis.maps.projection import MapOptions, layer_map, start_map
from components.analysis.word_senses import sense_curve
from components.charts import theme
from components.charts.curves import layer_curves
from components.charts.scatter import turned
from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.corpora.corpus import read_corpus
from components.shown_code.code import Command
from components.shown_code.vectors import MOST_TEXTS, of_senses
from dashboard import caching
from dashboard.corpora import current
from dashboard.declared import older
from dashboard.ready_made import ready_made_sets
from dashboard.views.map import choices, pictures, selection, senses
from tests.dashboard.page_states import small_corpus
from tests.support.closeness import assert_close
from tests.support.pages import Open, at_rest, backend, choose_view, figures, texts

BANK = ready_made_sets()["bank"].sentences


def places(figure: dict[str, Any]) -> np.ndarray:
    """A figure's points in the order of their rows, [row, dims]."""
    rows, found = [], []
    for trace in figure["data"]:
        if trace["mode"] in ("text", "lines"):  # labels of a large map, and lines between points
            continue
        axes = [np.asarray(trace[axis], float) for axis in "xyz" if axis in trace]
        rows += np.asarray(trace["customdata"]).tolist()
        found.append(np.stack(axes, axis=1))
    return np.concatenate(found)[np.argsort(rows)]


def selected(figure: dict[str, Any]) -> list[int]:
    """The rows that are marked in a figure."""
    return sorted(
        int(np.asarray(trace["customdata"])[at])
        for trace in figure["data"]
        for at in np.asarray(trace.get("selectedpoints", [])).tolist()
    )


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """scikit-learn's import takes longer than a page waits for PCA before it shows a progress bar instead."""
    layer_map(np.eye(5, dtype=np.float32), MapOptions("pca"), None)


@pytest.fixture
def bank_tokens() -> token_set.TokenSet:
    return token_set.of_trace(backend().trace(BANK))


def test_it_opens_with_the_first_layer_beside_the_last(open_page: Open, bank_tokens: token_set.TokenSet) -> None:
    app = open_page("map", by="pca")
    assert not app.exception
    assert not app.error
    left, right = figures(app)
    options = MapOptions("pca")
    start = start_map(bank_tokens.vectors, options)
    for figure, layer in ((left, 0), (right, 6)):
        expected = layer_map(bank_tokens.at(layer), options, start)
        np.testing.assert_allclose(places(figure), expected, atol=1e-5)
        assert figure["data"][0]["type"] == "scatter"
        assert figure["layout"]["title"]["text"] == f"Layer {layer}, PCA"
        trust = map_trust(bank_tokens.at(layer), expected)
        assert f"Trustworthiness {trust.trustworthiness:.3f}" in texts(app)
    for figure in (left, right):  # one colour for each sentence, and blue for the chosen word
        assert [trace["name"] for trace in figure["data"]] == ["1", "2", "3", "bank"]
        assert {trace["marker"]["color"] for trace in figure["data"]} - {theme.BLUE} == set(pictures.SENTENCE_HUES[:3])
        assert figure["data"][-1]["marker"]["color"] == theme.BLUE
        assert len(figure["data"][-1]["customdata"]) == 3
    assert "From layer 0 to 6 the 3 uses of “bank” **move apart**" in texts(app)
    # The finding counts what the lines show: nine at each layer, those to the own sentence solid and blue.
    for figure, solid in ((left, 3), (right, 7)):
        lines = [shape["line"] for shape in figure["layout"]["shapes"] if shape["type"] == "line"]
        assert len(lines) == 9
        assert [line["color"] for line in lines if line["dash"] == "solid"] == [theme.BLUE] * solid
    assert (
        "Each has 3 nearest other tokens; of these 9, 3 are from its own sentence at layer 0 and 7 at layer 6."
        in texts(app)
    )
    key = "".join(element.proto.body for element in app.get("html"))
    assert re.findall(r"border-top: (\S+ \w+) [^>]*></i> ([^<]*)<", key) == [
        ("1px solid", "to the tokens nearest to “bank”, in the same sentence"),
        ("2px dashed", "in another sentence"),
        ("7px solid", "from “bank” towards itself in the other map, which has axes of its own"),
    ]
    kept = [
        map_trust(bank_tokens.at(layer), np.asarray(layer_map(bank_tokens.at(layer), options, start))).kept
        for layer in (0, 6)
    ]
    assert f"on average {kept[0]:.1f} at layer 0, {kept[1]:.1f} at layer 6 are also among its 5 nearest" in texts(app)
    assert "**Distances on a map mislead**: PCA shows two" in texts(app)


def test_few_points_are_drawn_by_pca_and_an_older_address_without_a_method_by_umap(open_page: Open) -> None:
    assert figures(open_page("meaning", v="two-layers"))[0]["layout"]["title"]["text"] == "Layer 0, PCA"
    # More than 20 points, by an address of before that named no method: UMAP, as it was then.
    assert older.translated("map", {"s": ["One."]})["by"] == ["older"]
    assert older.translated("map", {"view": ["through"], "by": ["tsne"]})["by"] == ["tsne"]
    assert "by" not in older.translated("map", {"view": ["senses"]})
    app = open_page("meaning", v="two-layers", by="older")
    assert app.segmented_control(key="w_map_method").value == "umap"
    few = open_page("meaning", v="two-layers", by="older", s=["one two three", "four five six"])
    assert few.segmented_control(key="w_map_method").value == "pca"


def test_umap_is_drawn_by_request_and_pca_stands_in_until_it_is_there(open_page: Open, bank_tokens: Any) -> None:
    app = open_page("map", by="umap")
    deadline = time.monotonic() + 120
    drawing = caching.maps().request(bank_tokens, MapOptions(), [0, 6])
    if not drawing.is_complete:
        assert figures(app)[0]["layout"]["title"]["text"] == "Layer 0, PCA"
    assert drawing.wait(deadline - time.monotonic())
    app.run()
    left, right = figures(app)
    assert left["layout"]["title"]["text"] == "Layer 0, UMAP"
    assert "**Distances in UMAP and t-SNE maps can mislead**" in texts(app)
    start = start_map(bank_tokens.vectors, MapOptions())
    np.testing.assert_allclose(places(right), layer_map(bank_tokens.at(6), MapOptions(), start), atol=1e-5)


def test_moving_a_layer_on_a_computed_map_costs_no_pass_and_no_fit(open_page: Open, monkeypatch: Any) -> None:
    app = open_page("map", by="pca", v="layer-by-layer")  # all layers
    choose_view(app, "two-layers")
    from components.analysis.maps import drawing

    def never(*_: Any) -> None:
        raise AssertionError("a refit")

    monkeypatch.setattr(drawing, "layer_map", never)
    monkeypatch.setattr(drawing, "start_map", never)
    before = backend().forward_passes
    for layer in (1, 3, 5):
        app.slider(key="w_layer").set_value(layer).run()
        assert figures(app)[1]["layout"]["title"]["text"] == f"Layer {layer}, PCA"
        app.slider(key="w_map_first").set_value(layer - 1).run()
    assert not app.error
    assert backend().forward_passes == before


def test_one_map_of_both_layers_has_every_token_twice(open_page: Open, bank_tokens: Any) -> None:
    app = open_page("map", by="pca", j="1", l1="1", l="4")
    (figure,) = figures(app)
    both = np.concatenate([bank_tokens.at(1), bank_tokens.at(4)])
    np.testing.assert_allclose(places(figure), layer_map(both, MapOptions("pca"), None), atol=1e-5)
    assert [trace["name"] for trace in figure["data"]] == ["layer 1", "layer 4"]


def test_through_the_layers_has_a_frame_for_each(open_page: Open, bank_tokens: Any) -> None:
    app = open_page("map", by="pca", v="layer-by-layer", sp="0")
    (figure,) = figures(app)
    shown = token_set.of_trace(backend().trace(BANK), special=False)
    start = start_map(shown.vectors, MapOptions("pca"))
    assert [frame["name"] for frame in figure["frames"]] == [str(layer) for layer in range(7)]
    expected = turned({layer: np.asarray(layer_map(shown.at(layer), MapOptions("pca"), start)) for layer in range(7)})
    for frame in figure["frames"]:
        drawn = {"data": [old | new for old, new in zip(figure["data"], frame["data"], strict=True)]}
        np.testing.assert_allclose(places(drawn), expected[int(frame["name"])], atol=1e-5)


@pytest.mark.parametrize("method", ["tsne", "pacmap"])
def test_the_other_methods_are_drawn(open_page: Open, bank_tokens: Any, method: str) -> None:
    options = MapOptions(method)
    assert caching.maps().request(bank_tokens, options, [0, 6]).wait(120)
    app = open_page("map", by=method)
    assert not app.error
    start = start_map(bank_tokens.vectors, options)
    np.testing.assert_allclose(places(figures(app)[1]), layer_map(bank_tokens.at(6), options, start), atol=1e-4)


def test_three_dimensions_wait_for_the_browsers_word(open_page: Open) -> None:
    app = open_page("map", by="pca", d="3")
    assert figures(app) == []  # nobody has answered yet
    app.session_state["_webgl"] = True
    app.run()
    assert [figure["data"][0]["type"] for figure in figures(app)] == ["scatter3d"] * 2
    app.session_state["_webgl"] = False
    app.run()
    assert [figure["data"][0]["type"] for figure in figures(app)] == ["scatter"] * 2
    assert "has no WebGL" in texts(app)


@pytest.mark.parametrize(("sentences", "special", "count"), [(["a"], "1", 3), (["a b"], "0", 2)])
def test_three_tokens_or_fewer_are_a_message(open_page: Open, sentences: list[str], special: str, count: int) -> None:
    app = open_page("map", s=sentences, sp=special)
    assert not app.exception
    assert any(f"There are {count} tokens to map" in error.value for error in app.error)
    assert "Something went wrong" not in texts(app)


def test_few_tokens_get_pca_unless_somebody_chose(open_page: Open) -> None:
    app = open_page("map", s=["one two three", "four five six"])
    assert figures(app)[0]["layout"]["title"]["text"] == "Layer 0, PCA"
    assert "PCA shows as much as the other methods" in texts(app)
    app.segmented_control(key="w_map_method").set_value("tsne").run()
    assert app.session_state["map_method"] == "tsne"


@pytest.mark.parametrize(
    ("chosen", "count", "expected"),
    [
        ({}, 20, MapOptions("pca", 2, 15, 0.1, "cosine", 0)),  # what a method does not use is the default
        ({"map_method": "umap"}, 20, MapOptions("umap", 2, 30, 0.25, "cosine", 0)),
        ({"map_method": "tsne", "map_dims": "3"}, 60, MapOptions("tsne", 3, 30, 0.1, "cosine", 0)),
        ({"map_metric": "euclidean", "map_seed": 7}, 5_000, MapOptions("umap", 2, 30, 0.25, "euclidean", 7)),
    ],
)
def test_the_options_of_a_map_are_those_of_its_controls(
    monkeypatch: pytest.MonkeyPatch, chosen: dict[str, Any], count: int, expected: MapOptions
) -> None:
    monkeypatch.setattr("streamlit.session_state", {"map_neighbors": 30, "map_min_dist": 25, **chosen})
    monkeypatch.setattr(choices.controls, "choice", lambda name, *_, **__: choices.state.get(name))
    monkeypatch.setattr(choices.controls, "number", lambda name, *_, **__: choices.state.get(name))
    nowhere: Any = nullcontext()
    assert choices.options(count, choices.ControlRow(nowhere, nowhere)) == expected


def test_a_corpus_is_coloured_by_columns_with_some_values_but_not_very_many() -> None:
    of = {"one": 1, "two": 2, "most": choices.MOST_LABELS, "more": choices.MOST_LABELS + 1, "token": 2}
    columns = {name: tuple(str(row % count) for row in range(200)) for name, count in of.items()}
    corpus: Any = SimpleNamespace(columns=columns)
    found = choices.label_columns(corpus)
    assert found == {"two": columns["two"], "most": columns["most"], "token (column)": columns["token"]}


def test_a_word_is_marked_listed_and_its_neighbours_are_the_true_ones(open_page: Open, bank_tokens: Any) -> None:
    app = open_page("map", v="two-layers", by="pca", find="river")
    row = next(row for row, token in enumerate(bank_tokens.tokens) if token.text == "river")
    assert [selected(figure) for figure in figures(app)] == [[row], [row]]
    tables = [frame.value for frame in app.dataframe]
    assert tables[0][["before", "token", "after"]].iloc[0].tolist() == [
        "The children skipped stones by the bank of the",
        "river",
        ".",
    ]
    for table, layer in zip(tables[1:], (0, 6), strict=True):
        near, cosines = true_neighbours(bank_tokens.at(layer), row)
        assert_close(table["cosine"], cosines)
        assert table["token"].tolist() == [bank_tokens.tokens[at].text for at in near]
    app.text_input(key="w_map_find").set_value("zzz").run()
    assert "No token or word here is" in texts(app)


def test_points_of_either_half_of_a_joint_map_are_the_tokens_that_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, Any] = {"map_find": "bank"}
    monkeypatch.setattr("streamlit.session_state", session)
    tokens: Any = SimpleNamespace(key="these tokens", matching=lambda text: (8, 9))
    assert selection.selected(tokens) == (8, 9)  # what the box finds
    session["map_one"] = {"selection": {"points": [{"customdata": [number]} for number in (4, 0, 1)]}}
    selection.pick(tokens, "map_one", np.array([2, 5, 7]))  # the fifth point is the second token, at the second layer
    assert session["map_find"] == ""
    assert selection.selected(tokens) == (2, 5)
    others: Any = SimpleNamespace(key="other tokens")
    assert selection.selected(others) == ()


def test_lines_join_the_drawn_points_by_their_places_among_them(
    open_page: Open, bank_tokens: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser without WebGL gets a sample: a row of the set is not the place of its point."""
    sent: list[list[int]] = []
    monkeypatch.setattr(pictures.labels, "thin", lambda joined=(): sent.append([int(place) for place in joined]))
    drawn = np.array([row for row in range(len(bank_tokens)) if row % 3])
    monkeypatch.setattr(pictures, "_drawn_rows", lambda token_set, renderer: drawn)
    app = open_page("map", v="two-layers", by="pca", find="bank")
    assert not app.exception
    marked = next(trace for trace in figures(app)[0]["data"] if trace["name"] == "bank")
    assert sent[-1] == sorted(np.asarray(marked["customdata"]).tolist())
    assert {bank_tokens.tokens[drawn[place]].text for place in sent[-1]} == {"bank"}


@pytest.mark.parametrize(("more", "are_joined"), [({}, True), ({"d": "3"}, False)])
def test_lines_are_explained_in_two_dimensions_only(open_page: Open, more: dict[str, str], are_joined: bool) -> None:
    app = open_page("map", v="two-layers", by="pca", **more)
    app.session_state["_webgl"] = True
    assert ("a blue ribbon leads from each of them" in texts(app.run())) == are_joined


def test_a_selection_holds_while_layer_method_and_colour_change(open_page: Open, bank_tokens: Any) -> None:
    app = open_page("map", by="pca")
    app.session_state["_map_selected"] = (bank_tokens.key, (2, 5, 9))
    app.run()
    app.slider(key="w_layer").set_value(3).run()
    app.selectbox(key="w_map_colour").set_value("sentence").run()
    assert [selected(figure) for figure in figures(app)] == [[2, 5, 9]] * 2
    assert app.dataframe[0].value["token"].tolist() == [bank_tokens.tokens[row].text for row in (2, 5, 9)]
    app.button(key="map_clear").click().run()
    assert [selected(figure) for figure in figures(app)] == [[], []]


@pytest.mark.parametrize("by", ["sentence", "token", "word", "position", "special", "frequency"])
def test_every_colour(open_page: Open, bank_tokens: Any, by: str) -> None:
    app = open_page("map", v="two-layers", by="pca", colour=by)
    figure = figures(app)[0]
    if by in token_set.NUMBERS:
        np.testing.assert_allclose(figure["data"][0]["marker"]["color"], bank_tokens.number(by))
    else:
        names = bank_tokens.category(by)
        for trace in figure["data"]:
            if trace["name"] == "bank" and trace["marker"]["color"] == theme.BLUE and by != "token":
                assert {names[row] for row in np.asarray(trace["customdata"])} <= set(names)  # the chosen word
            elif trace["name"] not in ("all others",):
                assert {names[row] for row in np.asarray(trace["customdata"])} == {trace["name"]}


def test_a_corpus_by_a_sample_of_its_tokens(open_page: Open) -> None:
    key = small_corpus(48)
    corpus = caching.corpora().find(key)
    job = choices.request_tokens(backend(), corpus.content_hash, corpus.texts, corpus.name, max_tokens=500)
    assert job.finished.wait(60)
    shown = choices.corpus_tokens(job, corpus.texts, choices.label_columns(corpus))
    assert caching.maps().request(shown, MapOptions("pca"), [0, 6]).wait(60)  # a page waits three seconds only
    app = open_page("map", v="two-layers", src="corpus", corpus=key, nt="500", by="pca", colour="topic")
    assert not app.error
    expected = layer_map(shown.at(6), MapOptions("pca"), start_map(shown.vectors, MapOptions("pca")))
    np.testing.assert_allclose(places(figures(app)[1]), expected, atol=1e-4)
    assert "500 of" in texts(app)
    labels = next(trace for trace in figures(app)[1]["data"] if trace["name"] == "labels")
    names = [shown.tokens[row].text for row in np.asarray(labels["customdata"])]
    assert list(labels["text"]) == names
    assert 10 < len(names) == len({name.casefold() for name in names})  # each word once


def test_a_single_sentence_is_coloured_by_word(open_page: Open) -> None:
    app = open_page("map", by="pca", s=["The cat saw the dog on the mat."])
    assert app.selectbox(key="w_map_colour").value == "word"
    app = open_page("map", by="pca", j="1")
    assert app.selectbox(key="w_map_colour").value == "layer"


def test_tokens_are_the_backends_taken_once_for_all_who_ask() -> None:
    sentences = ("the bank paid", "a bank of mud", "no money here")
    job = choices.request_tokens(backend(), "a corpus", sentences, "A corpus", max_tokens=5)
    assert job.finished.wait(30)
    expected = backend().token_vectors(sentences, max_tokens=5)
    assert job.result.tokens == expected.tokens
    np.testing.assert_allclose(job.result.vectors, expected.vectors, atol=1e-3)
    assert (job.done, job.total) == (3, 3)
    assert list(caching.token_folder().iterdir()) == []  # files without a name, gone with their last reader

    def again(corpus: str = "a corpus", word: str = "", count: int = 5) -> Any:
        return choices.request_tokens(backend(), corpus, sentences, "A corpus", word, count)

    assert again() is job
    different = {again(), again("another"), again(word="bank"), again(count=6)}
    assert len(different) == 4
    assert all(one.finished.wait(30) for one in different)


def test_a_stop_says_so_and_can_be_taken_back(open_page: Open, monkeypatch: Any) -> None:
    def until_stopped(*_: Any, is_stopped: Any, **__: Any) -> None:
        end = time.monotonic() + 20
        while not is_stopped() and time.monotonic() < end:
            time.sleep(0.01)
        raise Stopped

    real = backend().token_vectors
    monkeypatch.setattr(backend(), "token_vectors", until_stopped)
    key = small_corpus(20)
    corpus = caching.corpora().find(key)
    app = open_page("map", v="two-layers", src="corpus", corpus=key, nt="2000", by="pca")
    app.button(key="tokens_stop").click().run()
    assert [info.value.replace("\\", "") for info in app.info] == ["Stopped: Reading the tokens of first_20.jsonl."]
    monkeypatch.setattr(backend(), "token_vectors", real)
    app.button(key="tokens_again").click().run()
    job = choices.request_tokens(backend(), corpus.content_hash, corpus.texts, corpus.name)
    assert job.finished.wait(60)
    assert job.error is None
    assert "Stopped:" not in texts(app.run())


def test_the_senses_of_a_ready_made_word(open_page: Open) -> None:
    rows = senses.demo_senses().of("seal")
    vectors = backend().token_vectors([row.sentence for row in rows], word="seal")
    app = at_rest(open_page("map", v="word-senses", w="seal", by="pca"))
    assert not app.error
    curve = sense_curve(vectors.vectors, [rows[token.sentence].sense for token in vectors.tokens])
    senses_map, curves = figures(app)[:2]  # the map, which the title is about, comes first
    drawn = {trace["name"]: np.asarray(trace["y"]) for trace in curves["data"]}
    np.testing.assert_allclose(drawn["nearest neighbour has the same sense"], curve.accuracy, atol=1e-6)
    # One level by chance, the one that the finding names: 9 of the 19 others have the same sense.
    assert set(Counter(row.sense for row in rows).values()) == {10}
    np.testing.assert_allclose(drawn["the same with a nearest by chance"], 9 / 19, rtol=1e-6)
    assert "by chance 47 %" in texts(app)
    assert "guessing" not in texts(app)
    named = [item["text"] for item in curves["layout"]["annotations"]]
    at_best = [f"{100 * curve.accuracy[curve.best]:.0f} %"] if curve.best < len(curve.accuracy) - 1 else []
    assert named == [f"same sense {100 * curve.accuracy[-1]:.0f} %", "by chance 47 %", *at_best]
    assert f"layer {curve.best}" in texts(app)
    right = round(float(curve.accuracy[curve.best]) * len(rows))
    assert f"({right} of {len(rows)}) have a nearest neighbour of the same sense" in texts(app)
    assert curves["layout"]["yaxis"]["ticktext"] == ["0 %", "50 %", "100 %"]
    assert any("to the nearest, of the same sense" in item.proto.body for item in app.get("html"))
    assert {trace["name"] for trace in senses_map["data"]} == {row.sense for row in rows}
    # Each point is labelled by the words beside the word; the hover has the sentence.
    labels = [label for trace in senses_map["data"] for label in trace["text"]]
    hovers = [
        text.replace("<b>", "").replace("</b>", "") for trace in senses_map["data"] for text in trace["hovertext"]
    ]
    assert len(labels) == len(vectors.tokens)
    for label, hover in zip(labels, hovers, strict=True):
        assert "seal" in label.lower()
        assert label.rstrip("…") in hover
    assert f"“seal” at layer {curve.best}" in senses_map["layout"]["title"]["text"]
    assert app.slider(key="w_sense_layer").value == curve.best
    assert "layer" not in app.session_state  # the other pages' layer is theirs


def test_how_senses_are_read_is_said_of_the_map_that_is_drawn(open_page: Open, monkeypatch: Any) -> None:
    def fails(vectors: Any, options: MapOptions, *more: Any) -> Any:
        if options.method == "tsne":
            raise InputError("This method fails.", "It must not.", "Choose another one.")
        return layer_map(vectors, options, *more)

    monkeypatch.setattr(drawings, "layer_map", fails)
    app = at_rest(open_page("map", v="word-senses", w="seal", by="tsne", seed="77"))
    assert "This method fails." in texts(app)
    assert figures(app)[0]["layout"]["title"]["text"].endswith(", PCA")
    assert "PCA shows two" in texts(app)
    assert "Distances in UMAP" not in texts(app)
    assert senses.LINES in texts(app)
    app = at_rest(open_page("map", v="word-senses", w="seal", by="pca", d="3"))
    assert senses.TURN in texts(app)
    assert senses.LINES not in texts(app)


@pytest.mark.parametrize(("last", "chance"), [(0.0, 0.026), (1.0, 0.97), (0.5, 0.45), (0.9, 0.1)])
def test_the_names_of_the_curves_beside_a_map_stay_on_their_axis(last: float, chance: float) -> None:
    curve = curve_of([0.5, last])
    chart = layer_curves(
        np.array([curve.accuracy, [chance] * 2], np.float32), ["one", "other"], "Curves", mark_extremes=False
    )
    names = senses._beside_the_map(chart, curve, chance, 0).layout.annotations
    places = {name.text.split(" ")[0]: name.y for name in names}
    assert all(0 <= place <= 1 for place in places.values())
    assert abs(places["same"] - places["by"]) >= 0.13 - 1e-9
    assert (places["same"] > places["by"]) == (last > chance)


def test_no_text_is_tokenized_for_a_code_that_would_have_too_many() -> None:
    class Many:
        texts = ("seal",) * (MOST_TEXTS + 1)

        def __len__(self) -> int:
            return len(self.texts)

    vectors = senses._vectors(object(), Many())  # type: ignore[arg-type] # which has no `tokenize`
    assert of_senses(vectors, ["animal"]) == Command(word_senses.sense_curve)


def curve_of(accuracy: list[float], majority: float = 0.5) -> word_senses.SenseCurve:
    values = np.array(accuracy, np.float32)
    return word_senses.SenseCurve(np.zeros_like(values), values, majority)


@pytest.mark.parametrize(
    ("accuracy", "shown", "said"),
    [
        (
            [0.32, 0.75, 0.95],
            2,
            "The senses of “bank” **come apart**: at layer 2, 95 % (19 of 20) have a nearest neighbour of the same sense; "
            "before the first block 32 %, by chance 47 %.",
        ),
        (
            [0.32, 0.6, 0.65],
            2,
            "**stay mixed**: at layer 2, 65 % (13 of 20) have",
        ),  # a word that fails, and is not said to come apart
        ([0.32, 0.6, 0.75], 2, "**come apart in part**"),
        ([0.35, 0.6, 0.9], 2, "**come apart**: at layer 2, 90 % (18 of 20)"),
        ([0.35, 0.6, 0.9], 2, "before the first block 35 %, by chance"),  # 7 of 20: no tie
        (
            [0.95, 0.9, 0.8],
            0,
            "**are apart from the start**: at layer 0, 95 % (19 of 20) have a nearest neighbour of the same sense, by",
        ),
        ([0.5, 0.4, 0.3], 0, "**are never better apart than before the first block**"),
        (
            [0.32, 0.75, 0.95],
            1,
            "of the same sense; at layer 1, as shown, 75 %; before the first block 32 %, by chance 47 %.",
        ),
        ([0.32, 0.66, 0.333], 1, "at layer 1, 66 % have"),  # of ties each counts in part
    ],
)
def test_what_is_said_of_a_words_senses(accuracy: list[float], shown: int, said: str) -> None:
    text = senses.finding(curve_of(accuracy), "bank", 20, 0.4737, shown)
    assert said in text
    assert len(text.replace("*", "")) <= 225
    # The words follow the number that is shown, whatever the most frequent sense, unless naming that one is as good.
    assert "**come apart**: at layer 1, 90 % (18 of 20)" in senses.finding(
        curve_of([0.3, 0.9], 0.7), "bank", 20, 0.4737, 1
    )
    often = senses.finding(curve_of([0.3, 0.9], 0.85), "bank", 20, 0.745, 1)
    assert "**stay mixed**: at layer 1, 90 % (18 of 20)" in often
    assert often.endswith("by chance 74 %, 85 % by always naming the most frequent.")


def test_a_word_that_fails_is_among_the_choices(open_page: Open) -> None:
    app = at_rest(open_page("map", v="word-senses", w="nail"))
    assert "The senses of “nail” **stay mixed**" in texts(app)
    assert "bank" in app.selectbox(key="w_sense_word").options
    rows = senses.demo_senses().of("nail")
    vectors = backend().token_vectors([row.sentence for row in rows], word="nail")
    labels = [rows[token.sentence].sense for token in vectors.tokens]
    shown = app.slider(key="w_sense_layer").value
    directions = vectors.vectors[shown].astype(np.float64)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -2)
    wrong = sum(labels[row] != labels[int(other)] for row, other in enumerate(cosines.argmax(axis=1)))
    beside = next(item.proto.body for item in app.get("html") if "bi-nearest" in item.proto.body)
    assert f"Another sense is nearest: {wrong} of {len(labels)}" in beside


def test_another_word_and_an_unknown_one(open_page: Open) -> None:
    app = open_page("map", v="word-senses", w="nosuchword", by="pca")
    assert "no sentences for" in texts(app)
    app = open_page("map", v="word-senses", w="Jam", by="pca")
    assert "“jam”" in texts(app)


@pytest.mark.rare
def test_all_ready_made_words_are_measured_in_a_job(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page("map", v="word-senses", w="seal", by="pca")  # keeps the curve of this word
    caching.sense_jobs.clear()
    go_on, measure = threading.Event(), word_senses.sense_curve

    def paused(vectors: Any, labels: Any) -> Any:
        assert go_on.wait(60)
        return measure(vectors, labels)

    monkeypatch.setattr(word_senses, "sense_curve", paused)
    app.session_state["all_words"] = True
    app.run()
    assert app.main.get("progress")[0].proto.text.startswith("Reading every word's sentences")
    assert len(figures(app)) == 2  # the page answers meanwhile
    assert not [frame for frame in app.dataframe if "best layer" in frame.value]
    job = next(job for job in caching.queue().under_way() if "every word" in job.title)
    go_on.set()
    assert job.finished.wait(60)
    table = next(frame.value for frame in app.run().dataframe if "best layer" in frame.value)
    assert list(table["word"]) == list(senses.demo_senses().words)


def test_the_map_of_a_corpus_word_is_drawn_before_its_groups(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    caching.sense_jobs.clear()
    corpus, go_on, group = current.demo(), threading.Event(), word_senses.clusters
    job = choices.request_tokens(
        backend(), corpus.content_hash, corpus.texts, corpus.name, "fire", senses.MOST_OCCURRENCES
    )
    assert job.finished.wait(60)

    def paused(vectors: Any, **named: Any) -> Any:
        assert go_on.wait(60)
        return group(vectors, **named)

    monkeypatch.setattr(word_senses, "clusters", paused)
    app = open_page("map", v="word-senses", ws="corpus", w="fire", by="pca")
    assert {trace["name"] for trace in figures(app)[0]["data"]} == {"no group yet"}
    assert app.main.get("progress")[0].proto.text.startswith("Grouping the occurrences of “fire”")
    job = next(job for job in caching.queue().under_way() if "Grouping" in job.title)
    go_on.set()
    assert job.finished.wait(60)
    assert "group 1" in {trace["name"] for trace in figures(app.run())[0]["data"]}
    assert "Group 1" in texts(app)


def test_a_word_without_labels_is_grouped(open_page: Open) -> None:
    corpus = current.demo()
    job = choices.request_tokens(
        backend(), corpus.content_hash, corpus.texts, corpus.name, "court", senses.MOST_OCCURRENCES
    )
    assert job.finished.wait(60)
    app = at_rest(open_page("map", v="word-senses", ws="corpus", w="court", by="pca"))
    assert not app.error
    assert "occurrences in" in texts(app)
    assert "Group 1" in texts(app)
    assert "its colour is a group that the computer found" in texts(app)
    assert "A group holds sentences" in texts(app)
    assert figures(app)[0]["layout"]["legend"]["title"]["text"].strip() == "group"
    app = at_rest(open_page("map", v="word-senses", ws="corpus", by="pca"))  # opens with a word that the corpus has
    assert app.text_input(key="w_sense_text").value == "spring"
    assert "Group 1" in texts(app)
    assert senses._example_word(read_corpus(b"no such word\n" * 9, "a.txt")) == ""
    app = at_rest(open_page("map", v="word-senses", ws="corpus", w="qqqq"))
    assert any("“qqqq” does not occur in the" in error.value for error in app.error)
    assert any("Type another word" in error.value for error in app.error)


def test_no_sentence_is_the_empty_state(open_page: Open) -> None:
    app = open_page("map", s="")
    assert "No sentence yet" in texts(app)
    assert figures(app) == []


def test_bad_values_of_a_link_are_said(open_page: Open) -> None:
    app = open_page("map", by="lda", d="4", nn="x", l="99")
    assert not app.exception
    said = texts(app)
    assert "by" in said
    assert "Second layer 99" in said


def test_the_tokens_of_a_pair_are_mapped_and_coloured_by_text(open_page: Open) -> None:
    trace = backend().trace([BANK[2]], [BANK[0]])
    pair_tokens = token_set.of_pair(trace, BANK, (2, 0))
    app = open_page("map", by="pca", rd="together", sa="2", sb="1")
    assert not app.error
    options = MapOptions("pca")
    start = start_map(pair_tokens.vectors, options)
    for figure, layer in zip(figures(app), (0, 6), strict=True):
        np.testing.assert_allclose(places(figure), layer_map(pair_tokens.at(layer), options, start), atol=1e-5)
        assert [item["name"] for item in figure["data"]] == ["A", "B", "special tokens", "bank"]
        assert [len(item["x"]) for item in figure["data"]] == [6, 7, 3, 2]
    assert "**A**: I put money in the bank" in texts(app)


def test_reading_a_pair_together_is_one_click_and_layers_cost_no_pass(open_page: Open) -> None:
    app = open_page("map", by="pca")
    app.segmented_control(key="w_map_source").set_value("pair").run()
    assert app.query_params["rd"] == "together"
    assert sum(len(item["x"]) for item in figures(app)[0]["data"]) == len(backend().tokenize([BANK[0]], [BANK[1]])[0])
    before = backend().forward_passes
    app.slider(key="w_map_first").set_value(2).run()
    app.toggle(key="w_include_special").set_value(False).run()
    choose_view(app, "layer-by-layer")
    assert backend().forward_passes == before
    assert not app.error
    app.segmented_control(key="w_map_source").set_value("sentences").run()
    assert "rd" not in app.query_params


def test_a_colour_chosen_for_a_pair_does_not_stay_for_all_sentences(open_page: Open) -> None:
    app = open_page("map", v="two-layers", by="pca", rd="together", colour=token_set.PAIR_LABEL)
    assert [item["name"] for item in figures(app)[0]["data"]] == ["A", "B", "special tokens", "bank"]
    app.segmented_control(key="w_map_source").set_value("sentences").run()
    assert [item["name"] for item in figures(app)[0]["data"]] == ["1", "2", "3", "bank"]


def test_the_words_of_the_sentences_stand_above_the_map_and_a_click_marks_one(open_page: Open) -> None:
    app = open_page("map", v="two-layers", by="pca", find="river")
    offered = app.get("button_group")
    words = next(item for item in offered if item.key == "ready_words")
    assert words.value in (None, [])  # a word that was typed is none of the row's
    assert words.options[0] == "bank ×3"
    words.set_value(words.options[-1]).run()
    assert not app.exception
    assert "find" not in app.query_params
    assert figures(app)[0]["data"][-1]["name"] == "money"
    assert "“money” occurs once; nearest to it are" in texts(app)
    # A corpus has too many words: there one is typed above the map.
    assert not [
        item for item in open_page("map", by="pca", rd="together").get("button_group") if item.key == "ready_words"
    ]


def test_through_the_layers_lines_lead_to_the_nearest_tokens_of_each_layer(
    open_page: Open, bank_tokens: token_set.TokenSet
) -> None:
    (figure,) = figures(open_page("map", by="pca", v="layer-by-layer"))
    lines = [number for number, trace in enumerate(figure["data"]) if trace["mode"] == "lines"]
    assert len(lines) == 3  # to the nearest of other and of own sentences, and the way that the word has come
    for layer, frame in enumerate(figure["frames"]):
        points = places({"data": [old | new for old, new in zip(figure["data"], frame["data"], strict=True)]})
        rows, counts = [], []
        for number in lines[:2]:
            drawn = frame["data"][number]
            ends = np.array([drawn["x"], drawn["y"]], float).T.reshape(-1, 3, 2)[:, :2]  # [line, end, xy]
            ends = ends[(ends[:, 0] != ends[:, 1]).any(axis=1)]  # one of the other kind has no length
            rows += [[int(np.argmin(np.linalg.norm(points - end, axis=1))) for end in line] for line in ends]
            counts.append(len(ends))
        if layer in (0, 6):  # as the finding counts
            assert counts == ([6, 3] if layer == 0 else [2, 7])
        banks = [row for row, token in enumerate(bank_tokens.tokens) if token.text == "bank"]
        way = np.array([frame["data"][lines[2]][axis] for axis in "xy"], float).T.reshape(
            -1, 26, 2
        )  # [bank, layer, xy]
        np.testing.assert_allclose(way[:, layer], points[banks], atol=1e-5)
        assert sorted({first for first, _ in rows}) == banks
        for bank in banks:
            near, _ = true_neighbours(bank_tokens.at(layer), bank, 5)
            expected = [row for row in near.tolist() if row not in banks][:3]
            assert sorted(second for first, second in rows if first == bank) == sorted(expected)
