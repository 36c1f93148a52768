"""A thread that waits for its turn at a lock says how many come first."""

from __future__ import annotations

import threading
import time

import pytest

from components.jobs import turns
from components.jobs.turns import Turns, told


def test_who_waits_says_how_many_come_first_until_the_turn_has_come(monkeypatch):
    monkeypatch.setattr(turns, "TELL_SECONDS", 0.02)
    lock, heard, other = threading.RLock(), [], threading.Event()
    ours = Turns(lock)

    def wait_quietly():
        ours.take()
        lock.release()
        other.set()

    def wait_and_tell():
        with told(heard.append):
            ours.take()
            lock.release()

    lock.acquire()
    threads = [threading.Thread(target=wait_and_tell)]
    threads[0].start()
    while heard.count(1) < 2:  # the one that has the lock; said again as long as it lasts
        time.sleep(0.01)
    assert ours.are_awaited
    threads.append(threading.Thread(target=wait_quietly))
    threads[1].start()
    while 2 not in heard:
        time.sleep(0.01)
    lock.release()
    for thread in threads:
        thread.join(20)
    assert heard[-1] == 0
    assert heard.count(0) == 1
    assert other.is_set()
    assert not ours.are_awaited


def test_nothing_is_said_where_nobody_comes_first():
    heard = []
    ours = Turns(threading.RLock())
    with told(heard.append):
        ours.take()
        ours.take()  # again by the same thread
    assert heard == []


def test_a_turn_that_cannot_be_told_is_given_back(monkeypatch):
    monkeypatch.setattr(turns, "TELL_SECONDS", 0.02)
    lock, failed = threading.RLock(), []
    ours = Turns(lock)

    def tell(first):
        if first == 0:
            raise RuntimeError("can't start new thread")

    def wait_and_tell():
        with told(tell), pytest.raises(RuntimeError):
            ours.take()
        failed.append(True)

    with lock:
        thread = threading.Thread(target=wait_and_tell)
        thread.start()
        time.sleep(0.1)
    thread.join(20)
    assert failed
    assert lock.acquire(timeout=1)
    assert not ours.are_awaited
