"""What the tests of the views of pairs share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from components.model.backend import Backend
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, parse_model
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import embedding, reranking
from dashboard.jobs.embedding import EmbedRequest
from tests.support import baselines
from tests.support.pages import backend


@pytest.fixture(scope="module", autouse=True)
def _little_measured(_included_model: None) -> Iterator[None]:
    """The times of the cost curve are of few texts or known before; no page here has a baseline."""
    with pytest.MonkeyPatch.context() as patch, baselines.of_few_sentences():
        patch.setattr(embedding, "speed", lambda *_: (150.0, True))
        patch.setattr(reranking, "_TRIAL_PAIRS", 8)
        yield


@pytest.fixture(scope="session")
def demo_vectors() -> np.ndarray:
    """Those of the demo's sentences at the last layer as the pages search them, of length 1 [sentence, dim]."""
    job = caching.indexes().request(backend(), current.demo(), EmbedRequest(backend()).document_options())
    assert job.finished.wait(120)
    vectors = job.result.engine(6, "mean").vectors.astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def scorer() -> Backend:
    """The included cross-encoder, as the pages have it."""
    job = caching.models().request(parse_model(EMBEDDED_CROSS_ENCODER_KEY))
    assert job.finished.wait(120)
    result: Backend = job.result
    return result
