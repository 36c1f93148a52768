"""A remedy is chosen on one half of the queries and measured on the other; then the halves change places, and both are added.

The options of a remedy (its weights, layers, prompts) are ways of ranking, each known by the rank of every query's right text.
To leave everything as it is, is always one of them: the option with the highest Recall@1 is chosen, of equal ones that with the
highest MRR, and where none is better than leaving it, it is left. What is chosen on a half has never seen the queries on which
it is measured (cross-validation: Stone 1974). Queries that are the same but for case and marks stand in one half.

A query is *repaired* where its right text was not first and is then, *harmed* where it was first and is no longer. Equal scores
count against a query in every rank, so that a remedy gains nothing by making texts equal. The change of Recall@1 has Tango's
interval and McNemar's exact test (components.retrieval.evaluation.chance.paired), that of MRR a paired bootstrap over queries.

What it does not show: queries of another kind. With half of the queries a choice is a little worse than with all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64, read_only
from components.retrieval.corpora.rows.same import normalised
from components.retrieval.evaluation.chance import paired
from components.retrieval.evaluation.metrics import Interval, difference_interval
from components.retrieval.evaluation.ranks import inverse
from components.retrieval.rankings.ranking import Ranking

RESAMPLES = 10_000
LEAVE = ""  # the option that leaves everything as it is
_SAME = 1e-12  # means within this are equal

Options = Mapping[str, Int64]  # each option's name to the ranks [query] of the first right text


@dataclass(frozen=True, eq=False)
class RemedyRanking(Ranking):
    """A remedy on all queries, each ranked by what the other half of them chose; one right text of each has a rank."""

    _: KW_ONLY
    ranks: Int64  # [query]
    now: Int64  # [query], ranks without the remedy
    chosen: tuple[str, str]  # the option that each half chose, or LEAVE
    seed: int = 0

    @cached_property
    def repaired(self) -> int:
        return int(((self.now > 1) & (self.ranks == 1)).sum())

    @cached_property
    def harmed(self) -> int:
        return int(((self.now == 1) & (self.ranks > 1)).sum())

    @property
    def recall(self) -> float:
        """Recall@1, 0..1."""
        return float((self.ranks == 1).mean())

    @property
    def mrr(self) -> float:
        """0..1."""
        return float(inverse(self.ranks).mean())

    @cached_property
    def change(self) -> Interval:
        """The change of Recall@1 with Tango's 95 % interval, -1..1."""
        return paired.difference(self.repaired, self.harmed, len(self.now))

    @property
    def p_value(self) -> float:
        """McNemar's exact test of the change of Recall@1, two-sided."""
        return paired.mcnemar(self.repaired, self.harmed)

    @cached_property
    def mrr_change(self) -> Interval:
        """The change of MRR with the 95 % interval of a paired bootstrap, -1..1."""
        return difference_interval(inverse(self.ranks) - inverse(self.now), self.seed, RESAMPLES)

    @property
    def helps(self) -> bool:
        """Whether the interval of the change of Recall@1 lies above zero."""
        return self.change.low > 0

    @property
    def harms(self) -> bool:
        """Whether that interval lies below zero."""
        return self.change.high < 0


def halves(queries: Sequence[str], seed: int = 0) -> NDArray[np.bool_]:
    """[query]: whether it is in the first half; queries with the same words are in one."""
    groups: dict[str, int] = {}
    group_of = np.array([groups.setdefault(normalised(query), len(groups)) for query in queries], np.int64)
    first = np.zeros(len(groups), bool)
    first[np.random.default_rng(seed).permutation(len(groups))[: len(groups) // 2]] = True
    return read_only(first[group_of])


def choice(now: Int64, options: Options, among: NDArray[np.bool_]) -> str:
    """The best option on the queries `among` [query], or LEAVE where none is better than leaving it."""
    best, best_recall, best_mrr = LEAVE, *_measures(now[among])
    for name, ranks in options.items():
        recall, mrr = _measures(ranks[among])
        is_equal = abs(recall - best_recall) <= _SAME
        if recall > best_recall + _SAME or (is_equal and mrr > best_mrr + _SAME):
            best, best_recall, best_mrr = name, recall, mrr
    return best


def _measures(ranks: Int64) -> tuple[float, float]:
    return (float((ranks == 1).mean()), float(inverse(ranks).mean())) if len(ranks) else (0.0, 0.0)


def measured(
    now: Int64, options: Options, first: NDArray[np.bool_], seed: int = 0, remedy: str = "remedy"
) -> RemedyRanking:
    """A remedy, chosen on each half (`first` [query] is one of them) and measured on the other."""
    chosen = choice(now, options, first), choice(now, options, ~first)
    ranks = np.array(now)
    for name, among in zip(chosen, (~first, first), strict=True):
        if name != LEAVE:
            ranks[among] = options[name][among]
    return RemedyRanking(remedy, ranks=read_only(ranks), now=now, chosen=chosen, seed=seed)


def others(count: int, first: NDArray[np.bool_], seed: int, among: NDArray[np.bool_] | None = None) -> Int64:
    """[query]: for each query another one of its half, drawn at random, whose second signal a control takes.

    With `among` [query] only these exchange with each other. A query without another one keeps its own number.
    """
    numbers = np.random.default_rng(seed)
    among = np.ones(count, bool) if among is None else among
    taken = np.arange(count)
    for half in (first, ~first):
        own = np.flatnonzero(half & among)
        shuffled = numbers.permutation(own)
        taken[shuffled] = np.roll(shuffled, 1)  # one circle: nobody keeps its own
    return read_only(taken)
