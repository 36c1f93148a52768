"""What the tests of the Pairs page's views share."""

from __future__ import annotations

import pytest

from components.model.backend import Backend
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, parse_model
from dashboard import caching


@pytest.fixture(scope="session")
def scorer() -> Backend:
    """The included cross-encoder, as the pages have it."""
    job = caching.models().request(parse_model(EMBEDDED_CROSS_ENCODER_KEY))
    assert job.finished.wait(120)
    result: Backend = job.result
    return result
