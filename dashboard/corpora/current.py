"""The corpora of all sessions, and which one a session searches.

A session holds a corpus's key only: what a session holds is not freed when its time is over. The corpora themselves
are shared and few; the least recently used goes first. The key is half of a SHA-256 of the content: an address with it
finds a corpus that is still kept, which nobody can guess who does not have the content; it never reads a file.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache

import streamlit as st

from components.retrieval.corpora import corpus as reading
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.index.build import columns_hash
from dashboard import caching, state
from dashboard.ready_made import ASSETS

KEY_LENGTH = 32


@cache
def demo() -> Corpus:
    """The corpus that comes with the dashboard: news-like sentences with a headline and a topic each."""
    # Whatever an operator allows people to bring along, ours is read.
    read = reading.read_corpus(ASSETS / "demo_corpus.jsonl", "demo_corpus.jsonl", "sentence", limits=None)
    return replace(read, name="Demo news")


def corpus() -> Corpus:
    """The session's corpus; the demo, with a word of it, where an upload is no longer kept."""
    key = state.get("corpus")
    if not key:
        return demo()
    kept = caching.corpora().find(key)
    if kept is None:
        st.warning(
            "The corpus that was searched here is not on this server any more, or never was: choose it again. "
            "This is the demo corpus.",
            icon=":material/database_off:",
        )
        choose(None)
        return demo()
    return kept


def choose(corpus: Corpus | None) -> None:
    """Make this the session's corpus; None for the demo."""
    key = "" if corpus is None else key_of(corpus)
    state.put("corpus", key)
    state.put("why", None)
    state.put("opened", None)
    state.put("query_column", "")
    if corpus is not None:
        caching.corpora().put(key, corpus)


def key_of(corpus: Corpus) -> str:
    """What a session and an address call a corpus: its texts, columns and name, so that nobody gets another's."""
    digest = hashlib.sha256(f"{corpus.content_hash} {columns_hash(corpus)} {corpus.name}".encode())
    return digest.hexdigest()[:KEY_LENGTH]
