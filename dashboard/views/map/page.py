"""Map: where tokens lie in the model's space, and how a word's senses separate from layer to layer."""

from __future__ import annotations

from dashboard import navigation
from dashboard.views.map import pictures, senses

VIEWS = {"ends": "Two layers", "through": "Through the layers", "senses": "Word senses"}
DRAW = {"ends": pictures.ends, "through": pictures.through, "senses": senses.senses}


navigation.show(
    "map",
    "Each token is a point; close points are tokens that the model treats as similar. At layer 0, equal words lie together. "
    "Block by block, the sentence around a word moves its point.",
    VIEWS,
    lambda backend, view: DRAW[view](backend),
    "drawing the map",
)
