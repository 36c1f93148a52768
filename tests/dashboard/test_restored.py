"""An address restores every view of every page: a new session that opens it shows the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.training import runs
from dashboard import caching, settings
from dashboard.declared import table
from dashboard.declared.view import A_RUN, View
from tests.dashboard.page_states import STATES, place_of, settings_of, shown
from tests.support import tiny
from tests.support.pages import Open, at_rest, go_to, setting, settled, texts
from tests.support.training_runs import write_run

SETTINGS = table.SETTING
# Settings that no example has: of files that a person uploads, which no address holds, and of other models.
NOT_COVERED = {
    *("sense_source", "sts_source", "clinic_source", "score_label"),
    *("graded_source", "graded_query_field", "graded_document_fields"),
    "tried_cross_encoder",  # needs a cross-encoder that is not included; tests/dashboard/views/diagnosis/test_helps.py has one
}


@pytest.fixture(scope="module", autouse=True)
def tiny_model(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Callable[[str], Path]) -> Iterator[str]:
    """The folder of a tiny model; a run of Training that made another from it is in a cache of this file's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERT_INTERNALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        folder = str(tiny_folder("bert").resolve())
        run = write_run(
            runs.runs_folder(), A_RUN, result=tiny.save_tiny(tmp_path_factory.mktemp("tuned"), seed=1), model=folder
        )
        tiny.save_tiny(run.path / "start")
        yield folder


def with_settings(app: AppTest, page: str, values: dict[str, Any]) -> AppTest:
    """A page after a person has come to it from another one, with these settings by name."""
    for name, value in values.items():
        app.session_state[name] = value
    return at_rest(with_webgl(go_to(app, page), page))


def with_webgl(app: AppTest, page: str) -> AppTest:
    """The page in a browser with WebGL, which maps ask for."""
    if page == "meaning":
        app.session_state["_webgl"] = True
        app.run()
    return app


def drawn_again(app: AppTest) -> AppTest:
    """The page after at least one further run, once nothing is under way."""
    for _ in range(30):
        # Times are measured once no other job runs. What ended since the page was drawn is on it only after another run.
        is_busy = caching.queue().under_way() or app.get("progress") or "as soon as no other job runs" in texts(app)
        settled(app)
        if not is_busy:
            return app
    raise AssertionError("it never ends")


def written_and_read(page: str, values: dict[str, object]) -> None:
    import streamlit as st

    from dashboard import state

    for name, value in values.items():
        state.put(name, value)
    address, has_room = state.address_of(page)
    st.session_state.clear()
    state.apply(page, state.unpacked(page, address))
    found = {name: state.peek(name) for name in values}
    notices = state.current_notices(page)
    st.session_state["found"] = (found, address, state.address_of(page), has_room, notices)


@pytest.mark.parametrize("case", STATES)
def test_an_address_gives_a_new_session_its_settings(case: str, tiny_model: str) -> None:
    (page, _), values = place_of(case), settings_of(case, tiny_model)
    app = AppTest.from_function(written_and_read, kwargs={"page": page, "values": values}).run()
    assert not app.exception
    found, address, again, has_room, notices = app.session_state["found"]
    assert found == values
    assert again == (address, has_room) == (address, True)
    assert notices == []
    changed = {SETTINGS[name].short for name, value in values.items() if value != SETTINGS[name].default}
    assert changed <= set(address)


# What is drawn of it: of one state of each page in each run of the tests.
FIRST_OF_PAGE = {place_of(case)[0]: case for case in reversed(STATES)}
DRAWN = [pytest.param(case, marks=() if case in FIRST_OF_PAGE.values() else pytest.mark.rare) for case in STATES]


@pytest.mark.parametrize("case", DRAWN)
def test_a_new_session_at_the_address_shows_the_same(open_page: Open, case: str, tiny_model: str) -> None:
    (page, _), values = place_of(case), settings_of(case, tiny_model)
    first = with_settings(open_page("lessons" if page == "about" else "about"), page, values)
    assert not first.exception
    assert {name: setting(first, name) for name in values} == values  # nothing was refused
    changed = {SETTINGS[name].short for name, value in values.items() if value != SETTINGS[name].default}
    assert changed <= set(first.query_params)
    second = drawn_again(with_webgl(open_page(page, **first.query_params), page))
    assert [error.value for error in second.error if "Something went wrong" in error.value] == []
    if shown(second) != shown(first):  # something ended between a drawing and the look at what is under way
        drawn_again(first)
    assert shown(second) == shown(first)
    assert second.query_params == first.query_params
    state = second.session_state
    assert "_figures_unread" not in state or not state["_figures_unread"]  # “?” says how each figure is read


@pytest.mark.rare
@pytest.mark.parametrize("view", [view for view in table.VIEWS.values() if view.uses_sentences and view.is_framed])
def test_a_view_of_a_text_without_tokens_says_so_or_draws(open_page: Open, view: View) -> None:
    page = next(page for page, _, key in table.PLACES if key == view.key)
    app = open_page(page, v=view.key, s="\u200b")
    assert [error.value for error in app.error if "Something went wrong" in error.value] == []


def test_every_setting_is_in_an_example() -> None:
    covered = {name for example in STATES.values() for name in example} | NOT_COVERED
    choices = {table.view_setting(page.key) for page in table.PAGES}
    own = {setting.name for setting in table.SETTINGS if not setting.shared}
    assert own - covered - choices == set(), "put a value that is not the default into an example of a view"


def test_a_query_that_was_chosen_stays_though_it_is_the_default(open_page: Open) -> None:
    app = open_page("pairs", v="pair-scores")
    assert "q" not in app.query_params  # re-ranking then begins with a query of its own
    app.session_state["query"] = settings.DEFAULT_QUERY
    assert "q" in app.run().query_params
