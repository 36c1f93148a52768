"""Static word vectors: one vector per word, independent of its context (word2vec, GloVe, fastText).

The vector of a sentence is the mean of its words' vectors; unknown words are left out. A BERT has such vectors too: its
input embeddings, one for each piece, before any block adds context. They are used if there is no file.

Text files are read: one word per line, then its numbers. A first line with two numbers (how many vectors, and their
length), as word2vec and fastText write it, is skipped. Binary files are refused, since reading pickles can run code.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from components.arrays import Float32, Int64, unit
from components.errors import InputError
from components.retrieval.corpora.readers.table import unreadable
from components.retrieval.search.lexical import TITLES
from components.retrieval.search.words import words

if TYPE_CHECKING:
    from components.model.backend import Backend

MAX_WORDS = 200_000
MAX_BYTES = 2 << 30  # decompressed
_BLOCK = 4_096  # texts encoded together


@dataclass(frozen=True, eq=False)
class StaticVectors:
    """Vectors of words."""

    name: str
    rows: Mapping[str, int]  # word to row of the matrix
    matrix: Float32  # [word, dim]
    bad_lines: int = 0

    def find(self, word: str) -> int | None:
        """The row of a word as typed, else in lower case; None for an unknown word."""
        row = self.rows.get(word)
        return self.rows.get(word.lower()) if row is None else row


class StaticRanker:
    """Cosine of mean word vectors."""

    title = TITLES["static"]

    def __init__(self, vectors: Float32, encode: Callable[[str], Float32]) -> None:
        self._vectors = vectors  # [sentence, dim], length 1; 0 without a known word
        self._encode = encode

    def scores(self, query: str) -> Float32:
        return np.asarray(self._vectors @ self._encode(query), np.float32)

    def pair_scores(self, queries: Sequence[str], sentences: Int64) -> Float32:
        vectors = np.stack([self._encode(query) for query in queries])
        return np.asarray(np.einsum("pd,pd->p", vectors, self._vectors[sentences]), np.float32)

    @property
    def nbytes(self) -> int:
        return self._vectors.nbytes

    @classmethod
    def of_words(cls, vectors: StaticVectors, texts: Sequence[str]) -> StaticRanker:
        """From a file of word vectors."""

        def encode(text: str) -> Float32:
            rows = [row for word in words(text) if (row := vectors.find(word)) is not None]
            return _direction(vectors.matrix, rows)

        return cls(np.array([encode(text) for text in texts], np.float32), encode)

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
            rows, _ = tokenization.encode_many(texts[start : start + _BLOCK])
            for number, ids in enumerate(rows, start=start):
                vectors[number] = mean(ids)
        return cls(vectors, lambda text: mean(tokenization.encode_many([text])[0][0]))


def _direction(matrix: Float32, rows: Sequence[int]) -> Float32:
    """The mean of some rows of [word, dim], scaled to length 1; zeros without rows."""
    return unit(matrix[list(rows)].mean(axis=0) if rows else np.zeros(matrix.shape[1], np.float32))


def read_static_vectors(source: Path | bytes, name: str, max_words: int = MAX_WORDS) -> StaticVectors:
    """The first `max_words` word vectors of a text file or its bytes, with or without gzip. Raises InputError."""
    try:
        raw = source if isinstance(source, bytes) else source.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(raw)) as file:
                raw = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise unreadable(name, problem) from problem
    if len(raw) > MAX_BYTES:
        raise InputError(
            f"{name} has more than {MAX_BYTES / 1e9:,.0f} GB of text.",
            "A smaller file was expected; only its first 200,000 words are used.",
            "Keep only the first 200,000 lines of the file.",
        )
    if b"\x00" in raw[:4096]:
        raise InputError(
            f"{name} is a binary file.",
            "Word vectors as text were expected: on each line a word, then its numbers.",
            "Convert it, for example with gensim: KeyedVectors.load_word2vec_format(..., binary=True), then "
            "save_word2vec_format(..., binary=False).",
        )
    row_of: dict[str, int] = {}
    vectors: list[np.ndarray] = []
    bad, dim = 0, 0
    for line in raw.decode("utf-8-sig", "replace").split("\n"):
        parts = line.rstrip().split(" ")
        if not line.strip() or (not vectors and len(parts) == 2 and all(part.isdigit() for part in parts)):
            continue
        try:
            numbers = np.array(parts[1:], np.float32)
        except ValueError:
            numbers = np.empty(0, np.float32)
        if len(numbers) < 2 or len(numbers) != (dim or len(numbers)) or not np.isfinite(numbers).all():
            bad += 1
            continue
        dim = len(numbers)
        if row_of.setdefault(parts[0], len(vectors)) == len(vectors):
            vectors.append(numbers)
        if len(vectors) >= max_words:
            break
    if not vectors:
        raise InputError(
            f"{name} has no line with a word and its numbers.",
            "Word vectors as text were expected, such as GloVe's or fastText's .vec files.",
            "Choose another file.",
        )
    return StaticVectors(name, row_of, np.vstack(vectors), bad)
