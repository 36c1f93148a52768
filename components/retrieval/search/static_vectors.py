"""Static word vectors: one vector per word, independent of its context (word2vec, GloVe, fastText).

The vector of a sentence is the mean of its words' vectors; unknown words are left out. A BERT has such vectors too: its
input embeddings, one for each piece, before any block adds context. They are used if there is no file.

Text files are read: one word per line, then its numbers. A first line with two numbers (how many vectors, and their
length), as word2vec and fastText write it, is skipped. Binary files are refused, since reading pickles can run code.
A file is read a block at a time and no further than its limits, which are below.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import Float32, Float64, Int64, unit
from components.errors import InputError
from components.jobs import IsStopped
from components.retrieval.corpora.readers.limits import MOST_ROW_CHARACTERS, content_blocks, never
from components.retrieval.search.lexical import TITLES
from components.retrieval.search.score_split import ScorePart, ScoreSplit
from components.retrieval.search.words import spans_of_words
from components.sizes import in_words
from components.words.unicode_words import words

if TYPE_CHECKING:
    from components.model.backend import Backend

MAX_WORDS = 200_000
MAX_BYTES = 2 << 30  # decompressed; they are not kept
MAX_VECTOR_BYTES = 512 << 20  # that are kept: 200,000 words with 671 numbers
MOST_NUMBERS = 4_096  # of a vector; published ones have 50 to 1,024
LINES_PER_WORD = 10  # that are read for each word of the limit; of a good file each line is a word
_WORD_BYTES = 200  # of an entry of a mapping from a word to its row
_BLOCK = 4_096  # texts encoded together


@dataclass(frozen=True, eq=False)
class StaticVectors:
    """Vectors of words."""

    name: str
    rows: Mapping[str, int]  # word to row of the matrix
    matrix: Float32  # [word, dim]
    bad_lines: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the vectors and the words, about."""
        return self.matrix.nbytes + _WORD_BYTES * len(self.rows)

    def find(self, word: str) -> int | None:
        """The row of a word as typed, else in lower case; None for an unknown word."""
        row = self.rows.get(word)
        return self.rows.get(word.lower()) if row is None else row


@dataclass(frozen=True, eq=False)
class WordSums:
    """The words of a text that have vectors, and the sum of each word's vectors over its places."""

    words: tuple[str, ...]
    spans: tuple[tuple[tuple[int, int], ...], ...]  # of each word: where it stands
    sums: Float64  # [word, dim]

    def towards(self, other: Float32) -> tuple[ScorePart, ...]:
        """What each word adds to the cosine of the text with a vector of length 1 [dim]."""
        length = float(np.linalg.norm(self.sums.sum(axis=0))) or 1.0
        values = self.sums @ other.astype(np.float64) / length
        return tuple(
            ScorePart(word, "word", spans, float(value))
            for word, spans, value in zip(self.words, self.spans, values, strict=True)
        )


class StaticRanker:
    """Cosine of mean word vectors."""

    title = TITLES["static"]

    def __init__(self, vectors: Float32, encode: Callable[[str], Float32], parts: Callable[[str], WordSums]) -> None:
        self._vectors = vectors  # [sentence, dim], length 1; 0 without a known word
        self._encode = encode
        self._parts = parts

    def scores(self, query: str) -> Float32:
        return np.asarray(self._vectors @ self._encode(query), np.float32)

    def pair_scores(self, queries: Sequence[str], sentences: Int64) -> Float32:
        vectors = np.stack([self._encode(query) for query in queries])
        return np.asarray(np.einsum("pd,pd->p", vectors, self._vectors[sentences]), np.float32)

    def floor(self, query: str) -> float:
        return 0.0

    def bounds(self, query: str) -> tuple[float, float]:
        return self.floor(query), 1.0

    def split(self, query: str, text: str, row: int) -> ScoreSplit:
        """What each word adds to the cosine with a sentence of the corpus, which is `text`; of a model's pieces, each piece."""
        score = float(self.pair_scores([query], np.array([row], np.int64))[0])
        of_query, of_text = self._parts(query), self._parts(text)
        return ScoreSplit(
            score, of_query.towards(self._vectors[row]), of_text.towards(self._encode(query)), (), (query, text)
        )

    @property
    def nbytes(self) -> int:
        return self._vectors.nbytes

    @classmethod
    def of_words(cls, vectors: StaticVectors, texts: Sequence[str]) -> StaticRanker:
        """From a file of word vectors."""

        def encode(text: str) -> Float32:
            rows = [row for word in words(text) if (row := vectors.find(word)) is not None]
            return _direction(vectors.matrix, rows)

        def parts(text: str) -> WordSums:
            places = spans_of_words(text)
            rows = {word: row for word in places if (row := vectors.find(word)) is not None}
            counts = np.array([len(places[word]) for word in rows], np.float64)
            sums = vectors.matrix[np.array(list(rows.values()), np.int64)] * counts[:, None]
            return WordSums(tuple(rows), tuple(places[word] for word in rows), sums)

        return cls(np.array([encode(text) for text in texts], np.float32), encode, parts)

    @classmethod
    def of_model(cls, backend: Backend, texts: Sequence[str]) -> StaticRanker:
        """From a model's own input embeddings: the mean over a text's pieces, special tokens left out."""
        matrix = backend.word_embeddings()  # [piece, dim]
        tokenization = backend.tokenization  # and not the backend: a cached ranker must not keep a model in memory
        before, after = (len(part) for part in tokenization.frame)

        def mean(ids: Sequence[int]) -> Float32:
            return _direction(matrix, list(ids)[before : len(ids) - after])

        vectors = np.empty((len(texts), matrix.shape[1]), np.float32)
        for start in range(0, len(texts), _BLOCK):
            # One by one: who reads a Stoppable can be stopped between two of them.
            rows, _ = tokenization.encode_many(texts[row] for row in range(start, min(start + _BLOCK, len(texts))))
            for number, ids in enumerate(rows, start=start):
                vectors[number] = mean(ids)

        def parts(text: str) -> WordSums:
            ids = tokenization.encode_many([text])[0][0]
            ids = list(ids)[before : len(ids) - after]
            read = tokenization.tokenize(tokenization.beginning(text))
            tokens = [token for token in read.tokens if not token.special]
            pieces = [token.piece for token in tokens[: len(ids)]]
            spans = [((token.start, token.end),) for token in tokens[: len(ids)]]
            missing = len(ids) - len(pieces)
            return WordSums((*pieces, *["…"] * missing), (*spans, *[()] * missing), np.asarray(matrix[ids], np.float64))

        return cls(vectors, lambda text: mean(tokenization.encode_many([text])[0][0]), parts)


def _direction(matrix: Float32, rows: Sequence[int]) -> Float32:
    """The mean of some rows of [word, dim], scaled to length 1; zeros without rows."""
    return unit(matrix[list(rows)].mean(axis=0) if rows else np.zeros(matrix.shape[1], np.float32))


def read_static_vectors(
    source: Path | bytes, name: str, max_words: int = MAX_WORDS, is_stopped: IsStopped = never
) -> StaticVectors:
    """The first `max_words` word vectors of a text file or its bytes, with or without gzip.

    Raises InputError and Stopped.
    """
    row_of: dict[str, int] = {}
    matrix = np.empty(
        (0, 0), np.float32
    )  # [row, dim]: as many rows as are ever read; memory is taken as they are filled
    bad, dim, most_rows = 0, 0, max_words
    for number, line in enumerate(_lines(source, name, is_stopped), start=1):
        if number > LINES_PER_WORD * max_words:
            raise _too_large(name, f"more than {LINES_PER_WORD * max_words:,} lines")
        if number == 1 and "\0" in line[:4096]:
            raise InputError(
                f"{name} is a binary file.",
                "Word vectors must be text: on each line a word, then its numbers.",
                "Convert it, for example with gensim: KeyedVectors.load_word2vec_format(..., binary=True), then "
                "save_word2vec_format(..., binary=False).",
            )
        parts = line.rstrip().split(" ")
        if not line.strip() or (not dim and len(parts) == 2 and all(part.isdigit() for part in parts)):
            continue
        try:
            numbers = np.array(parts[1:], np.float32)
        except ValueError:
            numbers = np.empty(0, np.float32)
        if len(numbers) < 2 or len(numbers) != (dim or len(numbers)) or not np.isfinite(numbers).all():
            bad += 1
            continue
        if not dim:
            dim = len(numbers)
            if dim > MOST_NUMBERS:
                raise _too_large(name, f"vectors of {dim:,} numbers; at most {MOST_NUMBERS:,} are read")
            most_rows = MAX_VECTOR_BYTES // (4 * dim)
            matrix = np.empty((min(max_words, most_rows), dim), np.float32)
        row = len(row_of)
        if row_of.setdefault(parts[0], row) != row:
            continue
        if row >= most_rows:
            raise _too_large(
                name, f"vectors of {dim:,} numbers that take more than {in_words(MAX_VECTOR_BYTES, binary=True)}"
            )
        matrix[row] = numbers
        if len(row_of) >= max_words:
            break
    if not row_of:
        raise InputError(
            f"{name} has no line with a word and its numbers.",
            "Word vectors must be text, such as GloVe's or fastText's .vec files.",
            "Choose another file.",
        )
    matrix.resize((len(row_of), dim), refcheck=False)  # in place: the vectors are never held twice
    return StaticVectors(name, row_of, matrix, bad)


def _lines(source: Path | bytes, name: str, is_stopped: IsStopped) -> Iterator[str]:
    """The lines of a file, decompressed a block at a time. Raises InputError above the limits of bytes, and Stopped."""

    def check_size(size: int) -> None:
        if size > MAX_BYTES:
            raise _too_large(name, f"more than {MAX_BYTES / 1e9:,.0f} GB of text")

    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    for block in content_blocks(source, name, check_size, is_stopped):
        lines = (rest + decoder.decode(block)).split("\n")
        rest = lines.pop()
        if len(rest) > MOST_ROW_CHARACTERS:
            raise _too_large(name, f"a line of more than {MOST_ROW_CHARACTERS:,} characters")
        yield from lines
    yield rest + decoder.decode(b"", final=True)


def _too_large(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} has {reason}.",
        f"That is too large; only the first {MAX_WORDS:,} words of a file are used.",
        f"Keep only the first {MAX_WORDS:,} lines of the file, or choose vectors with fewer numbers.",
    )
