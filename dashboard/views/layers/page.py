"""Layers: how a word's vector, or a sentence's, changes from layer to layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.ui import model_gate
from dashboard.views.layers import sections

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "tokens": navigation.View(
        "A word",
        "How does a word's vector change?",
        "At layer 0 a word has nearly the same vector in every sentence, and exactly the same one at the same position. Then "
        "each block mixes in the other words.",
    ),
    "sentences": navigation.View(
        "A whole sentence",
        "How do sentence vectors change?",
        "Each curve shows how similar two sentence vectors are at each layer.",
    ),
}


def _view(models: list[Backend], view: str) -> None:
    if view == "tokens":
        sections.words(models)
    else:
        sections.whole_sentences(models)


navigation.show(
    "layers",
    VIEWS,
    _view,
    "drawing the layers",
    models=model_gate.chosen_models,
    needs_sentences=True,
)
