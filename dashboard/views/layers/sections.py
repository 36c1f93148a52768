"""What is similar from layer to layer: words, and whole sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.ui import controls, layer_figures, messages, word_choice, wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.model.backend import Backend
    from components.model.trace import Trace


def one_word(models: Sequence[Backend]) -> None:
    """A word of one sentence with words of the others."""
    _words(models, "across")


def two_tokens(models: Sequence[Backend]) -> None:
    """Two tokens of one sentence."""
    _words(models, "within")


def one_against_all(models: Sequence[Backend]) -> None:
    """A token with every other token of its sentence."""
    _words(models, "against")


def _words(models: Sequence[Backend], view: str) -> None:
    """The similarities of chosen words or tokens; the view names the comparison."""
    traces = [controls.current_trace(model) for model in models]
    sentences = traces[0].sentences
    row = 0
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if view != "across" or len(sentences) == 1:
            row = controls.sentence(sentences, "layers_sentence")
        with controls.options():
            controls.switch(
                "whole_word", "Whole words", "The vector of a word is the mean of the vectors of its pieces."
            )
            scale = controls.cosine_scale()
    figure = st.container()
    choice = word_choice.choose(models[0], sentences, view, row)
    controls.chip_legend()
    messages.hint(view)
    for model, trace in zip(models, traces, strict=True):
        for name in word_choice.missing(choice, sentences, trace):
            st.warning(
                f"{messages.escape(model.spec.title)} has no token for {messages.escape(name)}, so it has no curve for it."
            )
    for model in models:
        if view == "across" and not model.structure.has_position_vectors:
            st.caption(
                f"{wording.how_positions_enter(model.structure)} So at layer 0 a word has one vector everywhere."
            )
    messages.truncations(models, traces)
    layer_figures.compare_words(models, traces, choice, sentences, key="words", scale=scale, place=figure)


def starts_at_one(traces: Sequence[Trace]) -> bool:
    """Whether the first token has the same vector at layer 0 in all sentences of each trace, up to rounding."""
    first = [trace.hidden_states[0, :, 0] for trace in traces]  # [sentence, dim] each
    return all(np.allclose(vectors, vectors[:1], rtol=0, atol=1e-5) for vectors in first)


def whole_sentences(models: Sequence[Backend]) -> None:
    """The similarities of sentence vectors."""
    traces = [controls.current_trace(model) for model in models]
    if messages.needs_second_sentence([sentence.text for sentence in traces[0].sentences]):
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pooling = controls.sentence_vector(models)
        with controls.options():
            special = controls.pooled_special_tokens(pooling)
            scale = controls.cosine_scale()
    figure = st.container()
    messages.hint("sentences")
    if pooling == "cls" and not scale.centred and not scale.percentiles and starts_at_one(traces):
        st.caption("At layer 0 [CLS] has the same vector in every sentence, so every curve starts at exactly 1.")
    messages.head_note(models, pooling)
    messages.cross_encoder_note(models)
    messages.truncations(models, traces)
    layer_figures.compare_sentences(models, traces, pooling, special, key="sentences", scale=scale, place=figure)
