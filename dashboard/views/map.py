"""Map: where tokens lie in the model's space, and how a word's senses part from layer to layer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import controls, feedback, map_sections, sense_sections, state

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
        backend = feedback.main_model()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("map_view", "Look at", VIEWS, show_label=False)
        feedback.guarded(partial(_view, backend, view), "drawing the map")
        state.write_address("map")

    body()
    feedback.next_step("map")


def _view(backend: Backend, view: str) -> None:
    if view == "ends":
        map_sections.ends(backend)
    elif view == "through":
        map_sections.through(backend)
    else:
        sense_sections.senses(backend)


render()
