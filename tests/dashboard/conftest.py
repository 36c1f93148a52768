"""The dashboard under Streamlit's AppTest: no browser, the real server-side code."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from components.charts.curves import EXTREMES
from dashboard import caching
from tests.places import ROOT

APP = str(ROOT / "dashboard" / "main.py")

Open = Callable[..., AppTest]


@pytest.fixture(scope="session", autouse=True)
def _settings_of_the_project() -> None:
    """Streamlit reads its settings from the folder in which it is first asked for one, and some tests go to another."""
    st.get_option("server.address")


@pytest.fixture(scope="session", autouse=True)
def _one_scan() -> Iterator[None]:
    """Each AppTest would read the metadata of all installed packages for components: nine tenths of a page's opening."""
    with pytest.MonkeyPatch.context() as patch:
        scan = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a page in a new session, as from a link with these address values; the hub is never asked."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def opened(page: str = "home", **address: str | list[str]) -> AppTest:
        app = AppTest.from_file(APP, default_timeout=60)
        if page == "home":
            app.query_params.update(address)
            return app.run()
        # AppTest knows the pages only after a first run, which is Home's and takes no address.
        app.run()
        app.session_state["_address"] = None
        app.query_params.update(address)
        return app.switch_page(f"views/{page}/page.py").run()

    yield opened
    # Work that a page began must not count as the next test's.
    for job in caching.queue().under_way():
        assert job.finished.wait(150), job  # the first map of all compiles UMAP


def setting(app: AppTest, name: str) -> Any:
    """A value of the session; None if it is not set."""
    return app.session_state[name] if name in app.session_state else None  # noqa: SIM401 - it has no get


def type_sentences(app: AppTest, text: str) -> AppTest:
    """The page after its editor sent this text, as the browser sends it."""
    version = setting(app, "_text_version") or 0
    app.session_state["sentence_editor"] = {"edit": {"version": version, "text": text}}
    return app.run()


def whole_figures(app: AppTest) -> list[dict[str, Any]]:
    """The page's figures as plotly dictionaries, arrays decoded."""
    return [_decoded(json.loads(chart.proto.spec)) for chart in app.get("plotly_chart")]


def figures(app: AppTest) -> list[dict[str, Any]]:
    """The page's figures without the triangles at the extremes of curves, which belong to the curves."""
    found = whole_figures(app)
    for figure in found:
        figure["data"] = [trace for trace in figure["data"] if trace.get("name") != EXTREMES]
    return found


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) >= {"dtype", "bdata"}:
            array = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
            shape = [int(part) for part in value["shape"].split(",")] if "shape" in value else [-1]
            return array.reshape(shape)
        return {key: _decoded(item) for key, item in value.items()}
    return [_decoded(item) for item in value] if isinstance(value, list) else value


def traces(app: AppTest, figure: int = 0) -> dict[str, np.ndarray]:
    """Name to values of a figure's traces."""
    return {trace["name"]: np.asarray(trace["y"], float) for trace in figures(app)[figure]["data"]}


def texts(app: AppTest) -> str:
    """All that the page says, in one string."""
    kinds = ("title", "markdown", "caption", "info", "warning", "error", "subheader", "text")
    return "\n".join(str(item.value) for kind in kinds for item in getattr(app, kind))


def plain_table(app: AppTest, number: int = 0) -> pd.DataFrame:
    """The texts of a plain table as a person reads them: Markdown's escapes are not shown."""
    return app.table[number].value.replace({r"\\(.)": r"\1", "\u2060": ""}, regex=True)


def chips(app: AppTest) -> dict[str, Any]:
    """The data of the page's first chips component."""
    for element in app.main:
        found = _find_bidi(element)
        if found is not None:
            return found
    raise AssertionError("no chips on this page")


def _find_bidi(element: Any) -> dict[str, Any] | None:
    proto = getattr(element, "proto", None)
    raw = getattr(proto, "json", None)
    if isinstance(raw, str) and '"rows"' in raw:
        return json.loads(raw)
    for child in getattr(element, "children", {}).values():
        found = _find_bidi(child)
        if found is not None:
            return found
    return None


def settled(app: AppTest) -> AppTest:
    """The page once nothing is under way."""
    for _ in range(30):
        jobs = caching.queue().under_way()
        if not jobs:
            return app.run()
        for job in jobs:
            assert job.finished.wait(120)
        app.run()
    raise AssertionError("it never ends")
