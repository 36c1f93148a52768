"""The comparison of a learnt ranking with others: the candidates, what is learnt from them, and the ranks of each ranking.

It puts together what `learnt_ranking` and `learnt_vectors` do, in the order of the view, so that the view and the
code of its figures take the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import arrays_of
from components.jobs import IsStopped, ReportProgress, Stoppable, Stopped
from components.retrieval.evaluation.graded import metrics
from components.retrieval.learnt import learnt_ranking
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.lexical import make_ranker

if TYPE_CHECKING:
    from components.arrays import Float32, Float64, Int64
    from components.model.trace import Pooling
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.learnt.learnt_ranking import JudgedPairs, LearntFunction, QuerySplit
    from components.retrieval.learnt.learnt_vectors import LearntVectors

# By name: of the ranks of the relevant documents, float64 [query], 0..1.
RANKING_MEASURES = MappingProxyType({name: metrics.MEASURES[name] for name in ("MAP", "P@10", "nDCG@10")})
POOLING_SHORT: Mapping[str, str] = MappingProxyType({"cls": "[CLS]", "mean": "mean"})
REFERENCES = MappingProxyType({"bi": "Bi-encoder", "bm25": "BM25", "jm": "Jelinek-Mercer"})


@dataclass(frozen=True, eq=False)
class LearningSet:
    """The pairs, how each query is split, and the scores of the rankings that chose them, [query, document] each."""

    pairs: JudgedPairs
    split: QuerySplit
    scores: Mapping[str, np.ndarray]  # by the keys of REFERENCES
    random: Mapping[str, Float64]  # the measures of an order by chance: [test query] by name
    # [query] of the word rankings: a document with no higher score is not found.
    floors: Mapping[str, Float64] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return self.pairs.nbytes + sum(each.nbytes for each in self.scores.values())

    @property
    def test_rows(self) -> Int64:
        """The pairs of the test queries that a ranking found, int64 [pair]: those that a cross-encoder sorts again."""
        rows = self.pairs.rows_of(self.split.test)
        return rows[self.pairs.is_found[rows]]

    def references(self) -> list[Ranking]:
        """The rankings of the test queries that nothing is learnt for."""
        test = self.split.test
        return [
            self._ranking(title, self.scores[name][test], self.floors[name][test] if name in self.floors else None)
            for name, title in REFERENCES.items()
        ]

    def reranked(self, name: str, scores: Float32) -> Ranking:
        """The test queries, where the scores [pair] of `test_rows` sort these pairs, and the bi-encoder the others."""
        of_all = np.full(len(self.pairs), np.nan, np.float32)
        of_all[self.test_rows] = scores
        return self._ranking(name, learnt_ranking.reranked(self.pairs, of_all, self.scores["bi"], self.split.test))

    def _ranking(self, name: str, scores: np.ndarray, floors: Float64 | None = None) -> Ranking:
        ranks = learnt_ranking.relevant_ranks(self.pairs, scores, self.split.test, floors=floors)
        return Ranking(name, ranks=ranks)


def choose_candidates(
    graded: GradedSet,
    by_vectors: Callable[[int], Float32],
    most: int,
    first: int = 10,
    others: int = 20,
    seed: int = 0,
    check: Callable[[int, int], None] = lambda queries, documents: None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> LearningSet:
    """The candidates of at most `most` queries: the `first` of BM25 and of vectors, the relevant ones, and `others` drawn.

    Queries whose relevant documents the corpus lacks are not among them: nothing can be learnt from these.

    `by_vectors` gives the scores [document] of a query by its number. `check(queries, documents)` may raise before the
    scores of all documents are put together, which takes memory. Raises InputError, Stopped.
    """
    bm25, jm = (make_ranker(kind, Stoppable(graded.documents, is_stopped)) for kind in ("bm25", "jm"))
    scores: dict[str, Callable[[int], np.ndarray]] = {
        "bm25": lambda query: bm25.scores(graded.queries[query]),
        "jm": lambda query: jm.scores(graded.queries[query]),
        "bi": by_vectors,
    }
    asking = np.flatnonzero([bool(grades) for grades in graded.grades])
    sampled = asking[learnt_ranking.sampled_queries(len(asking), most, seed)]
    pairs = learnt_ranking.judged_pairs(
        graded, sampled, [scores["bm25"], scores["bi"]], first, others, seed, progress, is_stopped
    )
    check(len(sampled), len(pairs.documents))
    of_documents = {}
    for name, score in scores.items():
        rows = []
        for query in sampled.tolist():
            if is_stopped():
                raise Stopped
            rows.append(score(query)[pairs.document_numbers])
        of_documents[name] = np.stack(rows)
    floors = {
        name: np.array([ranker.floor(graded.queries[query]) for query in sampled])
        for name, ranker in (("bm25", bm25), ("jm", jm))
    }
    ranks = learnt_ranking.relevant_ranks(pairs, of_documents["bm25"], np.arange(len(sampled)), floors=floors["bm25"])
    split = learnt_ranking.split_queries(metrics.precision(ranks), seed, texts=pairs.queries)
    random = learnt_ranking.random_means(pairs, split.test, RANKING_MEASURES, is_stopped=is_stopped)
    return LearningSet(pairs, split, of_documents, random, floors)


@dataclass(frozen=True, eq=False)
class LearntRanking(Ranking):
    """What was learnt from one model's vectors, and how it ranks the test queries' relevant documents."""

    _: KW_ONLY
    function: LearntFunction
    unlearnt: Ranking | None = None  # by the cosine of the same vectors; None where each pair has one vector

    @property
    def nbytes(self) -> int:
        return sum(
            array.nbytes for array in arrays_of(self.function, self.ranks, self.unlearnt and self.unlearnt.ranks)
        )


@dataclass(frozen=True)
class LearningChoice:
    """How a ranking is learnt from a model's vectors."""

    layer: int
    pooling: Pooling
    c: float

    def name(self, model: str = "") -> str:
        """Of the ranking, for people; with the name of a model that is not the session's first."""
        return f"Learnt: {f'{model}, ' if model else ''}{POOLING_SHORT[self.pooling]} layer {self.layer}"

    def learnt(
        self, vectors: LearntVectors, candidates: LearningSet, is_stopped: IsStopped = lambda: False
    ) -> LearntRanking:
        """No forward pass: this is what a change of C costs. Raises Stopped."""
        pairs, split = candidates.pairs, candidates.split
        features = vectors.features(pairs, self.layer, self.pooling)
        function = learnt_ranking.learn(features, pairs, split, self.c, is_stopped)
        if vectors.reading == "together":
            scores = learnt_ranking.reranked(pairs, function.scores, candidates.scores["bi"], split.test)
            ranks = learnt_ranking.relevant_ranks(pairs, scores, split.test, is_stopped)
            return LearntRanking(self.name(), function=function, ranks=ranks)
        scores = vectors.ranking(function, self.layer, self.pooling, split.test, is_stopped)
        cosines = vectors.cosines(self.layer, self.pooling, split.test)
        ranks, plain = (
            learnt_ranking.relevant_ranks(pairs, each, split.test, is_stopped) for each in (scores, cosines)
        )
        unlearnt = Ranking(f"Cosine: {POOLING_SHORT[self.pooling]} layer {self.layer}", ranks=plain)
        return LearntRanking(self.name(), function=function, ranks=ranks, unlearnt=unlearnt)
