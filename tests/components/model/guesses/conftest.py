"""Tiny models of every architecture with a masked-LM head, each with plain transformers' own copy of it."""

from __future__ import annotations

import pytest

from components.model.backend import Backend
from components.model.store import TraceStore
from tests.support import tiny
from tests.support.plain_masked_lm import Plain


@pytest.fixture(scope="module", params=tiny.ARCHITECTURES)
def each(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Backend, Plain]:
    """Each architecture: ours, and plain transformers."""
    folder = tiny.save_masked_lm_of(tmp_path_factory.mktemp(request.param), request.param)
    backend = Backend.load(str(folder), store=TraceStore(1 << 24), device_name="cpu")
    return backend, Plain.load(folder, request.param)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> tuple[Backend, Plain]:
    """BERT alone, whose folder has other weights, for what does not depend on the architecture."""
    folder = tiny.save_masked_lm_of(tmp_path_factory.mktemp("bert"), "bert", seed=8)
    return Backend.load(str(folder), store=TraceStore(1 << 24), device_name="cpu"), Plain.load(folder, "bert")
