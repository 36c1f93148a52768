"""Search: which sentences of a corpus come closest to a query, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import navigation
from dashboard.corpora import current
from dashboard.ui import messages
from dashboard.views.search import batches, corpus, results
from dashboard.views.search.request import SearchRequest

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "results": "Hits",
    "queries": "Many queries",
    "pairs": "Similar pairs",
    "corpus": "Corpus",
}


def _view(backend: Backend, view: str) -> None:
    if view == "corpus":
        corpus.corpus(backend)
        return
    messages.cross_encoder_note([backend])
    searched = current.corpus()
    st.caption(f"Corpus: **{messages.escape(searched.name)}**, {len(searched):,} sentences")
    if view == "results":
        results.results(backend, searched)
    else:
        draw = batches.queries if view == "queries" else batches.pairs
        draw(SearchRequest.of_session(backend, searched))


navigation.show(
    "search",
    "Every sentence of a corpus is one vector; so is the query. The nearest vectors are the hits. Change the layer, the "
    "pooling or the method, and see what each of them takes for near.",
    VIEWS,
    _view,
    "searching",
)
