"""Evaluate: which model, layer and pooling retrieves best, how sure one can be, and where it fails."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import (
    compare_sections,
    controls,
    evaluation_choices,
    feedback,
    graded_sections,
    grid_sections,
    lab_sections,
    state,
    sts_sections,
)
from dashboard.evaluation_jobs import NoResult

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "grid": "Layers and poolings",
    "compare": "Compare runs",
    "graded": "Graded relevance",
    "similarity": "Sentence similarity",
    "lab": "Pooling lab",
    "pairs": "Data",
}
QUESTIONS = {
    "grid": "How often does each layer and pooling rank the right sentence first?",
    "compare": "Which run is better, is that more than chance, and on which queries does each fail?",
    "graded": "And where a query has several right answers, some better than others?",
    "similarity": "People scored how alike two sentences are. Do the cosines of their vectors agree?",
    "lab": "What do other ways of pooling do, and how few numbers of a vector suffice?",
    "pairs": "What are the queries, and what are they to find?",
}
DRAW = {
    "grid": grid_sections.grid,
    "compare": compare_sections.compare,
    "graded": graded_sections.relevance,
    "similarity": sts_sections.similarity,
    "lab": lab_sections.lab,
    "pairs": evaluation_choices.data,
}


def render() -> None:
    st.title("Which layer and pooling retrieve best?")
    st.markdown(
        "Searching with vectors leaves open which layer to take and how to pool its tokens. Here they are measured: on queries "
        "whose right answer is known, and on pairs of sentences that people compared."
    )

    @st.fragment
    def body() -> None:
        backend = feedback.main_model()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("evaluate_view", "Look at", VIEWS, show_label=False)
        st.markdown(f"**{QUESTIONS[view]}**")
        feedback.guarded(partial(_view, backend, view), "evaluating")
        state.write_address("evaluate")

    body()
    feedback.next_step("evaluate")


def _view(backend: Backend, view: str) -> None:
    try:
        DRAW[view](backend)
    except NoResult:
        return  # what there is to wait for has been drawn


render()
