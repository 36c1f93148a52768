"""A figure to take home: as a page of HTML that opens without a network, and as a picture the size of a slide."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from components import VERSION
from components.charts.stand_alone import page as stand_alone
from components.markup import to_text
from components.model.catalog import spec_of
from dashboard import state
from dashboard.ui import browser

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from components.charts.stand_alone.page import PagePart

SLIDE_WIDTH, SLIDE_HEIGHT = 1920, 1080  # pixels
LEAST_HEIGHT = 540  # of the figure that a slide enlarges: type of 14 pixels becomes one of 28


def draw(part: PagePart, *, key: str) -> None:
    """Draw the buttons for a figure; `key` is the figure's."""
    assert part.figure is not None
    st.download_button(
        "Page (HTML)",
        partial(_page, part, _footer()),
        file_name=f"bert-internals-{key}.html",
        mime="text/html",
        key=f"html_{key}",
        icon=":material/web:",
        on_click="ignore",
        help="The figure with its texts as a page that opens without a network; points tell their values as here",
    )
    kind = picture_options(key)["format"].upper()
    _picture(key, "picture", f"Picture ({kind})", "The figure as it is on the page", picture_options(key))
    width, height, scale = slide_size(part.figure)
    slide = {
        "format": "png",
        "width": width,
        "height": height,
        "scale": scale,
        "filename": f"bert-internals-{key}-slide",
    }
    _picture(key, "slide", "Slide (PNG)", f"{SLIDE_WIDTH} × {SLIDE_HEIGHT} pixels with large type", slide)


def draw_own(place: str, message: str, *, key: str) -> None:
    """Draw the buttons for a picture that we draw ourselves: `place` is the CSS selector of what the browser saves.

    `message` is its finding, as Markdown: it stands above the picture on a slide.
    """
    name = f"bert-internals-{key}"
    for button, label, hint, says in (
        ("picture", "Picture (PNG)", "The picture as it is on the page", None),
        ("slide", "Slide (PNG)", f"{SLIDE_WIDTH} × {SLIDE_HEIGHT} pixels, with its finding", to_text(message)),
    ):
        data = {"place": place, "label": label, "hint": hint, "filename": f"{name}{'-slide' * (button == 'slide')}.png"}
        browser.web_component("save_picture", '<button type="button"></button>', "file_button", "snapshot")(
            key=f"{button}_{key}", data=data if says is None else {**data, "says": says}, width="content"
        )


def _picture(figure: str, name: str, label: str, hint: str, options: dict[str, Any]) -> None:
    """A button that saves a figure as a picture, with these options of plotly's."""
    browser.web_component("slide", '<button type="button"></button>', "file_button")(
        key=f"{name}_{figure}",
        data={"figure": figure, "label": label, "hint": hint, "options": options},
        width="content",
    )


def picture_options(key: str) -> dict[str, Any]:
    """How plotly saves a figure as it is on the page: PNG or SVG, as chosen under “More settings”."""
    chosen = st.session_state.get("picture_format", "png")
    return {"format": chosen, "filename": f"bert-internals-{key}", "scale": 2}


def slide_size(figure: go.Figure) -> tuple[int, int, float]:
    """Width and height in which a figure is drawn for a slide, and how often it is enlarged to fill it.

    A figure with many rows is drawn on a larger area, so that they have room: its type is smaller then.
    """
    scale = SLIDE_HEIGHT / max(LEAST_HEIGHT, int(figure.layout.height or 0))
    return round(SLIDE_WIDTH / scale), round(SLIDE_HEIGHT / scale), scale


def _page(part: PagePart, footer: str) -> bytes:
    """The page, made on the click."""
    assert part.figure is not None
    return stand_alone.page(stand_alone.title_of(part.figure), [part], footer, heading=False).encode()


def _footer() -> str:
    day = date.today()
    model = spec_of(state.get("model")).title
    return (
        f"BERT Internals {VERSION}, model {model}, {day.day} {day:%B %Y}. Drawn by plotly, whose code is in this file."
    )
