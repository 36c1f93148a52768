"""The one lock around forward passes: long work hands it over between its passes."""

from __future__ import annotations

import threading

from components.model.backend import Backend
from components.model.store import TraceStore


def test_a_short_pass_does_not_wait_for_the_end_of_long_work(tiny_folder):
    loaded = Backend.load(str(tiny_folder("bert")), store=TraceStore(1 << 20), device_name="cpu").loaded
    passes, is_over, has_begun = 0, threading.Event(), threading.Event()

    def work():
        nonlocal passes
        while not is_over.is_set():
            with loaded.forward_pass():
                passes += 1
                has_begun.set()
                threading.Event().wait(0.002)  # as long as a small pass

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert has_begun.wait(10)
        waited = []
        for _ in range(20):
            before = passes
            with loaded.forward_pass():
                waited.append(passes - before)
    finally:
        is_over.set()
        worker.join(10)
    # Without the handover the worker takes the lock again before the other thread has woken up.
    assert sorted(waited)[len(waited) // 2] <= 2
    assert loaded.forward_passes == passes + len(waited)
