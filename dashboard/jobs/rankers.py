"""The rankings by words and static vectors that several pages set beside the model's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.retrieval.search import lexical
from components.retrieval.search.static_vectors import StaticRanker
from dashboard import caching

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.search.lexical import Ranker


@dataclass(frozen=True)
class WordRanking:
    """How to make a ranker, with no session at hand; `source` tells its word vectors apart."""

    kind: str
    source: str
    make: Callable[[Sequence[str]], Ranker]


def word_ranking(backend: Backend, kind: str) -> WordRanking:
    """A word ranking by its kind; for static vectors an uploaded file's, if there is one, else the model's own."""
    if kind != "static":
        return WordRanking(kind, "", partial(lexical.make_ranker, kind))  # type: ignore[arg-type]  # one of the page's own
    key = str(st.session_state.get("_static") or "")
    uploaded = caching.static_vectors().find(key) if key else None
    if uploaded is not None:
        return WordRanking(kind, key, partial(StaticRanker.of_words, uploaded))
    return WordRanking(kind, f"{backend.spec.key} {backend.revision}", partial(StaticRanker.of_model, backend))


def word_ranker(backend: Backend, texts: Texts, kind: str) -> Ranker:
    """The ranker over texts, made once."""
    ranking = word_ranking(backend, kind)
    return caching.ranker(kind, texts.content_hash, ranking.source, texts, ranking.make)
