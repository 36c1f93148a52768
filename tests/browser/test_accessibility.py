"""What axe-core finds on pages that test_first_screen.py does not open, and tables that the keyboard must reach."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import serious_findings
from tests.support.browser import wait_until
from tests.support.stage import Stage


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("path", ["/layers?v=one-word&lesson=two-banks.2", "/search?v=hits&q=a+storm&vs=bm25&blind=1"])
def test_axe_finds_nothing_serious(look: Stage, path: str, dark: bool) -> None:
    assert serious_findings(look.at(path, dark=dark)) == []


@pytest.mark.core
def test_a_long_table_is_scrolled_by_the_keyboard(use: Stage) -> None:
    page = use.at("/training")
    page.get_by_text("as they were read").click()
    table = page.locator(".st-key-training_rows")
    expect(table).to_have_attribute("tabindex", "0")
    expect(table.get_by_role("row")).to_have_count(
        51
    )  # drawn after the rest of the page: before, nothing is to be scrolled
    table.focus()
    page.keyboard.press("PageDown")
    wait_until(page, "() => document.querySelector('.st-key-training_rows').scrollTop > 100")
