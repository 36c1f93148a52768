"""Why: what makes two texts similar, with sums that add up and experiments that test every story."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import navigation
from dashboard.jobs import requests
from dashboard.views.why import clinic, debugger, experiments, methods, split

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "split": navigation.View(
        "The score, split",
        "What makes these two texts similar?",
        "The score is a sum: each part of the two texts, or of the model, adds its share.",
    ),
    "methods": navigation.View(
        "Which words matter",
        "Which words does the similarity depend on?",
        "Methods name the important words; removing words in their order tests them.",
    ),
    "experiments": navigation.View(
        "Experiments",
        "Where does the difference between two sentences lie?",
        "An activation of A is put into B: how far does the similarity move?",
    ),
    "debugger": navigation.View(
        "A failed search",
        "Why is this text not first?",
        "The words of the query that put another text before it.",
    ),
    "clinic": navigation.View(
        "Known failures",
        "Which differences in meaning does the model not see?",
        "Sentences that differ in a word or two, and do not mean the same.",
    ),
}
DRAW = {
    "split": split.draw,
    "methods": methods.draw,
    "experiments": experiments.draw,
    "debugger": debugger.draw,
    "clinic": clinic.draw,
}


_SHOWN = "_why_shown"  # session key: the view that was drawn last


def _view(backend: Backend, view: str) -> None:
    if st.session_state.get(_SHOWN, view) != view:
        requests.stop_requested()  # what the other view waited for: this one would wait behind it
    st.session_state[_SHOWN] = view
    DRAW[view](backend)


navigation.show("why", VIEWS, _view, "explaining the similarity")
