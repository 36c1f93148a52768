"""Tables of texts that nobody has checked: what a table renders, and what a spreadsheet would run."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.sharing import figure_files
from dashboard.ui import figures
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
    from components.shown_code.code import NoCode
    from dashboard.ui import figures

    chart = theme.finish(go.Figure(go.Scatter(x=[0, 1], y=[1, 2])), title, 300)
    table = pd.DataFrame({"y": [1, 2]})
    code = NoCode("It is only an example.")
    figures.begin("text")
    figures.figure(chart, key="some", alt="A line", table=lambda: table, message="It **rises**.", code=code)


def test_share_offers_files_link_table_and_the_reason_for_no_code() -> None:
    app = AppTest.from_function(drawn_figure, kwargs={"title": HOSTILE})
    assert [item.label for item in app.run().get("download_button")] == []
    app.session_state["data_some"] = True
    app.run()
    assert not app.exception
    assert [tab.label for tab in app.tabs] == ["Files", "Link", "Table"]
    assert [item.label for item in app.get("download_button")] == ["Page (HTML)", "Download as CSV"]
    assert [caption.value for caption in app.caption][-1] == "It is only an example."
    picture, slide = (json.loads(item.proto.json)["options"] for item in app.get("bidi_component"))
    assert picture == {"format": "png", "filename": "bert-internals-some", "scale": 2}
    assert (slide["width"] * slide["scale"], slide["height"] * slide["scale"]) == (1920, 1080)


def test_the_finding_stands_above_its_figure_with_share_beside_it() -> None:
    app = AppTest.from_function(drawn_figure, kwargs={"title": "A title"}).run()
    kinds = [type(element).__name__ for element in app.main]
    texts = [str(getattr(element, "value", "")) for element in app.main]
    finding = next(index for index, text in enumerate(texts) if "It **rises**." in text)
    plot = next(index for index, element in enumerate(app.main) if getattr(element, "type", "") == "plotly_chart")
    assert finding < plot, kinds


@pytest.mark.parametrize(
    ("message", "above", "below"),
    [
        ("", "", ""),
        ("It is short. And so is this.", "It is short. And so is this.", ""),
        ("One. " * 60, ("One. " * 30).strip(), ("One. " * 30).strip()),
        ("A" * 300 + ". Then more.", "A" * 300 + ".", "Then more."),
        ("no end " * 50, "no end " * 50, ""),
        (
            "**First. " + "Second " * 25 + "third.** After. " + "And " * 20,
            "**First. " + "Second " * 25 + "third.** After.",
            ("And " * 20).strip(),
        ),
        ("x" * 205 + " e.g. This. More.", "x" * 205 + " e.g. This.", "More."),
    ],
)
def test_a_long_finding_begins_above_its_figure_and_goes_on_below(message: str, above: str, below: str) -> None:
    assert figures.parted(message) == (above, below)


def test_less_of_a_finding_stands_above_half_a_page() -> None:
    message = "One sentence. " * 10
    above, below = figures.parted(message, figures.MOST_ABOVE_HALF)
    assert above == ("One sentence. " * 4).strip()
    assert f"{above} {below}" == message.strip()


def figure_with_a_word_from_right_to_left() -> None:
    import plotly.graph_objects as go

    from components.shown_code.code import NoCode
    from dashboard.ui import figures

    figures.begin("text")
    message = "It gives “م” 48 %. “م” gives 3 %."
    figures.figure(
        go.Figure(go.Scatter(x=[0], y=[1])),
        key="some",
        alt="A point",
        table=dict,
        message=message,
        most_above=len(message),
        code=NoCode("None."),
    )


def test_signs_that_isolate_a_word_count_for_nothing_where_a_finding_is_cut() -> None:
    (said,) = [item.value for item in AppTest.from_function(figure_with_a_word_from_right_to_left).run().markdown]
    assert said == ":material/insights: It gives “\u2068م\u2069” 48 %. “\u2068م\u2069” gives 3 %."


def two_figures_with_one_reading() -> None:
    import pandas as pd
    import plotly.graph_objects as go

    from components.shown_code.code import NoCode
    from dashboard.ui import figures

    figures.begin("inside")
    for key in ("first", "second"):
        chart = go.Figure(go.Scatter(x=[0], y=[1]))
        figures.figure(chart, key=key, alt="A point", table=pd.DataFrame, message=f"Of {key}.", code=NoCode("None."))
    figures.reading("It is a point.", "What it means.")


def test_a_reading_stands_in_the_line_of_the_last_figure() -> None:
    app = AppTest.from_function(two_figures_with_one_reading).run()
    texts = [item.value for item in app.markdown]
    of_second = texts.index(":material/insights: Of second.")
    assert texts[of_second + 1 :] == [
        "**How to read this**  \nIt is a point.",
        "**What it does not show**  \nWhat it means.",
    ]


@pytest.mark.parametrize(("height", "drawn"), [(None, 540), (300, 540), (540, 540), (1_200, 1_200), (5_000, 5_000)])
def test_a_slide_has_one_size_and_room_for_tall_figures(height: int | None, drawn: int) -> None:
    import plotly.graph_objects as go

    width, least, scale = figure_files.slide_size(go.Figure().update_layout(height=height))
    assert least == drawn
    assert abs(width * scale - 1920) < scale
    assert abs(least * scale - 1080) < scale
