"""A click on a cell of a matrix, anywhere in the cell."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import settle
from tests.support.stage import Stage

SENTENCES = ["We rob a bank.", "A bank of the river.", "Money in the bank."]


def click_cell(page: Page, row: int, column: int, count: int, x: float, y: float) -> None:
    """Click a cell of a matrix of `count` rows, first row on top, at `x` and `y` of its width and height."""
    plot = page.locator(".js-plotly-plot").first
    plot.locator(".main-svg .heatmaplayer").first.wait_for(state="attached")
    plot.scroll_into_view_if_needed()
    box = plot.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    place = (column + x) * box["width"] / count, (row + y) * box["height"] / count
    page.mouse.move(box["x"] + place[0], box["y"] + place[1])
    page.mouse.click(box["x"] + place[0], box["y"] + place[1])


@pytest.mark.parametrize(("x", "y"), [pytest.param(0.5, 0.5, marks=pytest.mark.core), (0.04, 0.9)])
def test_a_click_on_a_cell_chooses_two_sentences_and_leads_to_why(use: Stage, x: float, y: float) -> None:
    page = use.at("/heatmaps?v=sentence-pairs&" + "&".join(f"s={text.replace(' ', '+')}" for text in SENTENCES))
    click_cell(page, 2, 1, 3, x, y)
    chosen = page.locator(".st-key-why_pair input")
    expect(chosen).to_have_value(re.compile("^2 – 3 "))
    settle(page)
    click_cell(page, 0, 0, 3, x, y)  # a sentence with itself: nothing is chosen
    settle(page)
    expect(chosen).to_have_value(re.compile("^2 – 3 "))
    page.get_by_role("button", name="Why are these two similar?").click()
    page.wait_for_url("**/meaning?v=score-split&*sa=1&sb=3*")
    expect(page.get_by_role("heading", level=1)).to_have_text("What makes these two texts similar?")
