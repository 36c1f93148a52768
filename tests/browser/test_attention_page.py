"""The Attention page as drawn: bertviz's views in their frames, the canvas of all heads, and the way between."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit, figure, settle

CANVAS = "canvas[data-drawn]"


def frame_of(page: Page):
    return page.frame_locator("iframe")


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_opens_with_lines_in_the_head_view(visit: Visit, dark: bool) -> None:
    page = visit("/attention", dark=dark)
    lines = frame_of(page).locator("svg line")
    expect(lines.first).to_be_attached(timeout=30_000)
    assert lines.count() > 100
    expect(frame_of(page).get_by_text("river", exact=True)).to_have_count(0)
    expect(frame_of(page).get_by_text("bank", exact=True).first).to_be_visible()


def test_the_model_view_has_six_by_twelve_cells(visit: Visit) -> None:
    page = visit("/attention?view=model")
    expect(frame_of(page).locator(".attn_background")).to_have_count(72, timeout=30_000)
    frame_of(page).get_by_role("button", name="Block 0, head 2", exact=True).click()
    expect(frame_of(page).locator("text.detail")).to_have_text("Block 0, Head 2")


def test_the_neuron_view_draws_connections(visit: Visit) -> None:
    page = visit("/attention?view=neuron")
    lines = frame_of(page).locator("svg line")
    expect(lines.first).to_be_attached(timeout=30_000)
    assert lines.count() > 20


def test_a_click_on_a_tile_opens_that_head(visit: Visit) -> None:
    page = visit("/attention?view=glance")
    canvas = page.locator(CANVAS)
    expect(canvas).to_have_attribute("data-drawn", "6x12x10")
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 34 + 2.5 * (box["width"] - 34) / 12, box["y"] + 22 + 0.5 * (box["height"] - 22) / 6)
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot')?.layout.title.text.includes('Block 0, head 2')"
    )
    assert figure(page)["types"] == ["heatmap"]


def test_tiles_are_worked_by_keyboard(visit: Visit) -> None:
    page = visit("/attention?view=patterns")
    canvas = page.locator(CANVAS)
    canvas.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot')?.layout.title.text.includes('Block 1, head 2')"
    )


@pytest.mark.parametrize("view", ["head", "model", "neuron", "matrix", "glance"])
def test_markup_in_a_sentence_is_inert(visit: Visit, view: str) -> None:
    nasty = "</script><script>top.pwned=1</script> <img src=x onerror=top.pwned=1> <!-- x"
    page = visit(f"/attention?view={view}&s={quote(nasty)}")
    settle(page)
    page.wait_for_timeout(800)
    assert page.evaluate("window.pwned") is None


def test_heatmaps_are_drawn_with_the_diagonal(visit: Visit) -> None:
    page = visit("/heatmaps")
    assert figure(page, 0)["types"] == ["heatmap"]
    assert figure(page, 1)["types"] == ["heatmap"]
    assert set(figure(page, 2)["types"]) == {"scatter"}
