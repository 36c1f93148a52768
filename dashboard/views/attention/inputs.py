"""What all views of attention begin with: the choice of the texts, and the model's attentions for them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.model.guesses.masks import with_masks
from dashboard import state
from dashboard.ui import controls, pair_choice
from dashboard.views.attention import long_texts
from dashboard.views.attention.head_choice import AttentionInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from components.model.backend import Backend
    from dashboard.ui.pair_choice import InputPair


def with_input(draw: Callable[[AttentionInput, Any], None], backend: Backend) -> None:
    """Draw a view of the chosen texts; of texts too long for all heads at once, one head in its place.

    `draw` gets the input with its attentions, and the row of controls. It draws the picker of the second text among its
    options (`head_choice.options`).
    """
    row = controls.row()
    with row:
        pair_choice.choose_first()
    _with_pair(draw, backend, row, pair_choice.chosen)


def with_words(draw: Callable[[AttentionInput, Any], None], backend: Backend) -> None:
    """As `with_input`, for a view in whose row the words stand: the choice of the sentence is small, and there among several.

    Masks that are typed in another way than the model's own are read as its own.
    """
    row, texts = controls.row(), state.get("sentences")
    with row:
        if len(texts) > 1:
            with st.container(key="looks_sentence"):
                controls.sentence_of(texts, "sentence_a", pair_choice.label_of_first(), 0)
        pair_choice.tell_second()
    _with_pair(draw, backend, row, partial(_chosen_with_masks, backend))


def _chosen_with_masks(backend: Backend) -> InputPair:
    pair = pair_choice.chosen()
    first, second = (
        text if text is None else with_masks(text, backend.tokenization) for text in (pair.first, pair.second)
    )
    return replace(pair, first=first or pair.first, second=second)


def _with_pair(
    draw: Callable[[AttentionInput, Any], None], backend: Backend, row: Any, chosen: Callable[[], InputPair]
) -> None:
    """The rest of both, once the choice of the first text is drawn."""
    _refuse_missing_second()
    pair = chosen()
    sentence = pair.tokens(backend)
    if not backend.fits(len(sentence)) and not backend.structure.adds_to_scores:
        pair.tell_truncation(sentence)
        long_texts.one_head(backend, pair, sentence, row)
        return
    pair.tell_truncation(sentence)
    draw(AttentionInput(backend, pair, sentence), row)


def _refuse_missing_second() -> None:
    """As its picker would, which is drawn later: without a second sentence that a link names and that there is not."""
    chosen, count = state.get("sentence_b"), len(state.get("sentences"))
    if chosen is not None and not 0 <= chosen <= count:
        there_are = f"There {'is 1 sentence' if count == 1 else f'are {count} sentences'}."
        state.refuse("sentence_b", None, f"Sentence B {chosen} is not available here. {there_are}")
