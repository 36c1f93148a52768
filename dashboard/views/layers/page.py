"""Layers: how a word's vector, or a sentence's, changes from layer to layer."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import caching, navigation, state
from dashboard.ui import controls, messages, model_gate
from dashboard.views.layers import sections

VIEWS = {"tokens": "A word", "sentences": "A whole sentence"}


def render() -> None:
    st.title("How does a word's vector change?")
    st.markdown(
        "A word starts with nearly the same vector wherever it stands, and block by block the words around it change "
        "it; so do the vectors of whole sentences. Each curve shows how similar two vectors are at each layer."
    )
    if messages.needs_sentences():
        return

    @st.fragment
    def body() -> None:
        models = model_gate.chosen_models()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("layers_view", "Look at", VIEWS, caching.glossary()["cosine"])
        draw = sections.words if view == "tokens" else sections.whole_sentences
        messages.guarded(partial(draw, models), "drawing the layers")
        state.write_address("layers")

    body()
    navigation.next_step("layers")


render()
