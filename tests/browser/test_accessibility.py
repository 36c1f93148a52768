"""Each page as axe-core reads it: colours, names and roles that people need who cannot see it, or not well."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import serious_findings
from tests.browser.conftest import Visit

PAGES = (
    *("", "tokens", "model", "layers", "heatmaps", "attention", "map?layer=2", "search?q=a+storm", "evaluate"),
    *("pairs", "why", "training", "lessons", "layers?lesson=two-banks.2"),
)


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious_on_a_page(visit: Visit, path: str) -> None:
    """In the dark for every second page, so that each kind of element is seen both ways."""
    page = visit(f"/{path}", dark=PAGES.index(path) % 2 == 1)
    assert serious_findings(page) == []


def test_a_long_table_is_scrolled_by_the_keyboard(visit: Visit) -> None:
    page = visit("/training")
    table = page.locator(".st-key-training_rows")
    expect(table).to_have_attribute("tabindex", "0")
    table.focus()
    page.keyboard.press("PageDown")
    page.wait_for_function("document.querySelector('.st-key-training_rows').scrollTop > 100")
