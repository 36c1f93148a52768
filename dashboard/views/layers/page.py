"""Layers: how a word's vector, or a sentence's, changes from layer to layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation, state
from dashboard.ui import model_gate
from dashboard.views.layers import sections

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "across": navigation.View(
        "One word",
        "How does a word's vector change?",
        "At layer 0 a word has the same vector in every sentence, or nearly the same where a vector for its position is added. "
        "Then each block mixes in the other words.",
    ),
    "within": navigation.View(
        "Two tokens",
        "How similar do two tokens become?",
        "The cosine of two tokens of one sentence at every layer. Each block lets both take in their context.",
    ),
    "against": navigation.View(
        "One against all",
        "Which tokens is this token most similar to?",
        "The cosine of the chosen token to every other token of its sentence, at every layer.",
    ),
    "sentences": navigation.View(
        "Whole sentences",
        "How do sentence vectors change?",
        "Each curve shows how similar two sentence vectors are at each layer.",
    ),
}


def _view(models: list[Backend], view: str) -> None:
    if view == "sentences":
        sections.whole_sentences(models)
    else:
        sections.words(models, view)


def _open_older_link() -> None:
    """Older links name the comparison of words apart from the view."""
    if state.get("comparison") != state.default("comparison"):
        if state.get("layers_view") == "across":
            state.put("layers_view", state.get("comparison"))
        state.put("comparison", state.default("comparison"))


_open_older_link()
navigation.show(
    "layers",
    VIEWS,
    _view,
    "drawing the layers",
    models=model_gate.chosen_models,
    needs_sentences=True,
)
