"""Pairs as drawn: two histograms, a threshold that moves the matrix, chips of both pairs."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import figure, settle, wait_until
from tests.support.stage import Stage

COUNTS = """() => [...document.querySelectorAll('.st-key-pair_histogram .js-plotly-plot')].map((plot) =>
    plot._fullData.map((trace) => [trace.name, trace.y.reduce((sum, count) => sum + count, 0)]))[0]"""
POINT = """() => {
    const point = document.querySelector('.st-key-pair_curve .js-plotly-plot')._fullData[2];
    return [point.x[0], point.y[0]];
}"""


MATRIX = """() => [...document.querySelectorAll('.st-key-pair_confusion .js-plotly-plot')].map((plot) =>
    plot._fullData[0].text.map((text) => parseInt(text.replace('<b>', '').replace(',', ''))))[0]"""


def matrix(page: Page) -> list[int]:
    return list(wait_until(page, MATRIX, timeout=120_000))


def test_moving_the_threshold_changes_the_matrix_and_the_point(use: Stage) -> None:
    page = use.at("/pairs?v=pair-scores")
    expect(page.locator(".st-key-pair_confusion .js-plotly-plot")).to_be_visible(timeout=120_000)
    figure(page)
    assert page.evaluate(COUNTS) == [["not relevant (190)", 190], ["relevant (10)", 10]]
    before, point = matrix(page), page.evaluate(POINT)
    assert sum(before) == 200
    handle = page.get_by_role("slider", name="Threshold (raw logit)")
    handle.focus()
    handle.press("Home")  # accepts everything
    wait_until(page, f"() => ({MATRIX})()?.[3] === 0")
    settle(page)
    assert matrix(page) != before
    wait_until(page, f"(old) => JSON.stringify(({POINT})()) !== JSON.stringify(old)", point)
    recall, precision = page.evaluate(POINT)
    assert recall == 100
    assert precision == pytest.approx(100 * 10 / 200)
    expect(page.get_by_text("10 of 10 relevant documents")).to_be_visible()
    page.wait_for_url("**th=-*")


def test_both_pairs_are_chips_and_truncation_takes_some_away(use: Stage) -> None:
    page = use.at("/pairs")
    chips = page.locator(".st-key-chips_relevant .chip")
    expect(chips).to_have_count(24, timeout=120_000)
    expect(chips.nth(1)).to_contain_text("how")
    expect(chips.nth(1)).to_contain_text("2129")
    expect(chips.nth(1)).to_contain_text("0 A")
    expect(chips.nth(10)).to_contain_text("1 B")
    expect(page.get_by_text("1 · relevant document")).to_be_visible()
    page.get_by_role("button", name="Truncation").click()
    handle = page.get_by_role("slider", name="At most (tokens)")
    handle.focus()
    for left in (23, 22):
        handle.press("ArrowLeft")
        expect(chips).to_have_count(left, timeout=30_000)
    expect(page.locator("[data-testid=stTable] td", has_text="2: hive.").first).to_be_visible()


def test_the_fields_hold_the_current_texts_and_take_others(use: Stage) -> None:
    page = use.at("/pairs")
    chips = page.locator(".st-key-chips_relevant .chip")
    expect(chips).to_have_count(24, timeout=120_000)
    page.get_by_role("radio", name="A long document").first.click()  # with the query of the texts before
    expect(chips.nth(30)).to_be_visible(timeout=30_000)  # the middle of the long row is folded
    page.get_by_role("button", name="Edit the texts").first.click()
    expect(page.get_by_role("textbox", name="Query")).to_have_value("How do bees find their way home?")
    document = page.get_by_role("textbox", name="Relevant document")
    document.fill("A hive.")
    document.press("Control+Enter")
    expect(chips).to_have_count(14, timeout=30_000)  # 10 up to the first [SEP], "a", "hive", ".", [SEP]


def test_on_a_phone_both_scores_are_on_the_first_screen_and_a_long_text_is_folded(use: Stage) -> None:
    long = "The%20bees%20fly%20home.%20" * 60
    page = use.at(f"/pairs?v=one-input&pr={long}", phone=True)
    scores = page.get_by_text(re.compile("^.*The relevant document scores .*, the other .*is higher by"))
    expect(scores).to_be_visible(timeout=120_000)
    chips = page.locator(".st-key-chips_relevant .chip")
    expect(chips.first).to_be_visible()
    box = scores.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 844
    settle(page)
    count = chips.count()
    shown = page.locator(".st-key-chips_relevant .chip:visible")
    assert count > 200
    expect(shown).to_have_count(48)
    expect(chips.last).to_be_visible()
    more = page.locator(".st-key-chips_relevant .more")
    expect(more).to_have_text(f"… {count - 48} more tokens")
    more.click()
    expect(shown).to_have_count(count)
    expect(more).to_have_count(0)
