"""Vectors to search."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def numbers() -> np.ndarray:
    """600 random vectors, float32 [sentence, dim]."""
    return np.random.default_rng(1).normal(size=(600, 24)).astype(np.float32)
