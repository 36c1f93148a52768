"""Model: its sizes and parameters, and the vectors it gives for the current sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.ui import controls, messages
from dashboard.views.model import compare, inner_dimensions, sections

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "facts": navigation.View(
        "Sizes and parameters",
        "What is inside the model?",
        "An encoder is a table of word vectors and a stack of blocks that all have the same structure.",
        without_blocks=(
            "What is inside the model?",
            "A table of word vectors and, unless the model is static, a stack of blocks.",
        ),
    ),
    "vectors": navigation.View(
        "Outputs and vectors",
        "What does the model return for your sentences?",
        "One vector per token and layer. Later pages compare these vectors.",
        "tokens",
    ),
    "zero": navigation.View(
        "Parts of layer 0",
        "What is a token before the first block?",
        "Layer 0 is what the first block reads: the vector of each piece, and whatever the model adds to it.",
        "blocks",
    ),
    "inner": navigation.View(
        "Feed-forward",
        "Which inner dimensions respond to a token?",
        "A block's feed-forward part widens a token's vector to many inner dimensions, of which only some take part.",
        "blocks",
    ),
    "compare": navigation.View(
        "Compare models",
        "How do models differ?",
        "The same sentence in two to four models: depth is the layer divided by the number of layers, so that all of them go "
        "from 0 to 1.",
    ),
    "catalog": navigation.View(
        "All available models",
        "Which models can this dashboard open?",
        "Sizes and licences, and whether a model is stored on this machine.",
    ),
}


def _view(backend: Backend, view: str) -> None:
    if view == "facts":
        sections.parameters(backend)
        sections.provenance(backend)
        return
    if view == "catalog":
        sections.catalog()
        return
    if view == "compare":
        compare.draw(backend)
        return
    if messages.no_sentences():
        return
    if view == "inner":
        sentences = controls.current_tokens(backend)
        inner_dimensions.feed_forward(backend, sentences)
        messages.truncation(sentences)
        return
    trace = controls.current_trace(backend)
    if view == "vectors":
        sections.vector(backend, trace)
        sections.outputs(backend, trace)
    else:
        sections.layer_zero(backend, trace)
    messages.truncation(trace.sentences)


navigation.show(
    "model",
    VIEWS,
    _view,
    "drawing the model",
)
