"""The examples below the field of Start, and how one takes the place of the session's sentences."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from components.words.lines import on_one_line
from dashboard import ready_made, settings, state
from dashboard.ui import sentence_bar

SEARCH_VIEW = "hits"
BANK = ready_made.ready_made_sets()[settings.DEFAULT_SET].sentences  # with which a session begins
TROPHY = ("The trophy does not fit in the suitcase because it is too big.",)
GOOD = ("The food was good.", "The food was not good.")
MOST_NAMED = 40  # characters of a person's own sentences


@dataclass(frozen=True)
class Example:
    """What a chip shows, or where it leads without sentences."""

    key: str
    label: str
    sentences: tuple[str, ...] = ()


def put(sentences: tuple[str, ...]) -> None:
    """Make these the session's sentences; the tokens that were chosen belong to those before."""
    if sentences != state.peek("sentences"):
        st.session_state.pop("_anchors", None)
        state.put("tokens", ())
        state.put("sentence", None)
        state.put("sentences", sentences)


def own() -> tuple[str, ...]:
    """The sentences of the session that a person has typed; none where they are an example or ready-made."""
    sentences = sentence_bar.own()
    return () if any(item.sentences == sentences for item in offered(())) else sentences


def offered(own: tuple[str, ...]) -> tuple[Example, ...]:
    """The examples; before them a person's own sentences (`own` are the session's), which can be brought back."""
    ready = (
        Example("bank", "A bank by a river", BANK),
        Example("it", "What does “it” mean?", TROPHY),
        Example("good", "Good, and not good", GOOD),
        Example("search", "Search in your own words"),
    )
    if not own or any(item.sentences == own for item in ready):
        return ready
    line = on_one_line(own)
    name = line if len(line) <= MOST_NAMED else f"{line[: MOST_NAMED - 1].rstrip()}…"
    return (*ready, Example("own", f"Yours: {name}", own))
