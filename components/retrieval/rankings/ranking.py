"""One ranking, whatever makes it: vectors, words, an engine that approximates, a second stage, or several of them together."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64, read_only
from components.retrieval.evaluation.metrics import Ranks
from components.retrieval.evaluation.ranks import TIED, tolerance
from components.retrieval.search.exact import top

if TYPE_CHECKING:
    from components.retrieval.search.exact import Hits

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
    hit_scores: NDArray[np.floating] = field(default_factory=lambda: _NONE)  # [hit]
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
        equal: float = TIED,
        rows: Int64 | None = None,
        **more: Any,
    ) -> Self:
        """The ranking of one query by the scores of all texts [text]. Every ranking by scores is made here.

        hits: the texts best first, at least k and ten where there are as many; by default those with a score above 0.
        tied: how many texts share the score of the last hit, and how many of these are hits; by default they are counted:
        scores are equal if they differ by at most `equal`, or by this share of a larger one. rows: the texts that can be
        hits, by default all. more: further fields.
        """
        able = scores
        if rows is not None:
            able = np.full(len(scores), np.nan)
            able[rows] = scores[rows]
        if hits is None:
            hits = top(np.where(np.isnan(able), -np.inf, able), max(k, TEN))
            hits = hits[able[hits] > 0]
        best = hits[:k]
        if tied is None and len(best):
            last = float(scores[best[-1]])
            is_tied = np.abs(able - last) <= equal * max(1.0, abs(last))
            tied = int(np.count_nonzero(is_tied)), int(np.count_nonzero(is_tied[best]))
        all_tied, tied_shown = tied or (0, 0)
        return cls(
            name,
            unit=unit,
            scores=scores,
            best=best,
            hit_scores=scores[best],
            first_ten=hits[:TEN],
            tied=all_tied,
            tied_shown=tied_shown,
            **more,
        )

    @classmethod
    def of_candidates(
        cls, name: str, unit: str, scores: NDArray[np.floating], rows: Int64, count: int, **more: Any
    ) -> Self:
        """The ranking of a second stage: of `count` texts the candidates `rows` [candidate], by their scores [candidate].

        Equal scores keep the order of `rows`, that of the first stage. Raises ValueError for unequal numbers and for scores
        that are not finite.
        """
        scores, rows = np.asarray(scores), np.asarray(rows, np.int64)
        if scores.shape != rows.shape:
            raise ValueError(f"{scores.shape} scores for {rows.shape} candidates: equal numbers were expected")
        if not np.isfinite(scores).all():
            raise ValueError("a score is not finite")
        of_all = np.full(count, np.nan, scores.dtype)
        of_all[rows] = scores
        hits = rows[np.argsort(-scores, kind="stable")]
        return cls.of_scores(name, unit, of_all, more.pop("k", len(hits)), hits, (0, 0), **more)

    @classmethod
    def of_hits(cls, name: str, unit: str, hits: Hits) -> Self:
        """The ranking of one query by an engine that gives nothing but its hits."""
        tied = int(hits.tied[0]), int(hits.tied_shown[0])
        return cls(name, unit=unit, best=hits.indices[0], hit_scores=hits.scores[0], tied=tied[0], tied_shown=tied[1])

    def rank_of(self, text: int) -> int | None:
        """The rank of a text by its score, from 1; a tie counts against it. None for a text that is not ranked."""
        own = float(self.scores[text])
        return None if np.isnan(own) else int(np.count_nonzero(self.scores >= own - tolerance(own)))

    def places(self, texts: Int64) -> Int64:
        """The rank of each of some texts among the hits, from 1, int64 [text]; 0 for one that is no hit."""
        ranks = {row: rank for rank, row in enumerate(self.best.tolist(), start=1)}
        return np.array([ranks.get(row, 0) for row in texts.tolist()], np.int64)
