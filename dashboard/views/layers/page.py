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
    if view == "tokens":
        sections.words(models)
    else:
        sections.whole_sentences(models)


navigation.show(
    "layers",
    "At layer 0 a word has nearly the same vector in every sentence, and exactly the same one at the same position. Block by "
    "block, the surrounding words change it, "
    "and the vectors of whole sentences change too. Each curve shows how similar two vectors are at each layer.",
    VIEWS,
    _view,
    "drawing the layers",
    models=model_gate.chosen_models,
    needs_sentences=True,
    help_text=caching.glossary()["cosine"],
)
