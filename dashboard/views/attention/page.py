"""Attention: which token looks at which, in which head."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from components.analysis.attention import of_sentence
from dashboard import navigation
from dashboard.ui import controls, messages, pair_choice
from dashboard.views.attention import single_heads, summaries
from dashboard.views.attention.single_heads import FILTERS, AttentionInput

if TYPE_CHECKING:
    from components.charts.bertviz.views import View
    from components.model.backend import Backend

VIEWS = {
    "head": "Head view",
    "model": "Model view",
    "neuron": "Neuron view",
    "matrix": "Matrix",
    "glance": "All heads",
    "patterns": "Patterns",
    "flow": "Flow",
    "mask": "Mask a token",
}
OTHER_VIEWS = {
    "matrix": single_heads.matrix,
    "glance": single_heads.glance,
    "patterns": summaries.patterns,
    "flow": summaries.flow,
    "mask": summaries.mask,
}


def _view(backend: Backend, view: str) -> None:
    pair = pair_choice.choose()
    trace = pair.trace(backend, attentions=True)
    messages.truncation(trace.sentences)
    model_input = AttentionInput(backend, pair, trace, trace.sentences[0], of_sentence(trace, 0))
    if pair.second is not None and view in {"matrix", "glance", "patterns", "flow"}:
        controls.choice("texts_filter", "Attention from", FILTERS)
    if view in {"head", "model", "neuron"}:
        single_heads.bertviz(model_input, cast("View", view))
    else:
        OTHER_VIEWS[view](model_input)


navigation.show(
    "attention",
    "In each block, every head updates each token with information from the tokens of the input. Attention says how much "
    "each token attends to each of them. Block b turns layer b into layer b+1; transformers and bertviz call it layer b. "
    "Blocks and heads count from 0.",
    VIEWS,
    _view,
    "drawing attention",
    needs_sentences=True,
    foot=summaries.caveat,
)
