"""Heatmaps: what a block does to each token, and what is close to what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.ui import model_gate
from dashboard.views.heatmaps import blocks as sections
from dashboard.views.heatmaps import similarity

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "blocks": "A block's input and output",
    "inside": "Inside a block",
    "tokens": "Tokens and tokens",
    "layers": "Layers and layers",
    "sentences": "Sentences and sentences",
}


def _view(models: list[Backend], view: str) -> None:
    if view == "blocks":
        sections.blocks(models[0])
    elif view == "inside":
        sections.inside(models[0])
    elif view == "tokens":
        sections.tokens(models[0])
    elif view == "layers":
        similarity.layers(models)
    else:
        similarity.sentences(models)


navigation.show(
    "heatmaps",
    "A block takes all token vectors in and gives changed ones out. Bright cells are vectors that point the same way "
    "(cosine similarity).",
    VIEWS,
    _view,
    "drawing the heatmaps",
    models=model_gate.chosen_models,
    needs_sentences=True,
)
