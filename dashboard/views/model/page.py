"""Model: its sizes and parameters, and the vectors it gives for the current sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.ui import controls, messages
from dashboard.views.model import sections

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "facts": "Sizes and parameters",
    "vectors": "Outputs and vectors",
    "zero": "Parts of layer 0",
    "catalog": "All available models",
}


def _view(backend: Backend, view: str) -> None:
    if view == "facts":
        sections.sizes(backend)
        sections.parameters(backend)
        sections.provenance(backend)
        return
    if view == "catalog":
        sections.catalog()
        return
    if messages.no_sentences():
        return
    trace = controls.current_trace(backend)
    messages.truncation(trace.sentences)
    if view == "vectors":
        sections.outputs(backend, trace)
        sections.vector(backend, trace)
    else:
        sections.layer_zero(backend, trace)


navigation.show(
    "model",
    "An encoder is a table of word vectors and a stack of blocks that all have the same structure. This page shows its "
    "sizes, where its parameters are, and the numbers it gives for your sentences.",
    VIEWS,
    _view,
    "drawing the model",
)
