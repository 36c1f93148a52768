"""Deletion curves: the same test for every method that says which words a similarity depends on.

The words of both texts are removed one after the other in a method's order, and the cosine of what is left is measured
each time. If the words with the highest scores hold the similarity, it falls early: the area under the curve is small
(Samek et al. 2017, "Evaluating the Visualization of What a Deep Neural Network Has Learned", AOPC; for texts DeYoung et al.
2020, "ERASER", comprehensiveness). Removed in the opposite order, the least important words first, the cosine should stay high
for long (ERASER's sufficiency).

- Words are removed from both texts, which then are one list sorted by score; or from one text at a time while the other stays
  whole, and the two curves are averaged. The first asks which words two texts share; but of texts that are nearly equal it
  asks wrongly: an order that takes the same word from both leaves them as similar as before. The second asks what
  either text's similarity to the other, whole one depends on. Equal scores keep the order of the texts.
- The last word of a text is never removed: an order skips it. So all orders remove equally many words, and end at texts of
  one word (with the punctuation, which is never removed).
- Of long texts only some steps are measured, evenly spaced.
- The area is the mean height of the curve, by the trapezoidal rule: a cosine, independent of the number of words.
- Random orders are averaged. A method that is no better than these says nothing about the similarity.

What it does not show: what the model does with natural texts, since a text without some words can be unlike any that it was
trained on. Methods that remove words themselves (leave one out) are near to the test, and have an advantage in it. One pair of
texts proves little: compare methods over many (tests/benchmarks/test_deletion.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from components.analysis.why.word_scores import METHODS, RANDOM, NotApplicable, PairSimilarity, WordPair
from components.arrays import Float64, read_only
from components.jobs import IsStopped, ReportProgress, part_of

PairCosines = Callable[[Sequence[str], Sequence[str]], np.ndarray]  # first texts, second texts -> [pair]
Name = TypeVar("Name", bound=Hashable)
MOST_STEPS = 24  # measured points of a curve, besides the whole texts
RANDOM_ORDERS = 10


@dataclass(frozen=True, eq=False)
class DeletionCurve:
    """The cosine of two texts while their words are removed one after the other."""

    # The indices of the removed words, the first to go first: one sequence for both texts, or one for each that is shortened
    # alone, and then the curve is the mean of the two. Where several orders are averaged, those of the first.
    removals: tuple[tuple[int, ...], ...]
    shares: Float64  # [step]: how many of the words that can be removed are gone, 0 to 1
    cosines: Float64  # [step]: of what is left

    def __post_init__(self) -> None:
        read_only(self.shares)
        read_only(self.cosines)

    @property
    def area(self) -> float:
        """The area under the curve, which is its mean height: a cosine."""
        return float(np.trapezoid(self.cosines, self.shares))

    def counts(self, step: int) -> list[int]:
        """How many words of each sequence are gone at a step."""
        return _counts(self.removals, float(self.shares[step]))


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """What several methods say about the words of two texts, and how each fares in the test."""

    pair: WordPair
    cosine: float
    scores: Mapping[str, Float64]  # method to [word]
    not_applicable: Mapping[str, str]  # method to the reason
    first: Mapping[
        str, DeletionCurve
    ]  # by method and RANDOM, most important words first; empty if no word can be removed
    last: Mapping[str, DeletionCurve]  # least important words first

    def __post_init__(self) -> None:
        for scores in self.scores.values():
            read_only(scores)

    @property
    def nbytes(self) -> int:
        """Memory the scores, curves and words take, in bytes; a word is some 200."""
        curves = [*self.first.values(), *self.last.values()]
        arrays = [*self.scores.values(), *(array for curve in curves for array in (curve.shares, curve.cosines))]
        removed = sum(len(removal) for curve in curves for removal in curve.removals)
        return sum(array.nbytes for array in arrays) + 8 * removed + 200 * len(self.pair.words)

    @property
    def by_area(self) -> list[str]:
        """The methods that were tested, without random, the smallest area first."""
        return sorted((method for method in self.first if method != RANDOM), key=lambda name: self.first[name].area)

    def scaled(self, method: str) -> Float64:
        """A method's scores divided by the largest of their absolute values, -1..1, float64 [word]."""
        scores = self.scores[method]
        return scores / (np.abs(scores).max(initial=0) or 1.0)


def removals_of(pair: WordPair, order: Sequence[int], from_both: bool = True) -> tuple[tuple[int, ...], ...]:
    """An order of all words without the last one of each text, which is never removed; by text unless `from_both`."""
    left, removed = list(pair.counts), []
    for index in order:
        side = pair.words[index].in_pair
        if left[side] > 1:
            left[side] -= 1
            removed.append(index)
    if from_both:
        return (tuple(removed),)
    by_text = (tuple(index for index in removed if pair.words[index].in_pair == side) for side in (False, True))
    return tuple(removal for removal in by_text if removal)


def steps_of(count: int, most: int = MOST_STEPS) -> Float64:
    """The shares of `count` words that are removed where the cosine is measured: 0, 1, and evenly spaced ones between."""
    return np.unique(np.rint(np.linspace(0, count, min(count, most) + 1))) / count


def _counts(removals: Sequence[Sequence[int]], share: float) -> list[int]:
    return [round(share * len(removal)) for removal in removals]


def deletion_curves(
    pair: WordPair,
    orders: Mapping[Name, Sequence[Sequence[int]]],
    cosines: PairCosines,
    most_steps: int = MOST_STEPS,
    from_both: bool = True,
) -> dict[Name, DeletionCurve]:
    """The curve of each name, averaged over its orders of all words, in one call of `cosines`.

    Empty if no word can be removed, since each text has only one.
    """
    if not orders or all(count <= 1 for count in pair.counts):
        return {}
    removals = {name: [removals_of(pair, order, from_both) for order in several] for name, several in orders.items()}
    longest = max(len(removal) for removal in next(iter(removals.values()))[0])  # the same in every order
    shares = steps_of(longest, most_steps)
    variants = [
        pair.left(removal[:count])
        for several in removals.values()
        for of_order in several
        for share in shares.tolist()
        for removal, count in zip(of_order, _counts(of_order, share), strict=True)
    ]
    different = list(dict.fromkeys(variants))  # the whole pair is the beginning of every order
    measured = np.asarray(cosines(*(list(texts) for texts in zip(*different, strict=True))), np.float64)
    of_variant = dict(zip(different, measured, strict=True))
    values = iter(of_variant[variant] for variant in variants)
    return {name: _averaged(several, shares, values) for name, several in removals.items()}


def _averaged(
    removals: Sequence[tuple[tuple[int, ...], ...]], shares: Float64, values: Iterator[float]
) -> DeletionCurve:
    """The mean curve of several orders, whose cosines come one order after the other, and in each step by step."""
    cosines = np.array([[[next(values) for _ in of_order] for _ in shares] for of_order in removals])
    return DeletionCurve(removals[0], shares.copy(), cosines.mean(axis=(0, 2)))  # from [order, step, sequence]


def by_score(scores: Float64) -> list[int]:
    """The words' indices, the highest score first; equal scores keep the order of the texts."""
    return np.argsort(-scores, kind="stable").tolist()


def random_orders(words: int, count: int = RANDOM_ORDERS, seed: int = 0) -> list[list[int]]:
    """Seeded random orders of the words' indices."""
    numbers = np.random.default_rng(seed)
    return [numbers.permutation(words).tolist() for _ in range(count)]


def all_scores(
    similarity: PairSimilarity,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> tuple[dict[str, Float64], dict[str, str]]:
    """Method to its scores [word], and method to the reason where it says nothing. Raises InputError, and Stopped."""
    scores: dict[str, Float64] = {}
    not_applicable: dict[str, str] = {}
    for name, method in METHODS.items():
        try:
            scores[name] = method(similarity, progress, is_stopped)
        except NotApplicable as reason:
            not_applicable[name] = str(reason)
    return scores, not_applicable


def most_texts(
    counts: tuple[int, int], both_ways: bool = True, orders_of_random: int = RANDOM_ORDERS, most_steps: int = MOST_STEPS
) -> int:
    """How many different texts the model reads at most to compare the methods on two texts with so many words."""
    words = sum(counts)
    orders = (1 + both_ways) * len(METHODS) + orders_of_random
    # Without each word; and at each step but the first, which is the whole pair, one text of each side.
    return words + 2 + 2 * min(most_steps, words) * orders


def compare_methods(
    similarity: PairSimilarity,
    from_both: bool = True,
    both_ways: bool = True,
    orders_of_random: int = RANDOM_ORDERS,
    most_steps: int = MOST_STEPS,
    scored: tuple[dict[str, Float64], dict[str, str]] | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> MethodComparison:
    """Score the words by every method, unless they are `scored` already, and test the orders.

    `from_both`: words are removed from both texts, else from one at a time. `both_ways`: the least important words first
    too. `progress` counts texts, of which the total is first estimated from above. Raises InputError, and Stopped.
    """
    pair = similarity.pair
    words = len(pair.words)
    most = most_texts(pair.counts, both_ways, orders_of_random, most_steps)
    scores, not_applicable = scored or all_scores(similarity, part_of(progress, 0, most), is_stopped)
    first = {name: [by_score(values)] for name, values in scores.items()}
    orders = {("first", name): several for name, several in first.items()}
    orders[("first", RANDOM)] = random_orders(words, orders_of_random)
    if both_ways:
        orders |= {("last", name): [order[::-1] for order in several] for name, several in first.items()}
    done = words + 2

    def cosines(firsts: Sequence[str], seconds: Sequence[str]) -> Float64:
        total = done + len({*firsts, *seconds})
        return similarity.cosines(firsts, seconds, part_of(progress, done, total), is_stopped)

    curves = deletion_curves(pair, orders, cosines, most_steps, from_both)
    by_way = {way: {name: curve for (of, name), curve in curves.items() if of == way} for way in ("first", "last")}
    if both_ways and RANDOM in by_way["first"]:
        by_way["last"][RANDOM] = by_way["first"][RANDOM]
    return MethodComparison(pair, similarity.cosine, scores, not_applicable, by_way["first"], by_way["last"])
