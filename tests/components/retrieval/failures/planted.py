"""Queries with something planted, and vectors that can fail by it: sums of one random vector for each word that is read."""

from __future__ import annotations

import random
import zlib

import numpy as np

from components.retrieval.corpora.demo import demo_corpus
from components.retrieval.evaluation.metrics import first_ranks
from components.retrieval.evaluation.pair_runs import Pairs, pairs_of_rows
from components.words.unicode_words import words

DIM = 48


def mistyped(word: str, numbers: random.Random) -> str:
    """A word with two neighbouring letters exchanged, or where they are equal, one of them left out."""
    place = numbers.randint(1, len(word) - 3)
    first, second = word[place : place + 2]
    rest = word[place + 2 :]
    return word[:place] + (second + first if first != second else first) + rest


def mistyped_query(query: str, numbers: random.Random, most: int = 3) -> str:
    """A query whose longest words are mistyped."""
    typed = query.split()
    for place in sorted(range(len(typed)), key=lambda place: -len(typed[place]))[:most]:
        if typed[place].isalpha() and len(typed[place]) >= 5:
            typed[place] = mistyped(typed[place].lower(), numbers)
    return " ".join(typed)


def own_words(text: str, count: int = 4) -> str:
    """The first longer words of a text, as a query that finds it."""
    return " ".join([word for word in words(text) if len(word) >= 5][:count])


def demo_texts(count: int) -> list[str]:
    return list(demo_corpus().texts[:count])


def vectors_of(texts: list[str] | tuple[str, ...], read: int = 10_000) -> np.ndarray:
    """[text, dim]: the sum of a random vector for each of the first `read` words, float32."""
    rows = []
    for text in texts:
        total = np.full(DIM, 1e-3)
        for word in words(text)[:read]:
            total = total + np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIM)
        rows.append(total)
    return np.array(rows, np.float32)


def pairs_of(texts: list[str], queries: list[str]) -> Pairs:
    return pairs_of_rows("planted", texts, queries)


def ranks_of(pairs: Pairs, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    return first_ranks(pairs.ranks_by_vectors(queries, documents))
