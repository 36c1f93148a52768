"""The rankings by words and static vectors that several pages set beside the model's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import caching

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.index_job import HasTexts
    from components.retrieval.lexical import Ranker
    from components.retrieval.static_vectors import StaticVectors


def word_ranker(backend: Backend, texts: HasTexts, kind: str) -> Ranker:
    """A baseline over texts; for static vectors an uploaded file's, if there is one, else the model's own."""
    key, uploaded = uploaded_vectors()
    if kind == "static" and uploaded is not None:
        return caching.static_ranker(key, texts.content_hash, uploaded, texts)
    model = f"{backend.spec.key} {backend.revision}" if kind == "static" else ""
    return caching.ranker(kind, texts.content_hash, model, texts, backend)


def uploaded_vectors() -> tuple[str, StaticVectors | None]:
    """The word vectors this session uploaded on the Search page, if they are still kept, and their key."""
    key = str(st.session_state.get("_static") or "")
    return key, caching.static_vectors().get(key) if key else None
