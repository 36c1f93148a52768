"""Links from a pair of texts to the views that show how a model reads the two as one input."""

from __future__ import annotations

import streamlit as st

from components.model.catalog import spec_of
from components.model.tokenization import MAX_CHARACTERS
from dashboard import navigation, settings, state
from dashboard.declared import table
from dashboard.ui import messages, sentence_bar


def _views_by_name() -> dict[str, list[str]]:
    """The names under which the steps on the way from text to use offer views of a pair, and the keys of these views."""
    found: dict[str, list[str]] = {}
    for page, _, key in table.PLACES:
        if table.PAGE_BY_KEY[page].is_step and "sentence_b" in table.VIEWS[key].settings:
            found.setdefault(table.name_of(key), []).append(key)
    return found


_VIEWS = _views_by_name()


def draw(first: str, second: str, *, key: str = "", model: str = "") -> None:
    """Draw a menu of links to the pages that show this pair, read together as [CLS] first [SEP] second [SEP].

    A click makes the two texts the session's sentences A and B; a person's own sentences can be brought back. `key`
    tells several menus of one page apart. `model` is the key of the model that then reads the pair, such as a
    cross-encoder; the session's model by default.
    """
    texts, problem = _cleaned(first, second)
    with st.popover("Open this pair in …", icon=":material/open_in_new:", key=f"pair_links{key}", width="content"):
        if model not in ("", state.peek("model")):
            st.caption(f"It is read by {messages.escape(spec_of(model).title)} there.")
        for name, views in _VIEWS.items():
            page = table.PAGE_BY_KEY[table.place_of(views[0])]
            opened = state.view_of(page.key)
            view = opened if opened in views else views[0]
            if st.button(
                name,
                icon=page.icon,
                key=f"pair_in_{views[0]}{key}",
                type="tertiary",
                disabled=bool(problem),
                help=problem or None,
            ):  # not by a callback, which cannot go to another page
                choose(texts[0], texts[1], view, model)
                navigation.go_to(view)


def button(label: str, first: str, second: str, view: str, *, key: str, icon: str = "") -> None:
    """Draw one link that opens a view of a pair, by default with the icon of its page."""
    texts, problem = _cleaned(first, second)
    icon = icon or table.PAGE_BY_KEY[table.place_of(view)].icon
    if st.button(label, icon=icon, key=key, disabled=bool(problem), help=problem or None):
        choose(texts[0], texts[1], view)
        navigation.go_to(view)


def _cleaned(first: str, second: str) -> tuple[tuple[str, ...], str]:
    """Both texts as sentences, each on one line; and why the pages cannot show them, empty if they can."""
    texts = settings.clean_sentences([" ".join(text.splitlines()) for text in (first, second)])
    if len(texts) < 2:
        return texts, "One of the two texts is empty."
    if sum(map(len, texts)) > MAX_CHARACTERS:
        return texts, f"The two texts have more than {MAX_CHARACTERS:,} characters, which these pages cannot show."
    return texts, ""


def choose(first: str, second: str, view: str, model: str = "") -> None:
    """Make two texts the session's sentences A and B, and let the page of a view show it, which reads them as one input.

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
    state.open_view(view)
    if model:
        state.put("model", model)
