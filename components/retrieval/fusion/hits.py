"""The first hits of one query by a fusion of runs, with what each run adds to each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from components.arrays import Float64, Int64
from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.fusion.scores import Fusion, RunScores
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.exact import Similarity, for_cosines, pair_similarity, top

_ROWS = 16_384  # vectors converted together to float64


@dataclass(frozen=True, eq=False)
class FusedRanking(Ranking):
    """The ranking of one query by several runs together, with what each of them says of the hits."""

    _: KW_ONLY
    terms: Float64  # [run, hit], what each run adds to the score
    alone: Int64  # [run, hit], the rank by each run alone; NOT_FOUND where it does not rank the text, or not within the depth


def fused_ranking(runs: Sequence[RunScores], fusion: Fusion, k: int) -> FusedRanking:
    """The first query of each run; a text that no run ranks is no hit, and of equal scores the lower number comes first."""
    sums, terms = fusion.of(runs), fusion.terms(runs)[:, 0]  # [run, text]
    is_ranked = sums.is_ranked[0]
    hits = top(np.where(is_ranked, sums.scores[0], -np.inf), min(k, int(is_ranked.sum())))
    return FusedRanking.of_scores(
        "fused",
        "fused score",
        np.where(is_ranked, terms.sum(axis=0), np.nan),
        k,
        hits,
        equal=sums.tied,
        terms=terms[:, hits],
        alone=np.array([run.first(fusion.depth).ranks[0, hits] for run in runs]),
    )


def query_scores(query: NDArray[np.floating], texts: NDArray[np.floating], similarity: Similarity) -> RunScores:
    """The scores in float64 of a query's vector [dim] with those of all texts [text, dim], as one run.

    They order the texts as the similarity does. Of a Euclidean distance or a dot product they are the cosines by which an
    evaluation ranks, so that a weight measured there means the same here.
    """
    vector = np.asarray(query, np.float64)[None]
    if similarity in ("dot", "euclidean"):
        longer, texts = for_cosines(vector, texts, similarity)
        vector, similarity = np.asarray(longer, np.float64), "cosine"
    blocks = (np.asarray(texts[start : start + _ROWS], np.float64) for start in range(0, len(texts), _ROWS))
    scores = np.concatenate([np.empty(0), *(pair_similarity(vector, block, similarity) for block in blocks)])[None]
    return RunScores(scores, np.ones(scores.shape, np.bool_))


def term_text(term: float, rank: int, fusion: Fusion) -> str:
    """A term as it is computed, as in "1/(60+3)"; a normalised score times its weight as a number."""
    if fusion.method != "rrf":
        return f"{term:.4f}"
    weight = round(term * (fusion.rank_constant + rank), 4)
    return "0" if rank == NOT_FOUND else f"{weight:g}/({fusion.rank_constant}+{rank})"
