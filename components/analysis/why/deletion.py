"""Deletion curves: the same test for every method that says which words a similarity depends on.

The words of both texts are removed one after the other in a method's order, and the cosine of what is left is measured
each time. If the words with the highest scores hold the similarity, it falls early: the area under the curve is small
(Samek et al. 2017, "Evaluating the Visualization of What a Deep Neural Network Has Learned", AOPC; for texts DeYoung et al.
2020, "ERASER", comprehensiveness). Removed in the opposite order, the least important words first, the cosine should stay high
for long (ERASER's sufficiency).

- The words of both texts are one list, sorted by score; equal scores keep the order of the texts.
- The last word of a text is never removed: an order skips it, and ends when each text has one word left. So all orders
  remove equally many words, and end at texts of one word (with the punctuation, which is never removed).
- Of long texts only some steps are measured, evenly spaced.
- The area is the mean height of the curve, by the trapezoidal rule: a cosine, independent of the number of words.
- Random orders are averaged. A method that is no better than these says nothing about the similarity.

What it does not show: what the model does with natural texts, since a text without some words can be unlike any that it was
trained on. Methods that remove words themselves (leave one out) are near to the test, and have an advantage in it. One pair of
texts proves little: compare methods over many (tests/benchmarks/test_deletion.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.why.word_scores import METHODS, RANDOM, NotApplicable, PairSimilarity, WordPair
from components.arrays import Float64, Int64, read_only
from components.jobs import IsCancelled, ReportProgress, part_of

PairCosines = Callable[[Sequence[str], Sequence[str]], np.ndarray]  # first texts, second texts -> [pair]
MOST_STEPS = 24  # measured points of a curve, besides the whole texts
RANDOM_ORDERS = 10


@dataclass(frozen=True, eq=False)
class DeletionCurve:
    """The cosine of two texts while their words are removed one after the other."""

    order: tuple[
        int, ...
    ]  # the indices of the removed words, the first to go first; of one order if several are averaged
    removed: Int64  # [step]: how many of them are gone, from 0 on
    cosines: Float64  # [step]: of what is left

    def __post_init__(self) -> None:
        read_only(self.removed)
        read_only(self.cosines)

    @property
    def area(self) -> float:
        """The area under the curve, as its mean height: a cosine."""
        return float(np.trapezoid(self.cosines, self.removed) / (self.removed[-1] - self.removed[0]))


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """What several methods say about the words of two texts, and how each fares in the test."""

    pair: WordPair
    cosine: float
    scores: Mapping[str, Float64]  # method to [word]
    not_applicable: Mapping[str, str]  # method to the reason
    first: Mapping[
        str, DeletionCurve
    ]  # most important words first; RANDOM is one of them. Empty if no word can be removed
    last: Mapping[str, DeletionCurve]  # least important words first

    def __post_init__(self) -> None:
        for scores in self.scores.values():
            read_only(scores)

    @property
    def by_area(self) -> list[str]:
        """The methods that were tested, without random, the smallest area first."""
        return sorted((method for method in self.first if method != RANDOM), key=lambda name: self.first[name].area)

    def scaled(self, method: str) -> Float64:
        """A method's scores divided by the largest of their absolute values, -1..1, float64 [word]."""
        scores = self.scores[method]
        return scores / (np.abs(scores).max(initial=0) or 1.0)


def removal_order(pair: WordPair, order: Sequence[int]) -> tuple[int, ...]:
    """An order of all words without the last one of each text, which is never removed."""
    left, removed = list(pair.counts), []
    for index in order:
        side = pair.words[index].in_pair
        if left[side] > 1:
            left[side] -= 1
            removed.append(index)
    return tuple(removed)


def steps_of(count: int, most: int = MOST_STEPS) -> Int64:
    """The numbers of removed words that are measured, int64 [step]: 0 and `count`, and evenly spaced ones between."""
    return np.unique(np.rint(np.linspace(0, count, min(count, most) + 1)).astype(np.int64))


def deletion_curves(
    pair: WordPair, orders: Mapping[str, Sequence[Sequence[int]]], cosines: PairCosines, most_steps: int = MOST_STEPS
) -> dict[str, DeletionCurve]:
    """The curve of each name, averaged over its orders of all words, in one call of `cosines`.

    Empty if no word can be removed, since each text has only one.
    """
    removable = sum(max(0, count - 1) for count in pair.counts)
    if not removable or not orders:
        return {}
    steps = steps_of(removable, most_steps)
    removals = {name: [removal_order(pair, order) for order in several] for name, several in orders.items()}
    variants = [
        pair.left(removal[:step]) for several in removals.values() for removal in several for step in steps.tolist()
    ]
    different = list(dict.fromkeys(variants))  # the whole pair is the beginning of every order
    measured = np.asarray(cosines(*(list(texts) for texts in zip(*different, strict=True))), np.float64)
    of_variant = dict(zip(different, measured, strict=True))
    values = iter(of_variant[variant] for variant in variants)
    return {name: _averaged(several, steps, values) for name, several in removals.items()}


def _averaged(removals: Sequence[tuple[int, ...]], steps: Int64, values: Iterator[float]) -> DeletionCurve:
    """The mean curve of several orders, whose cosines come one order after the other."""
    cosines = np.array([[next(values) for _ in steps] for _ in removals])  # [order, step]
    return DeletionCurve(removals[0], steps, cosines.mean(axis=0))


def by_score(scores: Float64) -> list[int]:
    """The words' indices, the highest score first; equal scores keep the order of the texts."""
    return np.argsort(-scores, kind="stable").tolist()


def random_orders(words: int, count: int = RANDOM_ORDERS, seed: int = 0) -> list[list[int]]:
    """Seeded random orders of the words' indices."""
    numbers = np.random.default_rng(seed)
    return [numbers.permutation(words).tolist() for _ in range(count)]


def compare_methods(
    similarity: PairSimilarity,
    orders_of_random: int = RANDOM_ORDERS,
    both_ways: bool = True,
    most_steps: int = MOST_STEPS,
    progress: ReportProgress = lambda done, total: None,
    is_cancelled: IsCancelled = lambda: False,
) -> MethodComparison:
    """Score the words by every method, and test the orders; `both_ways`: the least important words first too.

    `progress` counts texts, of which the total is first estimated from above. Raises InputError, and Cancelled.
    """
    pair = similarity.pair
    words = len(pair.words)
    ways = 2 if both_ways else 1
    most = 2 * (words + 1) + 2 * (most_steps + 1) * (ways * len(METHODS) + orders_of_random)
    scores: dict[str, Float64] = {}
    not_applicable: dict[str, str] = {}
    for name, method in METHODS.items():
        try:
            scores[name] = method(similarity, part_of(progress, 0, most), is_cancelled)
        except NotApplicable as reason:
            not_applicable[name] = str(reason)
    first = {name: [by_score(values)] for name, values in scores.items()}
    orders = {("first", name): several for name, several in first.items()}
    orders[("first", RANDOM)] = random_orders(words, orders_of_random)
    if both_ways:
        orders |= {("last", name): [order[::-1] for order in several] for name, several in first.items()}
    done = words + 1

    def cosines(firsts: Sequence[str], seconds: Sequence[str]) -> Float64:
        total = done + len({*firsts, *seconds})
        return similarity.cosines(firsts, seconds, part_of(progress, done, total), is_cancelled)

    curves = deletion_curves(pair, orders, cosines, most_steps)
    by_way = {way: {name: curve for (of, name), curve in curves.items() if of == way} for way in ("first", "last")}
    if both_ways and RANDOM in by_way["first"]:
        by_way["last"][RANDOM] = by_way["first"][RANDOM]
    return MethodComparison(pair, similarity.cosine, scores, not_applicable, by_way["first"], by_way["last"])
