"""Evaluation: every number it shows is what plain transformers, torch, scipy and ir_measures give."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
import streamlit as st
from scipy import stats
from streamlit.testing.v1 import AppTest

from components.charts import theme
from components.jobs import Job, Stopped
from components.model.backend import Backend
from components.model.catalog import spec_of
from components.model.trace import POOLINGS
from components.retrieval.corpora.corpus import Corpus, read_corpus
from components.retrieval.evaluation import metrics, pair_runs
from components.retrieval.evaluation.chance.best import best_of
from components.retrieval.evaluation.graded import collection
from components.retrieval.evaluation.graded.collection import GradedSet
from components.retrieval.evaluation.layer_grid import LayerGrid
from components.retrieval.evaluation.pair_runs import asked_of, pairs_of_corpus
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.evaluation.run_record import Run, RunData, write_runs
from components.retrieval.evaluation.sts import ScoredPairs
from components.retrieval.search.lexical import TITLES, make_ranker
from components.retrieval.search.words import shared_share
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import evaluation
from dashboard.sharing import lecture
from dashboard.ui.waiting.frame import Instead
from dashboard.ui.wording import POOLING_NAMES, searched_texts
from dashboard.views.evaluate import choices, sts
from dashboard.views.evaluate.rows import shared
from tests.support import plain_vectors as plain
from tests.support.evaluate_page import kept_corpus, ready, timed
from tests.support.pages import (
    Open,
    backend,
    choose_view,
    figures,
    frame,
    plain_table,
    read_texts,
    setting,
    texts,
    traces,
)
from tests.support.plain_vectors import cosines, plain_vectors
from tests.support.tiny import save_tiny

LAYERS = range(7)
COUNT = 100  # pairs
SCORED = 30  # pairs that people scored
DEFAULT_RUNS = ("m.6.mean", "m.6.cls", "m.0.mean", "bow", "tfidf", "bm25", "static")


# --- What is to be expected, by other means


def ranks_by(scores: np.ndarray) -> np.ndarray:
    """Ranks of the diagonal; a score of 0 is not found."""
    return np.where(np.diag(scores) > 0, plain.ranks_by(scores), NOT_FOUND)


def word_scores(kind: str, corpus: Corpus) -> np.ndarray:
    """Every query's scores by a baseline, [query, document]."""
    ranker = make_ranker(kind, corpus.texts)
    return np.array([ranker.scores(query) for query in corpus.columns["compressed"]], np.float64)


@pytest.fixture(scope="module")
def ten_topics() -> Corpus:
    """All sentences of the demo with its first ten topics as somebody's own file, with a second column that could ask.

    Those of one topic follow each other: few texts, and much to confuse.
    """
    demo = current.demo()
    topics = list(dict.fromkeys(demo.columns["topic"]))[:10]
    rows = zip(demo.texts, demo.columns["compressed"], demo.columns["topic"], strict=True)
    named = [dict(zip(("sentence", "compressed", "topic"), row, strict=True)) for row in rows if row[2] in topics]
    lines = map(json.dumps, sorted(named, key=lambda row: topics.index(row["topic"])))
    return read_corpus("\n".join(lines).encode(), "ten topics.jsonl", "sentence")


@pytest.fixture(scope="module")
def vectors(embedded_folder: Path, ten_topics: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Its sentences and headlines."""
    both = plain_vectors(embedded_folder, [*ten_topics.texts, *ten_topics.columns["compressed"]], 256)
    return both[:, :, :COUNT], both[:, :, COUNT:]


@pytest.fixture(scope="module")
def scores_of(vectors: tuple[np.ndarray, np.ndarray], ten_topics: Corpus) -> Callable[[str], np.ndarray]:
    """A run's code to its scores [query, document] on this corpus."""

    def scores(code: str) -> np.ndarray:
        if "." not in code:
            return word_scores(code, ten_topics)
        _, layer, pooling = code.split(".")
        documents, queries = vectors
        place = POOLINGS.index(pooling)  # type: ignore[arg-type]
        return cosines(queries[int(layer), place], documents[int(layer), place])

    return scores


# --- How the page is asked


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    yield
    for job in caching.evaluations().under_way():
        assert job.finished.wait(60)


@pytest.fixture
def small(ten_topics: Corpus) -> Corpus:
    """The same, kept: no other test's corpus has pushed it out."""
    caching.corpora().put(current.key_of(ten_topics), ten_topics)
    return ten_topics


@pytest.fixture
def evaluate(open_page: Open, small: Corpus) -> Open:
    """Opens the page with this corpus."""
    return partial(open_page, "evaluate", corpus=current.key_of(small))


@pytest.fixture(scope="module", autouse=True)
def _few_scored_pairs() -> Iterator[None]:
    """The first of the ready-made pairs. What was worked out with others has the same key, and is forgotten."""
    found = sts.demo_pairs()
    few = ScoredPairs(found.first[:SCORED], found.second[:SCORED], found.scores[:SCORED])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sts, "demo_pairs", lambda: few)
        yield
    caching.lab_vectors.clear()
    caching.lab_pairs().clear()


@pytest.fixture(scope="module", autouse=True)
def graded(ten_topics: Corpus) -> Iterator[GradedSet]:
    """The same corpus in place of the demo, by topic."""
    found = replace(collection.demo_graded(ten_topics), name="Ten topics")
    caching.graded_sets().put("demo", found)
    yield found
    caching.graded_sets().put("demo", collection.demo_graded(current.demo()))


def grid_values(app: AppTest) -> np.ndarray:
    """The lines over the layers, [layer, pooling]."""
    lines = figures(app)[0]["data"][:-1]  # the last one is the ring around the chosen point
    assert [line["mode"] for line in lines] == ["lines+markers"] * 3
    return np.array([line["y"] for line in lines], float).T


def beside(app: AppTest) -> str:
    """What the rows beside the lines say."""
    return next(item.proto.body for item in app.get("html") if "bi-candidates" in item.proto.body)


def captions(app: AppTest) -> str:
    return "\n".join(item.value.replace("\\", "") for item in app.caption)


# --- Layers and poolings


def test_the_grid_is_what_plain_transformers_gives(evaluate: Open, scores_of: Callable[[str], np.ndarray]) -> None:
    app = ready(evaluate())
    assert not app.error
    assert not app.warning
    assert [item.value for item in app.title] == ["Which layer and pooling retrieve best?"]
    shown = grid_values(app)
    assert shown.shape == (7, 3)
    expected = shown.copy()
    for layer in LAYERS:
        for place, pooling in enumerate(POOLINGS):
            if pooling == "cls" and layer < 6:
                continue  # [CLS] of low layers differs by rounding: a matter of how ties are settled
            ranks = ranks_by(scores_of(f"m.{layer}.{pooling}"))
            expected[layer, place] = 100 * (ranks == 1).mean()
    assert np.abs(shown - expected).sum() <= 100.1 / COUNT  # of one query in all cells together
    assert shown[0, 1] == 0  # one vector for all sentences retrieves nothing
    chart = figures(app)[0]
    assert chart["layout"]["title"]["text"].startswith("Recall@1")
    assert chart["layout"]["yaxis"]["tickvals"] == [0, 25, 50, 75, 100]
    best = np.unravel_index(shown.argmax(), shown.shape)
    name = f"**Layer {best[0]}, {POOLING_NAMES[POOLINGS[best[1]]]}**"
    assert f"{name} (as published) has the best Recall@1, **{shown.max():.1f} %**" in texts(app)
    levels = [note["text"].split("  ") for note in chart["layout"]["annotations"] if not note["text"].startswith("<b>")]
    for kind, title in (("tfidf", "TF-IDF"), ("bm25", "BM25")):  # quiet lines among the labels
        (value,) = [float(level[1]) for level in levels if level[0] == title]
        assert value == pytest.approx(100 * (ranks_by(scores_of(kind)) == 1).mean(), abs=100.1 / COUNT)
    rows = re.findall(r"<th scope=\"row\"><i[^>]*></i>([^<]+)</th>.*?<td>([\d.]+)</td><td>([\w ]+)</td>", beside(app))
    assert len(rows) == 8
    values = [float(value) for _, value, _ in rows]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(shown.max(), abs=0.06)
    expected_draws = best_of(
        np.array([ranks_by(scores_of(f"m.6.{pooling}")) == 1 for pooling in ("mean", "max")], float)
    )
    assert rows[0][0] == "layer 6, Mean"
    assert float(rows[0][2]) == pytest.approx(100 * expected_draws.first[0], abs=6)


def test_other_measures_and_cells_cost_no_forward_pass_and_the_data_has_every_measure(
    evaluate: Open, scores_of: Callable[[str], np.ndarray]
) -> None:
    app = ready(evaluate(l="3", pool="max"))
    before = backend().forward_passes
    of_first_hits = grid_values(app)
    ranks = ranks_by(scores_of("m.3.max"))
    expected = {
        "mrr": (1 / ranks).mean(),
        "r10": (ranks <= 10).mean(),
        "ndcg": np.where(ranks <= 10, 1 / np.log2(1 + ranks), 0).mean(),
    }
    for code, value in expected.items():
        app.selectbox(key="w_measure").set_value(code).run()
        assert grid_values(app)[3, 2] == pytest.approx(100 * value, abs=0.2)
    assert app.session_state["measure"] == "ndcg"
    assert app.query_params["by"] == "ndcg"
    row = plain_table(app).set_index("measure").loc["MRR"]
    shown = float(row["%"])
    low, high = map(float, row["95 % interval"].split(" – "))
    assert shown == pytest.approx(100 * expected["mrr"], abs=0.2)
    error = 100 * np.std(1 / ranks) / np.sqrt(COUNT)
    assert low == pytest.approx(shown - 1.96 * error, abs=1)
    assert high == pytest.approx(shown + 1.96 * error, abs=1)
    app.session_state["layer"], app.session_state["pooling"] = 2, "cls"
    app.session_state["data_grid_figure"] = True
    app.selectbox(key="w_measure").set_value("r5").run()
    assert figures(app)[1]["layout"]["title"]["text"] == "Recall@k at layer 2, [CLS]"
    table = frame(app, "layer")
    assert len(table) == 21
    assert list(table.columns) == ["layer", "pooling", *metrics.MEASURES, "first in 100 draws", "may be the best"]
    assert table["first in 100 draws"].sum() == pytest.approx(100, abs=0.1)
    best_row = table.loc[table["Recall@5"].idxmax()]
    assert best_row["may be the best"]
    np.testing.assert_allclose(table["Recall@1"].to_numpy().reshape(7, 3), of_first_hits, atol=0.006)
    np.testing.assert_allclose(table["Recall@5"].to_numpy().reshape(7, 3), grid_values(app), atol=0.006)
    assert backend().forward_passes == before


def test_an_address_chooses_the_cell_and_its_curve(evaluate: Open, scores_of: Callable[[str], np.ndarray]) -> None:
    app = ready(evaluate(l="3", pool="max"))
    curve = figures(app)[1]
    assert curve["layout"]["title"]["text"] == "Recall@k at layer 3, Max"
    assert [trace["name"] for trace in curve["data"]][1:] == ["layer 3, Max", "best: layer 6, Mean"]
    ranks = ranks_by(scores_of("m.3.max"))
    expected = [100 * (ranks <= k).mean() for k in range(1, 101)]
    np.testing.assert_allclose(traces(app, 1)["layer 3, Max"], expected, atol=100.1 / COUNT)
    ring = figures(app)[0]["data"][-1]
    assert ring["marker"]["symbol"] == "circle-open"
    assert ring["x"][0] == pytest.approx(3, abs=0.2)
    assert ring["y"][0] == pytest.approx(grid_values(app)[3, 2])


def test_the_curve_of_a_cell_has_no_finding_of_the_other_figure_in_a_lecture(evaluate: Open) -> None:
    app = ready(evaluate(l="3", pool="max"))
    for figure in ("grid_figure", "grid_curve"):
        app.button(key=f"star_{figure}").click().run()
    kept = {lecture.read(star).figure: shown.part for star, shown in app.session_state[lecture._SHOWN].items()}
    assert "has the best Recall@1" in kept["grid_figure"].message
    assert kept["grid_curve"].message == ""
    assert kept["grid_curve"].read.startswith("Every query ranks all")


def test_nothing_to_press_moves_when_the_words_are_there(evaluate: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """What shows their progress stands below the choice of layer and pooling."""

    def waits(*_: Any) -> Any:
        raise Instead(lambda: st.info("Words are being counted."))

    monkeypatch.setattr(evaluation, "word_run", waits)
    app = ready(evaluate())
    drawn = [item.key or item.value for item in app.main if item.type in {"selectbox", "button_group", "info"}]
    shown = [name for name in drawn if name in ("w_layer_cell", "w_pooling", "Words are being counted.")]
    assert shown == ["w_layer_cell", "w_pooling", "Words are being counted."]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"view": "nothing", "pool": "idf"}, ["“v=nothing”", "“pool=idf”"]),
        ({"l": "-1", "by": "map"}, ["“l=-1”", "“by=map”"]),
        ({"l": "99"}, ["Layer 99"]),
        ({"r": "xyz", "view": "compare"}, ["“r=xyz”"]),
        ({"r": ["m.99.mean", "m2.3.max", "bm25"], "view": "compare", "n": "99999999"}, ["m.99.mean, m2.3.max"]),
        ({"n": "999999999999", "at": "0", "view": "compare", "r": "bm25"}, ["“oq=999999999999”", "“at=0”"]),
        ({"run": "<img src=x>", "view": "similarity"}, []),
        ({"corpus": "ab" * 16, "view": "compare", "r": "bm25"}, ["no longer kept on this server"]),
        ({"col": "nosuch"}, []),
    ],
)
def test_bad_values_of_a_link_are_said_or_fall_back(
    evaluate: Open, address: dict[str, str | list[str]], said: list[str]
) -> None:
    app = evaluate(**address)
    assert [text for text in said if text not in texts(app)] == []  # once: later runs of the page are silent
    ready(app)
    assert "Something went wrong" not in texts(app)
    if "col" in address:  # a column that is not there is no fault of the dashboard
        assert "The corpus has no column “nosuch”." in texts(app)
    assert not app.error
    assert figures(app)


# --- Compare runs


def test_the_comparison_is_what_the_ranks_say(evaluate: Open, scores_of: Callable[[str], np.ndarray]) -> None:
    app = timed(evaluate(view="compare", r=["m.6.mean", "bm25", "bow", "tfidf"], by="mrr"))
    assert not app.error
    assert app.selectbox(key="w_measure").value == "mrr"
    table = frame(app, "p (Holm)").set_index("run")
    assert list(table.index) == ["Layer 6, Mean", "BM25", "Bag of words", "TF-IDF"]
    for name, code in zip(table.index, ("m.6.mean", "bm25", "bow", "tfidf"), strict=True):
        ranks = ranks_by(scores_of(code))
        for measure in metrics.MEASURES.keys() - {"Recall@20", "Recall@50"}:  # which only the downloads have
            share = metrics.MEASURES[measure](ranks).mean()
            assert table.loc[name, measure] == pytest.approx(100 * share, abs=100.1 / COUNT)
        assert table.loc[name, "ms per query"] > 0
    best = table.iloc[0]
    assert best["p (Holm)"] == "reference"
    assert table.loc["BM25", "difference"] == pytest.approx(table.loc["BM25", "MRR"] - best["MRR"])
    curves = traces(app)  # the run that is opened, the one that it is compared with, and the others
    assert list(curves) == ["Bag of words", "Layer 6, Mean", "BM25", "TF-IDF"]
    ranks = ranks_by(scores_of("tfidf"))
    np.testing.assert_allclose(curves["TF-IDF"], [100 * (ranks <= k).mean() for k in range(1, 101)], atol=100.1 / COUNT)
    queries = frame(app, "correct answer")  # the hardest first, by their mean rank
    of_runs = queries.iloc[:, -4:].fillna(COUNT).to_numpy(float)  # what is not found counts as the last
    np.testing.assert_allclose(queries["geometric mean rank"], of_runs.prod(axis=1) ** (1 / 4), atol=0.051)
    assert queries["geometric mean rank"].is_monotonic_decreasing


def test_p_values_are_those_of_the_exact_test(open_page: Open) -> None:
    """For right and wrong the randomisation test is the sign test on queries that only one run answers; of the whole demo."""
    app = ready(open_page("evaluate", v="compare-runs", r=["tfidf", "bow", "bm25"]))
    app.selectbox(key="w_reference").set_value("tfidf")
    ready(app.run())
    assert app.query_params["ref"] == "tfidf"
    right = {code: ranks_by(word_scores(code, current.demo())) == 1 for code in ("tfidf", "bow", "bm25")}
    exact = []
    for code in ("bow", "bm25"):
        only = [int((right["tfidf"] & ~right[code]).sum()), int((~right["tfidf"] & right[code]).sum())]
        exact.append(stats.binomtest(only[0], sum(only)).pvalue)
    first, second = sorted(exact)
    adjusted = {first: min(1, 2 * first), second: max(min(1, 2 * first), second)}
    shown = frame(app, "p (Holm)").set_index("run")["p (Holm)"]
    assert shown["TF-IDF"] == "reference"
    for name, p in zip(("Bag of words", "BM25"), exact, strict=True):
        value = float(shown[name].removeprefix("< "))
        assert value == pytest.approx(adjusted[p], abs=0.02)


def test_runs_are_added_and_taken_out(evaluate: Open) -> None:
    app = ready(evaluate(view="compare"))
    assert tuple(app.multiselect(key="w_runs").value) == DEFAULT_RUNS
    assert len(frame(app, "p (Holm)")) == 7
    app.multiselect(key="w_runs").set_value(["m.6.mean", "m.2.max"])
    ready(app.run())
    assert frame(app, "p (Holm)")["run"].tolist() == ["Layer 6, Mean", "Layer 2, Max"]
    assert app.query_params["r"] == ["m.6.mean", "m.2.max"]
    app.multiselect(key="w_runs").set_value(["m.6.mean", "m.2.max", "bm25"])
    ready(app.run())
    assert app.selectbox(key="w_other_run").value == "bm25"  # of what was just added the headline speaks
    app.multiselect(key="w_runs").set_value(["m.2.max"])
    ready(app.run())
    assert len(frame(app, "p (Holm)")) == 1
    app.multiselect(key="w_runs").set_value([]).run()
    assert "No run yet" in texts(app)
    assert app.query_params["r"] == ""
    assert "No run yet" in texts(evaluate(view="compare", r=""))
    assert app.multiselect(key="w_runs").value == []
    app.multiselect(key="w_runs").set_value(["bm25"])
    ready(app.run())
    assert frame(app, "p (Holm)")["run"].tolist() == ["BM25"]


def test_filters_count_as_brute_force_does(evaluate: Open, scores_of: Callable[[str], np.ndarray]) -> None:
    codes = ["m.6.mean", "bm25", "m.0.mean"]
    app = ready(evaluate(view="compare", r=codes, at="2", f="disagree"))
    right = np.array([ranks_by(scores_of(code)) <= 2 for code in codes]).sum(axis=0)
    expected = {
        "All": COUNT,
        "All wrong": (right == 0).sum(),
        "Disagree": ((right > 0) & (right < 3)).sum(),
        "All right": (right == 3).sum(),
    }
    shown = dict(option.rsplit(" ", 1) for option in app.segmented_control(key="w_query_filter").options)
    for name, count in expected.items():
        assert int(shown[name].strip("()")) == pytest.approx(count, abs=1)  # ranks to one query
    assert sum(int(shown[name].strip("()")) for name in list(expected)[1:]) == COUNT
    table = frame(app, "correct answer")
    assert len(table) == int(shown["Disagree"].strip("()"))
    ranks = table[[name for name in table.columns if name[0].isdigit()]].fillna(COUNT).to_numpy(float)
    assert ((ranks <= 2).any(axis=1) & ~(ranks <= 2).all(axis=1)).all()
    hardness = np.log(ranks).mean(axis=1)
    assert (np.diff(hardness) <= 1e-9).all()  # the hardest first
    app.slider(key="w_right_at").set_value(1)
    app.segmented_control(key="w_query_filter").set_value("wrong")
    ready(app.run())
    table = frame(app, "correct answer")
    assert (table[[name for name in table.columns if name[0].isdigit()]].fillna(COUNT).to_numpy(float) > 1).all()


def test_an_opened_query_shows_its_answer_in_each_ranking(
    evaluate: Open, small: Corpus, scores_of: Callable[[str], np.ndarray]
) -> None:
    codes = ["m.6.mean", "bm25"]
    # One that both find among the first five, so that it is marked in both.
    found = np.array([ranks_by(scores_of(code)) for code in codes])
    at = int(np.flatnonzero(((found > 1) & (found <= 5)).all(axis=0))[0])
    app = ready(evaluate(view="compare", r=codes, n=str(at)))
    said = texts(app).replace("\\", "").replace("\u2060", "")
    assert f"**Query number {at}:** {small.columns['compressed'][at]}" in said
    assert f"**Correct answer:** {small.texts[at]}" in said
    lists = [item.value.replace("\\", "").splitlines() for item in app.markdown if item.value.startswith("1. ")]
    assert len(lists) == 2
    for code, name, ranks, lines in zip(codes, ("Layer 6, Mean", "BM25"), found, lists, strict=True):
        scores = scores_of(code)[at]
        order = np.argsort(-scores, kind="stable")[:5]
        order = order[scores[order] > 0]  # BM25 does not find a text without a word of the query
        plain = [line.partition(". ")[2].replace(":green-background[", "").replace("] ✓", "") for line in lines]
        assert plain == [small.texts[hit] for hit in order]
        assert [line.endswith("✓") for line in lines] == [hit == at for hit in order]
        assert f"**{name}**: rank {ranks[at]}" in said
        assert f"Score of the correct answer: {scores[at]:.3f}; of the first hit: {scores.max():.3f}" in said
    app.button(key="close_query").click()
    ready(app.run())
    assert "Correct answer:" not in texts(app)
    assert "n" not in app.query_params


def test_a_word_ranking_does_not_find_what_has_no_word_of_the_query(open_page: Open) -> None:
    corpus = kept_corpus(
        "boats.jsonl", ["Ships sailed home.", "A cat slept.", "A dog ran."], ["boats", "the cat", "a dog"]
    )
    said = read_texts(ready(open_page("evaluate", v="compare-runs", corpus=corpus, r="bm25", oq="0")))
    assert "**BM25**: not found" in said
    assert "No sentence has anything in common with the query." in said
    assert "1. Ships sailed home." not in said
    said = read_texts(ready(open_page("evaluate", v="compare-runs", corpus=corpus, r="bm25", oq="1")))
    assert "**BM25**: rank 1" in said
    assert "2. Ships" not in said


def test_a_word_ranking_without_a_shared_word_says_so_instead_of_reporting_0(open_page: Open) -> None:
    """German queries on English texts: 0 would look like a result, with a significance test beside it."""
    corpus = kept_corpus(
        "german.jsonl",
        ["Ships sailed home.", "A cat slept.", "Rain fell."],
        ["Schiffe fuhren", "Katze schlief", "Regen fiel"],
    )
    said = "BM25: no query shares a word with a correct answer, so that there is nothing to measure."
    app = ready(open_page("evaluate", v="compare-runs", corpus=corpus, r=["m.6.mean", "bm25"]))
    assert said in texts(app)
    assert frame(app, "p (Holm)")["run"].tolist() == ["Layer 6, Mean"]
    app = ready(open_page("evaluate", v="compare-runs", corpus=corpus, r="bm25"))
    assert said in texts(app)
    assert not app.error
    app = ready(open_page("evaluate", v="layer-grid", corpus=corpus))
    assert said in texts(app)


def test_why_leads_to_the_failed_query_also_after_rows_without_a_query(open_page: Open) -> None:
    """Rows without a query are no pairs: the third pair is the file's fifth row here, and asks for another row."""
    demo = current.demo()
    asked = demo.columns["compressed"]
    key = kept_corpus(
        "gaps.jsonl", demo.texts[:8], ["", asked[1], asked[2], "", asked[6], asked[5], asked[0], asked[7]]
    )
    app = ready(open_page("evaluate", corpus=key, v="compare-runs", r=["m.6.mean"], oq="2"))
    assert f"Correct answer:** {demo.texts[4]}" in texts(app).replace("\\", "")
    app.button(key="why_m.6.mean").click().run()
    assert setting(app, "failed_query") == 4
    assert (setting(app, "diagnose_view"), setting(app, "layer"), setting(app, "pooling")) == (
        "failed-search",
        6,
        "mean",
    )
    assert app.query_params["v"] in ("failed-search", ["failed-search"])


def test_the_other_figures_of_a_comparison(evaluate: Open, scores_of: Callable[[str], np.ndarray]) -> None:
    app = ready(evaluate(view="compare", r=["bm25", "tfidf"], fig="precision"))
    (figure,) = figures(app)
    # The run that is opened first, then the one that all are compared with: in the colours of the squares.
    assert [(trace["name"], trace["line"]["color"]) for trace in figure["data"]] == [
        ("TF-IDF", theme.BLUE),
        ("BM25", theme.ORANGE),
    ]
    recall = 100 * (ranks_by(scores_of("bm25")) == 1).mean()
    assert figure["data"][1]["x"][0] == pytest.approx(recall, abs=0.2)  # at k = 1 the two are one
    assert figure["data"][1]["y"][0] == pytest.approx(recall, abs=0.2)
    assert len(figure["data"][1]["x"]) == 100
    app.segmented_control(key="w_compare_figure").set_value("cost")
    (figure,) = figures(timed(app.run()))
    assert app.query_params["fig"] == "cost"
    assert [trace["name"] for trace in figure["data"]] == ["TF-IDF", "BM25"]
    table = frame(app, "p (Holm)")
    assert figure["data"][1]["y"][0] == pytest.approx(recall, abs=0.2)
    assert figure["data"][1]["x"][0] == pytest.approx(table["ms per query"][0])


def test_times_are_measured_only_while_nothing_else_runs(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = current.demo()
    corpus = kept_corpus("timed.jsonl", demo.texts[60:70], demo.columns["compressed"][60:70])  # no other test's times
    measured: list[int] = []

    def milliseconds(*_: object) -> float:
        measured.append(len([job for job in caching.queue().under_way() if job.started is not None]))
        return 1.5

    monkeypatch.setattr(pair_runs, "ranker_milliseconds", milliseconds)
    gate, other = threading.Event(), Job("Another person's job")
    caching.queue().put(other, lambda report_progress, is_stopped: gate.wait(60), "tokens")
    try:
        app = ready(open_page("evaluate", v="compare-runs", corpus=corpus, r=["bm25", "tfidf"]))
        app.run()
        assert not measured
        assert frame(app, "ms per query")["ms per query"].isna().all()
        assert app.dataframe[0].proto.placeholder == "–"  # never “None”
        assert "the time per query is measured as soon as no other job runs" in texts(app)
    finally:
        gate.set()
    assert other.finished.wait(10)
    timed(app.run())
    assert measured == [1, 1]  # the measurement itself
    assert frame(app, "ms per query")["ms per query"].tolist() == [1.5, 1.5]


def test_a_time_that_comes_while_the_page_is_drawn_is_in_its_figures(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here all times come when the figures stand and the page asks which are missing."""
    demo = current.demo()
    corpus = kept_corpus("late.jsonl", demo.texts[70:80], demo.columns["compressed"][70:80])  # no other test's times
    monkeypatch.setattr(pair_runs, "ranker_milliseconds", lambda *_: 2.5)
    ask = evaluation.measure_times

    def ask_and_wait(timings: Iterable[evaluation.Timing]) -> bool:
        asked = list(timings)
        ask(asked)
        for timing in asked:
            job = caching.evaluations().find(timing.key)
            assert job is None or job.finished.wait(60)
        return ask(asked)

    monkeypatch.setattr(evaluation, "measure_times", ask_and_wait)
    app = ready(open_page("evaluate", v="compare-runs", corpus=corpus, r=["bm25", "tfidf"]))
    assert frame(app, "ms per query")["ms per query"].tolist() == [2.5, 2.5]


def test_a_time_that_another_job_disturbed_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    others, gate = [Job("first"), None], threading.Event()

    def measure(_: object) -> float:
        if others[0] is not None and others[1] is None:  # another job begins meanwhile
            others[1] = others[0]
            caching.queue().put(others[0], lambda report_progress, is_stopped: gate.wait(60), "tokens")
            while others[0].started is None:
                time.sleep(0.01)
        return 2.0

    timing = evaluation.Timing(("speed", "test"), "Measuring", measure)
    assert evaluation.measure_times([timing])
    job = caching.evaluations().find(timing.key)
    assert job is not None
    assert job.finished.wait(10)
    assert timing.known() is None
    gate.set()
    assert others[0] is not None
    assert others[0].finished.wait(10)
    assert evaluation.measure_times([timing])
    again = caching.evaluations().find(timing.key)
    assert again is not None
    assert again.finished.wait(10)
    known = timing.known()
    assert known is not None
    assert known[0] == 2.0
    assert not evaluation.measure_times([timing])


def test_a_measurement_that_is_stopped_ends_and_is_no_failure() -> None:
    is_measuring = threading.Event()

    def scored(number: int, rows: Any) -> None:
        is_measuring.set()
        time.sleep(0.02)

    def measure(is_stopped: Any) -> float:
        while True:
            pair_runs.second_milliseconds(scored, np.zeros((5, 3), np.int64), is_stopped)

    timing = evaluation.Timing(("speed", "stopped"), "Measuring", measure)
    assert evaluation.measure_times([timing])
    job = caching.evaluations().find(timing.key)
    assert job is not None
    assert is_measuring.wait(10)
    caching.evaluations().stop(job)
    assert job.finished.wait(10)
    assert job.is_stopped
    assert timing.known() is None


def test_a_failed_measurement_keeps_the_time_when_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> float:
        raise RuntimeError("no time")

    timing = evaluation.Timing(("speed", "failing"), "Measuring", fails)
    assert evaluation.measure_times([timing])
    job = caching.evaluations().find(timing.key)
    assert job is not None
    assert job.finished.wait(10)
    known = timing.known()
    monkeypatch.setattr("components.retrieval.evaluation.run_record.now", lambda: "another time")
    assert known is not None
    assert known[0] is None
    assert timing.known() == known
    assert not evaluation.measure_times([timing])


def test_loaded_runs_stand_beside_todays(evaluate: Open, small: Corpus, scores_of: Callable[[str], np.ndarray]) -> None:
    pairs = pair_runs.pairs_of_corpus(small, "compressed")
    ranks = ranks_by(scores_of("tfidf"))
    ours = Run(
        "Last year's <b>best</b>", {"kind": "x"}, RunData("Ten", COUNT, COUNT, pairs.content_hash), {}, {}, ranks=ranks
    )
    others = replace(ours, name="Elsewhere", data=RunData("Other news", 50, 3, "0" * 64), ranks=np.array([1, 2, 50]))
    content = write_runs([ours, others])
    app = ready(evaluate(view="compare", r=["tfidf", "bm25"]))
    app.session_state["load_runs"] = True
    app.run()
    app.file_uploader(key="run_files_0").set_value([("mine.json", content, "application/json")])
    ready(app.run())
    assert not app.error
    table = frame(app, "p (Holm)").set_index("run")
    assert list(table.index) == ["TF-IDF", "BM25", "Last year's <b>best</b> (loaded)", "Elsewhere (loaded)"]
    assert table.loc["Elsewhere (loaded)", "p (Holm)"] == "other data"
    assert table.loc["Elsewhere (loaded)", "Recall@1"] == pytest.approx(100 / 3)
    assert table.loc["Last year's <b>best</b> (loaded)", "MRR"] == pytest.approx(table.loc["TF-IDF", "MRR"])
    queries = frame(app, "correct answer")
    assert "3  Last year's <b>best</b> (loaded)" in queries.columns  # the same data: query by query
    assert not any("Elsewhere" in name for name in queries.columns)


def test_loaded_runs_of_other_data_are_no_difference_and_can_be_taken_out(evaluate: Open) -> None:
    """One that is no longer kept is said, and that it is said outlives a redraw."""
    data = RunData("Other news", 50, 3, "0" * 64)
    caching.saved_runs().put("a file", (Run("Elsewhere", {}, data, {}, {}, ranks=np.array([1, 2, 50])),))
    app = evaluate(view="compare", r=["bm25"])
    app.session_state["_saved_runs"] = ["a file", "one that is not kept any more"]
    lost = "Some loaded runs are no longer kept on this server"
    assert lost in texts(app.run())
    assert frame(ready(app), "p (Holm)")["run"].tolist() == ["BM25", "Elsewhere (loaded)"]
    assert frame(app, "p (Holm)")["p (Holm)"].tolist() == ["reference", "other data"]
    assert "beyond chance" not in texts(app)
    assert "may be as good" not in texts(app)
    assert "1 run on other data cannot be compared" in texts(app)
    app.session_state["load_runs"] = True
    app.run()
    assert texts(app).count(lost) == 1
    assert "1 loaded run is in the table" in captions(app)
    app.button(key="drop_runs").click()
    ready(app.run())
    assert frame(app, "p (Holm)")["run"].tolist() == ["BM25"]


def test_a_file_that_holds_no_runs_is_said(evaluate: Open) -> None:
    app = evaluate(view="compare", r=["bm25"])
    app.session_state["load_runs"] = True
    app.run()
    app.file_uploader(key="run_files_0").set_value([("mine.json", b"[1, 2", "application/json")])
    ready(app.run())
    assert any("mine" in error.value and "is damaged" in error.value for error in app.error)
    assert "Something went wrong" not in texts(app)


def test_a_second_model_is_compared(open_page: Open, tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "tiny", "bert")
    words = [
        ["the", "a"],
        ["cat", "dog", "hat"],
        ["sat", "ran", "walk"],
        ["on", "in", "by"],
        ["river", "bank", "money"],
    ]
    lines = [" ".join(parts) for parts in np.array(np.meshgrid(*words)).reshape(5, -1).T][:90]
    content = "\n".join(json.dumps({"sentence": f"{line} .", "compressed": f"{line} !"}) for line in lines)
    corpus = read_corpus(content.encode(), "tiny news.jsonl", "sentence")
    caching.corpora().put(current.key_of(corpus), corpus)
    app = open_page("evaluate", v="compare-runs", corpus=current.key_of(corpus), m2=str(folder), r=["m2.1.mean", "bow"])
    ready(app)
    assert not app.error
    both = plain_vectors(folder, [*corpus.texts, *corpus.columns["compressed"]], 64)
    ranks = ranks_by(cosines(both[1, 0, 90:], both[1, 0, :90]))
    table = frame(app, "p (Holm)")
    assert table["run"].tolist() == ["tiny, layer 1, Mean", "Bag of words"]
    assert table["Recall@1"][0] == pytest.approx(100 * (ranks == 1).mean(), abs=100.1 / 90)
    assert table["MRR"][0] == pytest.approx(100 * (1 / ranks).mean(), abs=1)
    offered = app.multiselect(key="w_runs").options
    assert "tiny, layer 3, Mean" in offered
    assert "tiny, layer 4, Mean" not in offered
    assert "all-MiniLM-L6-v2, layer 6, Mean" in offered
    # Without a choice of one's own, the second model's last layer is among the runs.
    second = caching.models().request(spec_of(str(folder))).result
    assert second is not None
    assert [str(code) for code in choices.default_runs(backend(), second, 90)[:2]] == ["m.6.mean", "m2.3.mean"]


# --- Graded relevance


def test_graded_relevance_equals_ir_measures(
    open_page: Open, small: Corpus, scores_of: Callable[[str], np.ndarray]
) -> None:
    app = ready(open_page("evaluate", v="graded-relevance", r=["m.6.mean", "bm25"], gm="ndcg"))
    assert not app.error
    assert "A grade says how relevant each is" in app.caption[0].value  # above the table, where grades count first
    topics = small.columns["topic"]
    qrels = {
        str(query): {str(at): 2 if at == query else 1 for at, topic in enumerate(topics) if topic == topics[query]}
        for query in range(COUNT)
    }
    scores = scores_of("m.6.mean")
    run = {str(q): {str(d): float(scores[q, d]) for d in range(COUNT)} for q in range(COUNT)}
    wanted = {
        "MAP": ir_measures.AP,
        "MRR": ir_measures.RR,
        "nDCG@10": ir_measures.nDCG @ 10,
        "P@10": ir_measures.P @ 10,
        "Recall@10": ir_measures.R @ 10,
        "Recall@100": ir_measures.R @ 100,
    }
    theirs = ir_measures.calc_aggregate(list(wanted.values()), qrels, run)
    table = frame(app, "p to the best (Holm)").set_index("run")
    for name, measure in wanted.items():
        assert table.loc["Layer 6, Mean", name] == pytest.approx(100 * theirs[measure], abs=0.05)
    assert table.columns[0] == "nDCG@10"
    assert table["significant difference"].tolist() == ["the best", "yes"]
    shown = json.loads(app.dataframe[0].proto.columns)
    assert {"MAP", "p to the best (Holm)"}.isdisjoint(app.dataframe[0].proto.column_order)
    assert "p (Holm)" not in str(shown)
    assert "clearly worse than the best?" in str(shown)
    assert "**nDCG@10**: how high the correct answers stand among the first 10 hits" in texts(app)
    assert table.loc["Layer 6, Mean", "p to the best (Holm)"] == "reference"
    best = 100 * theirs[wanted["nDCG@10"]]
    assert (
        f"**Layer 6, Mean** has the best nDCG@10: **{best:.1f} %** of a perfect order, and its lead over every other run is "
        "more than chance." in texts(app)
    )
    relevant, there = 10 * theirs[wanted["P@10"]], np.mean([min(10, len(judged)) for judged in qrels.values()])
    assert there == 10
    of_best = (
        f"documents of Layer 6, Mean, {relevant:.1f} are relevant on average; in a perfect order all ten would be."
    )
    assert of_best in texts(app)
    (bars,) = figures(app)[0]["data"]
    assert list(bars["y"]) == ["BM25", "Layer 6, Mean"]
    assert float(np.asarray(bars["x"], float)[1]) == pytest.approx(best, abs=0.05)
    assert bars["marker"]["color"][1] == figures(app)[1]["data"][0]["line"]["color"]  # one colour for one run
    curves = traces(app, 1)
    assert list(curves) == ["Layer 6, Mean", "BM25"]
    precise = ir_measures.calc_aggregate([ir_measures.IPrec @ 0.0], qrels, run)
    assert curves["Layer 6, Mean"][0] == pytest.approx(100 * precise[ir_measures.IPrec @ 0.0], abs=0.05)


BEIR = {
    "corpus.jsonl": '{"_id": "a", "title": "", "text": "A cat slept."}\n{"_id": "b", "title": "", "text": "Ships sailed."}\n'
    '{"_id": "c", "title": "", "text": "Rain fell on the roof."}\n',
    "queries.jsonl": '{"_id": "q1", "text": "sleeping cat"}\n{"_id": "q2", "text": "rain"}\n',
    "test.tsv": "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tc\t1\nq9\tc\t1\n",
}


def test_a_collection_of_ones_own_by_upload_and_by_folder(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("evaluate", v="graded-relevance", gs="file", r=["m.6.mean"])
    assert not figures(app)
    files = [(name, content.encode(), "text/plain") for name, content in BEIR.items()]
    app.file_uploader(key="graded_files").set_value(files)
    ready(app.run())
    assert not app.error
    assert frame(app, "p to the best (Holm)")["MRR"].tolist() == [100]
    assert "1 judgements of unknown queries" in texts(app)
    for name, content in BEIR.items():
        (tmp_path / name).write_text(content)
    app = open_page("evaluate", v="graded-relevance", gs="path", r=["m.6.mean"])
    app.text_input(key="graded_path").set_value(str(tmp_path)).run()
    readers: list[str] = []
    read = collection.read_folder_fields

    def noted(*arguments: Any, **more: Any) -> Any:
        readers.append(threading.current_thread().name)
        return read(*arguments, **more)

    monkeypatch.setattr(collection, "read_folder_fields", noted)
    app.button(key="read_graded").click()
    ready(app.run())
    assert readers == ["jobs: preparation"]  # and not the session's own thread
    assert frame(app, "p to the best (Holm)")["MRR"].tolist() == [100]


def test_a_query_that_is_a_document_does_not_find_itself_and_it_is_said(open_page: Open) -> None:
    """As in ArguAna: with its own document counted, the right one would come second (MRR 50)."""
    sides = [("Zoos protect animals.", "Zoos lock animals up."), ("Homework helps.", "Homework harms.")]
    corpus = {
        f"t{number}{side}": text for number, pair in enumerate(sides) for side, text in zip("ab", pair, strict=True)
    }
    files = {
        "corpus.jsonl": "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in corpus.items()),
        "queries.jsonl": "".join(json.dumps({"_id": key, "text": corpus[key]}) + "\n" for key in ("t0a", "t1a")),
        "test.tsv": "query-id\tcorpus-id\tscore\nt0a\tt0b\t1\nt1a\tt1b\t1\nt1a\tgone\t1\n",
    }
    app = open_page("evaluate", v="graded-relevance", gs="file", r=["m.6.mean", "bm25"])
    app.file_uploader(key="graded_files").set_value(
        [(name, content.encode(), "text/plain") for name, content in files.items()]
    )
    ready(app.run())
    assert not app.error
    said = texts(app)
    assert "2 queries have the id of a document: a query's own document is left out of its ranking, as in BEIR." in said
    assert "1 relevant document of 1 query is not in the corpus, and counts as missed, as in trec_eval." in said
    table = frame(app, "p to the best (Holm)").set_index("run")
    assert table["MRR"].tolist() == [100, 100]
    assert table["Recall@10"].tolist() == [75, 75]


def test_a_folder_that_cannot_be_read_is_said(open_page: Open) -> None:
    app = open_page("evaluate", v="graded-relevance", gs="path")
    said: set[str] = set()
    for path in ("/no/such/folder", "~nobody-of-this-name/x", "a\0b"):
        app.text_input(key="graded_path").set_value(path).run()
        if not app.error:  # nothing is looked up before it is asked for
            app.button(key="read_graded").click().run()
        assert app.error
        assert "Something went wrong" not in texts(app)
        said.add(app.error[0].value)
    assert len(said) == 3  # each of its own path


def test_a_server_that_allows_no_free_models_reads_no_folder(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_INTERNALS_FREE_MODELS", "0")
    app = open_page("evaluate", v="graded-relevance", gs="path", r=["bm25"])
    assert app.segmented_control(key="w_graded_source").options == ["Demo news by topic", "Your files"]
    assert not any(item.key == "graded_path" for item in app.text_input)


# --- Sentence similarity


@pytest.fixture(scope="module")
def pair_cosines(embedded_folder: Path) -> np.ndarray:
    """The ready-made pairs' cosines by plain transformers, [layer, pooling, pair]."""
    pairs = sts.demo_pairs()
    both = plain_vectors(embedded_folder, [*pairs.first, *pairs.second], 256).astype(np.float64)
    both /= np.linalg.norm(both, axis=-1, keepdims=True)
    return (both[:, :, :SCORED] * both[:, :, SCORED:]).sum(axis=-1)


def test_correlations_are_scipys_on_plain_cosines(open_page: Open, pair_cosines: np.ndarray) -> None:
    app = ready(open_page("evaluate", v="sentence-similarity", run="m.4.max"))
    assert not app.error
    gold = sts.demo_pairs().scores
    curves = traces(app)
    for place, name in ((0, "Mean"), (2, "Max")):
        expected = [stats.spearmanr(pair_cosines[layer, place], gold).statistic for layer in LAYERS]
        np.testing.assert_allclose(curves[name], expected, atol=5e-4)
    assert np.isnan(curves["[CLS]"][0])  # all the same at layer 0
    assert "The [CLS] curve begins at layer 1: at layer 0 the [CLS] vector is the same for every sentence" in texts(app)
    last = stats.spearmanr(pair_cosines[6, 1], gold).statistic
    assert curves["[CLS]"][6] == pytest.approx(last, abs=5e-4)
    assert set(TITLES.values()) < set(curves)
    for title in TITLES.values():  # a baseline has no layers
        assert len(set(curves[title])) == 1
    scatter = figures(app)[1]["data"][0]
    np.testing.assert_allclose(scatter["x"], gold, atol=1e-6)
    np.testing.assert_allclose(scatter["y"], pair_cosines[4, 2], atol=1e-4)
    pearson = stats.pearsonr(pair_cosines[4, 2], gold).statistic
    spearman = stats.spearmanr(pair_cosines[4, 2], gold).statistic
    assert f"Layer 4, Max: Spearman {spearman:.3f}, Pearson {pearson:.3f}" in texts(app)
    app.segmented_control(key="w_correlation").set_value("pearson").run()
    assert traces(app)["Max"][4] == pytest.approx(pearson, abs=5e-4)


def test_the_largest_errors_are_those_of_the_ranks(read_page: Open, pair_cosines: np.ndarray) -> None:
    pairs = sts.demo_pairs()
    app = read_page("evaluate", v="sentence-similarity")
    off = stats.rankdata(pair_cosines[6, 0]) - stats.rankdata(pairs.scores)
    worst = int(np.abs(off).argmax())
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-errors" in item.proto.body]
    share = f"{abs(off[worst]):.0f} places too {'high' if off[worst] > 0 else 'low'}"
    first, *others = drawn.split("<section>")[1:]
    shown = [html.escape(text) for text in (pairs.first[worst], pairs.second[worst])]
    assert '<p dir="auto">{}</p><p dir="auto">{}</p>'.format(*shown) in first
    assert f"<i>{share}</i>" in first
    assert f"{pair_cosines[6, 0][worst]:.3f} <small>cosine" in first
    assert len(others) == 11


def test_one_score_for_all_pairs_is_a_message(open_page: Open) -> None:
    app = ready(open_page("evaluate", v="sentence-similarity", run="m.0.cls"))
    assert "Layer 0, [CLS] gives every pair the same score" in texts(app)
    assert len(figures(app)) == 1
    app.selectbox(key="w_sts_run").set_value("bm25").run()
    assert figures(app)[1]["layout"]["title"]["text"] == "BM25 against people"


def test_the_run_of_a_link_is_kept_while_it_is_computed(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, jobs = threading.Event(), caching.evaluations()
    scored = sts.sts.ranker_pair_scores
    jobs.drop([job for job in jobs.finished() if job.key[:2] == ("pair words", "lsa")])
    monkeypatch.setattr(sts.sts, "ranker_pair_scores", lambda *given: (go_on.wait(120), scored(*given))[1])
    try:
        app = ready_but("lsa", open_page("evaluate", v="sentence-similarity", run="lsa"))
        assert "has no scores yet" in captions(app)
        assert not app.warning
    finally:
        go_on.set()
    app = ready(app)
    assert figures(app)[1]["layout"]["title"]["text"] == f"{TITLES['lsa']} against people"
    assert app.query_params["run"] == "lsa"


def ready_but(kind: str, app: AppTest) -> AppTest:
    """The page once nothing is under way but the scores of one word ranking."""
    for _ in range(60):
        waited_for = [job for job in caching.queue().under_way() if job.key[:2] != ("pair words", kind)]
        if not waited_for and "has no scores yet" in captions(app):
            return app
        for job in waited_for:
            assert job.finished.wait(60)
        app.run()
    raise AssertionError("it never ends")


def test_pairs_of_ones_own(open_page: Open) -> None:
    app = open_page("evaluate", v="sentence-similarity", src="file")
    assert "Files of the STS benchmark work" in captions(app)
    content = "sentence1,sentence2,score\nA cat slept.,A cat was asleep.,5\nA cat slept.,Ships sailed.,0\nRain,Snow,x\n"
    app.file_uploader(key="sts_file").set_value(("mine.csv", content.encode(), "text/csv"))
    ready(app.run())
    assert not app.error
    assert "2 pairs." in captions(app)
    assert app.expander[0].label.startswith("**3 rows read, 2 used, 1 left out")
    said = "".join(item.value for item in app.markdown).replace("\\", "")
    assert "1 of 3 rows cannot be used and is left out: row 4 (the score is not a number)." in said
    np.testing.assert_allclose(traces(app)["Mean"], 1)
    app = open_page("evaluate", v="sentence-similarity", src="file")
    app.file_uploader(key="sts_file").set_value(("mine.csv", b"sentence1,score\na,1\nb,2\n", "text/csv"))
    ready(app.run())
    assert any("has no column sentence2" in error.value.replace("\\", "") for error in app.error)
    app = open_page("evaluate", v="sentence-similarity", src="file")
    content = "split\tscore\tsentence1\tsentence2\n" + "".join(
        f"{part}\t{score}\tA cat {score} slept.\tA dog {score} ran.\n"
        for score, part in enumerate(["train", "train", "test", "test", "test"])
    )
    app.file_uploader(key="sts_file").set_value(("parts.tsv", content.encode(), "text/tab-separated-values"))
    ready(app.run())
    assert "3 pairs." in captions(app)
    (part,) = [box for box in app.selectbox if box.label == "Rows (split)"]
    ready(part.set_value("all").run())
    assert not app.error
    assert "5 pairs." in captions(app)
    app = open_page("evaluate", v="sentence-similarity", src="file")
    content = "sentence1;sentence2;score\nDer Bär schläft.;Ein Bär ruht.;4,25\nEr lügt.;Es schneit.;0,5\n"
    app.file_uploader(key="sts_file").set_value(("mac.csv", content.encode("mac_roman"), "text/csv"))
    ready(app.run())
    (encoding,) = [box for box in app.text_input if box.label == "Encoding"]
    ready(encoding.set_value("mac_roman").run())
    assert not app.error
    shown = "".join(table.value.to_string() for table in app.table)
    assert "Der Bär schläft." in shown
    assert "4.25" in shown


# --- The lab


IN_LAB = 40  # pairs: those of four topics


@pytest.fixture
def of_lab(ten_topics: Corpus) -> str:
    """The key of the first pairs."""
    return kept_corpus("four topics.jsonl", ten_topics.texts[:IN_LAB], ten_topics.columns["compressed"][:IN_LAB])


def test_the_lab_is_what_numpy_gives(open_page: Open, of_lab: str, vectors: tuple[np.ndarray, np.ndarray]) -> None:
    app = ready(open_page("evaluate", v="pooling-lab", corpus=of_lab, l="5", d="16", lp="max"))
    assert not app.error
    assert not app.warning
    recall, spearman, sweep, _ = figures(app)
    assert recall["layout"]["title"]["text"] == "Correct answer first (%), layer 5"
    assert recall["layout"]["yaxis"]["ticktext"][-1] == "Cosine"
    assert recall["layout"]["xaxis"]["ticktext"][0] == "Mean"
    values = np.asarray(recall["data"][0]["z"], float)[::-1].T  # [pooling, treatment], Mean and cosine first
    documents, queries = (each[:, :, :IN_LAB] for each in vectors)
    own = [(queries[5, at], documents[5, at]) for at in range(3)]
    own.append(tuple(each[2:6, 0].mean(axis=0) for each in (queries, documents)))
    one = 100.1 / IN_LAB
    for at, (asked, there) in enumerate(own):
        assert values[at, 0] == pytest.approx(100 * (ranks_by(cosines(asked, there)) == 1).mean(), abs=one)
        plain = asked.astype(np.float64) @ there.astype(np.float64).T
        assert values[at, 1] == pytest.approx(100 * (ranks_by(plain) == 1).mean(), abs=one)
        mean = there.mean(axis=0, dtype=np.float64)
        _, spread, axes = np.linalg.svd(there - mean, full_matrices=False)
        placed = [(side - mean) @ axes[:16].T for side in (asked, there)]
        assert values[at, 3] == pytest.approx(100 * (ranks_by(cosines(*placed)) == 1).mean(), abs=one)
        white = [side / spread[:16] for side in placed]
        assert values[at, 4] == pytest.approx(100 * (ranks_by(cosines(*white)) == 1).mean(), abs=one)
    assert np.isfinite(np.asarray(spearman["data"][0]["z"], float)).all()
    drawn = {trace["name"]: np.asarray(trace["y"], float) for trace in sweep["data"]}
    assert sweep["layout"]["title"]["text"] == "Correct answer first (%), Max"
    at_16 = np.asarray(sweep["data"][0]["x"]).tolist().index(16)
    assert drawn["PCA projection"][at_16] == pytest.approx(values[2, 3])
    assert drawn["Random projection"][at_16] == pytest.approx(values[2, 2])
    np.testing.assert_allclose(drawn["all numbers, cosine"], values[2, 0])


def test_dimensions_seed_and_pooling_of_the_lab(open_page: Open, of_lab: str) -> None:
    app = ready(open_page("evaluate", v="pooling-lab", corpus=of_lab, l="5"))
    assert not app.warning  # 40 sentences have no 128 dimensions, but nobody asked for them
    assert app.slider(key="w_lab_dims").max == app.slider(key="w_lab_dims").value == IN_LAB - 1

    def grid() -> np.ndarray:
        return np.asarray(figures(app)[0]["data"][0]["z"], float)[::-1].T  # [pooling, treatment]

    passes = backend().forward_passes
    app.slider(key="w_lab_dims").set_value(4)
    ready(app.run())
    before = grid()
    assert figures(app)[0]["layout"]["title"]["text"] == "Correct answer first (%), layer 5"
    assert "keep 4 of 384 numbers" in texts(app)
    app.number_input(key="w_lab_seed").set_value(7)
    app.segmented_control(key="w_lab_pooling").set_value("idf")
    ready(app.run())
    random = 2
    assert (grid()[:, random] != before[:, random]).any()
    np.testing.assert_array_equal(np.delete(grid(), random, axis=1), np.delete(before, random, axis=1))
    assert figures(app)[2]["layout"]["title"]["text"] == "Correct answer first (%), By rarity"
    assert backend().forward_passes == passes  # the vectors are kept
    assert {key: app.query_params[key] for key in ("d", "seed", "lp")} == {"d": "4", "seed": "7", "lp": "idf"}


# --- Data


def shown_pairs(app: Any) -> list[tuple[str, str]]:
    """The queries on screen, each with its answers."""
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-asked" in item.proto.body]
    found: list[tuple[str, str]] = []
    for section in drawn.split("<section")[1:]:
        *asked, answer = re.findall(r'<p dir="auto">(.*?)</p>', section)
        query = re.sub("</?strong>", "", asked[0]) if asked else found[-1][0]
        found.append((html.unescape(query), html.unescape(re.sub("</?mark[^>]*>", "", answer))))
    return found


def test_what_queries_share_with_their_answers_is_counted_and_said() -> None:
    assert shared_share("The planes of Rome", ["A plane over Rome."]) == 0.5  # "plane" is another word
    assert shared_share("storm", ["Nothing.", "A Storm."]) == 1  # the best of the answers
    assert shared_share("the", ["The end."]) == 1
    assert shared_share("?", ["A?"]) == 0
    some = shared.finding({shared.NONE: 2, shared.SOME: 5, shared.ALL: 1}, 8, 1)
    without = "**2 of 8 queries share no content word with the correct answer**"
    end = ": for these a search by words has little to go by."
    assert some.startswith(f"{without}, 1 not even in another form{end} ")
    assert shared.finding({shared.NONE: 2, shared.SOME: 6}, 8, 2) == f"{without}, not even in another form{end}"
    assert shared.finding({shared.NONE: 2, shared.SOME: 6}, 8, 0) == f"{without}, but each has one in another form{end}"
    assert some.endswith(" Of all queries 1 shares all of its content words.")
    assert shared.finding({shared.SOME: 8}, 8, 0).startswith(
        "**Each of 8 queries shares a content word with its correct answer**"
    )
    assert "1 of the first 8 of 9 queries shares no content word" in shared.finding(
        {shared.NONE: 1, shared.SOME: 7}, 9, 1
    )
    # The number in brackets is that of the trait of failed queries.
    asked = [("voucher", "The vouchers of Rome."), ("storm", "A quiet sea."), ("the", "Rome."), ("plane", "A plane.")]
    assert [shared.has_no_form(query, [answer]) for query, answer in asked] == [False, True, False, False]
    assert shared.shown_rows([shared.SOME] * 9 + [shared.NONE]) == [9, *range(8)]


def test_each_answer_of_a_query_has_its_own_kind_and_only_two_are_shown() -> None:
    documents = ("Nothing.", "A storm.", "A storm at sea.", "The end of it.", "A ship.")
    queries = ("storm sea", "the planes", "words " * 100)
    pairs = pair_runs.Pairs(
        "own", Corpus("d", documents, {}), Corpus("q", queries, {}), 0, answers=((0, 1, 2, 3), (3,), (4,))
    )
    drawn = shared._marked(pairs, [0, 1, 2])
    first, second, third, fourth = drawn.split("<section")[1:]
    assert "sea</mark>." in first
    assert "<i>all content words</i>" in first
    assert "<i>some content words</i>" in second  # of this answer, though another has every word
    assert "and 2 more answers" in second
    assert "<strong>" not in second
    assert "<i>no content word</i>" in third  # "the" does not count
    assert "words …</strong>" in fourth
    assert shared._what_is_shown(1, 3, are_cut=False) == "One query is shown."
    assert shared._what_is_shown(3, 3, are_cut=True) == (
        "All queries are shown, in the order “no content word”, “some content words”, “all content words”; of more "
        "than 2 answers those with most of a query's words."
    )


def test_the_data_and_another_column(open_page: Open, small: Corpus) -> None:
    titles = [f"{query} again" for query in small.columns["compressed"]]
    keys = ("sentence", "compressed", "title", "topic")
    columns = (small.texts, small.columns["compressed"], titles, small.columns["topic"])
    rows = [json.dumps(dict(zip(keys, row, strict=True))) for row in zip(*columns, strict=True)]
    own = read_corpus("\n".join(rows).encode(), "titles.jsonl", "sentence")
    caching.corpora().put(current.key_of(own), own)
    app = open_page("evaluate", v="evaluated-data", corpus=current.key_of(own))
    assert not app.error
    assert app.selectbox(key="w_query_column").value == "compressed"
    assert "100 queries" in captions(app)
    assert small.texts[0] in {answer for _, answer in shown_pairs(app)}
    app.selectbox(key="w_query_column").set_value("topic").run()
    said = read_texts(app)
    assert "100 rows, 10 different queries, 100 texts searched. They have 100 correct answers" in said
    assert "The column topic has 10 different values for 100 texts, so that it looks like a category" in said
    app.selectbox(key="w_query_column").set_value("title").run()  # it can still be chosen
    assert app.query_params["col"] == "title"
    assert titles[0] in {query for query, _ in shown_pairs(app)}
    choose_view(app, "compare-runs")
    app.multiselect(key="w_runs").set_value(["bm25"])
    ready(app.run())
    ranker = make_ranker("bm25", small.texts)
    expected = 100 * (1 / ranks_by(np.array([ranker.scores(title) for title in titles], np.float64))).mean()
    assert frame(app, "p (Holm)")["MRR"].tolist() == [pytest.approx(expected, abs=0.01)]


def test_a_corpus_without_columns_says_what_is_missing(open_page: Open) -> None:
    own = read_corpus(b"A cat slept.\nShips sailed home.\n", "two.txt")
    caching.corpora().put(current.key_of(own), own)
    app = open_page("evaluate", v="evaluated-data", corpus=current.key_of(own))
    assert "two.txt has only sentences" in texts(app).replace("\\", "")
    assert not app.error
    for view in ("layer-grid", "compare-runs", "pooling-lab"):
        choose_view(app, view)
        assert "two.txt has only sentences" in texts(app).replace("\\", "")
        assert not app.error
        assert "Something went wrong" not in texts(app)


def test_an_unclear_column_is_asked_for_where_it_is_needed(open_page: Open) -> None:
    table = (
        "text,topic,headline\nA cat slept on the mat.,cats,Cat sleeps\nShips sailed home today.,ships,Ships return\n"
    )
    own = read_corpus(table.encode(), "three columns.csv", "text")
    caching.corpora().put(current.key_of(own), own)
    app = open_page("evaluate", v="layer-grid", corpus=current.key_of(own))
    assert not app.error
    assert "three columns.csv" in texts(app).replace("\\", "")  # the page's first line
    app.selectbox(key="w_query_column").set_value("headline").run()
    ready(app)
    assert not app.error
    assert grid_values(app).shape == (7, 3)


def test_repeated_sentences_are_said(open_page: Open) -> None:
    asked = {"cat": "A cat slept.", "a cat slept": "A cat slept.", "ships": "Ships sailed."}
    rows = [{"sentence": text, "compressed": query} for query, text in asked.items()]
    rows.append({"sentence": "Without a query.", "compressed": " "})
    own = read_corpus("\n".join(map(json.dumps, rows)).encode(), "again.jsonl", "sentence")
    caching.corpora().put(current.key_of(own), own)
    every = ready(open_page("evaluate", v="compare-runs", r="bow", corpus=current.key_of(own), tx="all"))
    assert "All 3 texts are searched, 1 of them right for none of these queries." in texts(every)
    said = "3 queries, 3 texts searched, 1 of them right for none of these (“Corpus”, above: the right texts alone)"
    assert said in captions(every)
    part = asked_of(pairs_of_corpus(own, "compressed", True), [0])  # the other texts have queries too
    assert searched_texts(part) == "1 query, 3 texts searched, 2 of them right for none of these"
    assert every.segmented_control(key="w_texts_searched").value == "all"  # under “Corpus”
    app = ready(open_page("evaluate", v="compare-runs", r="bow", corpus=current.key_of(own)))  # an address of before
    assert setting(app, "texts_searched") == "right"
    assert "Only the 2 right texts are searched." in texts(app)
    assert "1 row has the sentence of an earlier row, which is searched once" in captions(app)
    left_out = "1 text on rows without a query is left out (“Corpus”, above: all texts)"
    assert f"3 queries, 2 texts searched; {left_out}. Each query has one correct answer" in captions(app)
    assert "4 rows read, 3 used, 1 left out." in captions(app)
    assert frame(app, "p (Holm)")["Recall@1"].tolist() == [100]  # equal texts are one


def test_a_category_is_warned_about_and_rows_with_one_query_hold_its_correct_answers(open_page: Open) -> None:
    sentences = [f"Answer number {number} of the help desk." for number in range(30)]
    category = kept_corpus(
        "desk.jsonl", sentences, [("billing", "returns", "login")[number % 3] for number in range(30)]
    )
    said = read_texts(open_page("evaluate", v="evaluated-data", corpus=category))
    assert "The column compressed has 3 different values for 30 texts, so that it looks like a category" in said
    assert "one correct answer" not in said
    twice = kept_corpus("twice.jsonl", sentences[:4], ["login", "billing", "login", "returns"])
    app = open_page("evaluate", v="evaluated-data", corpus=twice)
    said = read_texts(app)
    assert "4 rows, 3 different queries, 4 texts searched. They have 4 correct answers: Recall@k is the share" in said
    assert "looks like a category" not in said
    assert [query for query, _ in shown_pairs(app)] == ["login", "login", "billing", "returns"]
    assert [text.split()[2] for _, text in shown_pairs(app)] == ["0", "2", "1", "3"]
    assert "3 of 3 queries share no content word with the correct answer" in read_texts(app).replace("*", "")


def test_several_correct_answers_by_vectors_and_by_words(open_page: Open, embedded: Backend) -> None:
    desk = {
        "How do I reset my password?": ("Press the link for a forgotten password.", "Ask the desk for a new password."),
        "When is the library open?": ("The library opens at nine.", "On Sundays the library is closed."),
        "Where can I park?": ("The garage in Mill Street has room for 200 cars.",),
        "Qwxyz zzz": ("Write to us to cancel an order.",),
    }
    rows = [(text, query) for query, answers in desk.items() for text in answers]
    own = kept_corpus("several.jsonl", [text for text, _ in rows], [query for _, query in rows])
    app = ready(open_page("evaluate", v="compare-runs", corpus=own, r=["m.6.mean", "bm25"], oq="3"))
    said = read_texts(app)
    assert "6 rows, 4 different queries, 6 texts searched. They have 6 correct answers" in said
    options = embedded.embed_options(precision="float32")
    documents, queries = (
        embedded.embed(texts, options=options)[0, 0].astype(np.float64)
        for texts in ([text for text, _ in rows], list(desk))
    )
    scores = [
        queries @ documents.T / np.linalg.norm(queries, axis=1)[:, None] / np.linalg.norm(documents, axis=1),
        np.array([make_ranker("bm25", [text for text, _ in rows]).scores(query) for query in desk], np.float64),
    ]
    firsts = []
    for of_run in scores:
        firsts.append([])
        for row, query in zip(of_run, desk, strict=True):
            right = np.array([asked == query for _, asked in rows])
            best = row[right].max()
            firsts[-1].append(1 + int((row[~right] >= best - 1e-6).sum()) if best > 0 else None)
    assert firsts[1][3] is None
    table = frame(app, "p (Holm)")
    for measure, of_rank in (("Recall@1", lambda rank: rank == 1), ("MRR", lambda rank: 1 / rank)):
        expected = [100 * np.mean([of_rank(rank) if rank else 0 for rank in run]) for run in firsts]
        np.testing.assert_allclose(table[measure].to_numpy(), expected, atol=0.01)
    shown = frame(app, "geometric mean rank").sort_values("number")
    for column, run in zip(shown.columns[4:], firsts, strict=True):
        assert [None if pd.isna(rank) else int(rank) for rank in shown[column]] == run
    assert shown["correct answer"].tolist()[0] == " · ".join(desk["How do I reset my password?"])
    assert "**BM25**: not found" in said


# --- Published figures


@pytest.mark.parametrize(
    ("address", "panel", "figure"),
    [({}, "published_retrieval", "46.86"), ({"view": "similarity"}, "published_similarity", "59.32")],
)
def test_published_figures_stand_apart(evaluate: Open, address: dict[str, str], panel: str, figure: str) -> None:
    app = ready(evaluate(**address))

    def with_it() -> list[pd.DataFrame]:
        return [table.value for table in (*app.table, *app.dataframe) if figure in table.value.to_csv()]

    assert with_it() == []
    app.session_state[panel] = True
    app.run()
    (published,) = with_it()
    assert {"model", "pooling", "data", "source"} < set(published.columns)
    assert published["source"].str.len().min() > 10
    assert "Not measured here:" in texts(app)


# --- Waiting, stopping, starting again


def test_a_job_is_stopped_and_started_again(evaluate: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    going = threading.Event()

    def slow(
        _ranker: Any,
        queries: Sequence[str],
        _gold: Any,
        progress: Callable[[int, int], None],
        is_stopped: Callable[[], bool],
    ) -> np.ndarray:
        for done in range(600):
            if is_stopped():
                raise Stopped
            progress(done, 600)
            if done > 1:  # its speed is known
                going.set()
            time.sleep(0.05)
        raise AssertionError("nobody stopped it")

    with monkeypatch.context() as patch:
        patch.setattr(pair_runs, "ranker_ranks", slow)
        app = evaluate(view="compare", r=["jm", "lsa"])
        assert going.wait(10)
        app.run()
        (bar,) = app.main.get("progress")
        assert bar.proto.text.startswith("Jelinek-Mercer\\: ranking 100 queries")
        assert " left" in bar.proto.text
        assert "The next runs: “LSA”" in captions(app)
        app.button(key="stop_job_words_jm").click().run()
        deadline = time.monotonic() + 10
        while app.get("progress") and "Stopped: Jelinek" not in texts(app):
            assert time.monotonic() < deadline
            time.sleep(0.1)
            app.run()
        assert "Stopped: Jelinek-Mercer: ranking 100 queries." in texts(app).replace("\\", "")
        app.button(key="stop_job_words_lsa").click().run()
    for job in caching.evaluations().under_way():
        assert job.finished.wait(10)
    app.run()
    assert not app.dataframe
    app.button(key="again_words_jm").click()
    ready(app.run())
    assert frame(app, "p (Holm)")["run"].tolist() == ["Jelinek-Mercer"]
    app.button(key="again_words_lsa").click()
    ready(app.run())
    assert frame(app, "p (Holm)")["run"].tolist() == ["Jelinek-Mercer", "LSA"]
    assert not app.error


def test_who_waits_for_another_ones_evaluation_is_told(open_page: Open) -> None:
    release = threading.Event()
    caching.evaluations().request(
        ("somebody's", 1), "Theirs", lambda tell, is_stopped: release.wait(60), person="somebody"
    )
    try:
        rows = [{"sentence": f"Sentence {at} of cats.", "compressed": f"cat {at}"} for at in range(5)]
        own = read_corpus("\n".join(map(json.dumps, rows)).encode(), "five.jsonl", "sentence")
        caching.corpora().put(current.key_of(own), own)
        app = open_page("evaluate", v="compare-runs", r="bow", corpus=current.key_of(own))
        assert app.main.get("progress")[0].proto.text.endswith("waiting: next, after another person's job")
        assert not app.sidebar.get(
            "progress"
        )  # the page shows it; the other's title may name a file and is only counted
        assert "Also under way: 1 job of other people." in texts(app)
    finally:
        release.set()
    ready(app)
    assert frame(app, "p (Holm)")["Recall@1"].tolist() == [100]


def test_a_job_that_fails_is_a_message(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(pair_runs, "ranker_ranks", broken)
    demo = current.demo()
    corpus = kept_corpus(
        "failing.jsonl", demo.texts[70:80], demo.columns["compressed"][70:80]
    )  # nobody ranked it before
    app = ready(open_page("evaluate", v="compare-runs", corpus=corpus, r=["bow"]))
    assert any("Something went wrong" in error.value for error in app.error)
    assert "out of luck" not in texts(app)
    assert app.button(key="again_words_bow")
    for job in caching.evaluations().finished():
        caching.evaluations().forget(job)


def test_shared_first_places_are_said_and_a_pooling_that_is_not_there_is_replaced(
    evaluate: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two cells share the most: the first row that has it and the first column that has it are not one cell.
    ranks = np.full((2, 2, COUNT), 9, np.int32)
    ranks[0, 1, :50] = ranks[1, 0, :50] = 1
    found = LayerGrid((0, 6), ("cls", "max"), ranks)
    whole = evaluation.pair_indexes
    monkeypatch.setattr(evaluation, "pair_indexes", lambda *given: replace(whole(*given), ranks=found))
    app = ready(evaluate())  # the model's own pooling is the mean
    assert not app.exception
    assert not app.error
    message = next(item.value for item in app.markdown if ":material/insights:" in item.value)
    assert "**Layer 0, Max** and another one share the best Recall@1, **50.0 %**" in message
    assert len(re.sub(r":material/[^:]*:|[*]", "", message).strip()) <= 126  # one line beside the sidebar
    assert app.button_group(key="w_pooling").value == "cls"
    lines = {line["name"]: line for line in figures(app)[0]["data"]}
    np.testing.assert_allclose([lines["[CLS]"]["y"], lines["Max"]["y"]], [[0, 50], [50, 0]])
    # The ring stands at the chosen cell, which is a point of its line.
    assert (list(lines["chosen"]["x"]), list(lines["chosen"]["y"])) == ([lines["[CLS]"]["x"][1]], [50.0])


def test_the_first_line_names_what_the_view_measures(open_page: Open, graded: GradedSet) -> None:
    table = "text,topic,headline\nA cat slept on the mat.,cats,Cat sleeps\nShips sailed home.,ships,Ships return\n"
    own = read_corpus(table.encode(), "mine.csv", "text")
    caching.corpora().put(current.key_of(own), own)

    def first_line(view: str) -> str:
        app = open_page("evaluate", view=view, corpus=current.key_of(own))
        bars = [item.label for item in app.expander if item.label.startswith("**Corpus**")]
        return next(
            iter(bars), "".join(item.value for item in app.markdown if item.value.startswith(":material/database:"))
        )

    assert "mine.csv  ·  2 sentences" in first_line("pairs")
    assert f"Ready-made pairs** · {len(sts.demo_pairs().first)} pairs" in first_line("similarity")
    assert f"{graded.name}** · {len(graded.documents)} documents" in first_line("graded")
