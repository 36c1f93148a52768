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
OF_TOKENS = {"blocks": blocks.input_and_output, "inside": blocks.inside, "tokens": blocks.tokens}
OF_MODELS = {"layers": similarity.layers, "sentences": similarity.sentences}


def _view(models: list[Backend], view: str) -> None:
    if view in OF_TOKENS:
        OF_TOKENS[view](models[0])
    else:
        OF_MODELS[view](models)


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
