"""Results that are computed at once and kept."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from components.jobs import Cache, CachePart, WorkFailed
from components.jobs.bounded import Bounded
from tests.support.work import SOON, wait_until


def test_thirty_threads_cost_one_computation() -> None:
    cache: Cache[list[int]] = Cache(4)
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def compute() -> list[int]:
        calls.append(1)
        begun.set()
        assert go_on.wait(SOON)
        return [1]

    with ThreadPoolExecutor(30) as threads:
        asked = [threads.submit(cache.get, "a", compute) for _ in range(30)]
        assert begun.wait(SOON)
        assert cache.is_computing()
        assert cache.is_known("a")
        assert cache.find("a") is None
        go_on.set()
        results = [one.result(SOON) for one in asked]
    assert len(calls) == 1
    assert len({id(result) for result in results}) == 1
    assert not cache.is_computing()
    assert cache.find("a") is results[0]
    assert cache.get("a", pytest.fail) is results[0]
    assert not cache.is_known("b")


def test_an_exception_reaches_everybody_who_waits_and_is_not_kept() -> None:
    cache: Cache[int] = Cache(4)
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def fail() -> int:
        calls.append(1)
        begun.set()
        assert go_on.wait(SOON)
        raise KeyboardInterrupt("no memory")

    with ThreadPoolExecutor(10) as threads:
        first = threads.submit(cache.get, "a", fail)
        assert begun.wait(SOON)
        others = [threads.submit(cache.get, "a", fail) for _ in range(9)]
        wait_until(lambda: len(cache._under_way["a"]._condition._waiters) == 9)  # type: ignore[attr-defined]
        go_on.set()
        with pytest.raises(KeyboardInterrupt, match="no memory"):
            first.result(SOON)
        for one in others:  # whose threads nobody interrupted
            with pytest.raises(WorkFailed, match="KeyboardInterrupt: no memory"):
                one.result(SOON)
    assert len(calls) == 1
    assert not cache.is_known("a")
    assert cache.get("a", lambda: 7) == 7


def test_different_keys_are_computed_side_by_side() -> None:
    cache: Cache[int] = Cache(4)
    both = threading.Barrier(2, timeout=SOON)  # breaks unless the other computation runs at the same time
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda key: cache.get(key, both.wait), "ab"))
    assert len(cache) == 2


def test_the_least_recently_used_goes_first() -> None:
    cache: Cache[int] = Cache(2)
    for number, key in enumerate("ab"):
        cache.put(key, number)
    assert cache.find("a") == 0  # used again: b is the older now
    assert cache.find("unknown") is None
    cache.put("c", 2)
    assert [cache.find(key) for key in "abc"] == [0, None, 2]
    assert (len(cache), cache.used) == (2, 2)
    cache.put("a", 9)
    cache.get("d", lambda: 3)
    assert [cache.find(key) for key in "acd"] == [9, None, 3]
    cache.clear()
    assert (len(cache), cache.used) == (0, 0)


def test_a_limit_by_size() -> None:
    cache: Cache[str] = Cache(10, len)
    for number in range(10):
        cache.get(number, lambda: "x")
    assert (len(cache), cache.used) == (10, 10)
    cache.get("large", lambda: "x" * 9)
    assert (len(cache), cache.used) == (2, 10)
    assert cache.get("too large", lambda: "x" * 11) == "x" * 11
    assert cache.find("too large") is None
    assert (len(cache), cache.used) == (2, 10)
    cache.put("large", "y" * 11)  # the older one must not be taken for it
    assert cache.find("large") is None
    assert cache.find(9) == "x"


def test_a_size_that_fails_reaches_who_waits_and_leaves_nothing_under_way() -> None:
    def size(value: str) -> int:
        raise OSError("the file is gone")

    cache: Cache[str] = Cache(10, size)
    with pytest.raises(OSError, match="is gone"):
        cache.get("a", lambda: "value")
    assert not cache.is_computing()
    assert not cache.is_known("a")


def test_kinds_share_the_room_of_a_cache_and_nothing_else():
    whole = Cache(3)
    first, second = CachePart(whole, "first"), CachePart(whole, "second")
    first.put("a", 1)
    assert second.find("a") is None
    assert second.get("a", lambda: 2) == 2
    assert (first.find("a"), second.find("a")) == (1, 2)
    second.put("b", 3)
    second.put("c", 4)  # the one used longest ago goes, whichever kind it is of
    assert first.find("a") is None
    first.put("a", 5)
    second.clear()
    assert [second.find(key) for key in "abc"] == [None, None, None]
    assert first.find("a") == 5


def test_room_is_made_for_what_comes_and_no_more():
    kept: Bounded[str] = Bounded(10)
    for key in "abc":
        kept.put(key, key.upper(), 3)
    assert kept.make_room(4, 10) == ["A"]
    assert kept.make_room(4, 10) == []
    assert kept.make_room(11, 10) == ["B", "C"]
