"""The corpora of all sessions, and which one a session searches.

A session holds a corpus's key only: what a session holds is not freed when its time is over. The corpora themselves
are shared and few; the least recently used goes first. The key is half of the content's SHA-256: an address with it
finds a corpus that is still kept, which nobody can guess who does not have the content; it never reads a file.
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
from dashboard import state
from dashboard.ready_made import ASSETS

KEPT = 6
KEY_LENGTH = 32
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
    key = state.get("corpus")
    if not key:
        return demo()
    found = _corpora().get(key)
    if found is None:
        st.warning(
            "The corpus that was searched here is not on this server any more, or never was: choose it again under "
            "Corpus. This is the demo corpus.",
            icon=":material/database_off:",
        )
        state.put("corpus", "")
        state.put("why", None)
        return demo()
    return found


def choose(corpus: Corpus | None) -> None:
    """Make this the session's corpus; None for the demo."""
    key = "" if corpus is None else corpus.content_hash[:KEY_LENGTH]
    state.put("corpus", key)
    state.put("why", None)
    if corpus is not None:
        _corpora().put(key, corpus)
