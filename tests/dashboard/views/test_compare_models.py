"""Model, "Compare models": the choice of models, the curves over depth, pieces, parts, and what is measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.analysis.pooling import pool
from components.analysis.similarity.cka import layer_cka
from components.arrays import cosine
from components.charts import theme
from components.model.backend import Backend
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation.pair_runs import Pairs, pairs_of_corpus
from components.words.typed import typed_words
from dashboard import caching, settings
from dashboard.corpora import current
from dashboard.jobs import embedding, evaluation
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.evaluation import PairIndexes
from dashboard.jobs.requests import NotReady
from dashboard.sharing import report
from dashboard.ui import model_gate
from dashboard.views.model import compare, compare_measured
from tests.dashboard.code.shown import codes, figure, same, z
from tests.support import baselines
from tests.support.decoder_models import save_qwen3
from tests.support.pages import Open, at_rest, plain_table, setting, texts
from tests.support.static_models import save_model2vec

TEXTS = ["The cat sat on the bank.", "a bank by the river", "we put money in the bank"]
FAMILIES = ("bert", "modernbert", "albert")


@pytest.fixture(scope="module", autouse=True)
def _few_pairs() -> Iterator[None]:
    """The first forty pairs of the demo in place of all."""
    demo = current.demo()
    columns = list(zip(demo.texts, demo.columns["compressed"], strict=True))[:40]
    rows = "\n".join(json.dumps({"sentence": text, "compressed": query}) for text, query in columns)
    pairs = pairs_of_corpus(read_corpus(rows.encode(), "forty.jsonl", "sentence"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare_measured, "demo_pairs", lambda: pairs)
        patch.setattr(embedding, "MOST_TURNS", 1)  # of a speed
        yield


@pytest.fixture(scope="module", autouse=True)
def _short_baselines(_included_model: None) -> Iterator[None]:
    with baselines.of_few_sentences():
        yield


@pytest.fixture(scope="module")
def folders(tiny_folder: Callable[[str], Path]) -> list[str]:
    return [str(tiny_folder(family).resolve()) for family in FAMILIES]


@pytest.fixture(scope="module")
def models(folders: list[str]) -> list[Backend]:
    return [Backend.load(folder, device_name="cpu") for folder in folders]


def compared(open_page: Open, folders: list[str], **address: Any) -> AppTest:
    """The view with these models, the first being the session's own, once nothing is under way."""
    return at_rest(open_page("model", v="compare-models", m=folders[0], **{"with": folders[1:], "s": TEXTS, **address}))


def lines(app: AppTest, key: str) -> list[np.ndarray]:
    return [np.asarray(trace["y"], float) for trace in figure(app, key)["data"]]


def test_one_line_for_each_model_over_relative_depth(
    read_page: Open, folders: list[str], models: list[Backend]
) -> None:
    app = compared(read_page, folders)
    assert not app.exception
    assert [item.value for item in app.error] == []
    drawn = figure(app, "compare_depth")["data"]
    assert [trace["name"] for trace in drawn] == [Path(folder).name for folder in folders]
    for model, trace in zip(models, drawn, strict=True):
        np.testing.assert_allclose(trace["x"], [0, 1 / 3, 2 / 3, 1])
        states = model.trace(TEXTS)
        kept = [token.position for token in states.sentences[0].tokens if not token.special]
        vectors = states.hidden_states[:, 0, kept]
        expected = np.mean([cosine(vectors[:, a], vectors[:, b]) for a, b in combinations(range(len(kept)), 2)], axis=0)
        same(trace["y"], expected, 1e-5)


@pytest.mark.parametrize("kind", ["words", "sentences", "steps"])
def test_other_curves(open_page: Open, folders: list[str], models: list[Backend], kind: str) -> None:
    chosen = {
        "words": {"n": "2", "w1": "2", "w2": "5"},
        "sentences": {"n": "1", "n2": "2"},
        "steps": {"n": "1"},
    }[kind]
    app = compared(open_page, folders[:2], cv=kind, **chosen)
    for model, line in zip(models[:2], lines(app, "compare_depth"), strict=True):
        states = model.trace(TEXTS)
        hidden = states.hidden_states
        if kind == "words":
            spans = typed_words(TEXTS[2])
            assert [TEXTS[2][slice(*spans[number])] for number in (2, 5)] == ["money", "bank"]
            tokens = [token.position for token in states.sentences[2].tokens if token.piece in {"money", "bank"}]
            expected = cosine(hidden[:, 2, tokens[0]], hidden[:, 2, tokens[1]])
        elif kind == "sentences":
            lengths = [len(sentence) for sentence in states.sentences]
            means = [hidden[:, row, : lengths[row]].astype(float).mean(axis=1) for row in (1, 2)]
            expected = cosine(*means)
        else:
            kept = [token.position for token in states.sentences[1].tokens if not token.special]
            turned = cosine(hidden[:-1, 1, kept], hidden[1:, 1, kept]).mean(axis=1)
            expected = np.concatenate([[np.nan], turned])
        same(line, expected, 1e-5)


def test_the_words_to_begin_with_are_the_word_of_interest_and_one_near_it(open_page: Open, folders: list[str]) -> None:
    app = compared(open_page, folders[:2], cv="words")
    title = figure(app, "compare_depth")["layout"]["title"]["text"]
    assert title == "“bank” and “sat” at each depth"


def test_a_word_is_not_compared_with_itself(open_page: Open, folders: list[str]) -> None:
    app = compared(open_page, folders[:2], cv="words", w1="5", w2="5")
    assert not app.exception
    assert figure(app, "compare_depth")["layout"]["title"]["text"] == "“bank” and “sat” at each depth"
    assert "bank" not in app.selectbox(key="w_depth_second_word").options
    app = at_rest(app.selectbox(key="w_depth_first_word").set_value(2).run())  # the second one
    assert figure(app, "compare_depth")["layout"]["title"]["text"] == "“sat” and “bank” at each depth"


def test_percentiles_are_offered_for_pairs(open_page: Open, read_page: Open, folders: list[str]) -> None:
    app = compared(open_page, folders[:2], cv="sentences", pct="1")
    for folder, line in zip(folders, lines(app, "compare_depth"), strict=False):
        model = caching.models().find(folder)
        assert model is not None
        vectors = pool(model.trace(TEXTS), "mean")
        unrelated = caching.sentence_baseline(model, "mean", True)
        expected = [
            100 * float(unrelated.calibration(layer).shares(value))
            for layer, value in enumerate(cosine(vectors[:, 0], vectors[:, 1]))
        ]
        same(line, expected, 0.11)  # one of the 2,000 unrelated pairs may lie on either side
    assert "heights can be compared too" in texts(app)
    assert not any(toggle.key == "w_percentiles" for toggle in compared(read_page, folders).toggle)


def test_pieces_parts_and_properties(read_page: Open, folders: list[str], models: list[Backend]) -> None:
    app = compared(read_page, folders)
    said = texts(app)
    assert "**bert**: 9 tokens, of which 7 are pieces of the text and 2 special; 0 words in several pieces".replace(
        "bert", Path(folders[0]).name
    ) in (said.replace("\\", ""))
    bars = figure(app, "compare_parameters")["data"]
    assert sum(sum(bar["x"]) for bar in bars) == sum(model.facts.parameters for model in models)
    table = plain_table(app, 0).set_index("property")
    assert table.loc["Positions"].tolist()[1] == "rotation of queries and keys in each block (RoPE)"
    assert table.loc["Norms"].tolist()[1].startswith("LayerNorm first")
    assert "2 sets for 3 blocks" in table.loc["Weights of the blocks"].tolist()[2]
    same = plain_table(app, 1).set_index("property")["each model"]
    assert same["Sentence vector"] == "none of its own; here: Mean of all tokens"  # published without
    assert same["Blocks"] == "3"
    assert set(same.index).isdisjoint(table.index)


def test_the_finding_says_in_which_model_vectors_end_up_alike_and_where_a_line_was_higher() -> None:
    lines = {"A": np.array([0.1, 0.3, 0.28]), "B": np.array([0.1, 0.2, 0.49]), "C": np.array([np.nan, 0.2, 0.4])}
    assert compare._message("tokens", lines) == (
        "Two tokens of the sentence, on average, end up more alike in **B** (0.49) than in **C** (0.40) and **A** (0.28); "
        "in **A** they were most alike at layer 1 of 2 (0.30)."
    )
    same = {"A": np.array([0.1, 0.2]), "B": np.array([0.1, 0.2])}
    assert compare._message("words", same) == "The two words end up equally alike in **A** (0.20) and **B** (0.20)."
    assert (
        compare._message("sentences", {"A": np.array([10.0, 95.0])}, True)
        == "The two sentences end up with 95 % in **A**."
    )
    assert compare._message("steps", {"A": np.array([1.0])}) == ""


def test_what_is_measured(open_page: Open, folders: list[str], models: list[Backend]) -> None:
    app = compared(open_page, folders, cka="0-2", meas="1")
    pairs = compare_measured.demo_pairs()
    table = plain_table(app, -1)
    recalls = []
    for model in models:
        queries, documents = (
            model.embed(of.texts, options=model.embed_options(layers, ["mean"], precision="float32", role=role))[:, 0]
            for of, role in ((pairs.queries, "query"), (pairs.documents, "document"))
            for layers in [range(4)]
        )
        best = [
            cosine(query[:, None], document[None]).argmax(axis=1)
            for query, document in zip(queries, documents, strict=True)
        ]
        recalls.append([100 * float((row == np.arange(len(pairs))).mean()) for row in best])
    same(lines(app, "compare_recall"), recalls, 1e-4)
    shown = [text.split(" (")[0] for text in table["Recall@1 (95 % interval)"]]
    assert shown == [f"{values[-1]:.1f} %" for values in recalls]
    assert all(float(text.rstrip(" *").replace(",", "")) > 0 for text in table["sentences per second"])
    vectors = [
        model.embed(pairs.documents.texts, options=model.embed_options(range(4), ["mean"], precision="float32"))[:, 0]
        for model in (models[0], models[2])
    ]
    same(z(app, "compare_cka"), layer_cka(*vectors).debiased, 1e-4)
    assert "cka" in app.query_params


def test_a_model_that_cannot_be_loaded_is_named_and_the_others_go_on(open_page: Open, folders: list[str]) -> None:
    missing = "google-bert/bert-base-uncased"
    app = compared(open_page, [folders[0], missing, folders[1]])
    app = at_rest(app.button(key="fetch_listed").click().run())
    assert not app.exception
    assert "**BERT base could not be loaded:** the others are compared." in texts(app)
    assert "is not on this machine" in texts(app)
    assert len(figure(app, "compare_depth")["data"]) == 2
    app = at_rest(app.button(key=f"leave_{missing}").click().run())
    assert setting(app, "compared_models") == (folders[1],)
    assert "could not be loaded" not in texts(app)


def test_the_chosen_layers_wait_for_a_model_that_is_not_loaded(open_page: Open, folders: list[str]) -> None:
    app = compared(open_page, [folders[0], "google-bert/bert-base-uncased", folders[1]], cka="0-1", meas="1")
    assert app.selectbox(key="w_cka_pair").value == "0-1"
    assert "It is computed once the vectors of both models are there." in texts(app)
    app = compared(open_page, [folders[0], "google-bert/bert-base-uncased", folders[1]], cka="0-2", meas="1")
    assert z(app, "compare_cka").shape == (4, 4)
    colours = [trace["line"]["color"] for trace in figure(app, "compare_recall")["data"]]
    assert colours == [theme.PALETTE[0], theme.PALETTE[2]]


def test_a_link_to_an_unknown_model_asks_first(open_page: Open, folders: list[str]) -> None:
    app = compared(open_page, [folders[0], "somebody/model", folders[1]])
    assert "This link asks for somebody/model" in texts(app).replace("\\", "")
    assert caching.models().jobs.find("somebody/model") is None
    assert len(figure(app, "compare_depth")["data"]) == 2


def test_a_link_downloads_no_model_of_the_list_before_somebody_agrees(open_page: Open, folders: list[str]) -> None:
    listed = ["google-bert/bert-base-uncased", "FacebookAI/roberta-base"]
    loader = caching.models()
    loader.jobs.drop(job for job in loader.jobs.finished() if job.key in listed)
    app = compared(open_page, [folders[0], *listed, folders[1]])
    assert "BERT base (440 MB), RoBERTa base" in texts(app)
    assert [loader.jobs.find(key) for key in listed] == [None, None]
    assert len(figure(app, "compare_depth")["data"]) == 2
    left = at_rest(app.button(key="leave_listed").click().run())
    assert setting(left, "compared_models") == (folders[1],)
    app = compared(open_page, [folders[0], *listed, folders[1]])
    app = at_rest(app.button(key="fetch_listed").click().run())
    assert all(loader.jobs.find(key) is not None for key in listed)
    assert not any(button.key == "fetch_listed" for button in app.button)


def test_models_that_do_not_fit_into_memory_together_are_left_out(
    open_page: Open, folders: list[str], models: list[Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared(open_page, folders)  # their sizes are known from now on
    monkeypatch.setattr(caching.models(), "max_bytes", models[0].nbytes + models[2].nbytes)
    app = compared(open_page, folders)
    assert not app.exception
    assert f"**{Path(folders[1]).name} is left out:** it takes " in texts(app)
    assert len(figure(app, "compare_depth")["data"]) == 2
    monkeypatch.setattr(caching.models(), "max_bytes", models[0].nbytes)
    app = open_page("layers", m=folders[0], m2=folders[1], s=TEXTS)
    assert "is left out:** it takes" in texts(app)


def test_it_begins_with_the_second_model_or_an_included_one(
    open_page: Open, folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[tuple[str, ...]] = []
    monkeypatch.setattr(model_gate, "further_models", lambda keys, leave_out: requested.append(tuple(keys)) or {})
    at_rest(open_page("model", v="compare-models", m=folders[0], s=TEXTS))
    assert set(requested) == {("embedded",)}
    requested.clear()
    at_rest(open_page("model", v="compare-models", m=folders[0], m2=folders[1], s=TEXTS))
    assert set(requested) == {(folders[1],)}


def test_models_are_chosen_and_left_out(open_page: Open, folders: list[str]) -> None:
    app = compared(open_page, folders)
    app = at_rest(app.multiselect(key="w_compared_models").set_value([folders[2]]).run())
    assert setting(app, "compared_models") == (folders[2],)
    assert app.query_params["with"] in (folders[2], [folders[2]])
    app = at_rest(app.multiselect(key="w_compared_models").set_value([]).run())
    assert app.query_params["with"] in ("", [""])
    assert "Choose a model to compare with" in texts(app)
    assert len(figure(app, "compare_depth")["data"]) == 1


def test_the_sessions_own_model_is_not_compared_with_itself(open_page: Open, folders: list[str]) -> None:
    app = compared(open_page, [folders[0], folders[0], folders[1]])
    assert [trace["name"] for trace in figure(app, "compare_depth")["data"]] == [Path(key).name for key in folders[:2]]
    assert app.multiselect(key="w_compared_models").value == [folders[1]]


def test_where_one_model_cannot_be_measured_the_others_are(
    open_page: Open, folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair_indexes = evaluation.pair_indexes

    def refused(request: EmbedRequest, pairs: Pairs, where: str) -> PairIndexes:
        if request.backend.spec.key == folders[1]:
            raise NotReady
        return pair_indexes(request, pairs, where)

    monkeypatch.setattr(evaluation, "pair_indexes", refused)
    app = compared(open_page, folders, meas="1")
    names = [Path(folder).name for folder in (folders[0], folders[2])]
    table = plain_table(app, -1)
    assert table["model"].tolist() == names
    of_curves = {trace["name"]: trace["line"]["color"] for trace in figure(app, "compare_depth")["data"]}
    of_recall = {trace["name"]: trace["line"]["color"] for trace in figure(app, "compare_recall")["data"]}
    assert of_recall == {name: of_curves[name] for name in names}  # a model keeps its colour
    assert all(table["sentences per second"])
    assert "It is computed once the vectors of both models are there." in texts(app)


def test_four_families_beside_each_other(open_page: Open, tiny_folder: Callable[[str], Path]) -> None:
    app = compared(
        open_page,
        [str(tiny_folder(family).resolve()) for family in ("deberta-v2", "nomic_bert", "eurobert", "roberta")],
        meas="1",
    )
    assert not app.exception
    assert [item.value for item in app.error] == []
    assert [len(line) for line in lines(app, "compare_depth")] == [4] * 4
    assert all(np.isfinite(line).all() for line in lines(app, "compare_depth"))
    assert app.selectbox(key="w_cka_pair").options[-1].startswith("tiny-eurobert")
    counts = [chart for chart in app.get("plotly_chart") if chart.proto.id.endswith("-compare_recall")]
    assert len(counts) == 1
    positions = plain_table(app, 0).set_index("property").loc["Positions"].tolist()
    assert [text.split()[0] for text in positions] == ["vectors", "rotation", "rotation", "a"]


def test_static_vectors_have_one_layer(open_page: Open, folders: list[str], tmp_path: Path) -> None:
    folder = str(save_model2vec(tmp_path / "static").resolve())
    app = compared(open_page, [folders[0], folder], meas="1")
    assert not app.exception
    assert [item.value for item in app.error] == []
    assert [len(line) for line in lines(app, "compare_depth")] == [4, 1]
    assert z(app, "compare_cka").shape == (4, 1)
    assert plain_table(app, 0).set_index("property").loc["Blocks"].tolist() == ["3", "0"]


def test_a_decoder_is_measured_without_curves_and_pieces(open_page: Open, folders: list[str], tmp_path: Path) -> None:
    folder = str(save_qwen3(tmp_path / "decoder").resolve())
    app = compared(open_page, [folders[0], folder], meas="1")
    assert not app.exception
    assert [item.value for item in app.error] == []
    assert "**decoder** is left out of the curves and the pieces: it is a decoder" in texts(app)
    assert len(figure(app, "compare_depth")["data"]) == 1
    assert plain_table(app, -1)["model"].tolist() == [Path(folders[0]).name, "decoder"]
    attention = plain_table(app, 0).set_index("property").loc["Attention"].tolist()
    assert attention == ["each token to all tokens", "each token to itself and to those before it"]


def test_nothing_is_embedded_before_somebody_asks(
    open_page: Open, folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(evaluation, "pair_indexes", lambda request, *_: asked.append(request.backend.spec.key))
    app = compared(open_page, folders)
    assert app.toggle(key="w_compare_measured").value is False
    assert asked == []
    assert not any(chart.proto.id.endswith("-compare_recall") for chart in app.get("plotly_chart"))


def test_as_many_models_stay_in_memory_as_are_compared() -> None:
    assert caching.MODELS_KEPT >= settings.MOST_COMPARED


def test_the_report_and_the_notebook_have_all_of_it(open_page: Open, folders: list[str]) -> None:
    app = compared(open_page, folders[:2], cv="words", meas="1")
    app.session_state["session_panel_0"] = True
    app = at_rest(app.run())
    found = setting(app, "_report")
    names = [Path(folder).name for folder in folders]
    assert f"Compared models: {names[1]}" in found.facts
    assert "Curve: Two words" in found.facts
    text = report.to_bytes(found).decode()
    for said in ("compare_depth", "compare_parameters", "compare_recall", "compare_cka"):
        assert any(key.startswith(said) for key in found.parts)
    assert "95 % interval" in text
    assert "LayerNorm first" in text
    assert {key for key in codes(app)} >= {"compare_depth", "compare_pieces", "compare_parameters", "compare_recall"}
