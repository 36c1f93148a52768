"""Evaluate's fused runs: words and vectors together, their weight, and which of them alone finds an answer."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.retrieval.corpora.corpus import Corpus
from components.retrieval.evaluation.metrics import Interval
from components.retrieval.fusion.weights import ChosenWeight
from components.retrieval.rankings.run_code import RunCode
from components.retrieval.search.lexical import make_ranker
from dashboard.corpora import current
from dashboard.views.evaluate import choices
from dashboard.views.evaluate.fusion import weights
from dashboard.views.evaluate.fusion.weights import finding
from tests.support.evaluate_page import ready, small_corpus, timed
from tests.support.pages import Open, backend, frame

COUNT = 24
CODES = ("m.6.mean", "bm25", "fr.bm25.m.6.mean", "f0.bm25.m.6.mean", "f100.bm25.m.6.mean", "f25.bm25.m.6.mean")
OF_ANY = {  # other fused runs, and the rankings that `plain_ranks` adds for each
    "fr.m.6.mean~bm25~tfidf": ("m.6", "bm25", "tfidf"),
    "fr.bm25~tfidf": ("bm25", "tfidf"),
    "fr.m.6.mean~m.3.mean": ("m.6", "m.3"),
    "f100.bm25~m.6.mean": ("m.6",),
}
DEPTH = 8
OF_SETTINGS = {"fr10d8.bm25.m.6.mean": "rrf", "f25d8.bm25.m.6.mean": "minmax", "fz25d8.bm25.m.6.mean": "z"}


@pytest.fixture(scope="module")
def small() -> Corpus:
    return small_corpus(COUNT)


def plain_scores(corpus: Corpus, name: str) -> np.ndarray:
    """The scores [query, text] of a layer with mean pooling, as "m.6", or of a ranking by words."""
    queries = corpus.columns["compressed"]
    if not name.startswith("m."):
        ranker = make_ranker(name, corpus.texts)  # type: ignore[arg-type]
        return np.array([ranker.scores(query) for query in queries])
    options = backend().embed_options([int(name[2:])], ["mean"], precision="float32")
    both = backend().embed([*corpus.texts, *queries], options=options)[0, 0].astype(np.float64)
    both /= np.linalg.norm(both, axis=1, keepdims=True)
    return both[COUNT:] @ both[:COUNT].T


def plain_ranks(corpus: Corpus, names: Sequence[str] = ("m.6", "bm25")) -> np.ndarray:
    """By reciprocal rank fusion, one query after the other."""
    rankings, ranks = {name: plain_scores(corpus, name) for name in names}, []
    for number in range(COUNT):
        sums = [0.0] * COUNT
        for name, scores in rankings.items():
            by_words, own = not name.startswith("m."), scores[number]
            for text in range(COUNT):
                if not by_words or own[text] > 0:
                    sums[text] += 1 / (60 + sum(own >= own[text] - (1e-6 if by_words else 0)))
        # What no ranking finds is not found.
        ranks.append(sum(value >= sums[number] - 1e-12 for value in sums) if sums[number] else np.inf)
    return np.array(ranks)


def plain_ranks_by(corpus: Corpus, method: str) -> np.ndarray:
    """The last layer with a quarter of BM25, or with k = 10, of each only the first eight; one query after the other."""
    vectors, words = plain_scores(corpus, "m.6"), plain_scores(corpus, "bm25")
    ranks = []
    for number in range(COUNT):
        sums, is_known = np.zeros(COUNT), np.zeros(COUNT, bool)
        for scores, weight, tied in ((vectors[number], 0.75, 0.0), (words[number], 0.25, 1e-6)):
            own_ranks = np.array([np.count_nonzero(scores >= own - tied) for own in scores])
            is_in = (own_ranks <= DEPTH) & ((scores > 0) | (tied == 0.0))
            cut = np.where(is_in, scores, scores.min())
            if method == "rrf":
                sums += np.where(is_in, 1 / (10 + own_ranks), 0)
            elif np.ptp(cut):
                start, width = (cut.min(), np.ptp(cut)) if method == "minmax" else (cut.mean(), cut.std())
                sums += weight * (cut - start) / width
            is_known |= is_in
        is_known &= sums > -np.inf
        ahead = np.count_nonzero(is_known & (sums >= sums[number] - 1e-9))
        ranks.append(ahead if is_known[number] else np.inf)
    return np.array(ranks)


def test_fused_runs_stand_in_the_table_and_their_ends_are_the_single_runs(open_page: Open, small: Corpus) -> None:
    app = timed(
        open_page(
            "evaluate",
            v="compare-runs",
            corpus=current.key_of(small),
            r=[*CODES, *OF_ANY, *OF_SETTINGS],
            by="mrr",
            am="1",
        )
    )
    assert not app.error
    table, count = frame(app, "p (Holm)"), len(CODES) + len(OF_ANY) + len(OF_SETTINGS)
    assert len(table) == count
    measures = [name for name in table.columns if name.startswith("Recall@") or name in ("MRR", "nDCG@10")]
    for end, single in ((3, 0), (4, 1)):
        np.testing.assert_allclose(
            table.loc[end, measures].to_numpy(float), table.loc[single, measures].to_numpy(float), atol=1e-9
        )
    assert table["MRR"][2] == pytest.approx(100 * (1 / plain_ranks(small)).mean(), abs=1e-6)
    assert any("A fused run ranks all sentences by a sum" in each.value for each in app.caption)
    for place, names in enumerate(OF_ANY.values(), start=len(CODES)):
        assert table["MRR"][place] == pytest.approx(100 * (1 / plain_ranks(small, names)).mean(), abs=1e-6), names
    for place, method in enumerate(OF_SETTINGS.values(), start=len(CODES) + len(OF_ANY)):
        assert table["MRR"][place] == pytest.approx(100 * (1 / plain_ranks_by(small, method)).mean(), abs=1e-6), method
    # One is added under “Choose runs”, and stands in the address and in the table.
    app.segmented_control(key="w_fusion_by").set_value("z").run()
    app.slider(key="w_fusion_weight").set_value(40).run()
    app.multiselect(key="w_fused_parts").set_value(["m.6.mean", "ms.20.m.6.mean", "bm25"]).run()
    app = timed(next(button for button in app.button if button.label == "Add this run").click().run())
    assert app.query_params["r"][-1] == "fz40.m.6.mean~ms.20.m.6.mean~bm25"
    assert len(frame(app, "p (Holm)")) == count + 1


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


def test_names_say_what_is_fused() -> None:
    assert choices.name_of(RunCode.read("fr.bm25.m.6.mean")) == "Layer 6, Mean + BM25, by ranks"
    assert choices.name_of(RunCode.read("fr10d50.bm25.m.6.mean")) == (
        "Layer 6, Mean + BM25, by ranks (k 10), only the first 50 of each"
    )
    assert choices.name_of(RunCode.read("fz25.bm25~m.6.mean")) == "BM25 + layer 6, Mean, 25 % of the last by z scores"
    of_three = RunCode.read("fr.m.6.mean~ms.20.m.6.mean~tfidf")
    assert choices.name_of(of_three) == "Layer 6, Mean + layer 6, Mean, first 20 by MaxSim + TF-IDF, by ranks"
    assert (
        choices.name_of(RunCode.read("f25.jm.m.6.mean"), {"m": "A model"})
        == "A model, layer 6, Mean + Jelinek-Mercer, 25 % words"
    )
    models: Any = {
        key: SimpleNamespace(backend=SimpleNamespace(spec=SimpleNamespace(title=title)))
        for key, title in (("m", "A model"), ("m2", "Another"))
    }
    # The parts of a fused run: by the titles where there are two models.
    assert choices.RunRequest(models, (), {}).name_of(of_three.parts[0]) == "A model, layer 6, Mean"
    assert choices.RunRequest({"m": models["m"]}, (), {}).name_of(of_three.parts[0]) == "Layer 6, Mean"


@pytest.mark.parametrize(
    ("place", "value", "alone", "said"),
    [
        (
            3,
            0.8,
            0.7,
            "chooses **30 % BM25**. On the other half MRR is then 80.0 % (70.0 to 90.0), +10.0 points against",
        ),
        (3, 0.7, 0.8, "−10.0 points against **Layer 6** alone."),  # the usual story is false: the choice does harm
        (
            0,
            0.8,
            0.8,
            "chooses no words, so that nothing is gained on the other half, where **Layer 6** has 80.0 % (70.0 to 90.0).",
        ),
    ],
)
def test_the_finding_is_of_the_half_that_did_not_choose(place: int, value: float, alone: float, said: str) -> None:
    chosen = ChosenWeight(place, 0.9, Interval(value, value - 0.1, value + 0.1), Interval(alone, 0.0, 1.0))
    assert said in finding(chosen, "Layer 6", "BM25", "MRR")
    of_vectors = finding(chosen, "Layer 6", "Layer 3", "MRR", "nothing of Layer 3")  # two runs by vectors
    assert "words" not in of_vectors
    assert "Layer 3" in of_vectors


def test_all_queries_are_told_before_the_halves() -> None:
    said = weights.of_all([0.7, 0.75, 0.72], 0.6, "Layer 6", "BM25", "MRR")
    assert said == (
        "Over all queries **Layer 6** alone has MRR 70.0 %; with the best weight, 10 % BM25, it is 75.0 %, and by ranks 60.0 %."
    )
    said = weights.of_all([0.7, 0.65], 0.6, "Layer 6", "BM25", "MRR")  # the usual story is false: no words help
    assert (
        said
        == "Over all queries **Layer 6** alone has MRR 70.0 %, and no weight of BM25 is better; by ranks it is 60.0 %."
    )


@pytest.mark.parametrize("word", ["hybrid", "recip", "fus", "cross"])
def test_runs_are_found_by_the_words_under_which_people_look_for_them(word: str) -> None:
    codes = ("fr.bm25.m.6.mean", "rr.20.m.6.mean", "m.6.mean")
    found = [code for code in codes if word in choices._searched_as(RunCode.read(code))]
    assert found == [codes[word == "cross"]]


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
