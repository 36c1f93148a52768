"""Layers: how a word's vector, or a sentence's, changes from layer to layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import caching, navigation
from dashboard.ui import model_gate
from dashboard.views.layers import sections

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {"tokens": "A word", "sentences": "A whole sentence"}


def _view(models: list[Backend], view: str) -> None:
    draw = sections.words if view == "tokens" else sections.whole_sentences
    draw(models)


navigation.show(
    "layers",
    "A word starts with nearly the same vector wherever it stands, and block by block the words around it change "
    "it; so do the vectors of whole sentences. Each curve shows how similar two vectors are at each layer.",
    VIEWS,
    _view,
    "drawing the layers",
    models=model_gate.chosen_models,
    of_sentences=True,
    help_text=caching.glossary()["cosine"],
)
