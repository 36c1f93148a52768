"""Guess the word in a browser: words are hidden by click and by key, and the picture follows, on a phone too."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.accessibility import serious_findings
from tests.support.browser import Visit, fits, wait_until
from tests.support.stage import PHONE
from tests.support.tiny import save_tiny_masked_lm

CAT = "the cat sat on the red hat"
TABLES = """(root) => [...root.querySelectorAll('table')].map((table) =>
  [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent)))"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny_masked_lm(tmp_path_factory.mktemp("guesses") / "tiny"))


def address(folder: str | Path, text: str = CAT, more: str = "&mp=2") -> str:
    return f"/inside?v=mask-token&m={quote(str(folder), safe='')}&s={quote(text)}{more}"


def drawn(page: Page) -> Locator:
    guess = page.locator(".guess")
    expect(guess.locator("svg .bar").first).to_be_attached(timeout=60_000)
    return guess


def test_a_word_is_hidden_by_a_click_and_by_a_key(visit: Visit, folder: str) -> None:
    page = visit(address(folder))
    guess = drawn(page)
    expect(guess.get_by_role("button", name="Hide cat")).to_have_attribute("aria-pressed", "true")
    tables: list[Any] = guess.evaluate(TABLES)
    assert [row[0] for row in tables[0][1:]] == guess.locator("svg .bar + text").evaluate_all(
        "(texts) => texts.map((text) => text.previousElementSibling.previousElementSibling.textContent)"
    )[:10]
    assert len(tables[1]) == 5  # four layers below the names
    guess.get_by_role("button", name="Hide sat").click()
    expect(guess.get_by_role("button", name="Hide sat")).to_have_attribute("aria-pressed", "true")
    wait_until(page, "() => new URLSearchParams(location.search).get('mp') === '3'")
    guess.get_by_role("button", name="Hide hat").press("Enter")
    expect(guess.get_by_role("button", name="Hide hat")).to_have_attribute("aria-pressed", "true")
    expect(guess.get_by_role("button", name="Hide hat")).to_be_focused()
    page.get_by_role("button", name="cat").first.click()  # among the words above
    wait_until(page, "() => new URLSearchParams(location.search).get('mp') === '2'")
    expect(guess.get_by_role("button", name="Hide cat")).to_have_attribute("aria-pressed", "true")


def test_it_looks_only_left(visit: Visit, folder: str) -> None:
    page = visit(address(folder))
    expect(drawn(page).locator("svg")).to_contain_text("only left")
    page.get_by_text("Only look left").click()
    expect(page.locator(".guess svg")).to_contain_text("both sides")
    expect(page.locator(".guess svg")).to_contain_text("that see only the left")
    wait_until(page, "() => new URLSearchParams(location.search).get('left') === '1'")


def test_one_of_several_masks_is_chosen(visit: Visit, folder: str) -> None:
    page = visit(address(folder, "the [mask] sat on the <mask>", ""))
    pills = drawn(page).locator(".masks button")
    expect(pills).to_have_count(2)
    expect(pills.nth(0)).to_have_attribute("aria-pressed", "true")
    pills.nth(1).click()
    expect(pills.nth(1)).to_have_attribute("aria-pressed", "true")
    wait_until(page, "() => new URLSearchParams(location.search).get('mp') === '6'")


def test_it_fits_a_phone_and_a_screen_reader(visit: Visit, folder: str) -> None:
    page = visit(address(folder))
    drawn(page)
    assert serious_findings(page) == []
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    expect(page.locator(".guess.narrow svg .bar").first).to_be_attached()
    assert fits(page)
    outside = page.locator(".guess").evaluate(
        """(root) => { const { left, right } = root.getBoundingClientRect();
        return [...root.querySelectorAll('svg text')].filter((text) => { const box = text.getBoundingClientRect();
          return box.left < left - 1 || box.right > right + 1; }).map((text) => text.textContent); }"""
    )
    assert outside == []
