"""The pages there are, in the order of a person's path, and what all of them but Home have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from dashboard import state
from dashboard.ui import controls, messages, model_gate

# key (also the address), title, icon, the question it answers
PATH: tuple[tuple[str, str, str, str], ...] = (
    ("home", "Home", ":material/home:", ""),
    ("tokens", "Tokens", ":material/match_word:", "How does text become numbers?"),
    ("model", "Model", ":material/layers:", "What is inside the model?"),
    ("layers", "Layers", ":material/show_chart:", "How does a word's vector change?"),
    ("heatmaps", "Heatmaps", ":material/grid_on:", "What does each block do to each token?"),
    ("attention", "Attention", ":material/visibility:", "Which token looks at which?"),
    ("map", "Map", ":material/scatter_plot:", "Where do tokens lie?"),
    ("search", "Search", ":material/search:", "Which sentences come closest?"),
    ("evaluate", "Evaluate", ":material/leaderboard:", "Which layer and pooling retrieve best?"),
)


def pages() -> dict[str, Any]:
    """The pages of this run by key; made anew each run, as Streamlit wants it."""
    made = {
        key: st.Page(f"views/{key}/page.py", title=title, icon=icon, url_path=key, default=key == "home")
        for key, title, icon, _ in PATH
    }
    st.session_state["_pages"] = made
    return made


def page_of(key: str) -> Any:
    """A page to link to."""
    return st.session_state["_pages"][key]


def show(
    page: str,
    intro: str,
    views: dict[str, str],
    draw: Callable[[Any, str], None],
    doing: str,
    *,
    models: Callable[[], Any] = model_gate.main_model,
    of_sentences: bool = False,
    help_text: str | None = None,
    foot: Callable[[], None] | None = None,
) -> None:
    """A page: its question, what it is about, one of its views, and the next step.

    `draw(models(), view)` draws a view; `doing` says what failed where it fails. `of_sentences`: there is nothing to see
    without one. `foot` stands below every view.
    """
    st.title(next(question for key, _, _, question in PATH if key == page))
    st.markdown(intro)
    if of_sentences and messages.needs_sentences():
        return

    @st.fragment
    def body() -> None:
        loaded = models()  # asked for here: a fragment is kept, and must not keep a model
        view = controls.choice(f"{page}_view", "Look at", views, help_text, show_label=help_text is not None)
        messages.guarded(partial(draw, loaded, view), doing)
        state.write_address(page)

    body()
    if foot is not None:
        foot()
    next_step(page)


def next_step(page: str) -> None:
    """The link at a page's foot to the one after it on the path; to the start after the last."""
    keys = [key for key, *_ in PATH]
    after = PATH[(keys.index(page) + 1) % len(keys)]
    label = f"Next: {after[1]}. {after[3]}" if after[0] != "home" else "Back to the start"
    st.divider()
    st.page_link(page_of(after[0]), label=label, icon=":material/arrow_forward:")
