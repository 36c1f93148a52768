"""Model: what is inside, in numbers, and the vectors it gives for the current sentences."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import navigation, state
from dashboard.ui import controls, messages, model_gate
from dashboard.views.model import sections

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "facts": "Sizes and parameters",
    "vectors": "Outputs and vectors",
    "zero": "Layer 0 taken apart",
    "catalog": "All models on offer",
}


def render() -> None:
    st.title("What is inside the model?")
    st.markdown(
        "An encoder is a table of word vectors and a stack of equal blocks. These are its sizes, where its parameters "
        "are, and the numbers it gives for your sentences."
    )

    @st.fragment
    def body() -> None:
        backend = model_gate.main_model()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("model_view", "Look at", VIEWS, show_label=False)
        messages.guarded(partial(_view, backend, view), "drawing the model")
        state.write_address("model")

    body()
    navigation.next_step("model")


def _view(backend: Backend, view: str) -> None:
    if view == "facts":
        sections.sizes(backend)
        sections.parameters(backend)
        sections.provenance(backend)
        return
    if view == "catalog":
        sections.catalog()
        return
    if messages.needs_sentences():
        return
    trace = controls.current_trace(backend)
    messages.truncation(trace.sentences)
    if view == "vectors":
        sections.outputs(backend, trace)
        sections.vector(backend, trace)
    else:
        sections.layer_zero(backend, trace)


render()
