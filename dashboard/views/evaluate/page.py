"""Evaluate: which model, layer and pooling retrieves best, whether that is significant, and where it fails."""

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
    "grid": "How often does each layer and pooling rank the correct answer first?",
    "compare": "Which run is better, is the difference more than chance, and on which queries does each run fail?",
    "graded": "Which run is better when queries have several correct answers, some better than others?",
    "similarity": "People scored how similar two sentences are. Do the cosines of their vectors agree?",
    "lab": "What do other ways of pooling change, and how few numbers per vector are enough?",
    "pairs": "What are the queries, and which sentences should they find?",
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
        return  # the reason has been drawn


navigation.show(
    "evaluate",
    "To search with vectors, you choose a layer and a way to pool its tokens. Here these choices are measured: on queries "
    "whose correct answer is known, and on pairs of sentences that people have compared.",
    VIEWS,
    _view,
    "evaluating",
)
