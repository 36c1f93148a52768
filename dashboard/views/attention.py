"""Attention: which token looks at which, in which head."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import streamlit as st

from components.analysis.attention import of_sentence
from dashboard import attention_sections, controls, feedback, head_sections, pair_choice, state
from dashboard.attention_sections import FILTERS, Shown

if TYPE_CHECKING:
    from components.charts.bertviz_views import View
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
    if feedback.needs_sentences():
        return

    @st.fragment
    def body() -> None:
        backend = feedback.main_model()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("attention_view", "Look at", VIEWS, show_label=False)
        feedback.guarded(partial(_view, backend, view), "drawing attention")
        state.write_address("attention")

    body()
    head_sections.caveat()
    feedback.next_step("attention")


def _view(backend: Backend, view: str) -> None:
    pair = pair_choice.choose()
    trace = pair.trace(backend, attentions=True)
    feedback.truncation(trace.sentences)
    shown = Shown(backend, pair, trace, trace.sentences[0], of_sentence(trace, 0))
    if pair.second is not None and view in {"matrix", "glance", "patterns", "flow"}:
        controls.choice("texts_filter", "Attention from", FILTERS)
    if view in {"head", "model", "neuron"}:
        attention_sections.bertviz(shown, cast("View", view))
    elif view == "matrix":
        attention_sections.matrix(shown)
    elif view == "glance":
        attention_sections.glance(shown)
    elif view == "patterns":
        head_sections.patterns(shown)
    elif view == "flow":
        head_sections.flow(shown)
    else:
        head_sections.mask(shown)


render()
