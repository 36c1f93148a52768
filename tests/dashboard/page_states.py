"""The example states of all views, and what a page shows, so that two sessions can be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from streamlit.testing.v1 import AppTest

from components.retrieval.corpora.corpus import read_corpus
from dashboard import caching
from dashboard.corpora import current
from dashboard.declared import table
from dashboard.declared.view import SMALL_CORPUS, SMALL_MODEL

# View, and a number from the second example on, to settings by name.
STATES: dict[str, Mapping[str, Any]] = {
    key + (f" {number}" if number > 1 else ""): example
    for _, _, key in table.PLACES
    for number, example in enumerate(table.VIEWS[key].examples, 1)
}


def small_corpus(count: int = 24) -> str:
    """The key of a kept corpus: the demo's first sentences with a headline and a topic each."""
    demo = current.demo()
    columns = zip(demo.texts, demo.columns["compressed"], demo.columns["topic"], strict=True)
    rows = [{"sentence": text, "compressed": query, "topic": topic} for text, query, topic in list(columns)[:count]]
    found = read_corpus("\n".join(map(json.dumps, rows)).encode(), f"first_{count}.jsonl", "sentence")
    caching.corpora().put(current.key_of(found), found)
    return current.key_of(found)


def settings_of(case: str, tiny_model: str) -> dict[str, Any]:
    """The settings of a case by name, with its view; `tiny_model` is the folder of the tiny model."""
    page, view = place_of(case)
    keys = {SMALL_CORPUS: small_corpus, SMALL_MODEL: lambda: tiny_model}
    values = {
        name: keys[value]() if isinstance(value, str) and value in keys else value
        for name, value in STATES[case].items()
    }
    return values | ({table.view_setting(page): view} if len(table.views_of(page)) > 1 else {})


def place_of(case: str) -> tuple[str, str]:
    """The page and the view of a case."""
    view = case.partition(" ")[0]
    return table.place_of(view), view


def shown(app: AppTest) -> list[tuple[str, Any]]:
    """All that a page shows, in order, with its kind: figures, tables, texts, frames, and our own components."""
    return [item for item in _elements(app.main) if item is not None]


def _elements(element: Any) -> list[tuple[str, Any] | None]:
    children = getattr(element, "children", None)
    return [item for child in children.values() for item in _elements(child)] if children else [_element(element)]


def _element(element: Any) -> tuple[str, Any] | None:
    kind = element.type
    if kind == "plotly_chart":
        return kind, element.proto.spec
    if kind in {"arrow_data_frame", "arrow_table"}:
        return kind, element.value.to_json()
    if kind == "bidi_component":
        data = json.loads(element.proto.json) if element.proto.json else {}
        # The version counts how often something else than typing changed the sentences, the arrival how often an address
        # was read.
        return kind, {key: value for key, value in data.items() if key not in {"version", "arrival"}}
    if kind == "iframe":
        return kind, element.proto.srcdoc
    if kind in {"markdown", "caption", "metric", "warning", "error", "info", "success", "title", "subheader", "text"}:
        return kind, str(element.value)
    return (kind, str(element.proto)) if kind == "html" else None
