"""Corpora of random words that tiny models know."""

from __future__ import annotations

import numpy as np

from components.retrieval.corpora.corpus import Corpus, ReadReport
from tests.support.tiny import WORDS

PLAIN = [word for word in WORDS if word.isalpha()]


def sentences(count: int, seed: int = 0) -> Corpus:
    numbers = np.random.default_rng(seed)
    texts = tuple(" ".join(numbers.choice(PLAIN, numbers.integers(1, 9))) for _ in range(count))
    return Corpus("made up", texts, {"label": tuple(str(at % 3) for at in range(count))}, ReadReport(count, count))
