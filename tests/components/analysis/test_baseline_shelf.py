"""Baselines measured once for everybody."""

from __future__ import annotations

import threading
import types

import numpy as np
import pytest

from components.analysis.baseline import measure
from components.analysis.baseline_shelf import CHUNK, BaselineShelf
from components.model.catalog import ModelSpec

SAMPLE = [f"the {word} sat by the river" for word in ("cat", "dog", "bank", "money", "hat", "ran", "walk")] * 8


def counting(backend, pause=None):
    """A stand-in for a Backend that counts its passes and runs the real one."""
    passes = []

    def run(texts):
        passes.append(len(texts))
        if pause is not None:
            pause.wait(5)
        return backend.run(list(texts))

    return types.SimpleNamespace(spec=backend.spec, revision=backend.revision, run=run, passes=passes)


def test_it_is_the_baseline_of_the_sample(tiny_backends):
    backend = counting(tiny_backends["bert"])
    found = BaselineShelf(SAMPLE).measure(backend)
    expected = measure(tiny_backends["bert"].run(SAMPLE[at : at + CHUNK]) for at in range(0, len(SAMPLE), CHUNK))
    np.testing.assert_array_equal(found.tokens.raw.mean, expected.tokens.raw.mean)
    assert sum(backend.passes) == len(SAMPLE)


def test_many_threads_measure_once(tiny_backends):
    go_on = threading.Event()
    backend, shelf = counting(tiny_backends["bert"], go_on), BaselineShelf(SAMPLE)
    found = []
    threads = [threading.Thread(target=lambda: found.append(shelf.measure(backend))) for _ in range(12)]
    for thread in threads:
        thread.start()
    assert not shelf.is_ready(backend)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert shelf.is_ready(backend)
    assert len(found) == 12
    assert all(one is found[0] for one in found)
    assert sum(backend.passes) == len(SAMPLE)


def test_a_failure_reaches_who_asked_and_is_not_kept(tiny_backends):
    backend, shelf = counting(tiny_backends["bert"]), BaselineShelf(SAMPLE)
    whole = backend.run

    def broken(texts):
        raise RuntimeError("no memory")

    backend.run = broken
    with pytest.raises(RuntimeError, match="no memory"):
        shelf.measure(backend)
    assert not shelf.is_known(backend)
    backend.run = whole
    assert shelf.measure(backend).tokens.pairs == 2_000


def test_the_oldest_goes_beyond_the_capacity(tiny_backends):
    shelf = BaselineShelf(SAMPLE, capacity=1)
    first = counting(tiny_backends["bert"])
    second = types.SimpleNamespace(
        spec=ModelSpec("other", "folder", "other"), revision="r", run=tiny_backends["bert"].run
    )
    shelf.measure(first)
    shelf.measure(second)
    assert (shelf.is_ready(first), shelf.is_ready(second)) == (False, True)
