"""The dashboard under Streamlit's AppTest: no browser, the real server-side code."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, local_script_runner
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from components.analysis.similarity.baseline import Baselines
from dashboard import caching, garbage, state
from dashboard.declared import table
from dashboard.sharing import report
from tests.support import baselines
from tests.support.pages import Open, await_jobs, backend, new_session, settled


@pytest.fixture(scope="session", autouse=True)
def _settings_of_the_project() -> None:
    """Streamlit reads its settings from the folder in which it is first asked for one, and some tests go to another."""
    st.get_option("server.address")


@pytest.fixture(scope="session", autouse=True)
def _no_work_at_the_end() -> Iterator[None]:
    """As the server does: a thread that is in a library's code when Python ends aborts the process."""
    yield
    caching.queue().close(30)


@pytest.fixture(scope="session", autouse=True)
def _one_scan() -> Iterator[None]:
    """Each AppTest would read the metadata of all installed packages for components: nine tenths of a page's opening."""
    with pytest.MonkeyPatch.context() as patch:
        scan = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture(scope="session", autouse=True)
def _short_waits() -> Iterator[None]:
    """AppTest asks a thousand times a second whether a page is drawn, and compiles the page's script in each run."""
    look, scripts = local_script_runner.require_widgets_deltas, ScriptCache()

    def wait(runner: LocalScriptRunner, timeout: float = 3) -> None:
        assert runner._script_thread is not None
        runner._script_thread.join(timeout)
        look(runner, 0 if runner._script_thread.is_alive() else timeout)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_script_runner, "require_widgets_deltas", wait)
        patch.setattr(local_script_runner, "ScriptCache", lambda: scripts)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_complete_collections() -> Iterator[None]:
    """A server collects all garbage when it has loaded a model: nine tenths of the time that a tiny one takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(garbage.Freezer, "collect_everything", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _measured_once() -> Iterator[None]:
    """Hundreds of tests load a tiny model that another test has loaded, from the same folder or a copy."""
    with baselines.measured_once():
        yield


@pytest.fixture(autouse=True)
def _only_declared_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No view reads a setting that its declaration does not name: its address would lose it without a word."""
    undeclared: dict[str, set[str]] = {}
    end_view = report.end_view

    def ended(page: str, used: frozenset[str]) -> None:
        drawn = st.session_state.get("_view", ("", ""))  # a click may have chosen another one, to be drawn next
        view = table.VIEWS[drawn[1] if drawn[0] == page else state.view_of(page)]
        if others := used - {*view.settings, table.view_setting(page)}:
            undeclared.setdefault(view.key, set()).update(others)
        end_view(page, used)

    monkeypatch.setattr(report, "end_view", ended)
    yield
    assert undeclared == {}


@pytest.fixture(scope="session")
def _included_model() -> Baselines:
    """The model that most pages show, with its baseline: pages that open find both, as all but a server's first do."""
    return caching.baseline(backend())


def have_baseline(measured: Baselines) -> None:
    """Where other tests' models have taken its place: it is measured after a model can be used, in passes of nobody's page."""
    model = backend()
    caching.baseline(model)
    caching._baselines().put(caching._model_key(model), measured)  # some files' baselines are of a few sentences


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch, _included_model: Baselines) -> Iterator[Open]:
    """Opens a page in a new session, as from a link with these address values; the hub is never asked."""
    have_baseline(_included_model)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    yield new_session
    await_jobs()


@pytest.fixture(scope="module")
def read_page(_included_model: Baselines) -> Iterator[Open]:
    """As `open_page`, but a page with these values is opened once for all tests of a file: they only read it.

    It is settled: nothing is under way any more, and what a page shows while it waits is gone.
    """
    have_baseline(_included_model)
    pages: dict[str, AppTest] = {}

    def opened(page: str = "home", **address: str | list[str]) -> AppTest:
        address_key = json.dumps([page, address], sort_keys=True)
        if address_key not in pages:
            pages[address_key] = settled(new_session(page, **address))
        return pages[address_key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield opened
    await_jobs()
