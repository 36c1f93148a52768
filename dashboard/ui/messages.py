"""What people are told in words: notices, errors, empty states, truncated text."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import UserError
from dashboard import ready_made, state
from dashboard.ui import wording

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence, Trace


log = logging.getLogger(__name__)


def notices() -> None:
    """What was wrong with a link, for some seconds. It quotes the link, so nothing in it may count as markup."""
    for text in state.current_notices():
        st.warning(escape(text), icon=":material/link_off:")


def explain(problem: BaseException, doing: str) -> None:
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


def model_notes(backend: Backend) -> None:
    """What a model was published with that is not applied here; nothing for most models."""
    if backend.not_applied:
        st.warning(f"**{escape(backend.spec.title)}:** {escape(' '.join(backend.not_applied))}", icon=":material/info:")


def cross_encoder_note(backends: Sequence[Backend], after: Sequence[Backend] = ()) -> None:
    """Say of cross-encoders, where sentence vectors are compared, that theirs are not made for it; what they are for.

    `after` are the models for which the page has said so already: of another one it is said in short.
    """
    names = " and ".join(f"**{escape(model.spec.title)}**" for model in backends if model.is_cross_encoder)
    if not names:
        return
    if any(model.is_cross_encoder for model in after):
        st.caption(f":material/info: {names} is a cross-encoder too: the same holds for its vectors.")
        return
    verb, own = ("were", "their") if " and " in names else ("was", "its")
    st.warning(
        f"{names} {verb} trained to give a score to what it reads, two texts read together as a rule (a cross-encoder), and "
        f"not to make vectors that can be compared. Cosines of {own} pooled hidden states are shown here all the same; low "
        "numbers do not mean that the model is weak. Use it to score a few candidates again that another model has found "
        "(re-ranking), and look at how it reads two texts together on the Attention page. To search or to compare by "
        "vectors, choose a sentence encoder such as all-MiniLM-L6-v2.",
        icon=":material/info:",
    )


def head_note(backends: Sequence[Backend], pooling: str, layer: int | None = None) -> None:
    """What the model's own vector is, and that it is trained for the last layer; `layer` None: all are shown."""
    if pooling != "own":
        return
    for backend in backends:
        last, head = backend.facts.layers, backend.loaded.head
        if head is None:
            continue
        text = (
            f"The own vector of {escape(backend.spec.title)}: pooled ({wording.POOLING_NAMES[head.pooling]}), then through "
            f"the Dense layers it was published with, to {head.size} numbers."
        )
        if layer != last:
            text += f" They were trained on layer {last}: at other layers the same layers are applied all the same."
        st.caption(text)


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
