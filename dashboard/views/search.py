"""Search: which sentences of a corpus come closest to a query, and why."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import batch_sections, controls, corpora, corpus_sections, feedback, search_sections, state, why_sections

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
        backend = feedback.main_model()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("search_view", "Look at", VIEWS, show_label=False)
        if view != "corpus":
            found = corpora.current()
            st.caption(f"Corpus: **{feedback.escape(found.name)}**, {len(found):,} sentences")
        feedback.guarded(partial(_view, backend, view), "searching")
        state.write_address("search")

    body()
    feedback.next_step("search")


def _view(backend: Backend, view: str) -> None:
    if view == "results":
        search_sections.results(backend, why=partial(why_sections.why, backend), notes=why_sections.notes)
    elif view == "queries":
        batch_sections.queries(backend)
    elif view == "pairs":
        batch_sections.pairs(backend)
    else:
        corpus_sections.corpus(backend)


render()
