"""The first line of every page: what the page examines (sentences or a corpus), and tools for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import state
from dashboard.ui import browser, messages, sentence_bar, wording

if TYPE_CHECKING:
    from components.retrieval.corpora.corpus import Corpus


def draw(page: str, corpus: Corpus) -> None:
    """Draw the line; `corpus` is the session's."""
    address, has_room = state.address_of(page)
    carried = state.carried(page)
    items = [(key, text) for key, texts in address.items() for text in texts]
    with st.container(horizontal=True, key="page_header", gap="small"):
        if state.is_used("sentences", page):
            sentence_bar.draw(page)
        else:
            _corpus(page, corpus)
        browser.tools(
            "page_tools",
            can_link=has_room,
            is_dark=st.context.theme.type == "dark",
            carried=carried,
            can_reload=has_room and state.size_of([*items, *carried]) <= state.ADDRESS_LIMIT,
        )
        is_on = state.get("projector")
        st.button(
            "Leave" if is_on else "Projector",
            key="leave_projector" if is_on else "projector_on",
            icon=":material/close_fullscreen:" if is_on else ":material/present_to_all:",
            help="Leave projector mode" if is_on else "Projector mode: larger type and no sidebar",
            on_click=state.put,
            args=("projector", not is_on),
        )
    if not has_room:
        st.caption("The sentences are too long for a link, and reloading the page loses them: save them as a file.")


def _corpus(page: str, corpus: Corpus) -> None:
    """Which corpus a page searches or evaluates; an empty space on a page that uses none."""
    if not state.is_used("corpus", page):
        st.space("stretch")
        return
    count = wording.counted(len(corpus), "sentence")
    with st.container(key="corpus_line"):
        st.markdown(f":material/database: **{messages.escape(corpus.name[:60])}** · {count}")
