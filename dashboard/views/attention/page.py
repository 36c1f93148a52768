"""Attention: which token looks at which, in which head."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import streamlit as st

from components.analysis.attention import of_sentence
from dashboard import navigation, state
from dashboard.ui import controls, messages, model_gate, pair_choice
from dashboard.views.attention import single_heads, summaries
from dashboard.views.attention.single_heads import FILTERS, Shown

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


def render() -> None:
    st.title("Which token looks at which?")
    st.markdown(
        "In each block, every head lets each token gather from the others: attention says how much from whom. Block b turns "
        "layer b into layer b+1; transformers and bertviz call it layer b. Blocks and heads count from 0."
    )
    if messages.needs_sentences():
        return

    @st.fragment
    def body() -> None:
        backend = model_gate.main_model()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("attention_view", "Look at", VIEWS, show_label=False)
        messages.guarded(partial(_view, backend, view), "drawing attention")
        state.write_address("attention")

    body()
    summaries.caveat()
    navigation.next_step("attention")


def _view(backend: Backend, view: str) -> None:
    pair = pair_choice.choose()
    trace = pair.trace(backend, attentions=True)
    messages.truncation(trace.sentences)
    shown = Shown(backend, pair, trace, trace.sentences[0], of_sentence(trace, 0))
    if pair.second is not None and view in {"matrix", "glance", "patterns", "flow"}:
        controls.choice("texts_filter", "Attention from", FILTERS)
    if view in {"head", "model", "neuron"}:
        single_heads.bertviz(shown, cast("View", view))
    elif view == "matrix":
        single_heads.matrix(shown)
    elif view == "glance":
        single_heads.glance(shown)
    elif view == "patterns":
        summaries.patterns(shown)
    elif view == "flow":
        summaries.flow(shown)
    else:
        summaries.mask(shown)


render()
