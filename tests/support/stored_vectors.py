"""Vectors with clusters as sentences have them, and an index's files around vectors."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from components.retrieval.engines.contract import StoredVectors
from components.retrieval.search.exact import ExactSearch


def stored_in(folder: Path, vectors: np.ndarray) -> StoredVectors:
    """Vectors [sentence, dim] as those of an index in this folder."""
    folder.mkdir(exist_ok=True, parents=True)
    identity = hashlib.sha256(np.ascontiguousarray(vectors).tobytes()).hexdigest()
    return StoredVectors(ExactSearch(vectors), identity, folder, "layer-01-mean")


def clustered(count: int, dim: int = 32, clusters: int = 25, seed: int = 0) -> np.ndarray:
    """Vectors [sentence, dim] around a few centres, of different lengths and with a common part, float32."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(clusters, dim)) + 1.0
    noise = 0.5 * rng.normal(size=(count, dim))
    return ((centres[rng.integers(clusters, size=count)] + noise) * rng.uniform(0.5, 2, (count, 1))).astype(np.float32)
