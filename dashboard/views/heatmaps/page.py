"""Heatmaps: what a block does to each token, and which tokens, layers and sentences are similar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.ui import model_gate
from dashboard.views.heatmaps import blocks, similarity, together

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "blocks": navigation.View(
        "A block's input and output",
        "What does a block do to each token?",
        "Bright cells: two vectors point in similar directions (cosine similarity).",
    ),
    "inside": navigation.View(
        "Inside a block",
        "Which part of a block changes a token most?",
        "A block has two steps: attention mixes in other tokens, then a feed-forward network changes each token alone.",
    ),
    "tokens": navigation.View(
        "Pairs of tokens",
        "Which tokens are similar at this layer?",
        "Bright cells: two vectors point in similar directions (cosine similarity).",
    ),
    "pairs": navigation.View(
        "Pairs read together",
        "Which tokens are similar in a pair that is read together?",
        "Each picture is one input of two sentences. Orange frame: the tokens of A with those of the other sentence.",
    ),
    "layers": navigation.View(
        "Pairs of layers",
        "Which layers give similar vectors?",
        "Each cell compares two layers. Bright: tokens that are similar at one layer are similar at the other layer too.",
    ),
    "sentences": navigation.View(
        "Pairs of sentences",
        "Which sentences are similar?",
        "Bright cells: two sentence vectors point in similar directions (cosine similarity).",
    ),
}
OF_TOKENS = {
    "blocks": blocks.input_and_output,
    "inside": blocks.inside,
    "tokens": blocks.tokens,
    "pairs": together.pairs,
}
OF_MODELS = {"layers": similarity.layers, "sentences": similarity.sentences}


def _view(models: list[Backend], view: str) -> None:
    if view in OF_TOKENS:
        OF_TOKENS[view](models[0])
    else:
        OF_MODELS[view](models)


navigation.show(
    "heatmaps",
    VIEWS,
    _view,
    "drawing the heatmaps",
    models=model_gate.chosen_models,
    needs_sentences=True,
)
