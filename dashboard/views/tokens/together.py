"""Pieces of two sentences that the model reads as one input: [CLS] A [SEP] B [SEP]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.analysis.attention.weights import second_text
from components.analysis.first_look.words import interest
from components.numbers import enumerated
from dashboard import state
from dashboard.ui import browser, controls, pair_choice
from dashboard.views.tokens import sections

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence
    from dashboard.ui.pair_choice import InputPair

READINGS = {"alone": "Each alone", "together": "Two together"}


def is_chosen() -> bool:
    """Draw the choice between each sentence alone and two together; whether it is the latter."""
    with controls.row():
        reading = controls.choice("reading", "Read", READINGS)
        if reading == "together":
            pair_choice.choose(always=True)
    return reading == "together"


def pieces(backend: Backend) -> None:
    """Chips of both texts in the order of the input, and the facts of the token that was clicked."""
    pair = pair_choice.chosen(always=True)
    sentence = pair.tokens(backend)
    start = int(np.argmax(second_text(sentence)))  # the position of the first token of B
    chosen = _chosen(sentence, start)
    parts = ((pair.names[0], "A", range(start)), (pair.names[1], "B", range(start, len(sentence))))
    browser.chips(
        [
            browser.ChipRow(
                index,
                sentence,
                tuple(position for position in (chosen,) if position in positions),
                number=label,
                label=f"{label}: {name}",
                positions=positions,
            )
            for index, (name, label, positions) in enumerate(parts)
        ],
        key="chips_together",
        on_click=lambda _, position: state.put("joint_token", position),
        unknown_id=backend.tokenization.unknown_id,
        special_ids=frozenset(number for _, number in backend.tokenization.special_tokens.values()),
        scale=controls.scale(),
        under=lambda token: (f"{token.id} · {token.segment}" if backend.facts.segments else str(token.id),),
    )
    left_out = [str(row) for row in range(1, len(state.get("sentences")) + 1) if row - 1 not in pair.rows]
    if left_out:
        st.caption(
            f"Sentence{'s' * (len(left_out) > 1)} {enumerated(left_out)} {'are' if len(left_out) > 1 else 'is'} not read."
        )
    numbers = "its id, then its token type" if backend.facts.segments else "its id (this model has no token types)"
    st.caption(f"One input of {len(sentence)} tokens. Under each piece: {numbers}. Click a chip to see its facts.")
    name, label, _ = parts[chosen >= start]
    sections.facts(backend, sentence, chosen, f"{label} ({name})")
    alone = backend.tokenize([pair.first, pair.second or ""], max_length=controls.length_for(backend))
    sections.unusual_characters(backend, alone, [row + 1 for row in pair.rows])
    _truncation(pair, sentence)
    sections.statistics(backend, [sentence])


def _chosen(sentence: TokenizedSentence, start: int) -> int:
    """The position of the chosen token; by default the first one of B, or the word to look at first if B has none."""
    position = state.get("joint_token")
    if position is not None and position < len(sentence):
        return int(position)
    return start if sentence.tokens[start].in_pair else interest([sentence]).positions[0]


def _truncation(pair: InputPair, sentence: TokenizedSentence) -> None:
    pair.tell_truncation(sentence)
    if sentence.dropped:
        side = "beginning" if sentence.dropped[0].is_beginning else "end"
        st.caption(f"Tokens are removed from the {side} of the longer text until both fit together.")


def tensors(backend: Backend) -> None:
    """The rows of numbers that the model gets for the pair."""
    pair = pair_choice.chosen(always=True)
    sentence = pair.tokens(backend)
    sections.tensors(backend, [sentence], pair.input(backend), [_both(pair)])
    if backend.facts.segments:
        st.caption("Both sentences are one row. The token type is 0 for A with [CLS] and the first [SEP], and 1 for B.")
    _truncation(pair, sentence)


def decoding(backend: Backend) -> None:
    """The ids of the pair turned back into text."""
    pair = pair_choice.chosen(always=True)
    sections.decoding(backend, [pair.tokens(backend)], [_both(pair)])
    sections.special_tokens(backend)


def _both(pair: InputPair) -> str:
    """The numbers of both sentences, before a row of the pair."""
    return " + ".join(str(row + 1) for row in pair.rows)
