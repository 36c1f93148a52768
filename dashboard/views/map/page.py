"""Map: where tokens lie in the model's space, and how a word's senses separate from layer to layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.views.map import pictures, senses

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {"ends": "Two layers", "through": "Through the layers", "senses": "Word senses"}


def _view(backend: Backend, view: str) -> None:
    if view == "ends":
        pictures.ends(backend)
    elif view == "through":
        pictures.through(backend)
    else:
        senses.senses(backend)


navigation.show(
    "map",
    "Each token is a point; close points are tokens that the model treats as similar. At layer 0, equal words lie together. "
    "Block by block, the sentence around a word moves its point.",
    VIEWS,
    _view,
    "drawing the map",
)
