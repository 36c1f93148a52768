"""One ranking, whatever makes it: vectors, words, an engine that approximates, a second stage, or several of them together."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64, read_only
from components.retrieval.evaluation.metrics import Ranks
from components.retrieval.evaluation.ranks import tolerance
from components.retrieval.search.exact import top

_NONE, _NO_ROWS = read_only(np.empty(0)), read_only(np.empty(0, np.int64))
TEN = 10  # the hits for which precision is computed


@dataclass(frozen=True, eq=False)
class Ranking:
    """How something ranks texts: of one query the scores and hits, of many queries the ranks of the correct answers."""

    name: str  # what ranks, as typed: escape it where it is drawn
    _: KW_ONLY
    unit: str = ""  # what its scores are
    scores: NDArray[np.floating] = field(default_factory=lambda: _NONE)  # [text]; NaN for texts that it does not rank
    best: Int64 = field(default_factory=lambda: _NO_ROWS)  # [hit]: the first k texts that are hits
    first_ten: Int64 = field(default_factory=lambda: _NO_ROWS)  # [hit]: the same for k = 10
    tied: int = 0  # the texts with the same score as the last hit, itself included
    tied_shown: int = 0  # how many of them are hits
    # Of the correct answers, [query], or all of them where a query has several.
    ranks: Ranks = field(default_factory=lambda: _NO_ROWS)
    milliseconds: float | None = None  # per query, on the machine that ranked
    index_bytes: int | None = None

    @classmethod
    def of_scores(
        cls,
        name: str,
        unit: str,
        scores: NDArray[np.floating],
        k: int,
        hits: Int64 | None = None,
        tied: tuple[int, int] | None = None,
        **more: Any,
    ) -> Self:
        """The ranking of one query by the scores of all texts [text]. Every ranking of one query is made here.

        hits: the texts best first, at least k and ten where there are as many; by default those with a score above 0.
        tied: how many texts share the score of the last hit, and how many of these are hits; by default they are counted, with
        the tolerance for scores of one pair each. more: further fields.
        """
        if hits is None:
            hits = top(scores, max(k, TEN))
            hits = hits[scores[hits] > 0]
        best = hits[:k]
        if tied is None and len(best):
            last = float(scores[best[-1]])
            is_tied = np.abs(scores - last) <= tolerance(last)
            tied = int(np.count_nonzero(is_tied)), int(np.count_nonzero(is_tied[best]))
        all_tied, tied_shown = tied or (0, 0)
        return cls(
            name,
            unit=unit,
            scores=scores,
            best=best,
            first_ten=hits[:TEN],
            tied=all_tied,
            tied_shown=tied_shown,
            **more,
        )
