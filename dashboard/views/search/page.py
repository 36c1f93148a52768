"""Search: which sentences of a corpus come closest to a query, and why."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import navigation, state
from dashboard.corpora import current
from dashboard.ui import controls, messages, model_gate
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


def render() -> None:
    st.title("Which sentences come closest?")
    st.markdown(
        "Every sentence of a corpus is one vector; so is the query. The nearest vectors are the hits. Change the layer, the "
        "pooling or the method, and see what each of them takes for near."
    )

    @st.fragment
    def body() -> None:
        backend = model_gate.main_model()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("search_view", "Look at", VIEWS, show_label=False)
        if view != "corpus":
            searched = current.corpus()
            st.caption(f"Corpus: **{messages.escape(searched.name)}**, {len(searched):,} sentences")
        messages.guarded(partial(_view, backend, view), "searching")
        state.write_address("search")

    body()
    navigation.next_step("search")


def _view(backend: Backend, view: str) -> None:
    if view == "corpus":
        corpus.corpus(backend)
    elif view == "results":
        results.results(backend, current.corpus())
    else:
        draw = batches.queries if view == "queries" else batches.pairs
        draw(SearchRequest.of_session(backend, current.corpus()))


render()
