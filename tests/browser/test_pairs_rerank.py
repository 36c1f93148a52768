"""Retrieve and re-rank in a browser: a line per candidate, ready-made queries, and another pair of models' words."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import settle
from tests.support.stage import Stage

LINES = ".reranked svg .line"


def lines(page: Page, count: int) -> None:
    expect(page.locator(LINES)).to_have_count(count, timeout=120_000)


def test_the_figure_has_a_line_per_candidate(use: Stage) -> None:
    page = use.at("/pairs?v=retrieve-rerank&k=12")  # an older address: the cross-encoder
    lines(page, 10)
    page.get_by_role("button", name="All 12 candidates").click()
    lines(page, 12)
    expect(page.get_by_text(re.compile("correct answer rises from rank 4 to 1"))).to_be_visible()
    settle(page)
    page.get_by_role("radio", name="harmed: Army rescues village").click()
    expect(page.get_by_text(re.compile("correct answer falls from rank 1 to"))).to_be_visible(timeout=120_000)
    lines(page, 12)
    assert "q=Army" in page.url


@pytest.mark.core
def test_the_lines_lead_from_a_text_to_the_same_text(look: Stage) -> None:
    page = look.at("/search?v=retrieve-rerank&q=Hikers+flee+as+sleeping+peak+wakes&by=maxsim")
    lines(page, 10)
    expect(page.get_by_text(re.compile("correct answer rises from rank 5 to 1"))).to_be_visible(timeout=120_000)
    found = page.evaluate(
        """() => {
            const within = [...document.querySelectorAll('*')].map((one) => one.shadowRoot?.querySelector('.reranked'));
            const all = within.find(Boolean) ?? document.querySelector('.reranked');
            const middle = (list, row) => {
                const box = all.querySelector(`.${list} [data-row="${row}"]`).getBoundingClientRect();
                return (box.top + box.bottom) / 2;
            };
            return [...all.querySelectorAll('.line:not(.stub)')].map((line) => {
                const box = line.getBoundingClientRect(), row = line.dataset.row;
                const ends = [middle('first', row), middle('second', row)].sort((one, other) => one - other);
                return Math.max(Math.abs(box.top - ends[0]), Math.abs(box.bottom - ends[1]));
            });
        }"""
    )
    assert len(found) == 10
    assert max(found) < 4  # pixels, of which the width of a line is some


def test_another_pair_shows_its_words(use: Stage) -> None:
    page = use.at("/pairs?v=disagreement&nq=6")
    bars = page.locator(".st-key-disagreement_drops .bars .point")
    expect(bars.first).to_be_attached(timeout=120_000)
    settle(page)
    said = page.get_by_text(re.compile("(are|is) right: ")).first.inner_text()
    page.locator(".st-key-w_disagreement input").click()
    page.get_by_role("option").nth(3).click()
    expect(page.get_by_text(said, exact=True)).to_have_count(0, timeout=120_000)
    expect(bars.first).to_be_attached(timeout=120_000)


CELLS = """() => [...document.querySelectorAll('.st-key-disagreement_list tbody tr')].slice(0, 8).map((row) => {
    const boxes = [...row.cells].slice(3).map((cell) => cell.getBoundingClientRect());
    return {widths: boxes.map((box) => box.width), tops: boxes.map((box) => box.top),
        clipped: [...row.querySelectorAll('p')].some((text) => text.getBoundingClientRect().right > innerWidth - 16)};
})"""


def test_on_a_phone_the_list_is_one_record_a_pair_and_no_label_is_cut(look: Stage) -> None:
    page = look.at("/pairs?v=disagreement&nq=6", phone=True)
    expect(page.locator(".st-key-disagreement_list td").first).to_be_attached(timeout=120_000)
    settle(page)
    for record in page.evaluate(CELLS):
        assert min(record["widths"]) > 250
        assert record["tops"][1] > record["tops"][0]  # the document stands below the query
        assert not record["clipped"]
    page = look.at("/pairs?v=retrieve-rerank&k=100", phone=True)
    after = page.locator(".reranked .second li")
    expect(after).to_have_count(10, timeout=120_000)
    settle(page)
    expect(page.locator(".reranked .first")).to_be_hidden()
    expect(after.first.locator(".text")).to_be_visible()
    for box in after.evaluate_all("(rows) => rows.map((row) => row.getBoundingClientRect().toJSON())"):
        assert box["left"] >= 0
        assert box["right"] <= 390
    page.get_by_role("button", name="All 100 candidates").click()
    expect(after).to_have_count(100)
