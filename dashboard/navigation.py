"""The pages there are, in the order of a person's path."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import streamlit as st

# key (also the address), title, icon, the question it answers
PATH: tuple[tuple[str, str, str, str], ...] = (
    ("home", "Home", ":material/home:", ""),
    ("tokens", "Tokens", ":material/match_word:", "How does text become numbers?"),
    ("model", "Model", ":material/layers:", "What is inside the model?"),
    ("layers", "Layers", ":material/show_chart:", "How does a word's vector change?"),
)


def _draw(key: str) -> None:
    # Imported when first opened, so that one page's libraries do not delay another.
    import_module(f"dashboard.views.{key}").render()


def pages() -> dict[str, Any]:
    """The pages of this run by key; made anew each run, as Streamlit wants it."""
    made = {}
    for key, title, icon, _ in PATH:
        draw = partial(_draw, key)
        draw.__name__ = key  # type: ignore[attr-defined]  # st.Page names a callable by this
        made[key] = st.Page(draw, title=title, icon=icon, url_path=key, default=key == "home")
    st.session_state["_pages"] = made
    return made


def page_of(key: str) -> Any:
    """A page to link to."""
    return st.session_state["_pages"][key]
