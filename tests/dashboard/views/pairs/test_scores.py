"""Pairs, "Scores": histogram, threshold and curve are what scikit-learn gives for the model's scores."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest
from sklearn import metrics
from streamlit.testing.v1 import AppTest

from components.model.backend import Backend
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.search.relevance import Judgements
from dashboard import caching
from dashboard.corpora import current
from tests.components.model.embedding.test_pair_scores import save_cross_encoder
from tests.dashboard.conftest import Open, figures, setting, texts
from tests.dashboard.test_pages import backend
from tests.dashboard.views.pairs.test_given import scorer as scorer

QUERY = "volcano erupted"


@pytest.fixture(scope="module")
def demo_scores(scorer: Backend) -> np.ndarray:
    """The logits of all demo sentences with the query [sentence]."""
    corpus = current.demo()
    return scorer.score_pairs([QUERY] * len(corpus), corpus.texts)


@pytest.fixture(scope="module")
def about_volcanoes() -> np.ndarray:
    return np.array([topic == "volcano" for topic in current.demo().columns["topic"]])


def settled(app: AppTest) -> AppTest:
    """The page once its jobs are over."""
    for _ in range(4):
        jobs = caching.queue().under_way()
        if not jobs:
            break
        for job in jobs:
            assert job.finished.wait(120)
        app.run()
    return app


def shown(app: AppTest) -> dict[str, float]:
    return {item.label: float(item.value.removesuffix(" %")) / 100 for item in app.metric}


def matrix(app: AppTest) -> list[list[int]]:
    cells = [
        int(text.split("</b>")[0].removeprefix("<b>").replace(",", "")) for text in figures(app)[2]["data"][0]["text"]
    ]
    return [cells[:2], cells[2:]]


def test_the_figures_are_those_of_the_models_scores(
    open_page: Open, demo_scores: np.ndarray, about_volcanoes: np.ndarray
) -> None:
    app = settled(open_page("pairs", view="scores", n="630"))
    assert not app.exception
    assert not app.warning
    bars, curve = figures(app)[:2]
    assert [trace["name"] for trace in bars["data"]] == ["not relevant (620)", "relevant (10)"]
    assert [int(np.sum(trace["y"])) for trace in bars["data"]] == [620, 10]
    precision, recall, _ = metrics.precision_recall_curve(about_volcanoes, demo_scores)
    np.testing.assert_allclose(curve["data"][0]["x"], 100 * recall, atol=1e-4)
    np.testing.assert_allclose(curve["data"][0]["y"], 100 * precision, atol=1e-4)
    assert bars["layout"]["xaxis"]["title"]["text"] == "score (raw logit, any number)"
    average = metrics.average_precision_score(about_volcanoes, demo_scores)
    assert f"{100 * average:.1f} % by MiniLM cross-encoder" in texts(app)
    assert "about 1.6 % by chance" in texts(app)
    assert "Reading together is not better here" in texts(app)


def test_the_slider_moves_matrix_measures_and_point_without_a_forward_pass(
    open_page: Open, scorer: Backend, demo_scores: np.ndarray, about_volcanoes: np.ndarray
) -> None:
    app = settled(open_page("pairs", view="scores", n="630"))
    passes = scorer.forward_passes
    every = [metrics.f1_score(about_volcanoes, demo_scores >= value) for value in np.unique(demo_scores)]
    assert shown(app)["F1"] == pytest.approx(max(every), abs=0.006)
    for value in (-3.5, -3.0, -0.5, app.slider(key="w_threshold").max):
        app.slider(key="w_threshold").set_value(value).run()
        accepted = demo_scores >= value
        assert matrix(app) == metrics.confusion_matrix(about_volcanoes, accepted, labels=[True, False]).tolist()
        expected = {
            "Precision": metrics.precision_score(about_volcanoes, accepted, zero_division=0),
            "Recall": metrics.recall_score(about_volcanoes, accepted),
            "F1": metrics.f1_score(about_volcanoes, accepted),
            "Accuracy": metrics.accuracy_score(about_volcanoes, accepted),
            "Always “not relevant”": 620 / 630,
        }
        assert shown(app) == pytest.approx(expected, abs=0.0006)
        answer = next(str(item.value) for item in app.markdown if "insights" in str(item.value))
        found, others = int((accepted & about_volcanoes).sum()), int((accepted & ~about_volcanoes).sum())
        if accepted.any():
            assert f"Accepts **{found} of 10 relevant documents** (recall {100 * expected['Recall']:.0f} %)" in answer
            assert f"**{others} other" in answer or not others
        else:
            assert "Nothing is accepted" in answer
        point = figures(app)[1]["data"][2]
        assert (point["x"][0] / 100, point["y"][0] / 100) == pytest.approx((expected["Recall"], expected["Precision"]))
        assert figures(app)[0]["layout"]["shapes"][0]["x0"] == pytest.approx(value)
    assert scorer.forward_passes == passes
    assert setting(app, "threshold") == round(1_000 * app.slider(key="w_threshold").max)


def test_the_sigmoid_keeps_the_order_and_is_not_called_a_probability(
    open_page: Open, demo_scores: np.ndarray, about_volcanoes: np.ndarray
) -> None:
    app = settled(open_page("pairs", view="scores", n="630", sc="sigmoid", th="500"))
    assert app.slider(key="w_threshold").value == 0.5
    accepted = demo_scores >= 0
    assert matrix(app) == metrics.confusion_matrix(about_volcanoes, accepted, labels=[True, False]).tolist()
    assert any("not a calibrated probability" in item.value for item in app.warning)
    app.segmented_control(key="w_score_scale").set_value("logit").run()
    assert setting(app, "threshold") is None  # 0.5 would be another threshold on another scale
    assert not app.warning


def test_at_first_the_threshold_is_the_best_score_itself_however_small(
    open_page: Open, scorer: Backend, about_volcanoes: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All these scores are less than two of the slider's steps from 0, and most less than half a step."""
    query = "a query with low scores"
    corpus = current.demo()
    volcanoes = {corpus.texts[row] for row in np.flatnonzero(about_volcanoes)}

    def low(queries: Any, documents: Any, **options: Any) -> np.ndarray:
        values = [
            (-7.4 if number % 2 else -6.2) if text in volcanoes else -7.6 for number, text in enumerate(documents)
        ]
        return np.array(values, np.float32)[:, None]

    monkeypatch.setattr(scorer, "pair_logits", low)
    app = settled(open_page("pairs", view="scores", n="630", q=query, top="volcano", sc="sigmoid"))
    assert setting(app, "threshold") is None
    assert matrix(app) == [[10, 0], [0, 620]]
    assert shown(app)["F1"] == 1
    assert figures(app)[2]["layout"]["xaxis"]["ticktext"][0] == "accepted<br>(0.0006 or higher)"
    assert "Accepts **10 of 10 relevant documents** (recall 100 %) and **no other** (precision 100 %)" in texts(app)
    app.slider(key="w_threshold").set_value(0.002).run()
    assert matrix(app)[0][0] < 10


def test_relevant_is_the_own_sentence_or_what_was_marked(open_page: Open) -> None:
    corpus = current.demo()
    headline = corpus.columns["compressed"][3]
    app = settled(open_page("pairs", view="scores", n="630", q=headline, rel="own"))
    assert figures(app)[0]["data"][1]["name"] == "relevant (1)"
    app.selectbox(key="w_relevant_by").set_value("marks").run()
    assert "None of the 630 scored documents is relevant" in texts(app)
    marked = Judgements().mark(headline, 3, True).mark(headline, 5, True).mark(headline, 6, False)
    app.session_state["_judgements"] = {corpus.content_hash: marked}
    app.run()
    assert figures(app)[0]["data"][1]["name"] == "relevant (2)"
    app.selectbox(key="w_relevant_by").set_value("topic").run()
    assert app.selectbox(key="w_relevant_topic").value == corpus.columns["topic"][3]
    app.selectbox(key="w_relevant_topic").set_value("storm").run()
    assert setting(app, "relevant_topic") == "storm"
    app.text_input(key="w_query").set_value("a tennis match").run()
    app = settled(app)
    assert app.selectbox(key="w_relevant_topic").value == "tennis"


def test_no_topic_is_a_choice_too(open_page: Open) -> None:
    texts_ = ("a cat sat", "the dog ran", "money in the bank")
    corpus = Corpus("some without a topic", texts_, {"topic": ("animals", "animals", "")})
    key = current.key_of(corpus)
    caching.corpora().put(key, corpus)
    app = settled(open_page("pairs", view="scores", corpus=key, q="a cat"))
    assert app.selectbox(key="w_relevant_topic").value == "animals"
    app.selectbox(key="w_relevant_topic").set_value("").run()
    assert setting(app, "relevant_topic") == ""
    assert app.run().selectbox(key="w_relevant_topic").value == ""
    assert [int(np.sum(trace["y"])) for trace in figures(app)[0]["data"]] == [2, 1]


def test_half_of_a_sample_are_the_first_by_the_vectors(open_page: Open) -> None:
    app = settled(open_page("pairs", view="scores", n="100", seed="3"))
    corpus, model = current.demo(), backend()
    names = [trace["name"] for trace in figures(app)[0]["data"]]
    assert sum(int(name.split("(")[1][:-1]) for name in names) == 100
    app.session_state["data_pair_histogram"] = True
    table = app.run().dataframe[0].value
    vectors = model.embed([QUERY, *corpus.texts], [6], [model.own_pooling])[0, 0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first = set(np.argsort(-(vectors[1:] @ vectors[0]))[:49].tolist())  # the fiftieth may be a tie
    assert first <= set(table["number"])
    assert len(set(table["number"])) == 100
    other = settled(open_page("pairs", view="scores", n="100", seed="4"))
    other.session_state["data_pair_histogram"] = True
    again = set(other.run().dataframe[0].value["number"])
    assert first <= again != set(table["number"])


def test_three_labels_are_chosen_by_name(open_page: Open, tmp_path: Any) -> None:
    folder = save_cross_encoder(tmp_path, "bert", outputs=3)
    path = folder / "config.json"
    names = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"id2label": names}))
    model = Backend.load(str(folder), device_name="cpu")
    logits = model.pair_logits([QUERY] * 630, current.demo().texts)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    app = settled(open_page("pairs", view="scores", ce=str(folder), sc="softmax", n="630"))
    assert app.selectbox(key="w_score_label").value == "entailment"
    assert app.segmented_control(key="w_score_scale").options == ["Raw logit", "Softmax"]
    for label, name in enumerate(names.values()):
        app.selectbox(key="w_score_label").set_value(name).run()
        assert figures(app)[0]["layout"]["xaxis"]["title"]["text"] == f"score (softmax of {name}, from 0 to 1)"
        relevant = np.array([topic == setting_topic(app) for topic in current.demo().columns["topic"]])
        expected = metrics.average_precision_score(relevant, shares[:, label])
        assert f"{100 * expected:.1f} % by" in texts(app)


def setting_topic(app: AppTest) -> str:
    return str(app.selectbox(key="w_relevant_topic").value)


def test_scoring_is_a_job_with_progress_and_stop(
    open_page: Open, scorer: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(open_page("pairs", view="scores", n="630"))  # the index is made
    started, gate, plain = threading.Event(), threading.Event(), scorer.pair_logits

    def slow(*arguments: Any, **options: Any) -> np.ndarray:
        options["progress"](1, 630)
        started.set()
        assert gate.wait(60)
        return plain(*arguments, **options)

    monkeypatch.setattr(scorer, "pair_logits", slow)
    app = open_page("pairs", view="scores", n="630", q="a query that nobody had before")
    try:
        assert started.wait(30)
        (older,) = [job for job in caching.preparations().under_way() if job.key[0] == "pair logits"]
        app.text_input(key="w_query").set_value("the query that follows it").run()
        assert older.cancel.is_set()
        app.button(key="stop_pair_scores").click().run()
        assert "Stopped" in texts(app)
    finally:
        gate.set()
    assert app.button(key="again_pair_scores")


def test_at_first_few_documents_are_scored_all_that_are_relevant_among_them(open_page: Open) -> None:
    app = settled(open_page("pairs", view="scores"))
    assert [trace["name"] for trace in figures(app)[0]["data"]] == ["not relevant (190)", "relevant (10)"]
    assert "n" not in app.query_params


def test_an_empty_query_is_asked_for(open_page: Open) -> None:
    assert "No query yet" in texts(open_page("pairs", view="scores", q=" "))


def test_a_query_of_the_corpus_brings_its_own_sentence(open_page: Open) -> None:
    app = settled(open_page("pairs", view="scores", n="630", rel="own"))
    assert "None of the 630 scored documents is relevant" in texts(app)
    assert "Press “A query of the corpus”" in texts(app)
    app.button(key="corpus_query").click().run()
    app = settled(app)
    assert setting(app, "query") in current.demo().columns["compressed"]
    assert figures(app)[0]["data"][1]["name"] == "relevant (1)"


def test_a_corpus_without_topics_and_queries_offers_only_marks(open_page: Open) -> None:
    corpus = Corpus("three lines", ("a cat sat", "the dog ran", "money in the bank"))
    key = current.key_of(corpus)
    caching.corpora().put(key, corpus)
    app = settled(open_page("pairs", view="scores", corpus=key, q="a cat"))
    assert app.selectbox(key="w_relevant_by").options == ["Marks on Search"]
    assert "None of the 3 scored documents is relevant" in texts(app)
    assert "Mark documents with ✓ on the Search page" in texts(app)
    app.session_state["_judgements"] = {corpus.content_hash: Judgements().mark("a cat", 0, True)}
    app.run()
    assert not app.exception
    assert [int(np.sum(trace["y"])) for trace in figures(app)[0]["data"]] == [2, 1]
    app.segmented_control(key="w_pairs_view").set_value("given").run()
    app.button_group(key="w_triple").set_value("From the corpus").run()
    assert "has no column with a query for each sentence" in texts(app)
