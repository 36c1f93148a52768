"""Token vectors in the background: shared, bounded, told when they fail."""

from __future__ import annotations

import threading

import numpy as np

from components.errors import InputError
from components.jobs import Cancelled
from components.model.token_shelf import TokenShelf

TEXTS = ("the bank paid", "a bank of mud", "no money here")


def test_the_vectors_are_the_backends_and_shared(embedded, tmp_path):
    shelf = TokenShelf(tmp_path)
    job = shelf.request(embedded, "c", TEXTS, max_tokens=5, seed=3)
    assert job.finished.wait(30)
    expected = embedded.token_vectors(TEXTS, max_tokens=5, seed=3)
    assert job.vectors.tokens == expected.tokens
    np.testing.assert_allclose(job.vectors.vectors, expected.vectors, atol=1e-3)
    assert shelf.request(embedded, "c", TEXTS, max_tokens=5, seed=3) is job
    assert shelf.request(embedded, "c", TEXTS, max_tokens=5, seed=4) is not job
    assert list(tmp_path.iterdir()) == []  # files without a name, gone with their last reader


def test_a_word_that_is_not_there_is_an_error_until_forgotten(embedded, tmp_path):
    shelf = TokenShelf(tmp_path)
    job = shelf.request(embedded, "c", TEXTS, word="volcano")
    assert job.finished.wait(30)
    assert isinstance(job.error, InputError)
    assert shelf.request(embedded, "c", TEXTS, word="volcano") is job
    shelf.forget(job)
    assert shelf.request(embedded, "c", TEXTS, word="volcano") is not job


def test_a_cancelled_job_says_so(tmp_path):
    gate = threading.Event()

    class Slow:
        spec = type("Spec", (), {"key": "slow"})
        revision = "1"

        def token_vectors(self, texts, *, progress, cancelled, **_):

            progress(1, len(texts))
            gate.wait(10)
            if cancelled():
                raise Cancelled

    shelf = TokenShelf(tmp_path)
    job = shelf.request(Slow(), "c", TEXTS)
    job.cancel.set()
    gate.set()
    assert job.finished.wait(10)
    assert job.cancelled
    assert job.done == 1
    assert job.seconds_left is not None


def test_the_least_recently_used_set_goes(embedded, tmp_path):
    shelf = TokenShelf(tmp_path, capacity=2)

    def asked(seed):
        job = shelf.request(embedded, "c", TEXTS, max_tokens=2, seed=seed)
        assert job.finished.wait(30)
        return job

    first, second = asked(0), asked(1)
    assert asked(0) is first  # used again: the other one is the older now
    asked(2)
    asked(3)
    assert asked(1) is not second
