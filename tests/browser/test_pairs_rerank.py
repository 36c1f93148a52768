"""Retrieve and re-rank in a browser: a line per candidate, ready-made queries, and another pair of models' words."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit, settle

LINES = ".st-key-rank_changes .scatterlayer .trace"


def lines(page: Page, count: int) -> None:
    expect(page.locator(LINES)).to_have_count(count, timeout=120_000)


def test_the_figure_has_a_line_per_candidate(visit: Visit) -> None:
    page = visit("/pairs?view=rerank&k=12")
    lines(page, 12)
    expect(page.get_by_text(re.compile("Correct answer: from rank 4 up to 1"))).to_be_visible()
    settle(page)
    page.get_by_role("radio", name="Army rescues villagers by boat").click()
    expect(page.get_by_text(re.compile("Correct answer: from rank 1 down to"))).to_be_visible(timeout=120_000)
    lines(page, 12)
    assert "q=Army" in page.url


def test_another_pair_shows_its_words(visit: Visit) -> None:
    page = visit("/pairs?view=disagree&nq=6")
    bars = page.locator(".st-key-disagreement_drops .bars .point")
    expect(bars.first).to_be_attached(timeout=120_000)
    settle(page)
    said = page.get_by_text(re.compile("^.*Rank \\d+ by vectors")).first.inner_text()
    page.locator(".st-key-w_disagreement input").click()
    page.get_by_role("option").nth(3).click()
    expect(page.get_by_text(said, exact=True)).to_have_count(0, timeout=120_000)
    expect(bars.first).to_be_attached(timeout=120_000)
