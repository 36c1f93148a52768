"""Figures as a page that opens without a network: the same data, no other host, and texts that stay texts."""

from __future__ import annotations

import base64
import html
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from components.charts import curves, theme
from components.charts.stand_alone import page as stand_alone

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\" onload='x'"


class Tags(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def figure() -> go.Figure:
    values = np.array([[1.0, 0.5, 0.25]], np.float32)
    return curves.layer_curves(
        values, [theme.plain(HOSTILE)], HOSTILE, details=[theme.plain(HOSTILE)], y_title="cosine"
    )


def without_plotly(text: str) -> str:
    """The page without plotly's own code, which is there once."""
    assert text.count(get_plotlyjs()) == 1
    return text.replace(get_plotlyjs(), "")


def test_the_page_has_the_figures_data_and_its_texts(figure: go.Figure) -> None:
    table = pd.DataFrame({"layer": [0, 1, 2], "cosine": [1.0, 0.5, 0.25]})
    part = stand_alone.PagePart(figure, table, "Alt text", "It **falls**.", "Left to right.", "Why.")
    text = without_plotly(stand_alone.page("A title", [part], "A footer", ["Model: x"]))
    for words in (
        "<h1>A title</h1>",
        "It <strong>falls</strong>.",
        "Left to right.",
        "Why.",
        "A footer",
        "Model: x",
        "0.25",
    ):
        assert words in text
    assert 'aria-label="Alt text"' in text
    data = re.search(r"Plotly\.newPlot\(\s*\"[0-9a-f-]+\",\s*(\[.*?\]),\s*\{\"", text, re.DOTALL)
    assert data is not None
    (curve,) = [trace for trace in json.loads(data[1]) if trace.get("showlegend") is not False]
    drawn = np.frombuffer(base64.b64decode(curve["y"]["bdata"]), curve["y"]["dtype"])
    np.testing.assert_array_equal(drawn, [1.0, 0.5, 0.25])


def test_nothing_is_loaded_from_elsewhere(figure: go.Figure) -> None:
    text = without_plotly(stand_alone.page("t", [stand_alone.PagePart(figure)] * 2, "f"))
    tags = Tags(text).found
    assert not [attributes for _, attributes in tags if {"src", "href"} & attributes.keys()]
    (policy,) = [item["content"] for tag, item in tags if tag == "meta" and "http-equiv" in item]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org)", text.replace("https://plot.ly", ""))


def test_texts_of_people_are_texts(figure: go.Figure) -> None:
    table = pd.DataFrame({HOSTILE: [HOSTILE]})
    part = stand_alone.PagePart(figure, table, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    text = without_plotly(stand_alone.page(HOSTILE, [part], HOSTILE, [HOSTILE]))
    tags = Tags(text).found
    assert "img" not in [tag for tag, _ in tags]
    assert not [attributes for _, attributes in tags if {"onload", "onerror"} & attributes.keys()]
    assert text.count("<script") == 1 + 1  # plotly's code, and the figure
    assert "alert(1)</script>" not in text
    assert stand_alone.title_of(figure).replace(" ", "") == HOSTILE.replace(" ", "")


def test_a_dark_page_has_light_type_and_dark_figures(figure: go.Figure) -> None:
    light, dark = (
        without_plotly(stand_alone.page("t", [stand_alone.PagePart(figure)], "f", is_dark=is_dark))
        for is_dark in (False, True)
    )
    assert ("color-scheme: dark" in light, "color-scheme: dark" in dark) == (False, True)
    papers = [re.findall(r'"(?:paper|plot)_bgcolor":"(#\w+)"', text)[-2:] for text in (light, dark)]
    assert papers == [["#fff"] * 2, ["#12161c"] * 2]


def test_a_long_table_is_cut_and_says_so() -> None:
    table = pd.DataFrame({"row": range(500)})
    text = stand_alone.page("t", [stand_alone.PagePart(table=table)], "f")
    assert text.count("<tr") == 1 + stand_alone.MOST_ROWS
    assert "The first 200 of 500 rows." in text
    assert re.findall(r"<td>(\d+)</td>", text) == [str(row) for row in range(stand_alone.MOST_ROWS)]
    assert "The first" not in stand_alone.page("t", [stand_alone.PagePart(table=table[:200])], "f")
    assert get_plotlyjs() not in text  # a page without figures needs none of it


def row(piece: str, *marks: str) -> dict[str, Any]:
    """A row of one token, as the page's component gets it."""
    token = {"piece": piece, "under": [piece], "position": 0, "hint": piece, "marks": list(marks), "picked": False}
    return {"index": 0, "number": 1, "label": piece, "direction": "ltr", "words": [{"tint": "1", "tokens": [token]}]}


def test_rows_of_tokens_have_their_style_and_their_texts_stay_texts() -> None:
    text = stand_alone.page("t", [stand_alone.PagePart(chips=[row(HOSTILE), row("[CLS]", "special")])], "f")
    found = [attributes.get("class") for tag, attributes in Tags(text).found if tag == "span"]
    assert found == ["number", "word tint1", "chip", "number", "word tint1", "chip special"]
    assert [tag for tag, _ in Tags(text).found if tag in {"script", "img"}] == []
    assert text.count(html.escape(HOSTILE)) == 4  # its name, its hint, itself and the line below it
    assert ".tint1 { --tint:" in text
    used = set(re.findall(r"var\((--st-[a-z-]+)", text))
    assert used <= set(re.findall(r"(--st-[a-z-]+):", text))  # the theme's colours, which the report must give
    assert ".chip" not in stand_alone.page("t", [stand_alone.PagePart(message="m")], "f")


def test_a_frame_holds_a_whole_document_that_can_reach_nothing() -> None:
    document = f"<!doctype html><title>{HOSTILE}</title>"
    text = stand_alone.page("t", [stand_alone.PagePart(frame=stand_alone.Frame(document, 300, HOSTILE))], "f")
    (frame,) = [attributes for tag, attributes in Tags(text).found if tag == "iframe"]
    assert frame["srcdoc"] == document
    assert frame["sandbox"] == "allow-scripts"
    assert frame["title"] == HOSTILE
    assert [tag for tag, _ in Tags(text).found if tag == "script"] == []
