"""SPLADE as a ranking: the dot product of the weights that query and sentence give to the pieces of the vocabulary.

It compares pieces, as BM25 does, but a trained model says how much each counts and adds pieces that a text does not
contain (Formal et al. 2021; components.model.embedding.sparse_vectors). The score is a sum over the pieces that both texts
have, so that it can be shown in full:

    score(query, sentence) = sum over pieces v of query weight v * sentence weight v

The weights are kept by piece, as a search engine keeps its postings: for a query of 30 pieces, 36,000 sentences of 150
weights each take 0.1 ms (by sentence 12 ms), far less than the pass of the query through the model. What costs is the
pass of every sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from components.arrays import Float32, Int64
from components.jobs import Cache, IsCancelled, ReportProgress

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.sparse_vectors import ExpandedPieces
    from components.model.files.sentence_config import Role

TITLE = "SPLADE"
_KEPT_QUERIES = 256  # typing a query shows its hits several times


@dataclass(frozen=True, eq=False)
class SharedPieces:
    """The pieces that a query and a sentence both have, the one that adds most first."""

    pieces: tuple[str, ...]
    query_weights: Float32  # [piece]
    sentence_weights: Float32  # [piece]
    in_query: tuple[bool, ...]  # whether the query's text has the piece; else the model added it
    in_sentence: tuple[bool, ...]

    @property
    def contributions(self) -> Float32:
        """What each piece adds to the score, float32 [piece]; their sum is the score."""
        return self.query_weights * self.sentence_weights


@dataclass(frozen=True, eq=False)
class SpladeIndex:
    """The weights of a corpus, without the model that gave them."""

    postings: sparse.csr_matrix  # float32 [vocabulary, sentence]: the sentences' weights by piece
    max_length: int | None  # tokens of a text; None: the model's own maximum
    of_queries: Cache[sparse.csr_matrix] = field(default_factory=lambda: Cache(_KEPT_QUERIES))  # [1, vocabulary]

    @classmethod
    def of_texts(
        cls,
        backend: Backend,
        texts: Sequence[str],
        max_length: int | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_cancelled: IsCancelled = lambda: False,
    ) -> SpladeIndex:
        """Every text goes through the model once, equal ones together, so that they tie exactly.

        `progress(done, total)` counts different texts. Raises ModelError for a model that is not SPLADE, InputError for
        more weights than are kept, Cancelled.
        """
        first: dict[str, int] = {}
        numbers = [first.setdefault(text, len(first)) for text in texts]
        weights = backend.sparse_matrix(
            list(first), role="document", max_length=max_length, progress=progress, is_cancelled=is_cancelled
        )
        weights = weights if len(first) == len(texts) else weights[numbers]
        return cls(weights.T.tocsr(), max_length)

    @property
    def nbytes(self) -> int:
        return int(self.postings.data.nbytes + self.postings.indices.nbytes + self.postings.indptr.nbytes)


class SpladeRanker:
    """A corpus ranked by SPLADE's weights; a `Ranker` of components.retrieval.search.lexical. Safe to share between threads."""

    title = TITLE

    def __init__(self, backend: Backend, index: SpladeIndex) -> None:
        """`backend` is the model that gave the index its weights."""
        self.backend, self.index = backend, index
        self.postings, self.max_length = index.postings, index.max_length

    def scores(self, query: str) -> Float32:
        """float32 [sentence]; 0 for a sentence that shares no piece with the query."""
        return self.scores_of(self.query_weights([query]))

    def pair_scores(self, queries: Sequence[str], sentences: Int64) -> Float32:
        """The score of one sentence [pair] for each query [pair], float32 [pair]."""
        products = self.query_weights(queries).multiply(self.postings[:, sentences].T)
        return np.asarray(products.sum(axis=1), np.float32).ravel()

    def query_weights(self, queries: Sequence[str]) -> sparse.csr_matrix:
        """The weights of queries, float32 [query, vocabulary]; those of a single one are kept for a while."""

        def compute() -> sparse.csr_matrix:
            return self.backend.sparse_matrix(queries, role="query", max_length=self.max_length)

        return self.index.of_queries.get(queries[0], compute) if len(queries) == 1 else compute()

    def for_queries(
        self,
        queries: Sequence[str],
        progress: ReportProgress = lambda done, total: None,
        is_cancelled: IsCancelled = lambda: False,
    ) -> QueriesRanker:
        """The same for queries that go through the model together. `progress` counts them. Raises Cancelled."""
        distinct = list(dict.fromkeys(queries))
        weights = self.backend.sparse_matrix(
            distinct, role="query", max_length=self.max_length, progress=progress, is_cancelled=is_cancelled
        )
        return QueriesRanker(self, weights, {query: row for row, query in enumerate(distinct)})

    def query_pieces(self, query: str) -> ExpandedPieces:
        """All pieces of a query with their weights, the heaviest first."""
        return self._pieces(query, self.query_weights([query]), "query")

    def sentence_pieces(self, text: str, row: int) -> ExpandedPieces:
        """All pieces of a sentence of the corpus; `text` is that sentence. It costs no forward pass."""
        return self._pieces(text, self.postings[:, row].T, "document")

    def shared_pieces(self, query: str, text: str, row: int) -> SharedPieces:
        """The pieces that a query and a sentence of the corpus both have; `text` is that sentence."""
        of_query, of_text = self.query_pieces(query), self.sentence_pieces(text, row)
        _, first, second = np.intersect1d(of_query.ids, of_text.ids, return_indices=True)
        order = np.argsort(-(of_query.weights[first] * of_text.weights[second]), kind="stable")
        first, second = first[order], second[order]
        return SharedPieces(
            tuple(of_query.pieces[number] for number in first),
            of_query.weights[first],
            of_text.weights[second],
            tuple(of_query.in_text[number] for number in first),
            tuple(of_text.in_text[number] for number in second),
        )

    @property
    def nbytes(self) -> int:
        return self.index.nbytes

    def scores_of(self, weights: sparse.csr_matrix) -> Float32:
        """The dot product of a query's weights [1, vocabulary] with those of every sentence, float32 [sentence]."""
        result: Float32 = (weights @ self.postings).toarray()[0]
        return result

    def _pieces(self, text: str, weights: sparse.csr_matrix, role: Role) -> ExpandedPieces:
        return self.backend.expanded_pieces(text, role=role, max_length=self.max_length, weights=weights.toarray()[0])


@dataclass(frozen=True, eq=False)
class QueriesRanker:
    """A corpus ranked for queries whose weights are known."""

    corpus: SpladeRanker
    weights: sparse.csr_matrix  # [query, vocabulary]
    rows: dict[str, int]  # of the queries

    def scores(self, query: str) -> Float32:
        """float32 [sentence]. Raises KeyError for a query that was not given."""
        return self.corpus.scores_of(self.weights[self.rows[query]])
