"""What a page says while it waits for its turn at a model, or at a GPU, that computes for others: how many come first."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx

from components.jobs.turns import told

log = logging.getLogger(__name__)


@contextmanager
def shown() -> Iterator[None]:
    """Within it, a pass that has to wait says so where it was asked for, until its turn has come."""
    slots: list[Any] = []

    def draw(first: int) -> None:
        if not slots:
            slots.append(st.empty())
        if first:
            slots[0].caption(in_words(first))
        else:
            slots.pop().empty()

    def tell(first: int) -> None:
        # By another thread: a call of Streamlit in the page's own may end the run, and with it what others wait for too.
        thread = threading.Thread(target=copy_context().run, args=(draw, first), name="turn")
        add_script_run_ctx(thread, get_script_run_ctx())
        try:
            thread.start()
        except RuntimeError:  # a full server has no thread to say it with: the computation goes on without the line
            log.warning("no thread to say that a page waits for its turn")
            return
        thread.join()

    with told(tell):
        yield


def in_words(first: int) -> str:
    """What is said while so many computations come first."""
    if first == 1:
        return ":material/hourglass_empty: Waiting: another computation comes first."
    return f":material/hourglass_empty: Waiting: {first} other computations come first."
