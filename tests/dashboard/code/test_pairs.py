"""Pairs: the code gives the scores, decisions and ranks that the page shows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.dashboard.code.shown import codes, figure, numbers, same, z
from tests.support.pages import Open, at_rest
from tests.support.snippets import Run

QUERY = "volcano erupts"


@pytest.mark.parametrize("address", [{"rel": "topic"}, {"rel": "own", "sc": "sigmoid"}])
def test_scores_and_a_threshold(open_page: Open, run: Run, corpus: str, address: dict[str, str]) -> None:
    app = at_rest(open_page("pairs", corpus=corpus, v="pair-scores", q=QUERY, **address))
    names = run(codes(app)["pair_histogram"].snippet)
    assert names["relevant"].sum() == (3 if address["rel"] == "topic" else 1)
    analysis = run(codes(app)["pair_curve"].snippet)["analysis"]
    drawn = figure(app, "pair_curve")["data"]
    assert any(
        len(trace["x"]) == len(analysis.recall) and np.allclose(trace["y"], 100 * analysis.precision) for trace in drawn
    )
    confusion = run(codes(app)["pair_confusion"].snippet)["confusion"]
    assert app.metric[0].value == f"{100 * confusion.precision:.1f} %"


@pytest.mark.parametrize("stage", ["rerank", "maxsim"])
def test_retrieve_and_rerank(open_page: Open, run: Run, corpus: str, stage: str) -> None:
    app = at_rest(open_page("pairs", corpus=corpus, v="retrieve-rerank", q=QUERY, k="5", by=stage))
    names = run(codes(app)["rank_changes"].snippet)
    (drawn,) = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_reranked"]
    shown = {(float(row["before"]), float(row["rank"])) for row in json.loads(drawn.proto.json)["after"]}
    expected = {(float(before), float(now)) for now, before in enumerate(names["reranked"].before, start=1)}
    assert shown == expected


def test_two_models_disagree(open_page: Open, run: Run, corpus: str) -> None:
    app = at_rest(open_page("pairs", corpus=corpus, v="disagreement"))
    values = run(codes(app)["disagreement_drops"].snippet)["values"]
    shown = np.concatenate([numbers(trace["x"]) for trace in figure(app, "disagreement_drops")["data"]])
    same(np.sort(values), np.sort(shown), 1e-5)
    same(run(codes(app)["disagreement_tokens"].snippet)["values"], z(app, "disagreement_tokens"))
    found = {line[:2] + line[3:] for line in run(codes(app)["disagreement"].snippet)["values"]}
    (table,) = (item.value for item in app.table if "cross-encoder" in item.value)
    assert found == {
        (int(row["vectors"]), int(row["cross-encoder"]), plain(row["query"]), plain(row["document"]))
        for _, row in table.iterrows()
    }


def plain(cell: str) -> str:
    """A table's cell without Markdown's escapes."""
    return cell.replace("\\", "").replace("\u2060", "")
