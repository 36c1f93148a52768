"""An address restores every view of every page: a new session that opens it shows the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components.training import runs
from dashboard import caching, settings
from tests.dashboard.page_states import RUN, STATES, settings_of, shown
from tests.support import tiny
from tests.support.pages import Open, setting, settled, texts
from tests.support.training_runs import write_run
from tests.support.views import views_of_pages

SETTINGS = {item.name: item for item in settings.SETTINGS}
# Settings that no state has: of files that a person uploads, which no address holds, and of other models.
NOT_COVERED = {
    *("comparison", "sense_source", "sts_source", "clinic_source", "score_label"),
    *("graded_source", "graded_query_field", "graded_document_fields", "training_view"),
}


@pytest.fixture(scope="module", autouse=True)
def tiny_model(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Callable[[str], Path]) -> Iterator[str]:
    """The folder of a tiny model; a run of Training that made another from it is in a cache of this file's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERT_INTERNALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        folder = str(tiny_folder("bert").resolve())
        run = write_run(
            runs.runs_folder(), RUN, result=tiny.save_tiny(tmp_path_factory.mktemp("tuned"), seed=1), model=folder
        )
        tiny.save_tiny(run.path / "start")
        yield folder


def with_settings(app: AppTest, page: str, values: dict[str, Any]) -> AppTest:
    """A page after a person has come to it from another one, with these settings by name."""
    unused = [name for name in values if page not in SETTINGS[name].pages]
    assert unused == []
    for name, value in values.items():
        app.session_state[name] = value
    return drawn(app.switch_page(f"views/{page}/page.py").run(), page)


def drawn(app: AppTest, page: str) -> AppTest:
    """The page once nothing is under way, in a browser with WebGL, which the Map page asks for."""
    if page == "map":
        app.session_state["_webgl"] = True
        app.run()
    for _ in range(30):
        # Times are measured once no other job runs.
        if not (caching.queue().under_way() or app.get("progress") or "as soon as no other job runs" in texts(app)):
            return app
        settled(app)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("case", STATES)
def test_a_new_session_at_the_address_shows_the_same(open_page: Open, case: str, tiny_model: str) -> None:
    page, values = case.partition(" ")[0], settings_of(case, tiny_model)
    first = with_settings(open_page("lessons" if page == "about" else "about"), page, values)
    assert not first.exception
    assert {name: setting(first, name) for name in values} == values  # nothing was refused
    changed = {SETTINGS[name].short for name, value in values.items() if value != SETTINGS[name].default}
    assert changed <= set(first.query_params)
    second = drawn(open_page(page, **first.query_params), page)
    assert shown(second) == shown(first)
    assert second.query_params == first.query_params


def test_every_setting_of_every_page_is_in_one_of_its_states() -> None:
    missing = {}
    for page in settings.PAGES:
        cases = [case for case in STATES if case.partition(" ")[0] == page]
        covered = {name for case in cases for name in STATES[case]} | {f"{page}_view"} | NOT_COVERED
        missing[page] = {item.name for item in SETTINGS.values() if page in item.pages and not item.shared} - covered
    assert {page: names for page, names in missing.items() if names} == {}


def test_every_view_of_every_page_has_a_state() -> None:
    of_states = {(page, view) for page, _, view in (case.partition(" ") for case in STATES)}
    of_pages = {(page, view) for page, views in views_of_pages().items() for view in views}
    assert of_pages <= of_states
    assert {(page, view.partition(" ")[0]) for page, view in of_states} <= of_pages


def test_a_query_that_was_chosen_stays_though_it_is_the_default(open_page: Open) -> None:
    app = open_page("pairs")
    assert "q" not in app.query_params  # re-ranking then begins with a query of its own
    app.session_state["query"] = settings.DEFAULT_QUERY
    assert "q" in app.run().query_params
