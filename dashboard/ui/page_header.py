"""The first line of every page: what the page examines (sentences or a corpus), and tools for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import state
from dashboard.declared import table
from dashboard.sharing import lecture
from dashboard.ui import browser, controls, messages, sentence_bar, wording

if TYPE_CHECKING:
    from collections.abc import Callable

    from components.retrieval.corpora.corpus import Corpus


_SLOT = "_data_line"  # the session's place for the name of what a page measures
_DRAWN_FOR = "_header_drawn_for"  # session key: the `surroundings` of the view that was open when the page was drawn


def draw(page: str, draw_corpus: Callable[[], None], draw_session: Callable[[], None]) -> None:
    """Draw the line; a page of other data names them by `measures`.

    `draw_corpus` draws the bar of the session's corpus, and `draw_session` the button beside the link that saves and opens
    sessions.
    """
    _, has_room = state.address_of(page)
    with st.container(horizontal=True, key="page_header", gap="small"):
        st.session_state[_DRAWN_FOR] = surroundings(page)
        view = table.VIEWS[state.view_of(page)]
        if not view.is_framed:
            st.space("stretch")
        elif view.uses_sentences:
            sentence_bar.draw(page)
        elif view.uses_corpus:
            draw_corpus()
        else:  # for what the view measures: what it trains on, or texts of its own
            with st.container(key="corpus_line"):
                st.session_state[_SLOT] = st.empty()
        browser.tools(
            "page_tools",
            can_link=has_room,
            is_dark=controls.is_dark(),
            screen_factor=controls.screen_factor() if state.get("projector") and lecture.is_given() else None,
            on_screen=lambda: controls.take_screen_factor(browser.sent_by("page_tools", "screen")),
        )
        draw_session()
        is_on = state.get("projector")
        st.button(
            "Leave" if is_on else "Projector",
            key="leave_projector" if is_on else "projector_on",
            icon=":material/close_fullscreen:" if is_on else ":material/present_to_all:",
            help="Leave projector mode"
            if is_on
            else "Projector mode: larger type and no sidebar; the arrow keys go from view to view",
            on_click=state.put,
            args=("projector", not is_on),
        )
    if not has_room:
        st.caption(
            "The texts are too long for a link, and reloading the page loses them: “Session” (:material/save:) at the top "
            "saves them as a file."
        )


def surroundings(page: str) -> tuple[str, frozenset[str]]:
    """What stands around the open view and depends on it: the page, and which of this the view uses."""
    names = ("sentences", "training_data", *state.MODELS)
    used = {name for name in names if state.is_in_view(name, page)}
    if table.VIEWS[state.view_of(page)].uses_corpus:
        used.add("corpus")
    return page, frozenset(used)


def is_outdated(page: str) -> bool:
    """Whether the page was drawn around another view, which a view changed in a fragment leaves in place."""
    drawn_for = st.session_state.get(_DRAWN_FOR)
    return drawn_for is not None and drawn_for[0] == page and drawn_for != surroundings(page)


def begin_view(page: str) -> None:
    """Empty the line of what the view before measured, if the open view names what it measures itself.

    Called in every run of a view: a view that is drawn again without the rest of the page may write only to places outside
    it that it wrote to when the whole page was drawn.
    """
    view = table.VIEWS[state.view_of(page)]
    if not view.uses_sentences and not view.uses_corpus:
        st.session_state[_SLOT].empty()


def measures_corpus(corpus: Corpus) -> None:
    """Name a corpus in the line."""
    measures(corpus.name, wording.counted(len(corpus), "sentence"))


def measures(name: str, size: str = "") -> None:
    """Name in the line what the open view measures, and its size in words, in place of the name before.

    A view calls it, which is drawn again without the rest of the page: so the line's place is kept in the session.
    """
    size = f" · {size}" if size else ""
    st.session_state[_SLOT].markdown(f":material/database: **{messages.escape(name[:60])}**{size}")
