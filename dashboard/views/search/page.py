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
        results.query_controls()
    request = SearchRequest.of_session(backend, searched)
    {"results": results.results, "queries": batches.queries, "pairs": batches.pairs}[view](request)


navigation.show(
    "search",
    "Every sentence of a corpus becomes one vector, and so does the query. The sentences with the nearest vectors are the "
    "hits. Change the layer, the pooling or the method, and see which sentences each setting considers close.",
    VIEWS,
    _view,
    "searching",
)
