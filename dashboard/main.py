"""What each run of a session does: page config, navigation, the shared sidebar, then the page. app.py serves it."""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path

# Streamlit puts the folder of the script on sys.path, not the project's root, which holds the packages `components`
# and `dashboard`.
ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

import streamlit as st  # noqa: E402
from streamlit.errors import Error  # noqa: E402
from streamlit.runtime.scriptrunner import get_script_run_ctx  # noqa: E402

from components.operator_settings import LOGIN  # noqa: E402
from dashboard import access, navigation, ready_made, state  # noqa: E402
from dashboard.corpora import bar as corpus_bar  # noqa: E402
from dashboard.corpora import current  # noqa: E402
from dashboard.declared import table  # noqa: E402
from dashboard.jobs import warm_up  # noqa: E402
from dashboard.jobs.requests import NotReady  # noqa: E402
from dashboard.lessons import panel, steps  # noqa: E402
from dashboard.sharing import lecture, walk  # noqa: E402
from dashboard.sharing import panel as session_panel  # noqa: E402
from dashboard.ui import browser, messages, model_gate, page_header, sentence_bar, sidebar  # noqa: E402
from dashboard.ui.waiting import frame, listing, turn  # noqa: E402

warm_up.follow_models()
log = logging.getLogger("dashboard.main")  # the script itself is called __main__
SIDEBAR_WIDTH = 256  # pixels: the words below the doors fit


def main() -> None:
    is_first_run = st.session_state.get("_address") is None
    in_lesson = bool(st.session_state.get("lesson")) or (is_first_run and "lesson" in st.query_params)
    in_lesson = in_lesson or steps.finished() is not None  # whose panel says what was seen: the page keeps its width
    # Our own icon: a Material icon would be fetched from a font host.
    st.set_page_config(
        page_icon=str(ready_made.ASSETS / "icon.svg"),
        layout="wide",
        # The lesson's panel takes the room of the sidebar, which can still be opened.
        initial_sidebar_state="collapsed" if in_lesson else SIDEBAR_WIDTH,
        menu_items={"About": navigation.PRODUCT},  # else there is no menu, by which tools.js changes the colours
    )
    projector = bool(st.session_state.get("projector", st.query_params.get("proj") == "1"))
    pages = navigation.pages()
    if not access.may_see_pages():
        st.navigation(list(pages.values()), position="hidden")
        ask_for_login()
        return
    page = st.navigation(list(pages.values()), position="top" if projector else "sidebar", expanded=True)
    key = page.url_path or navigation.HOME
    context = get_script_run_ctx()
    key = state.read_address(key, history=bool(context and context.is_history_navigation))
    navigation.name_tab(key)
    sentence_bar.take_edits()
    steps.open_short_link(key, is_first_run)
    walk.take(key)
    # Request the model before drawing anything: the first import of torch then runs while the page is drawn.
    if not table.VIEWS[state.view_of(key)].requests_model:
        model_gate.request_model()
    # Before the page is drawn too: a press while it is drawn ends the visit's first moment, and an address written after
    # it would be a second entry of the browser's history for the same visit (see tools.js).
    state.write_address(key, before_drawing=True)
    st.html(navigation.hints())
    enlarge_for_projector()
    listing.expect()
    jobs_slot = sidebar.draw(key)
    panel.draw(key)
    page_header.draw(key, partial(corpus_bar.draw, key), partial(session_panel.draw, key))
    messages.lost_device()
    notices = st.empty()
    with notices:
        messages.notices()
    # What a view reads of the corpus must not start with the demo because its own has left the memory.
    try:
        if state.is_in_view("corpus", key) or state.is_in_view("training_data", key):
            current.make_ready()
        with turn.shown():
            if key == (page.url_path or navigation.HOME):
                page.run()
            else:  # the address names a view of another page than its path
                navigation.show(key)
    except NotReady as problem:
        frame.draw(problem)
        current.offer_demo(problem)
    if state.current_notices(key):
        notices.empty()  # the page shows them with its own, in one box
    walk.draw(key)
    listing.draw(jobs_slot)  # last: by now the page has started its jobs
    if LOGIN.value():
        st.sidebar.button("Log out", key="log_out", on_click=st.logout)
    state.write_address(key)


def ask_for_login() -> None:
    """All that a person sees who has not logged in."""
    st.set_page_config(page_title=navigation.PRODUCT)
    st.title("BERT Internals")
    st.write("This server shows its pages to people who have logged in.")
    if st.button("Log in", key="log_in", type="primary"):
        try:
            st.login()
        except Error as problem:
            log.error("no login: %s", problem.args[0] if problem.args else type(problem).__name__)  # names no person
            st.error("Nobody can log in at the moment. The server's log tells its operator why.")


def enlarge_for_projector() -> None:
    """Larger type in projector mode; the style sheet of all pages stands in the first page (see app.py)."""
    if state.get("projector"):
        # In a small window it is smaller, so that there is room for a picture. In a lecture, without controls, it grows with a
        # large one, half as fast.
        grown = "max(135%, min(67.5% + 1.2vh, 67.5% + 0.75vw, 202.5%))" if lecture.is_given() else "135%"
        size = f"max(103%, min(2.4vh, 1.5vw, {grown}))"
        st.html(f"<style>html {{ font-size: {size}; }} {browser.asset('projector', 'css')}</style>")


if __name__ == "__main__":  # as Streamlit runs it; app.py only imports it
    main()
