"""Which method finds the words that a similarity depends on, over 200 real pairs (`make bench -s`): a result, not a speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from components.analysis.why.deletion import compare_methods
from components.analysis.why.word_scores import METHOD_NAMES, METHODS, RANDOM, PairSimilarity
from components.arrays import Float64
from components.retrieval.evaluation.metrics import difference_interval
from tests.benchmarks.test_speed import report
from tests.places import DATA

PAIRS = DATA / "compression-pairs.jsonl"
COUNT, SEED = 200, 0
LAYER, POOLING = 6, "mean"
RANDOM_ORDERS, STEPS = 3, 10  # fewer than the page measures: the mean over many pairs needs no more


def sampled_pairs() -> list[tuple[str, str]]:
    """A seeded sample of the pairs of a sentence and its compressed form."""
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    chosen = np.random.default_rng(SEED).permutation(len(rows))[:COUNT]
    return [(rows[row]["sentence"], rows[row]["compressed"]) for row in chosen]


def measured_areas(model: Any, pairs: list[tuple[str, str]], say: Callable[[str], None]) -> dict[str, Float64]:
    """The area under the deletion curve of each method, by method [pair], without pairs that have no word to remove."""
    areas: dict[str, list[float]] = {name: [] for name in (*METHODS, RANDOM)}
    for number, (first, second) in enumerate(pairs, start=1):
        similarity = PairSimilarity.of(model, first, second, LAYER, POOLING)
        found = compare_methods(similarity, RANDOM_ORDERS, both_ways=False, most_steps=STEPS)
        for name, curve in found.first.items():
            areas[name].append(curve.area)
        if number % 20 == 0:
            say(f"{number} of {len(pairs)} pairs")
            for row in table({name: np.array(values) for name, values in areas.items()}):
                say(row)
    return {name: np.array(values) for name, values in areas.items()}


def table(areas: dict[str, Float64]) -> list[str]:
    """README's rows: method, mean area, its difference to random, and in how many pairs it is below random."""
    rows = []
    for name in sorted(areas, key=lambda name: areas[name].mean()):
        mean = difference_interval(areas[name])
        cells = [METHOD_NAMES[name], f"{mean.value:.3f} ({mean.low:.3f} to {mean.high:.3f})"]
        if name == RANDOM:
            cells += ["", ""]
        else:
            change = difference_interval(areas[name] - areas[RANDOM])
            cells.append(f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f})")
            cells.append(f"{100 * (areas[name] < areas[RANDOM]).mean():.0f} %")
        rows.append(f"| {' | '.join(cells)} |".replace("-", "−"))
    return rows


@pytest.mark.timeout(3600)
def test_leave_one_out_and_the_ledger_find_the_words_better_than_chance(embedded: Any) -> None:
    if not PAIRS.exists():
        pytest.skip("the real pairs are not here")
    areas = measured_areas(embedded, sampled_pairs(), report)
    report(f"{len(areas[RANDOM])} pairs, layer {LAYER}, {POOLING}: area under the deletion curve, smaller is better")
    for row in table(areas):
        report(row)
    for name in ("left_out", "ledger"):
        assert difference_interval(areas[name] - areas[RANDOM]).high < 0
