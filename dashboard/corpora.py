"""The corpora of all sessions, and which one a session searches.

A session holds a corpus's key only: what a session holds is not freed when its time is over. The corpora themselves
are shared and few; the least recently used goes first. No address names a corpus: a link must not read files.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from functools import cache
from typing import Generic, TypeVar

import streamlit as st

from components.retrieval import corpus as reading
from components.retrieval.corpus import Corpus
from components.retrieval.static_vectors import StaticVectors
from dashboard.ready_made import ASSETS

DEMO = "demo"
KEPT = 6
Kept = TypeVar("Kept")


class FewKept(Generic[Kept]):
    """The last few things people brought along, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def get(self, key: str) -> Kept | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: str, item: Kept) -> None:
        with self._lock:
            self._kept[key] = item
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)


@st.cache_resource(max_entries=1, show_spinner=False)
def _corpora() -> FewKept[Corpus]:
    return FewKept()


@st.cache_resource(max_entries=1, show_spinner=False)
def static_vectors() -> FewKept[StaticVectors]:
    """Uploaded word vectors."""
    return FewKept()


@cache
def demo() -> Corpus:
    """The corpus that comes with the dashboard: news-like sentences with a headline and a topic each."""
    found = reading.read_corpus(ASSETS / "demo_corpus.jsonl", "demo_corpus.jsonl", "sentence")
    return replace(found, name="Demo news")


def current() -> Corpus:
    """The session's corpus; the demo, with a word of it, where an upload is no longer kept."""
    key = st.session_state.get("_corpus", DEMO)
    if key == DEMO:
        return demo()
    found = _corpora().get(key)
    if found is None:
        st.warning("Your corpus was let go to make room for others': choose it again. This is the demo corpus.")
        st.session_state["_corpus"] = DEMO
        return demo()
    return found


def choose(corpus: Corpus | None) -> None:
    """Make this the session's corpus; None for the demo."""
    st.session_state["_corpus"] = DEMO if corpus is None else corpus.content_hash
    if corpus is not None:
        _corpora().put(corpus.content_hash, corpus)
