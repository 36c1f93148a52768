"""Links from a pair of texts to the pages that show how a model reads the two as one input."""

from __future__ import annotations

import streamlit as st

from components.model.catalog import spec_of
from components.model.tokenization import MAX_CHARACTERS
from dashboard import navigation, settings, state
from dashboard.declared import table
from dashboard.ui import messages, sentence_bar


def _views_by_page() -> dict[str, list[str]]:
    """The pages with views that show a pair, and the keys of these views."""
    found: dict[str, list[str]] = {}
    for page in table.PAGES:
        if keys := [view.key for view in table.views_of(page.key) if "sentence_b" in view.settings]:
            found[page.key] = keys
    return found


_VIEWS = _views_by_page()


def draw(first: str, second: str, *, key: str = "", model: str = "") -> None:
    """Draw a row of links to the pages that show this pair, read together as [CLS] first [SEP] second [SEP].

    A click makes the two texts the session's sentences A and B; a person's own sentences can be brought back. `key`
    tells several rows of one page apart. `model` is the key of the model that then reads the pair, such as a
    cross-encoder; the session's model by default.
    """
    texts, problem = _cleaned(first, second)
    reader = f" (read by {messages.escape(spec_of(model).title)})" if model not in ("", state.peek("model")) else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"pair_links{key}"):
        st.markdown(f"Look at this pair{reader} in", width="content")
        for page in _VIEWS:
            named = table.PAGE_BY_KEY[page]
            if st.button(
                named.title, icon=named.icon, key=f"pair_in_{page}{key}", disabled=bool(problem), help=problem or None
            ):  # not by a callback, which cannot go to another page
                choose(texts[0], texts[1], page, model)
                st.switch_page(navigation.page_of(page))


def button(label: str, first: str, second: str, page: str, *, key: str, icon: str = "") -> None:
    """Draw one link that opens a page's view of a pair, by default with the icon of the page."""
    texts, problem = _cleaned(first, second)
    icon = icon or table.PAGE_BY_KEY[page].icon
    if st.button(label, icon=icon, key=key, disabled=bool(problem), help=problem or None):
        choose(texts[0], texts[1], page)
        st.switch_page(navigation.page_of(page))


def _cleaned(first: str, second: str) -> tuple[tuple[str, ...], str]:
    """Both texts as sentences, each on one line; and why the pages cannot show them, empty if they can."""
    texts = settings.clean_sentences([" ".join(text.splitlines()) for text in (first, second)])
    if len(texts) < 2:
        return texts, "One of the two texts is empty."
    if sum(map(len, texts)) > MAX_CHARACTERS:
        return texts, f"The two texts have more than {MAX_CHARACTERS:,} characters, which these pages cannot show."
    return texts, ""


def choose(first: str, second: str, page: str, model: str = "") -> None:
    """Make two texts the session's sentences A and B, and open a page's view that shows them as one input.

    The session's sentences stay if both texts are among them.
    """
    sentences: tuple[str, ...] = state.peek("sentences")
    if not {first, second} <= set(sentences):
        sentence_bar.replace((first, second))
        sentences = (first, second)
    position = sentences.index(first)
    others = [row for row, text in enumerate(sentences) if text == second and row != position]
    state.put("sentence_a", position)
    state.put("sentence_b", (others[0] if others else position) + 1)  # B counts from 1
    state.put("reading", "together")
    state.put("experiment_texts", "own")
    state.put("map_source", "sentences")
    if state.view_of(page) not in _VIEWS[page]:
        state.open_view(_VIEWS[page][0])
    if model:
        state.put("model", model)
