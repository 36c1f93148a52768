"""Map: where tokens lie in the model's space, and how a word's senses separate from layer to layer."""

from __future__ import annotations

from dashboard import navigation
from dashboard.views.map import pictures, senses

VIEWS = {
    "ends": navigation.View(
        "Two layers",
        "How do blocks rearrange the tokens?",
        "Each point is a token; neighbours are usually similar in the model. Left and right are two layers.",
        without_blocks=(
            "Which tokens have similar vectors?",
            "Each point is a token; neighbours are usually similar in the model, which has only layer 0.",
        ),
    ),
    "through": navigation.View(
        "Through the layers",
        "How does each block move the tokens?",
        "Each token is a point. Play shows the map of one layer after the other.",
        "blocks",
    ),
    "senses": navigation.View(
        "Word senses",
        "Does the model separate the senses of a word?",
        senses.intro,
        "blocks",
    ),
}
DRAW = {"ends": pictures.ends, "through": pictures.through, "senses": senses.senses}


navigation.show(
    "map",
    VIEWS,
    lambda backend, view: DRAW[view](backend),
    "drawing the map",
)
