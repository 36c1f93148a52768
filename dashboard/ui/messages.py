"""What people are told in words: notices, errors, empty states, truncated text."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import UserError
from dashboard import ready_made, state

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace


log = logging.getLogger(__name__)


def notices() -> None:
    """What was wrong with a link, for some seconds. It quotes the link, so nothing in it may count as markup."""
    for text in state.current_notices():
        st.warning(escape(text), icon=":material/link_off:")


def explain(problem: Exception, doing: str) -> None:
    """An error as a message for people; whatever is not meant for them goes to the server's log only."""
    if isinstance(problem, UserError):
        st.error(f"**{escape(problem.problem)}** {escape(problem.expected)}\n\n{escape(problem.fix)}")
        return
    log.error("%s failed", doing, exc_info=problem)
    st.error(
        f"**Something went wrong while {doing}.** This is a fault of the dashboard, not yours; the server's log "
        "tells more.\n\nChange the sentences or the model, or reset to the defaults in the sidebar."
    )


def escape(text: str) -> str:
    """Text with Markdown's and HTML's signs made plain, and addresses no links.

    Streamlit's Markdown turns bare addresses into links after it has read the escapes; a word joiner, which
    nobody sees, keeps it from it.
    """
    plain = "".join(f"\\{char}" if char in "\\`*_{}[]()<>#+!|$~:&" else char for char in text)
    return re.sub(r"(?i)(:(?=//)|www(?=\.)|@)", "\\1\u2060", plain)


def guarded(draw: Callable[[], None], doing: str) -> None:
    """Run a page's body; errors become messages, never tracebacks."""
    try:
        draw()
    except Exception as problem:  # noqa: BLE001 - the last place before Streamlit would show a traceback
        explain(problem, doing)


def needs_sentences() -> bool:
    """Whether there is no sentence; if so, the empty state is drawn, and the page ends there."""
    if state.get("sentences"):
        return False
    st.info(
        "**No sentence yet.** Type one in the sidebar, one a line, or start with an example.",
        icon=":material/edit_note:",
    )
    if st.button("Start with the bank sentences", key="start_example", type="primary"):
        state.put("sentences", ready_made.ready_made_sets()["bank"].sentences)
        st.rerun()  # of the whole page: the sidebar shows them too
    return True


def truncation(sentences: Sequence[TokenizedSentence], model: str = "") -> None:
    """Say exactly which text did not reach the model; `model` names it where there are two."""
    whom = f"{escape(model)}'s" if model else "the chosen" if state.get("max_length") else "the model's"
    for number, sentence in enumerate(sentences, start=1):
        for item in sentence.dropped:
            with st.container(border=True):
                text_name = "The second text" if item.of_pair else f"Sentence {number}"
                st.markdown(
                    f":orange[:material/content_cut:] **{text_name} is longer than {whom} maximum length:** {item.tokens:,} "
                    f"token{' was' if item.tokens == 1 else 's were'} cut away, from character {item.start + 1} on. "
                    "It never saw:"
                )
                st.text(item.text if len(item.text) <= 1_500 else item.text[:1_500] + " …")


def truncations(models: Sequence[Backend], traces: Sequence[Trace]) -> None:
    """What was cut away in each model, which is named where there are two."""
    for model, trace in zip(models, traces, strict=True):
        truncation(trace.sentences, model.spec.title if len(models) > 1 else "")
