"""How similar unrelated tokens are in a model is measured once it is loaded: of few sentences where nobody reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from components.retrieval.corpora import demo
from dashboard import caching

SENTENCES = 60


@contextmanager
def of_few_sentences() -> Iterator[None]:
    """Models that the pages load within it are measured on the demo's first sentences; the results are forgotten after it.

    The models that pages show by default must be loaded before.
    """
    known, whole = set(caching._baselines()._kept), demo.demo_sentences
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "demo_sentences", lambda: whole()[:SENTENCES])
        yield
    for key in set(caching._baselines()._kept) - known:
        caching._baselines()._kept.pop(key)
