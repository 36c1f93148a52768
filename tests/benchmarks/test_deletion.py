"""Which method finds the words that a similarity depends on, over 200 real pairs (`make bench -s`): a result, not a speed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from components.analysis.why.deletion import all_scores, compare_methods
from components.analysis.why.word_scores import METHOD_NAMES, METHODS, RANDOM, PairSimilarity
from components.retrieval.evaluation.metrics import difference_interval
from tests.support.measurements import report
from tests.support.places import DATA

PAIRS = DATA / "compression-pairs.jsonl"
COUNT, SEED = 200, 0
LAYER, POOLING = 6, "mean"
RANDOM_ORDERS, STEPS = 2, 8  # fewer than the page measures: the mean over many pairs needs no more
FROM = ("one", "both")  # words are removed from both texts, or from one at a time

Areas = dict[str, dict[str, list[float]]]  # from which texts words are removed, method: [pair]


def sampled_pairs() -> list[tuple[str, str]]:
    """A seeded sample of the pairs of a sentence and its compressed form."""
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    chosen = np.random.default_rng(SEED).permutation(len(rows))[:COUNT]
    return [(rows[row]["sentence"], rows[row]["compressed"]) for row in chosen]


def measured_areas(model: Any, pairs: list[tuple[str, str]], say: Callable[[str], None]) -> Areas:
    """The areas under the deletion curves, without pairs that have no word to remove."""
    areas: Areas = {place: {name: [] for name in (*METHODS, RANDOM)} for place in FROM}
    for number, (first, second) in enumerate(pairs, start=1):
        similarity = PairSimilarity.of(model, first, second, LAYER, POOLING)
        scored = all_scores(similarity)
        for place in FROM:
            found = compare_methods(similarity, place == "both", False, RANDOM_ORDERS, STEPS, scored)
            for name, curve in found.first.items():
                areas[place][name].append(curve.area)
        if number % 10 == 0:
            say(f"{number} of {len(pairs)} pairs, layer {LAYER}, {POOLING}: area under the curve, smaller is better")
            for row in table(areas):
                say(row)
    return areas


def table(areas: Areas) -> list[str]:
    """The rows of docs/measurements.md: method, and for each way to remove words the mean area and its difference to random."""
    return [
        f"| {' | '.join([METHOD_NAMES[name], *(cell for place in FROM for cell in cells(areas[place], name))])} |"
        for name in (*METHODS, RANDOM)
    ]


def cells(areas: dict[str, list[float]], name: str) -> tuple[str, str]:
    """The mean area of a method, and its difference to random with the 95 % interval."""
    values, chance = np.array(areas[name]), np.array(areas[RANDOM])
    mean = f"{values.mean():.3f}"
    if name == RANDOM:
        return mean, "0"
    change = difference_interval(values - chance)
    return mean, f"{change.value:+.3f} ({change.low:+.3f} to {change.high:+.3f})".replace("-", "−")


@pytest.mark.timeout(3600)
def test_leaving_words_out_finds_those_that_matter_better_than_chance(embedded: Any) -> None:
    if not PAIRS.exists():
        pytest.skip("the real pairs are not here")
    areas = measured_areas(embedded, sampled_pairs(), lambda text: sys.stdout.write(f"    {text}\n"))
    report("; ".join(f"{METHOD_NAMES[name].lower()} {cells(areas['one'], name)[0]}" for name in (*METHODS, RANDOM)))
    left_out, chance = (np.array(areas["one"][name]) for name in ("left_out", RANDOM))
    assert difference_interval(left_out - chance).high < 0
