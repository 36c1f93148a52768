"""A model that is a table of random word vectors, and queries that it ranks badly for a known reason."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from components.model.embedding.options import EmbedOptions
from components.retrieval.evaluation.pair_runs import Pairs
from components.retrieval.failures.remedies import folds
from components.retrieval.failures.remedies.kinds import RemedyInput
from components.retrieval.failures.remedies.present import Cell, Present
from components.retrieval.failures.vocabulary import CorpusWords
from components.retrieval.rankings.ranking import Ranking
from components.words.unicode_words import words
from tests.components.retrieval.failures import planted

COUNT = 140
CELL: Cell = (2, "mean")
OPTIONS = EmbedOptions((CELL[0],), (CELL[1],), 64, "float32")
Embed = Callable[[Sequence[str], str], np.ndarray]  # texts and the prompt before them -> [text, dim]


def word_vectors(text: str) -> np.ndarray:
    """[word, dim]: a random vector for each word of a text."""
    rows = [np.random.default_rng(zlib.crc32(word.encode())).normal(size=planted.DIM) for word in words(text)]
    return np.array(rows, np.float32).reshape(len(rows), planted.DIM)


def plain(texts: Sequence[str], prompt: str) -> np.ndarray:
    """The words of a text, whatever the prompt."""
    return planted.vectors_of(list(texts))


def noise(count: int, size: float, seed: int = 0) -> np.ndarray:
    return (size * np.random.default_rng(seed).normal(size=(count, planted.DIM))).astype(np.float32)


def setting_of(
    texts: Sequence[str],
    queries: Sequence[str],
    embed: Embed = plain,
    documents: np.ndarray | None = None,
    cells: dict[Cell, Any] | None = None,
    **more: Any,
) -> RemedyInput:
    """What remedies are given, with the vectors of `embed`; `documents` [document, dim] replaces those of the texts."""
    pairs: Pairs = planted.pairs_of(list(texts), list(queries))

    def embedded(asked: Sequence[str], options: EmbedOptions, **_: Any) -> np.ndarray:
        return embed(asked, options.prompt)[None, None]

    def token_vectors(asked: Sequence[str], layer: int, max_length: int, *_: Any, role: str) -> list[np.ndarray]:
        return [word_vectors(text) for text in asked]

    backend = SimpleNamespace(
        embed=embedded,
        vector_size=lambda poolings: planted.DIM,
        late_interaction=None,
        own_token_vectors=token_vectors,
        sentence_config=SimpleNamespace(similarity="cosine"),
    )
    told = plain(pairs.documents.texts, "") if documents is None else documents
    vectors = {CELL: (embed(pairs.queries.texts, ""), told), **(cells or {})}
    ranks = pairs.ranks_by_vectors(*vectors[CELL])
    present = Present(cast("Any", backend), pairs, OPTIONS, OPTIONS, CELL, vectors, Ranking("now", ranks=ranks))
    known = CorpusWords(pairs.documents.texts)
    return RemedyInput(present, folds.halves(pairs.queries.texts), known, **more)
