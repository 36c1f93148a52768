"""What is measured of a model that is loaded, how similar unrelated tokens are among it: of few sentences where nobody reads
it, and once for all tests that load a model of equal files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from components.analysis.similarity import baseline
from components.analysis.similarity.baseline import Baselines
from components.jobs import Cache
from components.model.backend import Backend
from components.model.catalog import EMBEDDED_KEY
from components.model.files import sources
from components.model.trace import Trace
from components.retrieval.corpora import demo
from dashboard import caching
from dashboard.jobs.stored import included_words
from dashboard.jobs.stored.included_words import Included

SENTENCES = 60
KEPT = 48  # results of models, of 3 MB at most for a tiny one


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


@contextmanager
def measured_once() -> Iterator[None]:
    """Within it a model whose files are those of another one, in whichever folder, has what was measured of that one once it
    was loaded, and what was read of the included sentences.

    The code itself measures each once, and the baseline of the default one whenever it is asked to. Nothing is kept of what
    fails or is stopped, and nothing is served to a test that gives passes of its own, or that has changed a model's files since
    it was loaded.
    """
    measure, read, passes = baseline.measure_sample, included_words._read, Backend.run
    known: Cache[Any] = Cache(KEPT)

    def once(key: Hashable, compute: Callable[[], Any]) -> Any:
        return known.get(key, compute) if Backend.run is passes else compute()

    def measure_once(run: Callable[[Sequence[str]], Trace], sample: Sequence[str]) -> Baselines:
        model = getattr(run, "__self__", None)
        identity = _identity(model) if isinstance(model, Backend) and model.spec.key != EMBEDDED_KEY else None
        if identity is None:
            return measure(run, sample)
        return once((identity, tuple(sample)), lambda: measure(run, sample))

    def read_once(model: Backend, *job: Any) -> Included:
        identity = _identity(model)
        return read(model, *job) if identity is None else once(identity, lambda: read(model, *job))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baseline, "measure_sample", measure_once)
        patch.setattr(included_words, "_read", read_once)
        yield


def _identity(model: Backend) -> Hashable | None:
    """What two models with equal vectors have in common; None where that is not known."""
    folder = model.loaded.folder
    if model.spec.source == "embedded":
        return model.spec.key, model.revision
    if folder is None or model.loaded.has_chosen_prompts or sources._fingerprint(folder) != model.revision:
        return None
    return _content(folder)


def _content(folder: Path) -> str:
    """The files of a folder with all that is in them: two folders of one model differ in when they were written."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()
