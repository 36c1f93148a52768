"""Words and vectors together (hybrid ranking): the corpus by the sum of 1 / (60 + rank) of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from components.retrieval.evaluation.ranks import NOT_FOUND
from components.retrieval.fusion.hits import fused_hits, query_scores, said
from components.retrieval.fusion.ranks import ranker_scores
from components.retrieval.fusion.scores import RRF_K, Fusion
from components.retrieval.search.exact import SAME
from components.retrieval.search.lexical import TITLES
from dashboard import caching
from dashboard.corpora import word_rankings
from dashboard.jobs import rankers
from dashboard.ui import messages
from dashboard.views.search.ranked import Explained, Ranked, Scale

if TYPE_CHECKING:
    from components.retrieval.fusion.hits import FusedHits
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.lexical import Kind
    from dashboard.views.search.request import SearchRequest

WORDS: Kind = "bm25"
MOST_SHOWN = 22  # characters of a sentence in the finding
NOTE = (
    f"Words and vectors together (reciprocal rank fusion): the score of a sentence is 1 / ({RRF_K} + its rank by vectors) plus "
    f"1 / ({RRF_K} + its rank by {TITLES[WORDS]}), over all sentences; equal scores have the last of their ranks. A sentence "
    "without a word of the query has no rank by words and gets nothing for it. Blue is what vectors add, green what words add."
)
NO_SUM_OVER_WORDS = "**{score}** is a sum over two ranks, not over words: the lists by vectors and by words say why."


def by_both(request: SearchRequest, index: VectorIndex) -> Ranked:
    """The corpus by words and vectors together. Raises NotReady while its words are counted."""
    layer, pooling = request.cell(index)
    vector = caching.query_vectors(request.backend, (request.query,), index.info)[layer, pooling][0]
    ranker = rankers.word_ranker(word_rankings.word_ranking(request.backend, WORDS), request.corpus)
    fusion = Fusion()
    runs = [
        query_scores(vector, index.engine(layer, pooling).vectors, request.similarity),
        ranker_scores(ranker, [request.query])(slice(0, 1)),
    ]
    hits = fused_hits(runs, fusion, max(request.k, 10))
    places = {int(row): place for place, row in enumerate(hits.indices)}
    scores, best = fusion.of(runs).scores[0], hits.indices[: request.k]
    is_tied = np.abs(scores - scores[best[-1]]) <= SAME

    def terms(row: int) -> tuple[tuple[str, ...], float]:
        place = places[row]
        written = [
            f"{name} {said(float(term), int(rank), fusion)}" if rank != NOT_FOUND else f"{name} –"
            for name, term, rank in zip(("vectors", "words"), hits.terms[:, place], hits.ranks[:, place], strict=True)
        ]
        return tuple(written), float(hits.terms[0, place] / hits.scores[place])

    most = len(runs) / (RRF_K + 1)
    searched = request.code(index, layer, pooling)
    code = searched.command(fused_hits, searched.search(request.query, request.k, request.similarity, "--fuse", WORDS))
    return Ranked(
        f"Hybrid: vectors + {TITLES[WORDS]}",
        "fused score",
        scores,
        best,
        hits.indices[:10],
        int(np.count_nonzero(is_tied)),
        int(np.count_nonzero(is_tied[best])),
        code=code,
        code_of_all=code,
        scale=Scale(0.0, most, ("0", f"2/{RRF_K + 1}"), "A full bar is first by vectors and by words."),
        explained=Explained(said=NO_SUM_OVER_WORDS),
        finding=finding(
            hits, request.corpus.texts[int(best[0])], bool(runs[1].is_ranked.any()), int(runs[0].ranks.min())
        ),
        terms=terms,
    )


def finding(hits: FusedHits, first: str, has_words: bool, best: int = 1) -> str:
    """Whether words change the first place of the ranking by vectors; `first` is the sentence that now has it.

    `best` is the rank that the first sentence by vectors has: of a tie all have its last rank.
    """
    if not has_words:
        return "No sentence has a word of the query: **words change nothing**."
    by_vectors, by_words = (int(rank) for rank in hits.ranks[:, 0])
    if by_vectors == best or by_words == NOT_FOUND:
        words = "it has no word of the query" if by_words == NOT_FOUND else f"by words it has rank {by_words:,}"
        return f"**Words leave the first place as it is**: {words}."
    text = first if len(first) <= MOST_SHOWN else f"{first[:MOST_SHOWN].rsplit(' ', 1)[0]} …"
    return f"**“{messages.escape(text)}” rises from {by_vectors:,} to 1**: it has rank {by_words:,} by words."
