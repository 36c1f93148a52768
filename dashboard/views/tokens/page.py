"""Tokens: how text becomes the numbers a model reads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import navigation, state
from dashboard.ui import controls, messages, model_gate
from dashboard.views.tokens import sections

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "pieces": "Pieces",
    "tensors": "Input tensors",
    "decoding": "Back to text",
    "vocabulary": "Vocabulary",
    "compare": "Another tokenizer",
}


def render() -> None:
    st.title("How does text become numbers?")
    st.markdown(
        "A tokenizer cuts text into pieces it knows and gives each its number. The model sees only these numbers; "
        "what the vocabulary lacks it never sees."
    )
    if messages.needs_sentences():
        return

    @st.fragment
    def body() -> None:
        backend = model_gate.main_model()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice("tokens_view", "Look at", VIEWS, show_label=False)
        messages.guarded(partial(_view, backend, view), "drawing the tokens")
        state.write_address("tokens")

    body()
    navigation.next_step("tokens")


def _view(backend: Backend, view: str) -> None:
    sentences = controls.current_tokens(backend)
    if view == "pieces":
        messages.truncation(sentences)
        sections.unusual(backend, sentences)
        sections.pieces(backend, sentences)
        sections.statistics(backend, sentences)
    elif view == "tensors":
        sections.tensors(backend, sentences)
    elif view == "decoding":
        sections.decoding(backend, sentences)
        sections.special_tokens(backend)
    elif view == "vocabulary":
        sections.vocabulary(backend)
    else:
        sections.another_tokenizer(backend, sentences)


render()
