"""Evaluate: the code gives the measures and curves that the page shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import components.folders
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation.pair_runs import Pairs, pairs_of_corpus
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.evaluation.sts import scored_pairs
from dashboard.views.evaluate import kinds, sts
from tests.dashboard.code.shown import codes, figure, numbers, same, y, z
from tests.support.pages import Open, at_rest
from tests.support.places import ASSETS
from tests.support.snippets import Run

RUNS = ["m.6.mean", "m.0.cls", "m2.5.max", "bow", "static", "rr.3.m.6.mean", "ms.3.m.4.max"]
FUSED = ["m.6.mean", "fr.bm25.m.6.mean", "f25.tfidf.m.4.max", "fr.m.6.mean~ms.3.m.4.max~static"]


def test_every_layer_and_pooling(open_page: Open, run: Run, corpus: str) -> None:
    app = at_rest(open_page("evaluate", corpus=corpus, by="mrr", l="3", pool="max", len="30"))
    values = run(codes(app)["grid_figure"].snippet)["values"]
    shown = np.array(y(app, "grid_figure")[:-1]).T  # [layer, pooling], without the ring around the chosen one
    same(np.reshape(list(values.values()), shown.shape), shown, 1e-4)
    names = run(codes(app)["grid_curve"].snippet)
    count = len(next(iter(names["values"])))
    drawn = [item for item in y(app, "grid_curve") if len(item) == count]
    for curve in names["values"]:
        assert any(np.allclose(curve, item, atol=1e-4) for item in drawn)
    edges = [
        item for item in y(app, "grid_curve") if len(item) == 2 * count
    ]  # of the band: there along one, back along the other
    both = [*(100 * names["low"]), *(100 * names["high"])]
    assert any(np.allclose(np.sort(both), np.sort(item), atol=1e-4) for item in edges)


def test_fused_runs_and_their_weights(open_page: Open, run: Run, corpus: str) -> None:
    app = at_rest(open_page("evaluate", corpus=corpus, v="compare-runs", r=FUSED, fig="curves"))
    values = run(codes(app)["compare_curves"].snippet)["values"]
    traces = figure(app, "compare_curves")["data"]
    assert len(traces) == len(FUSED)
    for trace, own in zip(traces, values.values(), strict=True):
        same(own, trace["y"], 1e-4)
    app = at_rest(open_page("evaluate", corpus=corpus, v="compare-runs", r=FUSED, fig="weights", by="mrr"))
    values = run(codes(app)["compare_weights"].snippet)["values"]
    weighted, by_ranks = [own for own in y(app, "compare_weights") if len(own) == 11]
    same(values[:-1], weighted, 1e-4)
    same([values[-1]] * 11, by_ranks, 1e-4)


@pytest.mark.parametrize("kind", ["curves", "precision", "similarities"])
def test_runs_compared(open_page: Open, run: Run, corpus: str, kind: str) -> None:
    app = at_rest(open_page("evaluate", corpus=corpus, v="compare-runs", r=RUNS, fig=kind, m2="embedded-cross-encoder"))
    values = run(codes(app)[f"compare_{kind}"].snippet)["values"]
    traces = figure(app, f"compare_{kind}")["data"]
    if kind == "similarities":  # three panels, each with the bars of one similarity after the other
        found = np.reshape(list(values.values()), (3, 2, 3))  # [run, similarity, panel]
        shown = np.array([numbers(trace["y"]) for trace in traces if len(trace["y"]) == 3])
        same(np.sort(found.ravel()), np.sort(shown.ravel()), 1e-3)
        return
    assert len(values) == len(traces) == len(RUNS)
    for trace in traces:
        name = trace["name"]
        (own,) = [
            curve
            for full, curve in values.items()
            if full == name or (name.endswith("…") and full.startswith(name.removesuffix("…")))
        ]
        same(own, trace["y"], 1e-4)
    ranks = run(codes(app)["queries_all"].snippet)["values"]
    (shown_ranks,) = (item.value for item in app.dataframe if "geometric mean rank" in item.value)
    assert {tuple(item) for item in ranks.values()} == {
        tuple(shown_ranks.sort_values("number")[column].fillna(NOT_FOUND)) for column in shown_ranks.columns[4:]
    }


def test_graded_relevance(open_page: Open, run: Run) -> None:
    app = at_rest(open_page("evaluate", v="graded-relevance", r=["bm25", "jm"]))
    values = run(codes(app)["graded_curve"].snippet)["values"]
    for trace in figure(app, "graded_curve")["data"]:
        same(values[trace["name"]], trace["y"], 1e-4)
    (bars,) = figure(app, "graded_runs")["data"]
    found = {name: of["ndcg@10"] for name, of in run(codes(app)["graded_runs"].snippet)["values"].items()}
    same([found[name] for name in bars["y"]], bars["x"], 5e-3)  # the summary has two decimals
    assert sorted(bars["x"]) == list(bars["x"])  # the best on top


@pytest.fixture
def few_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows of the included collections and scored pairs in place of all."""
    (tmp_path / "assets" / "collections").mkdir(parents=True)
    for name in ("collections/questions.jsonl", "collections/paraphrases.jsonl", "sts_pairs.jsonl"):
        lines = (ASSETS / name).read_text(encoding="utf-8").splitlines()
        (tmp_path / "assets" / name).write_text("\n".join(lines[:12]), encoding="utf-8")
    folder = tmp_path / "assets"
    monkeypatch.setattr(components.folders, "ASSETS", folder)
    first = read_corpus(folder / "sts_pairs.jsonl", "sts_pairs.jsonl", "sentence1")
    monkeypatch.setattr(sts, "demo_pairs", lambda: scored_pairs(first))

    def collection(kind: str) -> Pairs:
        columns = kinds.KINDS[kind]
        path = folder / "collections" / f"{kind}.jsonl"
        return pairs_of_corpus(read_corpus(path, path.name, columns.document), columns.query)

    monkeypatch.setattr(kinds, "collection", collection)


def test_kinds_of_search(open_page: Open, run: Run, few_texts: None) -> None:
    app = at_rest(open_page("evaluate", v="search-kinds", sim="dot"))
    values = run(codes(app)["kinds_figure"].snippet)["values"]
    shown = np.concatenate(y(app, "kinds_figure"))
    same(np.sort(np.ravel(list(values.values()))), np.sort(shown), 1e-4)


def test_agreement_with_people(open_page: Open, run: Run, few_texts: None) -> None:
    app = at_rest(open_page("evaluate", v="sentence-similarity", cor="pearson"))
    names = run(codes(app)["sts_curves"].snippet)
    by_pooling = dict(zip(("Mean", "[CLS]", "Max"), names["grid"].pearson.values.T, strict=True))
    for trace in figure(app, "sts_curves")["data"][:3]:
        np.testing.assert_allclose(by_pooling[trace["name"].removesuffix(" pooling")], trace["y"], atol=1e-5)
    levels = sorted(float(trace["y"][0]) for trace in figure(app, "sts_curves")["data"][3:])
    same(sorted(pearson for _, pearson in names["of_words"].values()), levels, 1e-5)
    same(run(codes(app)["sts_scatter"].snippet)["values"], y(app, "sts_scatter")[0], 1e-5)


def test_the_lab(open_page: Open, run: Run, corpus: str, few_texts: None) -> None:
    app = at_rest(open_page("evaluate", corpus=corpus, v="pooling-lab", l="5"))
    values = run(codes(app)["lab_recall"].snippet)["values"]
    same(np.sort([row[3] for row in values]), np.sort(z(app, "lab_recall").ravel()), 1e-3)
    same(np.sort([row[4] for row in values]), np.sort(z(app, "lab_spearman").ravel()), 1e-5)
    assert "sweep_recall" not in codes(app)


def test_approximation(open_page: Open, run: Run, sixty_pairs: str) -> None:
    app = at_rest(open_page("evaluate", corpus=sixty_pairs, v="approximation"))
    values = run(codes(app)["approximation"].snippet)["values"]
    drawn = [
        (float(size), float(recall))
        for trace in figure(app, "approximation")["data"]
        if trace["name"] != "exact"
        for size, recall in zip(trace["x"], trace["y"], strict=True)
    ]
    assert len(values) == 8  # of 11 ways, three would read all 60 texts
    # The code embeds one layer alone, in other batches: one hit of 600 may change places.
    same(np.array(list(values.values())), np.array(drawn), 0.2)
