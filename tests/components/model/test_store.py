"""The store of traces: bounded by bytes, one computation for all who ask."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pytest

from components.model.store import DEFAULT_BYTES, TraceStore, configured_bytes
from components.model.trace import Trace


def trace_of(kilobytes, name="m"):
    """A trace whose arrays take exactly that many times 1,000 bytes."""
    empty = np.zeros((0, 0), dtype=np.int64)
    trace = Trace(name, "r", (), empty, empty.copy(), None, np.zeros((1, 1, 1, 250 * kilobytes), dtype=np.float32))
    assert trace.nbytes == 1_000 * kilobytes
    return trace


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_the_least_recently_used_goes_first():
    store = TraceStore(10_000)
    for key, kilobytes in (("a", 4), ("b", 4)):
        store.get(key, lambda kilobytes=kilobytes: trace_of(kilobytes))
    store.get("a", pytest.fail)  # kept, and now used later than b
    store.get("c", lambda: trace_of(4))
    assert (len(store), store.used) == (2, 8_000)
    store.get("a", pytest.fail)
    store.get("c", pytest.fail)
    again = trace_of(1)
    assert store.get("b", lambda: again) is again


def test_room_is_made_in_bytes_not_in_entries():
    store = TraceStore(10_000)
    for number in range(10):
        store.get(number, lambda: trace_of(1))
    assert (len(store), store.used) == (10, 10_000)
    store.get("large", lambda: trace_of(9))
    assert (len(store), store.used) == (2, 10_000)
    store.get(9, pytest.fail)


def test_a_kept_trace_is_the_very_same_object():
    store = TraceStore(10_000)
    first = store.get("a", lambda: trace_of(1))
    assert store.get("a", pytest.fail) is first


def test_a_trace_larger_than_the_store_is_handed_out_but_not_kept():
    store = TraceStore(5_000)
    small = store.get("small", lambda: trace_of(2))
    large = trace_of(6)
    assert store.get("large", lambda: large) is large
    assert (len(store), store.used) == (1, 2_000)
    assert store.get("small", pytest.fail) is small


def test_different_keys_are_computed_side_by_side():
    store = TraceStore(10_000)
    both = threading.Barrier(2, timeout=10)

    def compute():
        both.wait()  # breaks unless the other computation runs at the same time
        return trace_of(1)

    in_threads(2, lambda number: store.get(number, compute))
    assert len(store) == 2


def test_anything_that_knows_its_size_can_be_kept():
    """Records of several kinds share the store, its budget and its order."""

    @dataclass(frozen=True)
    class Record:
        nbytes: int

    store = TraceStore(10_000)
    record, trace = Record(6_000), trace_of(4)
    assert store.get(("inside", "a"), lambda: record) is record
    assert store.get("a", lambda: trace) is trace
    assert store.get(("inside", "a"), pytest.fail) is record
    assert store.used == 10_000
    store.get("b", lambda: trace_of(1))  # the trace is the least recently used
    assert (len(store), store.used) == (2, 7_000)
    assert store.get(("inside", "a"), pytest.fail) is record


def test_clear_forgets_what_is_kept_and_leaves_what_is_under_way():
    store = TraceStore(10_000)
    store.get("kept", lambda: trace_of(3))

    def compute():
        store.clear()
        return trace_of(2)

    arrived = store.get("under way", compute)
    assert (len(store), store.used) == (1, 2_000)
    assert store.get("under way", pytest.fail) is arrived


def test_the_environment_sets_the_size(monkeypatch):
    monkeypatch.delenv("BERT_INTERNALS_TRACE_BYTES", raising=False)
    assert configured_bytes() == TraceStore().limit == DEFAULT_BYTES == 1 << 30
    monkeypatch.setenv("BERT_INTERNALS_TRACE_BYTES", "3M")
    assert configured_bytes() == TraceStore().limit == 3 << 20
    assert TraceStore(5).limit == 5
