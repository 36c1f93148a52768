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
from dashboard.views.pairs import scores
from tests.support.pages import Open, at_rest, backend, choose_view, figures, setting, texts
from tests.support.saved_models import save_cross_encoder

QUERY = "volcano erupted"
COUNT = 60  # sentences


TOPICS = ("volcano", "storm", "tennis", "chess and games", "zoos", "fishing")


@pytest.fixture(scope="module")
def six_topics() -> Corpus:
    """All sentences of the demo with these topics, ten of each."""
    demo = current.demo()
    rows = [row for row, topic in enumerate(demo.columns["topic"]) if topic in TOPICS]
    columns = {name: tuple(demo.columns[name][row] for row in rows) for name in ("topic", "compressed")}
    return Corpus("six topics", tuple(demo.texts[row] for row in rows), columns)


@pytest.fixture
def few(six_topics: Corpus) -> dict[str, str]:
    """The address of a page that scores all sentences of this corpus."""
    key = current.key_of(six_topics)
    caching.corpora().put(key, six_topics)
    return {"view": "scores", "corpus": key, "n": "630"}


@pytest.fixture(scope="module")
def logits(scorer: Backend, six_topics: Corpus) -> np.ndarray:
    """The logits of all sentences with the query [sentence]."""
    return scorer.score_pairs([QUERY] * COUNT, six_topics.texts)


@pytest.fixture(scope="module")
def about_volcanoes(six_topics: Corpus) -> np.ndarray:
    return np.array([topic == "volcano" for topic in six_topics.columns["topic"]])


@pytest.fixture(scope="module")
def cosines(six_topics: Corpus) -> np.ndarray:
    """Those of the query with all sentences [sentence]."""
    model = backend()
    vectors = model.embed([QUERY, *six_topics.texts], [6], [model.own_pooling])[0, 0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[1:] @ vectors[0]


def shown(app: AppTest) -> dict[str, float]:
    return {item.label: float(item.value.removesuffix(" %")) / 100 for item in app.metric}


def matrix(app: AppTest) -> list[list[int]]:
    cells = [
        int(text.split("</b>")[0].removeprefix("<b>").replace(",", "")) for text in figures(app)[2]["data"][0]["text"]
    ]
    return [cells[:2], cells[2:]]


def test_the_figures_are_those_of_the_models_scores(
    open_page: Open, few: dict[str, str], logits: np.ndarray, cosines: np.ndarray, about_volcanoes: np.ndarray
) -> None:
    app = at_rest(open_page("pairs", **few))
    assert not app.exception
    assert not app.warning
    bars, curve = figures(app)[:2]
    assert [trace["name"] for trace in bars["data"]] == ["not relevant (50)", "relevant (10)"]
    assert [int(np.sum(trace["y"])) for trace in bars["data"]] == [50, 10]
    precision, recall, _ = metrics.precision_recall_curve(about_volcanoes, logits)
    np.testing.assert_allclose(curve["data"][0]["x"], 100 * recall, atol=1e-4)
    np.testing.assert_allclose(curve["data"][0]["y"], 100 * precision, atol=1e-4)
    assert bars["layout"]["xaxis"]["title"]["text"] == "score (raw logit, any number)"
    average = metrics.average_precision_score(about_volcanoes, logits)
    assert f"{100 * average:.1f} % by MiniLM cross-encoder" in texts(app)
    assert "about 16.7 % by chance" in texts(app)
    by_vectors = metrics.average_precision_score(about_volcanoes, cosines)
    assert f"{100 * by_vectors:.1f} % by the cosine of all-MiniLM-L6-v2's vectors" in texts(app)
    assert scores.beside_cosine(average, by_vectors) in texts(app)


def test_the_finding_says_also_that_reading_together_ranks_better_or_as_well() -> None:
    assert scores.beside_cosine(0.601, 0.902) == "Average precision: 60 %, by plain cosine 90 %."
    assert scores.beside_cosine(0.902, 0.601) == "Average precision: 90 %, by plain cosine 60 %."
    assert scores.beside_cosine(0.902, 0.904) == "Average precision: 90.2 %, by plain cosine 90.4 %."
    assert scores.beside_cosine(0.9021, 0.9019) == "Average precision: 90.2 %, as by plain cosine."


def test_the_slider_moves_matrix_measures_and_point_without_a_forward_pass(
    open_page: Open, few: dict[str, str], scorer: Backend, logits: np.ndarray, about_volcanoes: np.ndarray
) -> None:
    app = at_rest(open_page("pairs", **few))
    passes = scorer.forward_passes
    every = [metrics.f1_score(about_volcanoes, logits >= value) for value in np.unique(logits)]
    assert shown(app)["F1"] == pytest.approx(max(every), abs=0.006)
    for value in (-3.5, -3.0, -0.5, app.slider(key="w_threshold").max):
        app.slider(key="w_threshold").set_value(value).run()
        accepted = logits >= value
        assert matrix(app) == metrics.confusion_matrix(about_volcanoes, accepted, labels=[True, False]).tolist()
        expected = {
            "Precision": metrics.precision_score(about_volcanoes, accepted, zero_division=0),
            "Recall": metrics.recall_score(about_volcanoes, accepted),
            "F1": metrics.f1_score(about_volcanoes, accepted),
            "Accuracy": metrics.accuracy_score(about_volcanoes, accepted),
            "Always “not relevant”": 50 / 60,
        }
        assert shown(app) == pytest.approx(expected, abs=0.0006)
        answer = next(str(item.value) for item in app.markdown if "insights" in str(item.value))
        found, others = int((accepted & about_volcanoes).sum()), int((accepted & ~about_volcanoes).sum())
        if accepted.any():
            assert f"the cross-encoder accepts **{found} of 10 relevant documents** and" in answer
            assert f"**{others} other" in answer or not others
        else:
            assert "Nothing is accepted" in answer
        point = figures(app)[1]["data"][2]
        assert (point["x"][0] / 100, point["y"][0] / 100) == pytest.approx((expected["Recall"], expected["Precision"]))
        assert figures(app)[0]["layout"]["shapes"][0]["x0"] == pytest.approx(value)
    assert scorer.forward_passes == passes
    assert setting(app, "threshold") == round(1_000 * app.slider(key="w_threshold").max)


def test_the_sigmoid_keeps_the_order_and_is_not_called_a_probability(
    open_page: Open, few: dict[str, str], logits: np.ndarray, about_volcanoes: np.ndarray
) -> None:
    app = at_rest(open_page("pairs", **few, sc="sigmoid", th="500"))
    assert app.slider(key="w_threshold").value == 0.5
    accepted = logits >= 0
    assert matrix(app) == metrics.confusion_matrix(about_volcanoes, accepted, labels=[True, False]).tolist()
    assert any("not a calibrated probability" in item.value for item in app.warning)
    app.segmented_control(key="w_score_scale").set_value("logit").run()
    assert setting(app, "threshold") is None  # 0.5 would be another threshold on another scale
    assert not app.warning


def test_at_first_the_threshold_is_the_best_score_itself_however_small(
    open_page: Open,
    few: dict[str, str],
    six_topics: Corpus,
    scorer: Backend,
    about_volcanoes: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All these scores are less than two of the slider's steps from 0, and most less than half a step."""
    query = "a query with low scores"
    volcanoes = {six_topics.texts[row] for row in np.flatnonzero(about_volcanoes)}

    def low(queries: Any, documents: Any, **options: Any) -> np.ndarray:
        values = [
            (-7.4 if number % 2 else -6.2) if text in volcanoes else -7.6 for number, text in enumerate(documents)
        ]
        return np.array(values, np.float32)[:, None]

    monkeypatch.setattr(scorer, "pair_logits", low)
    app = at_rest(open_page("pairs", **few, q=query, top="volcano", sc="sigmoid"))
    assert setting(app, "threshold") is None
    assert matrix(app) == [[10, 0], [0, 50]]
    assert shown(app)["F1"] == 1
    assert figures(app)[2]["layout"]["xaxis"]["ticktext"][0] == "accepted<br>(0.0006 or higher)"
    assert "At 0.0006 the cross-encoder accepts **10 of 10 relevant documents** and **no other**." in texts(app)
    app.slider(key="w_threshold").set_value(0.002).run()
    assert matrix(app)[0][0] < 10


def test_relevant_is_the_own_sentence_or_what_was_marked(
    open_page: Open, few: dict[str, str], six_topics: Corpus
) -> None:
    corpus = six_topics
    headline = corpus.columns["compressed"][3]
    app = at_rest(open_page("pairs", **few, q=headline, rel="own"))
    assert figures(app)[0]["data"][1]["name"] == "relevant (1)"
    app.selectbox(key="w_relevant_by").set_value("marks").run()
    assert "None of the 60 scored documents is relevant" in texts(app)
    marked = Judgements().mark(headline, 3, True).mark(headline, 5, True).mark(headline, 6, False)
    app.session_state["_judgements"] = {corpus.content_hash: marked}
    app.run()
    assert figures(app)[0]["data"][1]["name"] == "relevant (2)"
    app.selectbox(key="w_relevant_by").set_value("topic").run()
    assert app.selectbox(key="w_relevant_topic").value == corpus.columns["topic"][3]
    app.selectbox(key="w_relevant_topic").set_value("zoos").run()
    assert setting(app, "relevant_topic") == "zoos"
    app.text_input(key="w_query").set_value("a tennis match").run()
    app = at_rest(app)
    assert app.selectbox(key="w_relevant_topic").value == "tennis"


def test_no_topic_is_a_choice_too(open_page: Open) -> None:
    texts_ = ("a cat sat", "the dog ran", "money in the bank")
    corpus = Corpus("some without a topic", texts_, {"topic": ("animals", "animals", "")})
    key = current.key_of(corpus)
    caching.corpora().put(key, corpus)
    app = at_rest(open_page("pairs", v="pair-scores", corpus=key, q="a cat"))
    assert app.selectbox(key="w_relevant_topic").value == "animals"
    app.selectbox(key="w_relevant_topic").set_value("").run()
    assert setting(app, "relevant_topic") == ""
    assert app.run().selectbox(key="w_relevant_topic").value == ""
    assert [int(np.sum(trace["y"])) for trace in figures(app)[0]["data"]] == [2, 1]


def test_half_of_a_sample_are_the_first_by_the_vectors(
    open_page: Open, few: dict[str, str], cosines: np.ndarray
) -> None:
    few["n"] = "50"
    app = at_rest(open_page("pairs", **few, seed="3"))
    names = [trace["name"] for trace in figures(app)[0]["data"]]
    assert sum(int(name.split("(")[1][:-1]) for name in names) == 50
    app.session_state["data_pair_histogram"] = True
    table = app.run().dataframe[0].value
    first = set(np.argsort(-cosines)[:24].tolist())  # the 25th may be a tie
    assert first <= set(table["number"])
    assert len(set(table["number"])) == 50
    other = at_rest(open_page("pairs", **few, seed="4"))
    other.session_state["data_pair_histogram"] = True
    again = set(other.run().dataframe[0].value["number"])
    assert first <= again != set(table["number"])


def test_three_labels_are_chosen_by_name(
    open_page: Open, few: dict[str, str], six_topics: Corpus, tmp_path: Any
) -> None:
    folder = save_cross_encoder(tmp_path, "bert", outputs=3)
    path = folder / "config.json"
    names = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"id2label": names}))
    model = Backend.load(str(folder), device_name="cpu")
    logits = model.pair_logits([QUERY] * COUNT, six_topics.texts)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    app = at_rest(open_page("pairs", **few, ce=str(folder), sc="softmax"))
    assert app.selectbox(key="w_score_label").value == "entailment"
    assert app.segmented_control(key="w_score_scale").options == ["Raw logit", "Softmax"]
    for label, name in enumerate(names.values()):
        app.selectbox(key="w_score_label").set_value(name).run()
        assert figures(app)[0]["layout"]["xaxis"]["title"]["text"] == f"score (softmax of {name}, from 0 to 1)"
        relevant = np.array([topic == setting_topic(app) for topic in six_topics.columns["topic"]])
        expected = metrics.average_precision_score(relevant, shares[:, label])
        assert f"{100 * expected:.1f} % by" in texts(app)


def setting_topic(app: AppTest) -> str:
    return str(app.selectbox(key="w_relevant_topic").value)


def test_scoring_is_a_job_with_progress_and_stop(
    open_page: Open, few: dict[str, str], scorer: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_rest(open_page("pairs", **few))  # the index is made
    started, gate, plain = threading.Event(), threading.Event(), scorer.pair_logits

    def slow(*arguments: Any, **options: Any) -> np.ndarray:
        options["progress"](1, COUNT)
        started.set()
        assert gate.wait(60)
        return plain(*arguments, **options)

    monkeypatch.setattr(scorer, "pair_logits", slow)
    app = open_page("pairs", **few, q="a query that nobody had before")
    try:
        assert started.wait(30)
        (older,) = [job for job in caching.preparations().under_way() if job.key[0] == "pair logits"]
        app.text_input(key="w_query").set_value("the query that follows it").run()
        assert older.told_to_stop.is_set()
        app.button(key="stop_pair_scores").click().run()
        assert "Stopped" in texts(app)
    finally:
        gate.set()
    assert app.button(key="again_pair_scores")


def test_at_first_few_documents_are_scored_all_that_are_relevant_among_them(
    open_page: Open, scorer: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[str] = []

    def numbered(queries: Any, documents: Any, **options: Any) -> np.ndarray:
        scored.extend(documents)
        return np.arange(len(documents), dtype=np.float32)[:, None]

    monkeypatch.setattr(scorer, "pair_logits", numbered)
    app = at_rest(open_page("pairs", v="pair-scores", q="a volcano erupted"))
    assert len(set(scored)) == 200
    assert [trace["name"] for trace in figures(app)[0]["data"]] == ["not relevant (190)", "relevant (10)"]
    assert "n" not in app.query_params


def test_an_empty_query_is_asked_for(open_page: Open) -> None:
    assert "No query yet" in texts(open_page("pairs", v="pair-scores", q=" "))


def test_a_query_of_the_corpus_brings_its_own_sentence(
    open_page: Open, few: dict[str, str], six_topics: Corpus
) -> None:
    app = at_rest(open_page("pairs", **few, rel="own"))
    assert "None of the 60 scored documents is relevant" in texts(app)
    assert "Press “A query of the corpus”" in texts(app)
    app.button(key="corpus_query").click().run()
    app = at_rest(app)
    assert setting(app, "query") in six_topics.columns["compressed"]
    assert figures(app)[0]["data"][1]["name"] == "relevant (1)"


def test_a_corpus_without_topics_and_queries_offers_only_marks(open_page: Open) -> None:
    corpus = Corpus("three lines", ("a cat sat", "the dog ran", "money in the bank"))
    key = current.key_of(corpus)
    caching.corpora().put(key, corpus)
    app = at_rest(open_page("pairs", v="pair-scores", corpus=key, q="a cat"))
    assert app.selectbox(key="w_relevant_by").options == ["Marks on Search"]
    assert "None of the 3 scored documents is relevant" in texts(app)
    assert "Mark documents with ✓ on the Search page" in texts(app)
    app.session_state["_judgements"] = {corpus.content_hash: Judgements().mark("a cat", 0, True)}
    app.run()
    assert not app.exception
    assert [int(np.sum(trace["y"])) for trace in figures(app)[0]["data"]] == [2, 1]
    choose_view(app, "one-input")
    app.button_group(key="w_triple").set_value("From the corpus").run()
    assert "has no column with a query for each sentence" in texts(app)
