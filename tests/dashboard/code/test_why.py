"""Why: the code gives the parts, curves and percentiles that the page shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import components.folders
from components.retrieval.corpora.minimal_pairs import read_minimal_pairs
from dashboard.views.why import clinic
from tests.dashboard.code.shown import SENTENCES, codes, figure, numbers, same, y, z
from tests.support.pages import Open, at_rest
from tests.support.snippets import Run

LONG = " ".join(f"A man{number} saw {number} dogs." for number in range(12))


@pytest.mark.parametrize(
    ("texts", "address", "key"),
    [
        (SENTENCES, {"l": "4"}, "split_tokens"),
        ([SENTENCES[0], LONG], {"pool": "max"}, "split_tokens"),
        (SENTENCES, {"by": "words", "steps": "4", "sa": "1", "sb": "3"}, "split_words"),
    ],
)
def test_splits_by_pairs(open_page: Open, run: Run, texts: list[str], address: dict[str, str], key: str) -> None:
    app = at_rest(open_page("why", s=texts, **address))
    same(run(codes(app)[key].snippet)["values"], z(app, key), 2e-5)
    names = run(codes(app)[f"{key}_words"].snippet)
    drawn = figure(app, f"{key}_words")
    shown = np.concatenate([numbers(trace["x"]) for trace in drawn["data"]])
    expected = [float(value) for value in (*names["of_a"], *names["of_b"])]
    for note in drawn["layout"].get(
        "annotations", []
    ):  # the sum of all other words of a long text is written, without a bar
        written = float(note["text"].replace("−", "-"))
        nearest = min(expected, key=lambda value: abs(value - written))
        assert abs(nearest - written) < 6e-4
        expected.remove(nearest)
    same(np.sort(expected), np.sort(shown), 2e-5)


def test_the_split_by_blocks(open_page: Open, run: Run) -> None:
    app = at_rest(open_page("why", s=SENTENCES, by="blocks", l="3"))
    split = run(codes(app)["split_blocks"].snippet)["split"]
    same(split.matrix, z(app, "split_blocks"), 2e-5)
    same(split.by_block(), np.concatenate(y(app, "split_block_sums")), 2e-5)


@pytest.mark.parametrize("source", ["sample", "corpus"])
def test_the_place_of_a_score(open_page: Open, run: Run, corpus: str, source: str) -> None:
    app = at_rest(open_page("why", s=SENTENCES, cx=source, corpus=corpus, l="5"))
    names = run(codes(app)["context"].snippet)
    shown = numbers(figure(app, "context")["data"][0]["y"])
    assert shown.sum() == len(names["values"])
    assert any(f"The cosine **{names['score']:.3f}**" in item.value for item in app.markdown)
    shares = z(app, "context_layers")
    same(run(codes(app)["context_layers"].snippet)["values"], shares, 0.06)
    assert np.isnan(shares).sum() == 1


@pytest.mark.parametrize("address", [{"from": "both"}, {"del": "last"}])
def test_deletion_curves(open_page: Open, run: Run, address: dict[str, str]) -> None:
    app = at_rest(open_page("why", s=SENTENCES, v="important-words", l="6", **address))
    values = run(codes(app)["deletion_curves"].snippet)["values"]
    drawn = y(app, "deletion_curves")
    assert len(values) == len(drawn) == 5
    for curve in values.values():
        assert any(np.allclose(curve, item, atol=2e-5) for item in drawn)
    falls = run(codes(app)["words_left_out"].snippet)["values"]
    same(falls, np.concatenate([numbers(trace["y"]) for trace in figure(app, "words_left_out")["data"]]), 2e-5)
    scores = run(codes(app)["word_scores"].snippet)["values"]
    shown = z(app, "word_scores")
    same(np.sort(np.ravel(list(scores.values()))), np.sort(shown[~np.isnan(shown)]), 2e-5)


@pytest.fixture
def few_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few minimal pairs in place of the included ones."""
    people = ("Anna", "Ben", "Carl", "Dora", "Emil", "Fred")
    said = [(person, verb) for person in people for verb in ("sings", "runs")]
    rows = [{"kind": "negation", "first": f"{who} {does}.", "second": f"{who} never {does}."} for who, does in said]
    rows += [
        {"kind": "paraphrase", "first": f"{who} {does}.", "second": f"It is {who} who {does}."} for who, does in said
    ]
    file = tmp_path / "minimal_pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    monkeypatch.setattr(components.folders, "ASSETS", tmp_path)
    monkeypatch.setattr(clinic, "demo_pairs", lambda: read_minimal_pairs(file, file.name))


def test_known_failures(open_page: Open, run: Run, few_pairs: None) -> None:
    app = at_rest(open_page("why", v="known-failures", l="4"))
    names = run(codes(app)["clinic_cosines"].snippet)
    shown = np.concatenate([numbers(trace["x"]) for trace in figure(app, "clinic_cosines")["data"]])
    for value in (*names["values"], *names["unrelated"][~np.isnan(names["unrelated"])]):
        assert np.nanmin(np.abs(shown - value)) < 1e-5
    app = at_rest(open_page("why", v="known-failures", cf="layers"))
    values: dict[str, Any] = run(codes(app)["clinic_layers"].snippet)["values"]
    assert any(np.allclose(values["negation"], item, atol=1e-3) for item in y(app, "clinic_layers") if len(item) == 7)
    app = at_rest(open_page("why", v="known-failures", cf="probe"))
    result = run(codes(app)["clinic_probe"].snippet)["result"]
    drawn = [item for item in y(app, "clinic_probe") if len(item) == 7]
    assert any(np.allclose(100 * result.accuracy, item, atol=1e-3) for item in drawn)
    assert any(np.allclose(100 * result.control_accuracy, item, atol=1e-3) for item in drawn)


def test_a_failed_search(open_page: Open, run: Run, corpus: str) -> None:
    app = at_rest(open_page("why", v="failed-search", corpus=corpus, dq="a cat and a dog", dr="3"))
    names = run(codes(app)["why_words"].snippet)
    bars = [numbers(trace["x"]) for trace in figure(app, "why_words")["data"]]
    for own in (names["by_right"], names["by_rival"]):
        assert any(len(item) == len(own) and np.allclose(np.sort(own), np.sort(item), atol=1e-5) for item in bars)
    same(names["with_right"].contributions, z(app, "why_ledger_right"), 1e-5)
    same(names["with_rival"].contributions, z(app, "why_ledger_rival"), 1e-5)
    counts = run(codes(app)["hubness"].snippet)["values"]
    assert f"mean is {counts.mean():.1f} and the largest count {counts.max()}" in "\n".join(
        item.value for item in app.markdown
    )


def test_the_failed_queries_of_a_corpus(open_page: Open, run: Run, sixty_pairs: str) -> None:
    app = at_rest(open_page("why", v="failed-search", corpus=sixty_pairs, pool="cls"))
    names = run(codes(app)["failed_queries_all"].snippet)
    shown = next(item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_failed")
    rows = json.loads(shown.proto.json)["rows"]
    assert [(f"{rank:,}", row) for rank, _, row, _ in names["values"]] == [(row["rank"], row["index"]) for row in rows]
    assert rows
    values = run(codes(app)["failure_causes"].snippet)["values"]
    table = next(item.value for item in app.table if "failed queries" in item.value)
    assert [count for count, _ in values.values()] == [int(count) for count in table["failed queries"]]
    assert list(values) == [name.replace("\\", "") for name in table["trait"]]


@pytest.mark.parametrize(
    "address", [{}, {"xm": "heads", "xa": "zero", "xv": "change"}, {"xm": "parts", "xv": "change"}]
)
def test_a_map_of_experiments(open_page: Open, run: Run, address: dict[str, str]) -> None:
    texts = ["The dog runs.", "The cat sleeps.", "A pet."]
    app = at_rest(open_page("why", s=texts, v="experiments", xt="own", xc="A dog.", **address))
    shown = z(app, "experiments_map")
    values = run(codes(app)["experiments_map"].snippet)["values"]
    same(np.sort(values), np.sort(shown[~np.isnan(shown)]), 2e-5)
