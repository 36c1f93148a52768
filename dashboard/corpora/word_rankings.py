"""The word rankings of a session: by words, by its uploaded word vectors, or by the model's input embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.retrieval.search import lexical
from components.retrieval.search.static_vectors import StaticRanker, read_static_vectors
from dashboard import caching, state
from dashboard.corpora import uploads
from dashboard.jobs import rankers
from dashboard.jobs.rankers import WordRanking
from dashboard.ui import messages

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.search.lexical import WordRanker


def ranker(backend: Backend, texts: Texts, kind: str) -> WordRanker:
    """The ranker of a kind over texts, made once. Raises NotReady while its words are counted."""
    return rankers.word_ranker(word_ranking(backend, kind), texts)


def word_ranking(backend: Backend, kind: str) -> WordRanking:
    """A word ranking by its kind. Static vectors come from the session's uploaded file, or else from the model."""
    if kind != "static":
        return WordRanking(kind, "", "", partial(lexical.make_ranker, kind))  # type: ignore[arg-type]  # a key of TITLES
    key = str(st.session_state.get("_static", ""))
    if key and uploads.is_here(caching.static_vectors(), key):
        return WordRanking(kind, key, uploads.file_names(key), partial(_of_upload, key))
    if key:
        state.notice(
            f"**{messages.escape(uploads.file_names(key))}** is no longer kept on this server: static vectors are the model's "
            "input embeddings until you upload it again."
        )
        uploads.forget("static")
    return WordRanking(kind, f"{backend.spec.key} {backend.revision}", "", partial(StaticRanker.of_model, backend))


def _of_upload(key: str, sentences: Sequence[str]) -> WordRanker:
    """By the word vectors of an upload, which are read again if they are no longer in memory."""
    file = uploads.stored(key)[0]
    vectors = caching.static_vectors().get(key, lambda: read_static_vectors(file.getvalue(), file.name))
    return StaticRanker.of_words(vectors, sentences)
