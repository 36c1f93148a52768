"""Heatmaps: what a block does to each token, and what is close to what."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import navigation, state
from dashboard.ui import controls, messages, model_gate
from dashboard.views.heatmaps import blocks as sections
from dashboard.views.heatmaps import similarity

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "blocks": "A block's input and output",
    "inside": "Inside a block",
    "tokens": "Tokens and tokens",
    "layers": "Layers and layers",
    "sentences": "Sentences and sentences",
}


def render() -> None:
    st.title("What does each block do to each token?")
    st.markdown(
        "A block takes all token vectors in and gives changed ones out. Bright cells are vectors that point the same way "
        "(cosine similarity)."
    )
    if messages.needs_sentences():
        return

    @st.fragment
    def body() -> None:
        models = model_gate.chosen_models()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("heatmaps_view", "Look at", VIEWS, show_label=False)
        messages.guarded(partial(_view, models, view), "drawing the heatmaps")
        state.write_address("heatmaps")

    body()
    navigation.next_step("heatmaps")


def _view(models: list[Backend], view: str) -> None:
    if view == "blocks":
        sections.blocks(models[0])
    elif view == "inside":
        sections.inside(models[0])
    elif view == "tokens":
        sections.tokens(models[0])
    elif view == "layers":
        similarity.layers(models)
    else:
        similarity.sentences(models)


render()
