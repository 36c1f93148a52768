"""What all views of attention begin with: the choice of the texts, and the model's attentions for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from components.model.guesses.masks import with_masks
from dashboard import state
from dashboard.ui import controls, pair_choice
from dashboard.ui.pair_choice import InputPair
from dashboard.views.attention import long_texts
from dashboard.views.attention.head_choice import AttentionInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from components.model.backend import Backend


def with_input(draw: Callable[[AttentionInput, Any], None], backend: Backend) -> None:
    """Draw a view of the chosen texts; of texts too long for all heads at once, one head in its place.

    `draw` gets the input with its attentions, and the row of controls. It draws the picker of the second text among its
    options (`head_choice.options`).
    """
    row = controls.row()
    with row:
        pair_choice.choose_first()
    _refuse_missing_second()
    _draw(draw, backend, row, pair_choice.chosen(), are_two=True)


def with_words(draw: Callable[[AttentionInput, Any], None], backend: Backend) -> None:
    """For a view of one sentence in whose row its words stand: the choice of the sentence is small, and there among several.

    Masks that are typed in another way than the model's own are read as its own.
    """
    row, texts = controls.row(), state.get("sentences")
    at = 0
    if len(texts) > 1:
        with row, st.container(key="looks_sentence"):
            at = controls.sentence_of(texts, "sentence_a", "Sentence", 0)
    _draw(draw, backend, row, InputPair(with_masks(texts[at], backend.tokenization), None, (at, at)), are_two=False)


def _draw(
    draw: Callable[[AttentionInput, Any], None], backend: Backend, row: Any, pair: InputPair, *, are_two: bool
) -> None:
    """The rest of both, once the choice of the texts is drawn. `are_two`: the view can show a second text too."""
    sentence = pair.tokens(backend)
    pair.tell_truncation(sentence)
    if not backend.fits(len(sentence)) and not backend.structure.adds_to_scores:
        long_texts.one_head(backend, pair, sentence, row, are_two=are_two)
        return
    draw(AttentionInput(backend, pair, sentence), row)


def _refuse_missing_second() -> None:
    """As its picker would, which is drawn later: without a second sentence that a link names and that there is not."""
    chosen, count = state.get("sentence_b"), len(state.get("sentences"))
    if chosen is not None and not 0 <= chosen <= count:
        there_are = f"There {'is 1 sentence' if count == 1 else f'are {count} sentences'}."
        state.refuse("sentence_b", None, f"Sentence B {chosen} is not available here. {there_are}")
