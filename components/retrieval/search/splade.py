"""SPLADE as a ranking: the dot product of the weights that query and sentence give to the pieces of the vocabulary.

It compares pieces, as BM25 does, but a trained model says how much each counts and adds pieces that a text does not
contain (Formal et al. 2021; components.model.embedding.sparse_vectors). The score is a sum over the pieces that both texts
have, so that it can be shown in full:

    score(query, sentence) = sum over pieces v of query weight v * sentence weight v

For a model that was published with the cosine, the weights of each text are divided by their Euclidean length first, so
that the sum is the cosine.

The weights are kept by piece, as a search engine keeps its postings: for a query of 30 pieces, 36,000 sentences of 150
weights each take 0.1 ms (by sentence 12 ms), far less than the pass of the query through the model. What costs is the
pass of every sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import Float32, Int64
from components.jobs import Cache, IsStopped, ReportProgress

if TYPE_CHECKING:
    from scipy import sparse

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
    """The weights of a corpus, without the model that gave them. Equal sentences share them."""

    postings: sparse.csr_matrix  # float32 [vocabulary, text]: the weights of the different texts by piece
    text_of: Int64 | None  # [sentence]: the number of its text; None where all sentences differ
    max_length: int | None  # tokens of a text; None: the model's own maximum
    of_queries: Cache[sparse.csr_matrix] = field(default_factory=lambda: Cache(_KEPT_QUERIES))  # [1, vocabulary]

    @classmethod
    def of_texts(
        cls,
        backend: Backend,
        texts: Sequence[str],
        max_length: int | None = None,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> SpladeIndex:
        """Every text goes through the model once, equal ones together, so that they tie exactly.

        `progress(done, total)` counts different texts. Raises ModelError for a model that is not SPLADE, InputError for
        more weights than are kept, Stopped.
        """
        first: dict[str, int] = {}
        numbers = [first.setdefault(text, len(first)) for text in texts]
        weights = backend.sparse_matrix(
            list(first), role="document", max_length=max_length, progress=progress, is_stopped=is_stopped
        )
        text_of = None if len(first) == len(texts) else np.array(numbers, np.int64)
        return cls(_compared(weights, backend).T.tocsr(), text_of, max_length)

    @property
    def nbytes(self) -> int:
        arrays = (self.postings.data, self.postings.indices, self.postings.indptr, self.text_of)
        return sum(int(array.nbytes) for array in arrays if array is not None)

    def texts_of(self, sentences: Int64) -> Int64:
        """The number of each sentence's text among the different ones."""
        return sentences if self.text_of is None else self.text_of[sentences]


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

    def floor(self, query: str) -> float:
        """The score of a sentence that shares no piece with the query."""
        return 0.0

    def pair_scores(self, queries: Sequence[str], sentences: Int64) -> Float32:
        """The score of one sentence [pair] for each query [pair], float32 [pair]."""
        products = self.query_weights(queries).multiply(self.postings[:, self.index.texts_of(sentences)].T)
        return np.asarray(products.sum(axis=1), np.float32).ravel()

    def query_weights(self, queries: Sequence[str]) -> sparse.csr_matrix:
        """The weights of queries, float32 [query, vocabulary]; those of a single one are kept for a while."""

        def compute() -> sparse.csr_matrix:
            weights = self.backend.sparse_matrix(queries, role="query", max_length=self.max_length)
            return _compared(weights, self.backend)

        return self.index.of_queries.get(queries[0], compute) if len(queries) == 1 else compute()

    def for_queries(
        self,
        queries: Sequence[str],
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> QueriesRanker:
        """The same for queries that go through the model together. `progress` counts them. Raises Stopped."""
        distinct = list(dict.fromkeys(queries))
        weights = self.backend.sparse_matrix(
            distinct, role="query", max_length=self.max_length, progress=progress, is_stopped=is_stopped
        )
        return QueriesRanker(self, _compared(weights, self.backend), {query: row for row, query in enumerate(distinct)})

    def query_pieces(self, query: str) -> ExpandedPieces:
        """All pieces of a query with their weights, the heaviest first."""
        return self._pieces(query, self.query_weights([query]), "query")

    def sentence_pieces(self, text: str, row: int) -> ExpandedPieces:
        """All pieces of a sentence of the corpus; `text` is that sentence. It costs no forward pass."""
        return self._pieces(text, self.postings[:, self.index.texts_of(np.array([row]))].T, "document")

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
        of_texts: Float32 = (weights @ self.postings).toarray()[0]
        return of_texts if self.index.text_of is None else of_texts[self.index.text_of]

    def _pieces(self, text: str, weights: sparse.csr_matrix, role: Role) -> ExpandedPieces:
        return self.backend.expanded_pieces(text, role=role, max_length=self.max_length, weights=weights.toarray()[0])


def _compared(weights: sparse.csr_matrix, backend: Backend) -> sparse.csr_matrix:
    """Weights [text, vocabulary] whose dot product is the model's similarity."""
    from scipy import sparse

    if backend.splade is None or backend.splade.similarity != "cosine":
        return weights
    lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1), np.float32).ravel())
    factors = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)  # a text without weights keeps none
    return sparse.csr_matrix(
        (weights.data * np.repeat(factors, np.diff(weights.indptr)), weights.indices, weights.indptr), weights.shape
    )


@dataclass(frozen=True, eq=False)
class QueriesRanker:
    """A corpus ranked for queries whose weights are known."""

    corpus: SpladeRanker
    weights: sparse.csr_matrix  # [query, vocabulary]
    rows: dict[str, int]  # of the queries

    def scores(self, query: str) -> Float32:
        """float32 [sentence]. Raises KeyError for a query that was not given."""
        return self.corpus.scores_of(self.weights[self.rows[query]])

    def floor(self, query: str) -> float:
        return self.corpus.floor(query)
