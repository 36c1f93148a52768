"""Evaluate's fused runs: words and vectors together, their weight, and which of them alone finds an answer."""

from __future__ import annotations

import numpy as np
import pytest

from components.retrieval.corpora.corpus import Corpus
from components.retrieval.evaluation.metrics import Interval
from components.retrieval.fusion.weights import ChosenWeight
from components.retrieval.search.lexical import make_ranker
from dashboard.corpora import current
from dashboard.settings import parse_runs
from dashboard.views.evaluate import choices
from dashboard.views.evaluate.choices import VectorCode
from dashboard.views.evaluate.fused.weights import finding
from tests.support.evaluate_page import ready, small_corpus, timed
from tests.support.pages import Open, backend, frame

COUNT = 24
CODES = ("m.6.mean", "bm25", "fr.bm25.m.6.mean", "f0.bm25.m.6.mean", "f100.bm25.m.6.mean", "f25.bm25.m.6.mean")


@pytest.fixture(scope="module")
def small() -> Corpus:
    return small_corpus(COUNT)


def plain_ranks(corpus: Corpus) -> np.ndarray:
    """By reciprocal rank fusion of the last layer's cosines and BM25, one query after the other."""
    queries = corpus.columns["compressed"]
    both = backend().embed([*corpus.texts, *queries], options=backend().embed_options(precision="float32"))[0, 0]
    both = both.astype(np.float64) / np.linalg.norm(both.astype(np.float64), axis=1, keepdims=True)
    cosines, ranker, ranks = both[COUNT:] @ both[:COUNT].T, make_ranker("bm25", corpus.texts), []
    for number, query in enumerate(queries):
        words = ranker.scores(query)
        sums = [
            1 / (60 + sum(cosines[number] >= cosines[number, text]))
            + (1 / (60 + sum(words >= words[text] - 1e-6)) if words[text] > 0 else 0.0)
            for text in range(COUNT)
        ]
        ranks.append(sum(value >= sums[number] - 1e-12 for value in sums))
    return np.array(ranks)


def test_fused_runs_stand_in_the_table_and_their_ends_are_the_single_runs(open_page: Open, small: Corpus) -> None:
    app = timed(open_page("evaluate", v="compare-runs", corpus=current.key_of(small), r=list(CODES), by="mrr", am="1"))
    assert not app.error
    table = frame(app, "p (Holm)")
    assert len(table) == len(CODES)
    measures = [name for name in table.columns if name.startswith("Recall@") or name in ("MRR", "nDCG@10")]
    for end, single in ((3, 0), (4, 1)):
        np.testing.assert_allclose(
            table.loc[end, measures].to_numpy(float), table.loc[single, measures].to_numpy(float), atol=1e-9
        )
    assert table["MRR"][2] == pytest.approx(100 * (1 / plain_ranks(small)).mean(), abs=1e-6)
    assert any("A fused run ranks all sentences by a sum" in each.value for each in app.caption)


def test_an_opened_query_says_which_run_alone_finds_it(open_page: Open, small: Corpus) -> None:
    app = timed(
        open_page(
            "evaluate", v="compare-runs", corpus=current.key_of(small), r=["m.6.mean", "fr.bm25.m.6.mean"], oq="3"
        )
    )
    assert not app.error
    (said,) = [each.value for each in app.caption if each.value.startswith("Each alone:")]
    assert "by vectors rank " in said
    assert "by BM25 " in said
    assert "alone" in said.split(";")[1]


@pytest.mark.parametrize(
    ("code", "read"),
    [
        ("fr.bm25.m.6.mean", VectorCode("m", 6, "mean", words="bm25")),
        ("f25.jm.m2.0.cls", VectorCode("m2", 0, "cls", words="jm", weight=25)),
        ("f100.bow.m.1.own", VectorCode("m", 1, "own", words="bow", weight=100)),
        ("rr.100.m.6.mean", VectorCode("m", 6, "mean", second="rr", k=100)),
    ],
)
def test_codes_are_read(code: str, read: VectorCode) -> None:
    assert parse_runs([code]) == (code,)
    assert choices.parsed(code) == read
    assert choices.first_stage(code) == f"{read.model}.{read.layer}.{read.pooling}"


@pytest.mark.parametrize(
    "code",
    ["f101.bm25.m.6.mean", "f.bm25.m.6.mean", "fr.static.m.6.mean", "f05.bm25.m.6.mean", "fr.20.m.6.mean", "fr.bm25"],
)
def test_other_codes_name_no_run(code: str) -> None:
    with pytest.raises(ValueError, match="names no run"):
        parse_runs([code])


def test_names_say_what_is_fused() -> None:
    assert choices.name_of("fr.bm25.m.6.mean") == "Layer 6, Mean + BM25, by ranks"
    assert choices.name_of("f25.jm.m.6.mean", {"m": "A model"}) == "A model, layer 6, Mean + Jelinek-Mercer, 25 % words"


@pytest.mark.parametrize(
    ("place", "value", "alone", "said"),
    [
        (
            3,
            0.8,
            0.7,
            "choose **30 % BM25**. On the other half MRR is then 80.0 % (70.0 to 90.0), +10.0 points against",
        ),
        (3, 0.7, 0.8, "−10.0 points against **Layer 6** alone."),  # the usual story is false: the choice does harm
        (0, 0.8, 0.8, "choose no words: on the other half **Layer 6** has MRR 80.0 % (70.0 to 90.0)."),
    ],
)
def test_the_finding_is_of_the_half_that_did_not_choose(place: int, value: float, alone: float, said: str) -> None:
    chosen = ChosenWeight(place, 0.9, Interval(value, value - 0.1, value + 0.1), Interval(alone, 0.0, 1.0))
    assert said in finding(chosen, "Layer 6", "BM25", "MRR")


def test_few_queries_choose_no_weight() -> None:
    assert finding(None, "Layer 6", "BM25", "MRR").startswith("There are too few queries")


def test_graded_relevance_has_fused_runs_too(open_page: Open) -> None:
    app = ready(
        open_page("evaluate", v="graded-relevance", r=["m.6.mean", "f0.bm25.m.6.mean", "fr.bm25.m.6.mean"], am="1")
    )
    assert not app.error
    table = frame(app, "MAP")
    assert len(table) == 3
    assert table["MAP"].iloc[0] == pytest.approx(table["MAP"].iloc[1], abs=1e-9)
    assert table["MAP"].iloc[2] != table["MAP"].iloc[0]
