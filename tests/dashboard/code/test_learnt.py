"""Pairs, learnt rankings: the code learns the same again, and gives the measures that the page shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from components.model.backend import Backend
from components.retrieval.evaluation.graded import collection
from components.retrieval.learnt import comparison, learnt_ranking, learnt_vectors
from dashboard import caching
from dashboard.corpora import current
from tests.dashboard.code.shown import codes, figure, numbers, same, y
from tests.support.pages import Open, at_rest
from tests.support.snippets import Run

FEW = {"view": "learnt", "lq": "20", "lk": "3", "lo": "4"}
PRECISION = 0.02  # per cent: the page takes the vectors from an index, whose batches have other padding


@pytest.fixture(autouse=True)
def _few_texts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The demo's first documents and queries in place of all, on the page and in the code."""
    whole = collection.demo_graded(current.demo())
    grades = [{row: grade for row, grade in each.items() if row < 90} for each in whole.grades[:60]]
    kept = [query for query, each in enumerate(grades) if each]
    few = collection.GradedSet(
        "Few news",
        whole.documents[:90],
        tuple(whole.queries[query] for query in kept),
        tuple(grades[query] for query in kept),
        whole.report,
    )
    monkeypatch.setattr(collection, "demo_graded", lambda corpus: few)
    caching.graded_sets().put("demo", few)
    yield
    caching.graded_sets().put("demo", whole)


@pytest.mark.parametrize(
    "options", [{"lm": "ndcg", "lf": "both", "lw": "1"}, {"lr": "together", "lp": "mean", "ll": "5"}]
)
def test_every_ranking(open_page: Open, run: Run, options: dict[str, str]) -> None:
    app = at_rest(open_page("pairs", **FEW, **options))
    shown = {
        name.replace("<br>", " "): float(value)
        for trace in figure(app, "learnt_rankings")["data"]
        for name, value in zip(trace["y"], trace["x"], strict=True)
    }
    values = run(codes(app)["learnt_rankings"].snippet)["values"]
    assert len(values) == len(shown) >= 6
    for name, value in shown.items():
        own = "Cosine of the same vectors" if name.startswith("Cosine") else name
        assert values[own] == pytest.approx(value, abs=PRECISION), name


def test_single_pairs_and_every_layer(open_page: Open, run: Run) -> None:
    app = at_rest(open_page("pairs", **FEW, ld="3"))
    names = run(codes(app)["learnt_precision"].snippet)
    (points,) = [trace for trace in figure(app, "learnt_precision")["data"] if len(trace["x"]) == 11]
    same(names["values"], points["y"], PRECISION)
    report = names["learnt"].ranking.reports["test"]
    assert f"{100 * report.accuracy:.1f}" in "".join(app.table[2].value["accuracy"].astype(str))
    app = at_rest(app.button(key="learnt_every_layer").click().run())
    names = run(codes(app)["learnt_by_layer"].snippet)
    learnt, cosine = y(app, "learnt_by_layer")
    same(names["values"], learnt, PRECISION)
    same(names["cosines"], cosine, PRECISION)
    assert len(names["values"]) == 7


def test_vectors_of_a_file_are_read_by_its_name(
    open_page: Open, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedded: Backend
) -> None:
    monkeypatch.chdir(tmp_path)
    app = at_rest(open_page("pairs", **FEW))
    chosen = run(codes(app)["learnt_rankings"].snippet)["chosen"]
    assert isinstance(chosen, comparison.Candidates)
    pairs: learnt_ranking.JudgedPairs = chosen.pairs
    drawn = np.random.default_rng(0)
    sides = [drawn.normal(size=(1, 1, len(texts), 8)).astype(np.float32) for texts in (pairs.queries, pairs.documents)]
    made = learnt_vectors.LearntVectors("org/other", "r1", "apart", (12,), ("cls",), 128, pairs.content_hash, *sides)
    content = learnt_vectors.write_vectors(made)
    Path("my vectors.npz").write_bytes(content)
    app.file_uploader(key="learnt_file").set_value(("my vectors.npz", content, "application/octet-stream"))
    app = at_rest(app.run())
    snippet = codes(app)["learnt_rankings"].snippet
    assert "“my vectors.npz”: put this file into the same folder." in snippet.code
    values = run(snippet)["values"]
    shown = figure(app, "learnt_rankings")["data"][0]
    (own,) = [
        value
        for name, value in zip(shown["y"], numbers(shown["x"]), strict=True)
        if "(file" in name.replace("<br>", " ")
    ]
    assert [value for name, value in values.items() if "(file" in name] == [pytest.approx(own, abs=PRECISION)]
