"""Word rankings: search as it was before vectors, and what vectors still have to surpass.

- bag of words: cosine of word counts. Frequent words count as much as rare ones.
- TF-IDF: cosine of counts weighted by how few sentences contain the word (Salton and Buckley 1988).
- LSA: TF-IDF reduced to a few dimensions by SVD (Deerwester et al. 1990), so that words which occur together match.
- BM25: TF-IDF with saturation and length normalisation (Robertson and Zaragoza 2009; Lucene's variant, k1 1.5, b 0.75).
- Jelinek-Mercer: the log-probability of the query under each sentence's smoothed word model (Zhai and Lafferty 2001).
- static vectors: the mean of context-free word vectors, cosine (components.retrieval.search.static_vectors).

All but LSA and static vectors compare only the words themselves: "erupted" and "eruption" have nothing in common. All
use one definition of a word, so that rankings differ only by their method: components.retrieval.search.words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np

from components.analysis.why.ledger import Term
from components.arrays import Float32, Int64, unit
from components.errors import InputError
from components.retrieval.search.score_split import ScorePart, ScoreSplit, split_by_shared_words
from components.retrieval.search.words import spans_of_words
from components.words.unicode_words import words

if TYPE_CHECKING:
    from scipy import sparse

Kind = Literal["bow", "tfidf", "lsa", "bm25", "jm"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TITLES: dict[str, str] = {
    "bow": "Bag of words",
    "tfidf": "TF-IDF",
    "lsa": "LSA",
    "bm25": "BM25",
    "jm": "Jelinek-Mercer",
    "static": "Static word vectors",
}
LSA_DIMENSIONS = 100
K1, B = 1.5, 0.75
LAMBDA = 0.1  # the weight of the corpus in Jelinek-Mercer: 0.1 suits short queries (Zhai and Lafferty 2001)


class Ranker(Protocol):
    """A way to score every sentence of a corpus for a query."""

    title: str

    def scores(self, query: str) -> Float32:
        """float32 [sentence], the higher the better."""
        ...

    def pair_scores(self, queries: Sequence[str], sentences: Int64) -> Float32:
        """The score of one sentence [pair] for each query [pair], float32 [pair], without scoring all sentences."""
        ...

    def floor(self, query: str) -> float:
        """The score of a sentence that has nothing in common with the query: what has no more is not found."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory kept for the corpus."""
        ...


class WordRanker(Ranker, Protocol):
    """A ranking by words, whose scores are sums over them."""

    def bounds(self, query: str) -> tuple[float, float]:
        """The `floor`, and a score that no sentence of the corpus can surpass.

        For cosines 0 and 1; else the second is that of a sentence in which each word counts as much as it does anywhere.
        """
        ...

    def split(self, query: str, text: str, row: int) -> ScoreSplit:
        """What each word adds to the score of a sentence of the corpus; `text` is that sentence."""
        ...


def make_ranker(kind: Kind, texts: Sequence[str]) -> WordRanker:
    """A ranker over these sentences. Raises InputError for a corpus without a single word."""
    makers: dict[str, Callable[[Sequence[str]], WordRanker]] = {
        "bow": BagOfWords,
        "tfidf": TfIdf,
        "lsa": LatentSemantics,
        "bm25": BM25,
        "jm": JelinekMercer,
    }
    if kind not in makers:
        raise ValueError(f"unknown ranker {kind!r}; expected one of {', '.join(KINDS)}")
    try:
        return makers[kind](texts)
    except ValueError as problem:
        if "empty vocabulary" not in str(problem):
            raise
        raise InputError(
            "The corpus contains no words.", "A word ranking needs sentences with words.", "Choose another corpus."
        ) from problem


class BagOfWords:
    """Cosine of word counts; with idf weights it is TF-IDF."""

    title = TITLES["bow"]
    _idf = False

    def __init__(self, texts: Sequence[str]) -> None:
        self._vectorizer = _weights(idf=self._idf)
        self._matrix = self._vectorizer.fit_transform(texts)  # [sentence, word], rows of length 1

    def scores(self, query: str) -> Float32:
        weights = self._vectorizer.transform([query])
        return np.asarray((self._matrix @ weights.T).todense(), np.float32).ravel()

    def pair_scores(self, queries: Sequence[str], sentences: Int64) -> Float32:
        weights = self._vectorizer.transform(queries)
        return np.asarray(weights.multiply(self._matrix[sentences]).sum(axis=1), np.float32).ravel()

    def floor(self, query: str) -> float:
        return 0.0

    def bounds(self, query: str) -> tuple[float, float]:
        return self.floor(query), 1.0

    def split(self, query: str, text: str, row: int) -> ScoreSplit:
        products = self._vectorizer.transform([query]).multiply(self._matrix[[row]]).tocsr()  # [1, word]
        columns = self._vectorizer.vocabulary_
        values = {
            word: float(products[0, columns[word]]) if word in columns else 0.0 for word in dict.fromkeys(words(query))
        }
        return _split_by_shared(self, query, text, row, values)

    @property
    def nbytes(self) -> int:
        return _sparse_bytes(self._matrix)


class TfIdf(BagOfWords):
    """TF-IDF with scikit-learn's smoothed idf, ln((1 + n) / (1 + df)) + 1."""

    title = TITLES["tfidf"]
    _idf = True


class LatentSemantics:
    """TF-IDF in at most 100 dimensions by an exact SVD (ARPACK): the same corpus gives the same scores.

    Randomised solvers are faster, but their few iterations find only approximate dimensions, which differ by seed. Each
    dimension's sign is free, and scikit-learn fixes it; no score depends on it.
    """

    title = TITLES["lsa"]

    def __init__(self, texts: Sequence[str]) -> None:
        from scipy import sparse
        from sklearn.decomposition import TruncatedSVD

        self._vectorizer = _weights(idf=True)
        matrix = self._vectorizer.fit_transform(texts)
        count = max(1, min(LSA_DIMENSIONS, min(matrix.shape) - 1))
        self._svd = TruncatedSVD(count, algorithm="arpack", random_state=0)  # the seed draws the solver's first vector
        # One sentence, or a vocabulary of one word, cannot be reduced.
        is_reduced = min(matrix.shape) > 1
        self._fold = self._svd.transform if is_reduced else sparse.csr_matrix.toarray
        if is_reduced:
            with np.errstate(divide="ignore", invalid="ignore"):  # the share of variance where all texts are equal
                self._svd.fit(matrix)
        self._vectors = self._directions(matrix)

    def scores(self, query: str) -> Float32:
        vector = self._directions(self._vectorizer.transform([query]))[0]
        return np.asarray(self._vectors @ vector, np.float32)

    def pair_scores(self, queries: Sequence[str], sentences: Int64) -> Float32:
        vectors = self._directions(self._vectorizer.transform(queries))
        return np.asarray(np.einsum("pd,pd->p", vectors, self._vectors[sentences]), np.float32)

    def floor(self, query: str) -> float:
        return 0.0

    def bounds(self, query: str) -> tuple[float, float]:
        return self.floor(query), 1.0

    def split(self, query: str, text: str, row: int) -> ScoreSplit:
        direction = self._directions(self._vectorizer.transform([query]))[0]
        sides = [self._parts(query, self._vectors[row]), self._parts(text, direction)]
        return ScoreSplit(_pair_score(self, query, row), sides[0], sides[1], (), (query, text))

    def _parts(self, text: str, other: Float32) -> tuple[ScorePart, ...]:
        """What each word of a text adds to the cosine with the direction of the `other` [dimension]."""
        from scipy import sparse

        weights = self._vectorizer.transform([text])
        folded = np.asarray(self._fold(weights), np.float64)[0]
        length = float(np.linalg.norm(folded)) or 1.0
        columns = self._vectorizer.vocabulary_
        parts = []
        for word, spans in spans_of_words(text).items():
            value = 0.0
            if word in columns:
                column = columns[word]
                alone = sparse.csr_matrix(([weights[0, column]], ([0], [column])), weights.shape)
                value = float(np.asarray(self._fold(alone), np.float64)[0] @ other) / length
            parts.append(ScorePart(word, "word", spans, value))
        return tuple(parts)

    @property
    def nbytes(self) -> int:
        folding = getattr(self._svd, "components_", np.empty(0))  # from words to dimensions
        return self._vectors.nbytes + folding.nbytes

    def _directions(self, matrix: sparse.csr_matrix) -> Float32:
        return unit(np.asarray(self._fold(matrix), np.float32))


class BM25:
    """Robertson and Zaragoza 2009 in Lucene's form, by bm25s."""

    title = TITLES["bm25"]

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        tokens = [words(text) for text in texts]
        if not any(tokens):
            raise ValueError("empty vocabulary")
        self._index = bm25s.BM25(method="lucene", k1=K1, b=B)
        self._index.index(tokens, show_progress=False)
        self._count = len(texts)

    def scores(self, query: str) -> Float32:
        query_words = words(query)
        return np.asarray(self._index.get_scores(query_words) if query_words else np.zeros(self._count), np.float32)

    def pair_scores(self, queries: Sequence[str], sentences: Int64) -> Float32:
        from scipy import sparse

        # `get_scores` scores every sentence: with it 20,000 pairs of 20,000 sentences take 5.5 s, this way 0.6 s.
        stored = self._index.scores
        shape = (self._count, len(stored["indptr"]) - 1)
        rows = sparse.csc_matrix((stored["data"], stored["indices"], stored["indptr"]), shape=shape).tocsr()
        columns = [self._index.get_tokens_ids(words(query)) for query in queries]
        return np.array([_row_sum(rows, *pair) for pair in zip(sentences, columns, strict=True)], np.float32)

    def floor(self, query: str) -> float:
        return 0.0

    def bounds(self, query: str) -> tuple[float, float]:
        return 0.0, float(sum(max(self._postings(word)[1], default=0.0) for word in words(query)))

    def split(self, query: str, text: str, row: int) -> ScoreSplit:
        query_words = words(query)
        values = {}
        for word in dict.fromkeys(query_words):
            rows, scores = self._postings(word)
            values[word] = query_words.count(word) * sum(float(score) for score in scores[rows == row])
        return _split_by_shared(self, query, text, row, values)

    def _postings(self, word: str) -> tuple[np.ndarray, np.ndarray]:
        """The sentences that have a word, and what it adds to the score of each, [sentence that has it] both."""
        stored = self._index.scores
        columns = self._index.get_tokens_ids([word])
        if not len(columns):
            return np.empty(0, np.int64), np.empty(0)
        place = slice(stored["indptr"][columns[0]], stored["indptr"][columns[0] + 1])
        return stored["indices"][place], stored["data"][place]

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._index.scores.values() if isinstance(part, np.ndarray))


class JelinekMercer:
    """log P(query | sentence) with P(w) = (1 - lambda) count(w) / length + lambda corpus share of w.

    Words that are not in the corpus cannot distinguish sentences and are ignored. Scores are negative; an empty query
    gives 0 for all.
    """

    title = TITLES["jm"]

    def __init__(self, texts: Sequence[str], mixing: float = LAMBDA) -> None:
        from scipy import sparse
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(tokenizer=words, lowercase=False, token_pattern=None, dtype=np.float64)
        counts = vectorizer.fit_transform(texts)  # [sentence, word]
        lengths = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1)
        self._vocabulary: dict[str, int] = vectorizer.vocabulary_
        self._corpus = np.asarray(counts.sum(axis=0)).ravel() / counts.sum()  # [word]
        self._shares = sparse.csc_matrix(sparse.diags(1 / lengths) @ counts)  # [sentence, word]
        self._mixing = mixing
        self._count = len(texts)

    def scores(self, query: str) -> Float32:
        total = np.zeros(self._count)
        for word in words(query):
            column = self._vocabulary.get(word)
            if column is not None:
                share = self._shares[:, [column]].toarray().ravel()
                total += np.log((1 - self._mixing) * share + self._mixing * self._corpus[column])
        return total.astype(np.float32)

    def pair_scores(self, queries: Sequence[str], sentences: Int64) -> Float32:
        rows = self._shares.tocsr()
        result = np.zeros(len(queries))
        for number, (query, sentence) in enumerate(zip(queries, sentences, strict=True)):
            columns = [self._vocabulary[word] for word in words(query) if word in self._vocabulary]
            shares = np.array([_row_sum(rows, sentence, [column]) for column in columns])
            result[number] = (
                np.log((1 - self._mixing) * shares + self._mixing * self._corpus[columns]).sum() if columns else 0
            )
        return result.astype(np.float32)

    def floor(self, query: str) -> float:
        return float(sum(self._without(word) for word in words(query) if word in self._vocabulary))

    def bounds(self, query: str) -> tuple[float, float]:
        known, floor = [word for word in words(query) if word in self._vocabulary], self.floor(query)
        most = (float(self._shares[:, [self._vocabulary[word]]].max()) for word in known)
        return floor, floor + sum(self._gain(word, share) for word, share in zip(known, most, strict=True))

    def split(self, query: str, text: str, row: int) -> ScoreSplit:
        query_words = words(query)
        values = {}
        for word in dict.fromkeys(query_words):
            column = self._vocabulary.get(word)
            share = 0.0 if column is None else float(self._shares[row, column])
            values[word] = query_words.count(word) * self._gain(word, share) if share else 0.0
        without = Term("any sentence without these words", self.bounds(query)[0])
        return _split_by_shared(self, query, text, row, values, [without])

    def _without(self, word: str) -> float:
        """What a known word of the query adds to the score of a sentence that does not have it."""
        return float(np.log(self._mixing * self._corpus[self._vocabulary[word]]))

    def _gain(self, word: str, share: float) -> float:
        """What a known word adds beyond that where it has this share of a sentence's words."""
        smoothed = self._mixing * self._corpus[self._vocabulary[word]]
        return float(np.log((1 - self._mixing) * share + smoothed)) - self._without(word)

    @property
    def nbytes(self) -> int:
        return _sparse_bytes(self._shares) + self._corpus.nbytes


def _pair_score(ranker: Ranker, query: str, row: int) -> float:
    return float(ranker.pair_scores([query], np.array([row], np.int64))[0])


def _split_by_shared(
    ranker: Ranker, query: str, text: str, row: int, values: dict[str, float], terms: Sequence[Term] = ()
) -> ScoreSplit:
    """The split of a score that is a sum over the query's words, `values`, and the `terms`."""
    spans = spans_of_words(query), spans_of_words(text)
    return split_by_shared_words(_pair_score(ranker, query, row), values, (query, text), spans, terms)


def _row_sum(rows: sparse.csr_matrix, row: int, columns: Sequence[int]) -> float:
    """The sum of some columns of a row; a repeated column counts each time."""
    start, end = rows.indptr[row], rows.indptr[row + 1]
    values = dict(zip(rows.indices[start:end].tolist(), rows.data[start:end].tolist(), strict=True))
    return sum(values.get(column, 0.0) for column in columns)


def _sparse_bytes(matrix: sparse.csr_matrix | sparse.csc_matrix) -> int:
    return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)


def _weights(idf: bool) -> Any:
    """scikit-learn's word counts as rows of length 1, with or without idf weights."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(tokenizer=words, lowercase=False, token_pattern=None, dtype=np.float32, use_idf=idf)
