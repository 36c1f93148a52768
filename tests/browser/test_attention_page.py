"""Attention as drawn: bertviz's views in their frames, the canvas of all heads, and the way between."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Visit, figure, settle, wait_for_title, wait_until, wait_until_still
from tests.support.stage import PROJECTOR, Stage

CANVAS = "canvas[data-drawn]"


def frame_of(page: Page):
    return page.frame_locator("iframe")


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_opens_with_the_lines_of_the_clearest_head(look: Stage, dark: bool) -> None:
    page = look.at("/attention", dark=dark)
    lines = frame_of(page).locator("svg #attention line")
    expect(lines.first).to_be_attached(timeout=30_000)
    # Ten tokens, each with one line to the token before it: all other heads are off.
    opacities = lines.evaluate_all("(lines) => lines.map((line) => +line.getAttribute('stroke-opacity'))")
    assert sum(opacity > 0.5 for opacity in opacities) == 10
    assert frame_of(page).get_by_role("checkbox", checked=True).all_text_contents() == [""]
    expect(frame_of(page).get_by_role("checkbox", name="Head 2", exact=True)).to_be_checked()
    expect(frame_of(page).get_by_text("river", exact=True)).to_have_count(0)
    expect(frame_of(page).get_by_text("bank", exact=True).first).to_be_visible()
    expect(frame_of(page).locator("body")).to_have_css(
        "background-color", f"rgb({'18, 22, 28' if dark else '255, 255, 255'})"
    )


def test_the_model_view_has_six_by_twelve_cells(use: Stage) -> None:
    page = use.at("/attention?v=model-view")
    expect(frame_of(page).locator(".attn_background")).to_have_count(72, timeout=30_000)
    frame_of(page).get_by_role("button", name="Block 0, head 2", exact=True).click()
    expect(frame_of(page).locator("text.detail")).to_have_text("Block 0, Head 2")


def test_the_neuron_view_draws_connections(look: Stage) -> None:
    page = look.at("/attention?v=neuron-view")
    lines = frame_of(page).locator("svg line")
    expect(lines.first).to_be_attached(timeout=30_000)
    assert lines.count() > 20


def test_a_click_on_a_tile_opens_that_head(use: Stage) -> None:
    page = use.at("/attention?v=all-heads")
    canvas = page.locator(CANVAS)
    expect(canvas).to_have_attribute("data-drawn", "6x12x10")
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 34 + 2.5 * (box["width"] - 34) / 12, box["y"] + 22 + 0.5 * (box["height"] - 22) / 6)
    wait_for_title(page, "Block 0, head 2")
    assert figure(page)["types"] == ["heatmap"]


def test_tiles_are_worked_by_keyboard(use: Stage) -> None:
    page = use.at("/attention?v=head-patterns")
    canvas = page.locator(CANVAS)
    canvas.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_for_title(page, "Block 1, head 2")


@pytest.mark.parametrize("view", ["head", "model", "neuron", "matrix", "glance"])
def test_markup_in_a_sentence_is_inert(look: Stage, view: str) -> None:
    nasty = "</script><script>top.pwned=1</script> <img src=x onerror=top.pwned=1> <!-- x"
    page = look.at(f"/attention?view={view}&s={quote(nasty)}")
    drawn = {"matrix": page.locator(".js-plotly-plot .heatmaplayer"), "glance": page.locator(CANVAS)}
    expect(drawn.get(view, frame_of(page).locator("svg").first)).to_be_attached(timeout=30_000)
    assert page.locator("img[src=x]").count() == frame_of(page).locator("img").count() == 0
    assert page.evaluate("window.pwned") is None


def test_heatmaps_are_drawn_with_the_diagonal(look: Stage) -> None:
    page = look.at("/heatmaps")
    assert figure(page, 0)["types"] == ["heatmap"]
    assert figure(page, 1)["types"] == ["heatmap"]
    assert set(figure(page, 2)["types"]) == {"scatter"}


def test_the_model_view_is_swiped_on_a_phone(look: Stage) -> None:
    page = look.at("/attention?v=model-view", phone=True)
    expect(frame_of(page).locator("#note")).to_contain_text("Swipe sideways")


def test_head_numbers_are_large_enough_for_fingers(touched: Visit) -> None:
    phone = touched("/attention")
    squares = frame_of(phone).get_by_role("checkbox")
    expect(squares).to_have_count(12, timeout=30_000)
    boxes = squares.evaluate_all(
        "(all) => all.map((one) => { const {left, right, top, bottom} = one.getBoundingClientRect();"
        " return [left, right, top, bottom]; })"
    )
    assert all(right - left >= 32 and bottom - top >= 32 for left, right, top, bottom in boxes)
    assert all(left >= 0 and right <= 390 for left, right, _, _ in boxes)
    tokens = (
        frame_of(phone).locator("#left text").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().top)")
    )
    assert min(tokens) >= max(bottom for *_, bottom in boxes) - 1  # the second row of squares covers no token
    squares.nth(11).tap()
    expect(frame_of(phone).get_by_role("checkbox", name="Head 11", exact=True)).to_be_checked()
    phone.goto(phone.url.split("?")[0] + "?v=all-heads")
    canvas = phone.locator(CANVAS)
    expect(canvas).to_be_visible(timeout=30_000)
    box = canvas.bounding_box()
    assert box is not None
    assert box["width"] >= 12 * 32
    expect(phone.get_by_text("swipe to see all")).to_be_visible()


def test_the_two_sentences_have_labels_on_a_phone(look: Stage) -> None:
    page = look.at("/attention?v=attention-matrix", phone=True)
    for setting, label in (("sentence_a", "Sentence A"), ("sentence_b", "Sentence B")):
        text = page.locator(f"[class*=st-key-w_{setting}] label p")
        expect(text).to_have_text(label, timeout=30_000)
        box = text.bounding_box()
        assert box is not None
        assert box["width"] > 40
        assert box["height"] > 8


def test_bertviz_grows_in_projector_mode(look: Stage) -> None:
    drawn = "document.querySelector('iframe')?.contentDocument.querySelector('#vis svg')?.getBoundingClientRect().width"
    page = look.at("/attention?v=model-view", PROJECTOR)
    before = wait_until(page, f"() => {drawn}")
    wait_until_still(page, "iframe")
    page = look.at("/attention?v=model-view", PROJECTOR, projector=True)
    wait_until(page, f"(before) => {drawn} > 1.1 * before", before)


def test_play_shows_the_blocks_in_order_and_stops_at_the_last(use: Stage) -> None:
    page = use.at("/heatmaps?v=block&b1=3")
    page.get_by_role("button", name="Play", exact=True).first.click()
    wait_for_title(page, "Before and after block 5")
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    page.wait_for_url("**b1=5**")


def test_fast_clicks_write_no_defaults_into_the_address(visit: Visit) -> None:
    page = visit("/inside?v=block")
    names = ["Architecture", "Attention", "Flow", "Before and after a block"]
    for name in 2 * names:
        page.get_by_role("radio", name=name).click(delay=0, no_wait_after=True)
        page.wait_for_timeout(60)  # a fast person
    expect(page.get_by_role("radio", name=names[-1])).to_be_checked()
    wait_until(page, "() => location.search === '?v=block'")
    settle(page)
    assert page.url.endswith("?v=block"), page.url
