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
    kept, whole = caching._baselines()._kept, demo.demo_sentences
    before = {key: kept[key] for key in list(kept) if key[0] != EMBEDDED_KEY}
    for key in before:
        del kept[key]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "demo_sentences", lambda: whole()[:SENTENCES])
        yield
    for key in [key for key in kept if key[0] != EMBEDDED_KEY]:
        del kept[key]
    for key, measured in before.items():
        caching._baselines().put(key, measured)
