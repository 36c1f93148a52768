"""Search: the code gives the hits and scores that the page shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import caching
from tests.dashboard.code.shown import codes, figure, numbers, same, x, y, z
from tests.support.pages import Open, at_rest
from tests.support.saved_models import save_sparse
from tests.support.snippets import Run

QUERY = "a dog saved a child"
HYBRID = {"fused": ["bm25"], "fused by three": ["m.3.max", "maxsim"], "fused with static vectors": ["tfidf", "static"]}


def hits(app: AppTest, number: int = 0) -> list[dict[str, Any]]:
    lists = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_hits"]
    return json.loads(lists[number].proto.json)["rows"]


def test_hits_by_vectors(open_page: Open, run: Run, corpus: str) -> None:
    app = at_rest(
        open_page(
            "search", corpus=corpus, q=QUERY, k="4", l="5", pool="max", sim="dot", vs="setting", l2="2", pool2="cls"
        )
    )
    for number in range(2):
        found = run(codes(app)[f"hits_{number}"].snippet)["hits"]
        assert found.indices[0].tolist() == [row["index"] for row in hits(app, number)]
        assert [f"{score:.3f}" for score in found.scores[0]] == [row["score"] for row in hits(app, number)]
        scores = run(codes(app)[f"spread_{number}"].snippet)["values"]
        counts, of_hits = figure(app, f"spread_{number}")["data"]
        assert len(scores) == numbers(counts["y"]).sum() == 7
        same(np.sort(scores)[::-1][:4], of_hits["x"], 1e-5 * np.abs(scores).max())


@pytest.mark.parametrize("comparison", ["bow", "bm25", "jm", "static", "rerank", "maxsim", *HYBRID])
def test_hits_of_other_rankings(open_page: Open, run: Run, corpus: str, comparison: str) -> None:
    vs, length = comparison.split()[0], {"cand": "10", "len": "20"}
    app = at_rest(
        open_page("search", corpus=corpus, q=QUERY, k="5", vs=vs, hy=HYBRID.get(comparison, ["bm25"]), **length)
    )
    names = run(codes(app)["hits_1"].snippet)
    shown = hits(app, 1)
    assert names["best"][: len(shown)].tolist() == [row["index"] for row in shown]
    scores = names["values"] if vs in ("rerank", "maxsim", "fused") else names["values"][names["best"]]
    same(scores[: len(shown)], figure(app, "spread_1")["data"][1]["x"], 1e-5)


def test_the_tokens_of_a_hit(open_page: Open, run: Run, corpus: str) -> None:
    app = at_rest(open_page("search", corpus=corpus, q=QUERY, why="3", l="4", wb="maxsim"))
    same(run(codes(app)["why_matrix"].snippet)["values"], z(app, "why_matrix"))


@pytest.mark.parametrize("ranking", [{}, {"sim": "dot", "l": "3"}, {"vs": "lsa"}, {"vs": "bm25"}, {"vs": "static"}])
def test_what_the_words_of_a_hit_add(open_page: Open, run: Run, corpus: str, ranking: dict[str, str]) -> None:
    by = "second" if "vs" in ranking else "first"
    app = at_rest(open_page("search", corpus=corpus, q=QUERY, why="3", wb=by, **ranking))
    split = run(codes(app)["why_split"].snippet)["split"]
    (shown,) = (row["score"] for row in hits(app, int("vs" in ranking)) if row["index"] == 3)
    assert f"{split.score:.3f}" == shown
    first = next(trace for trace in figure(app, "why_split")["data"] if trace["name"] in ("Query", "Words of both"))
    same([part.value for part in split.query], first["x"], 1e-5)


def test_many_queries_and_the_most_similar_pairs(open_page: Open, run: Run, corpus: str) -> None:
    app = at_rest(open_page("search", corpus=corpus, v="many-queries", k="3", qs=["the dog", "who won"]))
    found = run(codes(app)["queries"].snippet)
    (table,) = (item.value for item in app.table)
    assert [found["corpus"].texts[row] for row in found["hits"].indices[:, 0]] == [
        text.replace("\\", "") for text in table["best hit"]
    ]
    app = at_rest(open_page("search", corpus=corpus, v="similar-pairs", l="3"))
    pairs = run(codes(app)["pairs"].snippet)["pairs"]
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-near" in item.proto.body]
    shown = re.findall(r'data-first="(\d+)" data-second="(\d+)"[^>]*><b>([\d.]+)</b>', drawn)
    assert {(pair.first, pair.second, f"{pair.cosine:.3f}") for pair in pairs} == {
        (int(a), int(b), c) for a, b, c in shown
    }


def test_the_lengths_of_a_corpus(open_page: Open, run: Run, corpus: str) -> None:
    app = at_rest(open_page("search", corpus=corpus, v="corpus"))
    lengths = run(codes(app)["corpus_lengths"].snippet)["values"]
    assert y(app, "corpus_lengths")[0].sum() == len(lengths)
    assert app.metric[1].value == f"{np.median(lengths):.0f}"


def test_splade(open_page: Open, run: Run, corpus: str, tmp_path: Path) -> None:
    folder = save_sparse(tmp_path / "splade")
    app = at_rest(
        open_page("search", m=str(folder), corpus=corpus, q="the dog", vs="splade", k="3", why="3", wb="second")
    )
    names = run(codes(app)["hits_1"].snippet)
    assert names["best"].tolist() == [row["index"] for row in hits(app, 1)]
    names = run(codes(app)["splade_contributions"].snippet)
    same(np.sort(names["shared"].contributions[:15]), np.sort(x(app, "splade_contributions")), 1e-5)
    same(np.sort(names["pieces"].weights[:15]), np.sort(x(app, "hit_pieces")), 1e-5)
    pieces = run(codes(app)["query_pieces"].snippet)["pieces"]
    same(np.sort(pieces.weights[:15]), np.sort(x(app, "query_pieces")), 1e-5)
    caching.splade_indexes.clear()
