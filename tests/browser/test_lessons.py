"""A lesson in a real browser: its panel is beside the page, and its steps change the figure."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.browser import Visit, figure, settle, wait_until, wait_until_still
from tests.support.stage import Stage


@pytest.mark.core
def test_a_lesson_drives_the_page(visit: Visit) -> None:
    page = visit("/lessons?lesson=two-banks")
    panel = page.locator(".st-key-lesson_panel")
    expect(panel).to_contain_text("One spelling, two things")
    main, box = page.locator(".st-key-view_header").bounding_box(), panel.bounding_box()
    assert main is not None
    assert box is not None
    assert main["x"] + main["width"] <= box["x"]  # beside the page, not over it
    panel.get_by_text("bank (gave) and bank (raised)", exact=True).click()
    expect(panel).to_contain_text("Right.")
    settle(page)
    assert "bank (gave) – bank (raised)" in figure(page)["traces"]
    expect(panel.locator(".bi-count.right b")).not_to_have_text("0")
    panel.get_by_role("button", name="Next").click()
    expect(panel).to_contain_text("Where do they part?")
    panel.get_by_role("button", name="Next").click()
    expect(panel).to_contain_text("Twenty banks")
    panel.get_by_text("In 95 %", exact=True).click()
    expect(page).to_have_url(re.compile(r"/meaning\?.*lesson=two-banks\.3"))
    page.get_by_text("“bank” at layer 4").first.wait_for(timeout=60_000)
    panel.get_by_role("button", name="Leave the lesson").click()
    expect(panel).to_have_count(0)


def test_on_a_phone_the_panel_can_be_folded(use: Stage) -> None:
    page = use.at("/layers?v=one-word&lesson=two-banks.2", phone=True)
    panel = page.locator(".st-key-lesson_panel")
    expect(panel).to_contain_text("Where do they part?")
    opened = panel.bounding_box()
    assert opened is not None
    assert opened["y"] >= 844 * 0.5  # it never takes more than half of the screen
    panel.locator("summary").click()
    wait_until(page, "() => document.querySelector('.st-key-lesson_panel').getBoundingClientRect().height < 120")
    expect(panel.get_by_role("button", name="Next")).to_be_visible()


def test_a_reload_keeps_the_answer_and_counts_it_once(visit: Visit) -> None:
    page = visit("/lessons?lesson=two-banks&class=reload")
    panel = page.locator(".st-key-lesson_panel")
    panel.get_by_text("bank (gave) and bank (river)", exact=True).click()
    verdict = panel.get_by_text("The right answer: bank (gave) and bank (raised).")
    expect(verdict).to_be_in_viewport()
    for _ in range(2):
        page.reload()
        expect(verdict).to_be_visible()
        expect(panel.locator(".st-key-lesson_choices")).to_have_count(0)
        expect(panel.locator(".bi-count b")).to_have_text(["1", "0", "0", "0"])


# Whether the top of a page's first result stands between the page's first line and the lesson's panel.
IS_ABOVE = """(result) => {
    const box = document.querySelector(`[data-testid=stMain] ${result}`)?.getBoundingClientRect();
    const panel = document.querySelector('.st-key-lesson_panel')?.getBoundingClientRect();
    return Boolean(box && panel && box.y >= 50 && box.y <= 110 && panel.y - box.y >= 380);
}"""
SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"


def test_on_a_phone_each_step_brings_its_first_result_above_the_panel_unless_a_person_scrolls(visit: Visit) -> None:
    page = visit("/lessons?lesson=two-banks.1", phone=True)
    chips, plot = ".st-key-chips_tokens", ".js-plotly-plot"
    expect(page.locator(chips)).to_be_visible()
    wait_until(page, IS_ABOVE, chips)
    page.get_by_role("button", name="Next").click()
    expect(page.locator(plot).first).to_be_visible()
    wait_until(page, IS_ABOVE, plot)
    page.get_by_role("button", name="Back").click()
    expect(page.locator(chips)).to_be_visible()
    wait_until(page, IS_ABOVE, chips)
    page.get_by_role("button", name="Next").click()
    expect(page.locator(plot).first).to_be_visible()
    wait_until(page, IS_ABOVE, plot)
    page.mouse.move(200, 200)
    page.mouse.wheel(0, 150)
    wait_until(page, f"(result) => !({IS_ABOVE})(result)", plot)
    wait_until_still(page, plot)
    top = page.evaluate(SCROLLED)
    page.wait_for_timeout(600)  # four looks of lesson_scroll.js
    assert page.evaluate(SCROLLED) == top
    assert not page.evaluate(IS_ABOVE, plot)
