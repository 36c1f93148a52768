"""What a page says while its pass waits for others: it appears where the pass was asked for, and goes when it has come."""

from __future__ import annotations

import threading

import pytest
from streamlit.testing.v1 import AppTest

from components.jobs import turns
from dashboard.ui.waiting import turn


def _page() -> None:
    import streamlit as st

    from components.jobs import turns
    from dashboard.ui.waiting import turn

    with turn.shown(), st.container():
        st.write("before")
        turns.OF_TEST.take()
        st.write("after")


def test_a_page_says_how_many_computations_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, said = threading.RLock(), []
    monkeypatch.setattr(turns, "TELL_SECONDS", 0.05)
    monkeypatch.setattr(turns, "OF_TEST", turns.Turns(lock), raising=False)
    words, is_held, may_end = turn.in_words, threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            may_end.wait(60)

    def note(first: int) -> str:
        said.append(first)
        may_end.set()
        return words(first)

    monkeypatch.setattr(turn, "in_words", note)
    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(60)
    page = AppTest.from_function(_page, default_timeout=120).run()
    holder.join(60)
    assert not page.exception
    assert set(said) == {1}
    assert [item.value for item in page.markdown] == ["before", "after"]
    assert not page.caption  # it is gone


def test_the_words() -> None:
    # Of any model where several share a GPU: it is not said that this page's model is busy.
    assert turn.in_words(1).endswith(": Waiting: another computation comes first.")
    assert turn.in_words(3).endswith(": Waiting: 3 other computations come first.")
