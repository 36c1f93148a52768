"""How similar unrelated tokens are in a model is measured once it is loaded: of few sentences where nobody reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from components.model.catalog import EMBEDDED_KEY
from components.retrieval.corpora import demo
from dashboard import caching

SENTENCES = 60


@contextmanager
def of_few_sentences() -> Iterator[None]:
    """All models but the default one are measured on the demo's first sentences within it, and what was known is restored.

    The default model must be measured before.
    """
    cache, whole = caching._baselines(), demo.demo_sentences
    before = {key: cache.find(key) for key in list(cache._kept) if key[0] != EMBEDDED_KEY}
    cache.drop(before.__contains__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "demo_sentences", lambda: whole()[:SENTENCES])
        yield
    cache.drop(lambda key: key[0] != EMBEDDED_KEY)
    for key, measured in before.items():
        cache.put(key, measured)
