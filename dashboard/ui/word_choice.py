"""Choosing tokens to compare by clicking chips: across sentences, two in one, or one against the rest."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.analysis.similarity import token_vectors_of
from components.analysis.tokens import position_at
from dashboard import state
from dashboard.ui import controls

if TYPE_CHECKING:
    from components.arrays import Float32
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace

COMPARISONS = {
    "across": "The same word across sentences",
    "within": "Two tokens of one sentence",
    "against": "One token against all others",
}


@dataclass(frozen=True)
class Choice:
    """The tokens to compare, in the main model's tokenization."""

    mode: str
    picks: tuple[tuple[int, int], ...]  # (sentence, position)
    pairs: tuple[tuple[int, int], ...] | None  # indices into picks; None: all with all
    whole_word: bool

    def title(self, sentences: Sequence[TokenizedSentence]) -> str:
        words = [_name(sentences[row], position, self.whole_word) for row, position in self.picks]
        if self.mode == "across":
            same = len({word.lower() for word in words}) == 1
            return f"“{words[0]}” across sentences" if same else "The chosen words across sentences"
        if self.mode == "within":
            return f"“{words[0]}” and “{words[1]}” in one sentence"
        return f"“{words[0]}” against all others"

    def names(self, sentences: Sequence[TokenizedSentence]) -> list[str]:
        """A short name for each pick: its sentence's number across sentences, its position within one."""
        return [
            f"{row + 1 if self.mode == 'across' else position} {_name(sentences[row], position, self.whole_word)}"
            for row, position in self.picks
        ]

    def descriptions(self, sentences: Sequence[TokenizedSentence]) -> list[str]:
        """A longer name for each pick, with its sentence where that helps."""
        return [
            f"“{_name(sentences[row], position, self.whole_word)}”"
            + (f" ({row + 1}: {_short(sentences[row].text)})" if self.mode == "across" else f" (position {position})")
            for row, position in self.picks
        ]


def _name(sentence: TokenizedSentence, position: int, whole_word: bool) -> str:
    name = sentence.word_text(position) if whole_word else sentence.tokens[position].piece
    if any(unicodedata.bidirectional(char) in {"R", "AL"} for char in name):
        return f"\u2068{name}\u2069"  # isolated: it must not turn the numbers beside it round
    return name


def _short(text: str, limit: int = 28) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def choose(backend: Backend, sentences: Sequence[TokenizedSentence]) -> Choice:
    """Draw the mode, the chips and the switch for whole words, and return what is chosen."""
    mode = controls.choice("comparison", "Compare", COMPARISONS, show_label=False)
    whole = bool(state.get("whole_word"))
    chosen = controls.positions(sentences, backend.spec.key)
    unknown = backend.tokenization.unknown_id
    if mode == "across" and len(sentences) == 1:
        st.info("One sentence has no other to compare with: two of its tokens are compared. Add a sentence for more.")
        mode = "within"
    if mode == "across":
        controls.token_chips(sentences, chosen, "chips_across", whole_word=whole, unknown_id=unknown)
        return Choice(mode, tuple(enumerate(chosen)), None, whole)
    row = controls.sentence(sentences, "layers_sentence")
    first = chosen[row]
    if mode == "against":
        controls.token_chips(sentences, chosen, "chips_against", rows=[row], whole_word=whole, unknown_id=unknown)
        others = _others(sentences[row], first, whole)
        return Choice(
            mode,
            ((row, first), *((row, other) for other in others)),
            tuple((0, index + 1) for index in range(len(others))),
            whole,
        )
    second = _second(sentences[row], first, whole)

    def pick(_: int, position: int) -> None:
        # The token clicked takes the place of the one chosen earlier.
        if position in _same(sentences[row], first, whole) or position in _same(sentences[row], second, whole):
            return
        state.put("tokens", (*chosen[:row], second, *chosen[row + 1 :]))
        state.put("second_token", position)

    controls.token_chips(
        sentences,
        chosen,
        "chips_within",
        rows=[row],
        whole_word=whole,
        unknown_id=unknown,
        on_pick=pick,
        also=second,
    )
    return Choice(mode, ((row, first), (row, second)), None, whole)


def _same(sentence: TokenizedSentence, position: int, whole: bool) -> tuple[int, ...]:
    return sentence.word_positions(position) if whole else (position,)


def _others(sentence: TokenizedSentence, first: int, whole: bool) -> list[int]:
    """Every other token, or the first piece of every other word."""
    others: list[int] = []
    skip = set(_same(sentence, first, whole))
    for position in range(len(sentence)):
        if position not in skip:
            others.append(position)
            skip |= set(_same(sentence, position, whole))
    return others


def _second(sentence: TokenizedSentence, first: int, whole: bool) -> int:
    """The second token: as chosen, else the longest other word, else whatever there is."""
    others = _others(sentence, first, whole)
    chosen = state.get("second_token")
    taken = set(_same(sentence, first, whole))
    if chosen is not None and chosen < len(sentence) and chosen not in taken:
        return int(chosen)
    texts = [position for position in others if not sentence.tokens[position].special] or others
    return max(texts, key=lambda position: len(sentence.word_text(position))) if texts else first


def vectors(choice: Choice, sentences: Sequence[TokenizedSentence], trace: Trace) -> Float32:
    """The chosen tokens' vectors in a trace, float32 [layer, pick, dim]; a word is the mean of its pieces.

    `sentences` are the main model's tokens; in another model's trace each choice is found by its characters.
    NaN where that model has no token for it: its text was cut off, or dropped.
    """
    picked = []
    for row, position in choice.picks:
        positions = _positions(trace.sentences[row], sentences[row], position, choice.whole_word)
        if positions:
            picked.append(trace.token_vectors(row, positions))
        else:  # this model never got that text: no value, rather than another token's
            picked.append(np.full((trace.n_layers + 1, 1, trace.hidden_states.shape[-1]), np.nan, np.float32))
    return token_vectors_of(picked)


def missing(choice: Choice, sentences: Sequence[TokenizedSentence], trace: Trace) -> list[str]:
    """The chosen words that a model's trace has no token for, as people read them."""
    return [
        name
        for name, (row, position) in zip(choice.descriptions(sentences), choice.picks, strict=True)
        if not _positions(trace.sentences[row], sentences[row], position, choice.whole_word)
    ]


def _positions(own: TokenizedSentence, chosen_in: TokenizedSentence, position: int, whole: bool) -> tuple[int, ...]:
    token = chosen_in.tokens[position]
    if own is chosen_in or own.tokens == chosen_in.tokens:
        own_position: int | None = position
    elif token.special:
        own_position = 0 if position == 0 else len(own) - 1
    else:
        own_position = position_at(own, token.start, token.end, token.in_pair)
    return () if own_position is None else _same(own, own_position, whole)
