"""Heatmaps: what a block does to each token, and which tokens, layers and sentences are similar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.ui import model_gate
from dashboard.views.heatmaps import blocks, similarity

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "blocks": "A block's input and output",
    "inside": "Inside a block",
    "tokens": "Pairs of tokens",
    "layers": "Pairs of layers",
    "sentences": "Pairs of sentences",
}


def _view(models: list[Backend], view: str) -> None:
    if view == "blocks":
        blocks.input_and_output(models[0])
    elif view == "inside":
        blocks.inside(models[0])
    elif view == "tokens":
        blocks.tokens(models[0])
    elif view == "layers":
        similarity.layers(models)
    else:
        similarity.sentences(models)


navigation.show(
    "heatmaps",
    "A block reads the vectors of all tokens and returns changed vectors. Bright cells are vectors that point in "
    "similar directions (cosine similarity).",
    VIEWS,
    _view,
    "drawing the heatmaps",
    models=model_gate.chosen_models,
    needs_sentences=True,
)
