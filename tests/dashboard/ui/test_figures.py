"""Tables of texts that nobody has checked: what a table renders, and what a spreadsheet would run."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.dashboard.conftest import plain_table

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
