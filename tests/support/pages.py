"""Pages under Streamlit's AppTest: how one is opened and awaited, and what it shows."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from components.charts.curves import EXTREMES
from dashboard import caching, navigation, ready_made
from dashboard.declared import addresses, older, table
from tests.support.places import ROOT

APP = str(ROOT / "dashboard" / "main.py")
Open = Callable[..., AppTest]
BANK = ready_made.ready_made_sets()["bank"].sentences


def new_session(page: str = "home", *, session: dict[str, Any] | None = None, **address: str | list[str]) -> AppTest:
    """A page in a new session, as from a link with these address values. It is the first page that this session draws.

    The page may be a view, for where that stands; page and address may be older ones, which the server corrects. `session` is
    put into the session before that, as if a person had done so on an earlier page.
    """
    app = AppTest.from_file(APP, default_timeout=60)
    if session and not address:
        app.session_state["_address"] = {}  # read on the earlier page: it takes no value away
    for name, value in (session or {}).items():
        app.session_state[name] = value
    if page in table.VIEWS and page not in table.PAGE_BY_KEY:
        page, address = table.place_of(page), {table.VIEW: page, **address}
    if session and not address:  # the session says which view is open; on an older page its first one, if it does not
        first, page = (*older.views_of(page), ""), addresses.page_of(page)
        if table.PLACE.get(first[0]) == page and not setting(app, table.view_setting(page)):
            app.session_state[table.view_setting(page)] = first[0]
    else:
        page, address = right_address(page, address)
    app.query_params.update(address)
    if page != "home":
        # AppTest.switch_page knows the pages only after a first run, which would draw Start.
        app._page_hash = calc_hash(page)
    return app.run()


def right_address(page: str, address: Mapping[str, str | list[str]]) -> tuple[str, dict[str, list[str]]]:
    """Where the server sends a browser that asks for this address."""
    query = urlencode(address, doseq=True, quote_via=quote, errors="surrogatepass")
    found = addresses.corrected("" if page == "home" else page, query)
    if found is None:
        return page, {key: texts if isinstance(texts, list) else [texts] for key, texts in address.items()}
    return found[0] or "home", parse_qs(found[1], keep_blank_values=True, errors="surrogatepass")


def go_to(app: AppTest, place: str) -> AppTest:
    """Another page of the same session, or another view, as by a link to it: the address goes with the page before.

    An older page is the open view where that stood on it, else its first view.
    """
    page = table.PLACE.get(place) or addresses.page_of(place)
    if place not in table.PAGE_BY_KEY and len(table.views_of(page)) > 1:
        name = table.view_setting(page)
        if place in table.VIEWS:
            app.session_state[name] = place
        elif setting(app, name) not in older.views_of(place):
            app.session_state[name] = older.views_of(place)[0]
    app._page_hash = calc_hash("" if page == "home" else page)
    app.query_params.clear()
    return app.run()


def choose_view(app: AppTest, view: str) -> AppTest:
    """The page after a person has chosen another of its views, or followed a link to a view of another page."""
    page = table.place_of(view)
    if app._page_hash != calc_hash(page):
        return go_to(app, view)
    named = table.choices_of(page)
    shown = setting(app, table.view_setting(page)) or table.views_of(page)[0].key
    if table.name_of(shown) != table.name_of(view):
        widgets = app.segmented_control if len(named) <= navigation.MOST_BESIDE else app.selectbox
        widgets(key=f"w_{page}_name").set_value(table.name_of(view)).run()
        shown = setting(app, table.view_setting(page))
    if shown != view:
        app.segmented_control(key=f"w_{table.view_setting(page)}").set_value(view).run()
    return app


def backend() -> Any:
    """The embedded backend that the pages use."""
    from components.model.catalog import parse_model

    loaded = caching.models().request(parse_model("embedded"))
    assert loaded.finished.wait(60)
    return loaded.result


def setting(app: AppTest, name: str) -> Any:
    """A value of the session; None if it is not set."""
    return app.session_state[name] if name in app.session_state else None  # noqa: SIM401 - it has no get


def type_sentences(app: AppTest, text: str) -> AppTest:
    """The page after its editor sent this text, as the browser sends it."""
    version = setting(app, "_text_version") or 0
    app.session_state["sentence_editor"] = {"edit": {"version": version, "text": text}}
    return app.run()


def await_jobs() -> None:
    """Wait for the work that pages began: it must not count as the next test's."""
    for job in caching.queue().under_way():
        assert job.finished.wait(150), job  # the first map of all compiles UMAP


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


def at_rest(app: AppTest) -> AppTest:
    """The page once nothing is under way: as `settled`, but drawn again only if something was, or if it shows progress.

    It is for pages that draw nothing in place of what is not there yet except progress.
    """
    for _ in range(30):
        jobs = caching.queue().under_way()
        if (
            not jobs and not app.get("progress") and "being measured …" not in texts(app)
        ):  # what ended since it was drawn
            return app
        for job in jobs:
            assert job.finished.wait(120), job
        app.run()
    raise AssertionError("it never ends")


def whole_figures(app: AppTest) -> list[dict[str, Any]]:
    """The page's figures as plotly dictionaries, arrays decoded."""
    return [_decoded(json.loads(chart.proto.spec)) for chart in charts(app)]


def charts(app: AppTest) -> list[Any]:
    """The page's figures, without those that a phone shows in place of another."""
    return [chart for chart in app.get("plotly_chart") if "-phone_" not in chart.proto.id]


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
    kinds = ("title", "header", "markdown", "caption", "info", "warning", "error", "subheader", "text")
    return "\n".join(str(item.value) for kind in kinds for item in getattr(app, kind))


def read_texts(app: AppTest) -> str:
    """As `texts`, as a person reads them: Markdown's escapes are not shown."""
    return re.sub(r"\\([^\w\s])", r"\1", texts(app))


def plain_table(app: AppTest, number: int = 0) -> pd.DataFrame:
    """The texts of a plain table as a person reads them: Markdown's escapes are not shown."""
    return app.table[number].value.replace({r"\\(.)": r"\1", "\u2060": ""}, regex=True)


def frame(app: AppTest, column: str) -> pd.DataFrame:
    """The page's table that has this column."""
    (found,) = (item.value for item in app.dataframe if column in item.value.columns)
    return found


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


def hits(app: Any, number: int = 0) -> list[dict[str, Any]]:
    return _hit_lists(app)[number]["rows"]


def hit_axis(app: Any, number: int = 0) -> dict[str, Any] | None:
    """What stands above the bars of a list of hits."""
    return _hit_lists(app)[number]["axis"]


def _hit_lists(app: Any) -> list[dict[str, Any]]:
    lists = [item for item in app.get("bidi_component") if item.proto.component_name == "bert_internals_hits"]
    return [json.loads(item.proto.json) for item in lists]
