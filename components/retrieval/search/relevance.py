"""Judgements of hits, and the precision computed from them.

Precision at k is the share of the first k hits that are marked as relevant. A hit without a judgement counts as not
relevant, as in pooled evaluation (Voorhees and Harman 2005), so values are lower bounds until all k hits are judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NONE: Mapping[int, bool] = MappingProxyType({})


@dataclass(frozen=True)
class Precision:
    value: float  # 0..1
    unjudged: int  # of the k


@dataclass(frozen=True)
class Judgements:
    """Which sentences are relevant to which query; a new record for each change."""

    marks: Mapping[str, Mapping[int, bool]] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, query: str) -> Mapping[int, bool]:
        """Index to judgement, for one query."""
        return self.marks.get(query, _NONE)

    def within(self, count: int) -> Judgements:
        """Those of the first `count` sentences, without queries of which none is left: a browser's may be of any number."""
        kept = {query: {row: value for row, value in own.items() if row < count} for query, own in self.marks.items()}
        return Judgements(MappingProxyType({query: MappingProxyType(own) for query, own in kept.items() if own}))

    def by_text(self, first_rows: Sequence[int] | NDArray[np.integer]) -> Judgements:
        """Those with each mark at the first row of its text, [row], where equal texts stand in several; the last one counts."""
        return Judgements(
            MappingProxyType(
                {
                    query: MappingProxyType({int(first_rows[row]): value for row, value in own.items()})
                    for query, own in self.marks.items()
                }
            )
        )

    def mark(self, query: str, index: int, relevant: bool | None) -> Judgements:
        """These judgements with a hit marked as relevant or not relevant, or without a mark (None)."""
        own = {sentence: value for sentence, value in self.of(query).items() if sentence != index}
        if relevant is not None:
            own[index] = relevant
        marks = {other: values for other, values in self.marks.items() if other != query}
        if own:
            marks[query] = MappingProxyType(own)
        return replace(self, marks=MappingProxyType(marks))

    def precision(self, query: str, ranking: Sequence[int], k: int) -> Precision:
        """Precision at k of a ranking, divided by k also for shorter rankings. Raises ValueError for k < 1."""
        if k < 1:
            raise ValueError(f"k is {k}, at least 1 was expected")
        own, first = self.of(query), list(ranking)[:k]
        return Precision(
            sum(own.get(sentence, False) for sentence in first) / k, sum(sentence not in own for sentence in first)
        )
