"""The pickers of sentence A and an optional sentence B, on every page that shows two texts that are read together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st

from components.shown_code.arrays import Input
from dashboard import ready_made, state
from dashboard.ui import controls, messages

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace

NONE = "none: A alone"
MOST_OF_B = 40  # characters of sentence B beside the picker of A


@dataclass(frozen=True)
class InputPair:
    """Sentence A, and sentence B if the model reads both as one input."""

    first: str
    second: str | None
    rows: tuple[int, int] = field(compare=False)  # of A and B among the session's sentences; of A twice without B

    @property
    def names(self) -> tuple[str, str]:
        """What messages call the two texts."""
        first, second = (f"sentence {row + 1}" for row in self.rows)
        return first, second

    def trace(self, backend: Backend, attentions: bool = False) -> Trace:
        """One forward pass over this input alone."""
        return backend.trace(
            [self.first], [self.second], attentions=attentions, max_length=controls.length_for(backend)
        )

    def input(self, backend: Backend) -> Input:
        """The same for the code of a figure."""
        return Input(backend, [self.first], controls.length_for(backend), [self.second])

    def tokens(self, backend: Backend) -> TokenizedSentence:
        """The tokens of this input, without a forward pass."""
        return backend.tokenize([self.first], [self.second], controls.length_for(backend))[0]

    def tell_truncation(self, sentence: TokenizedSentence) -> None:
        """Say which of the two texts was truncated, if one was."""
        messages.truncation([sentence], names=[self.names])


def choose(always: bool = False) -> InputPair:
    """Draw two pickers. B starts as none, or as the second sentence if the ready-made set is a pair.

    With `always` there is a B: unless one was chosen, it is the first sentence other than A, on the other pages too.
    """
    _choose_a()
    choose_second(always)
    return chosen(always)


def choose_first() -> None:
    """Draw the picker of A, and beside it which sentence B is, for a view that draws the picker of B among its options."""
    second = state.get("sentence_b")
    _choose_a("Sentence A" if (_default_b(always=False) if second is None else second) else "Sentence")
    tell_second()


def _choose_a(label: str = "Sentence A") -> None:
    controls.sentence_of(state.get("sentences"), "sentence_a", label, 0)


def tell_second() -> None:
    """Say which sentence B is, if there is one: its picker is hidden in a closed panel, and the picture shows both."""
    texts, second = state.get("sentences"), state.get("sentence_b")
    second = _default_b(always=False) if second is None else second
    if 0 < second <= len(texts):
        text = texts[second - 1]
        shown = text if len(text) <= MOST_OF_B else f"{text[: MOST_OF_B - 1].rstrip()}…"
        with st.container(key="second_text", width="content"):
            st.caption(f"Sentence B: {second}\u2002{messages.escape(shown)}", width="content")


def choose_second(always: bool = False) -> None:
    """Draw the picker of B, after that of A; `always` as in `choose`."""
    default = _default_b(always)
    # Of one sentence B is A itself. That is nobody's choice: no other page reads A twice, and a second sentence replaces it.
    if always and not state.get("sentence_b") and default - 1 != state.get("sentence_a"):
        state.put("sentence_b", default)
    none = "" if always else NONE
    controls.sentence_of(state.get("sentences"), "sentence_b", "Sentence B", default, none=none, from_one=True)


def chosen(always: bool = False) -> InputPair:
    """The pair that the pickers show, once they are drawn; `always` as it was for them."""
    texts = state.get("sentences")
    first, second = state.get("sentence_a"), state.get("sentence_b")
    second = _default_b(always) if second is None else second
    return InputPair(texts[first], texts[second - 1] if second else None, (first, second - 1 if second else first))


def _default_b(always: bool) -> int:
    """Sentence B before a person chooses, from 1; 0 for none."""
    texts = state.get("sentences")
    if always:
        return 2 if state.get("sentence_a") == 0 and len(texts) > 1 else 1
    return 2 if ready_made.is_pair(texts) else 0
