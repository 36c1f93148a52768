"""Tables of texts that nobody has checked: what a table renders, and what a spreadsheet would run."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.sharing import figure_files
from tests.support.pages import plain_table

HOSTILE = "<img src=x onerror=alert(1)> **bold** [a](http://evil.example) :red[x] `c` $x$"


def table(hostile: str) -> None:
    import pandas as pd

    from dashboard.ui import figures

    figures.plain_table(pd.DataFrame({"name": [hostile], "score": [0.25]}))


def test_a_table_shows_markup_as_text() -> None:
    app = AppTest.from_function(table, kwargs={"hostile": HOSTILE}).run()
    cell = app.table[0].value["name"][0]
    for character in "<>*[]():`$":
        assert cell.count(character) == cell.count("\\" + character), character
    assert plain_table(app)["name"][0] == HOSTILE
    assert app.table[0].value["score"][0] == 0.25


def test_the_tables_have_no_csv_button_of_streamlits_own() -> None:
    """Its files would not escape what a spreadsheet runs as a formula."""
    import streamlit as st

    assert st.get_option("client.disableDataExport") is True


def drawn_figure(title: str) -> None:
    import pandas as pd
    import plotly.graph_objects as go

    from components.charts import theme
    from components.snippets.code import NoCode
    from dashboard.ui import figures

    chart = theme.finish(go.Figure(go.Scatter(x=[0, 1], y=[1, 2])), title, 300)
    table = pd.DataFrame({"y": [1, 2]})
    code = NoCode("It is only an example.")
    figures.figure(chart, key="some", alt="A line", table=lambda: table, message="It **rises**.", code=code)


def test_a_figures_files_are_offered_where_its_data_are() -> None:
    app = AppTest.from_function(drawn_figure, kwargs={"title": HOSTILE})
    assert [item.label for item in app.run().get("download_button")] == []
    app.session_state["data_some"] = True
    app.run()
    assert not app.exception
    assert [item.label for item in app.get("download_button")] == ["Download as CSV", "Page (HTML)"]
    (slide,) = app.get("bidi_component")
    options = json.loads(slide.proto.json)["options"]
    assert (options["width"] * options["scale"], options["height"] * options["scale"]) == (1920, 1080)


@pytest.mark.parametrize(("height", "drawn"), [(None, 540), (300, 540), (540, 540), (1_200, 1_200), (5_000, 5_000)])
def test_a_slide_has_one_size_and_room_for_tall_figures(height: int | None, drawn: int) -> None:
    import plotly.graph_objects as go

    width, least, scale = figure_files.slide_size(go.Figure().update_layout(height=height))
    assert least == drawn
    assert abs(width * scale - 1920) < scale
    assert abs(least * scale - 1080) < scale
