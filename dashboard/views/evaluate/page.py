"""Evaluate: which model, layer and pooling retrieves best, how sure one can be, and where it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import navigation
from dashboard.jobs.evaluation import NoResult
from dashboard.ui import messages
from dashboard.views.evaluate import choices, compare, graded, grid, lab, sts

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
    "grid": grid.grid,
    "compare": compare.compare,
    "graded": graded.relevance,
    "similarity": sts.similarity,
    "lab": lab.lab,
    "pairs": choices.data,
}


def _view(backend: Backend, view: str) -> None:
    st.markdown(f"**{QUESTIONS[view]}**")
    if view != "pairs":
        messages.cross_encoder_note([backend])
    try:
        DRAW[view](backend)
    except NoResult:
        return  # what there is to wait for has been drawn


navigation.show(
    "evaluate",
    "Searching with vectors leaves open which layer to take and how to pool its tokens. Here they are measured: on queries "
    "whose right answer is known, and on pairs of sentences that people compared.",
    VIEWS,
    _view,
    "evaluating",
)
