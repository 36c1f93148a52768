"""Map: where tokens lie in the model's space, and how a word's senses part from layer to layer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import navigation, state
from dashboard.ui import controls, messages, model_gate
from dashboard.views.map import pictures, senses

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {"ends": "Two layers", "through": "Through the layers", "senses": "Word senses"}


def render() -> None:
    st.title("Where do tokens lie?")
    st.markdown(
        "Each token is a point; close points are tokens the model takes for alike. At layer 0 every word lies with its own "
        "kind; block by block the sentence around it moves it."
    )

    @st.fragment
    def body() -> None:
        backend = model_gate.main_model()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("map_view", "Look at", VIEWS, show_label=False)
        messages.guarded(partial(_view, backend, view), "drawing the map")
        state.write_address("map")

    body()
    navigation.next_step("map")


def _view(backend: Backend, view: str) -> None:
    if view == "ends":
        pictures.ends(backend)
    elif view == "through":
        pictures.through(backend)
    else:
        senses.senses(backend)


render()
