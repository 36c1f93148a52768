"""Each page as axe-core reads it: colours, names and roles that people need who cannot see it, or not well."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import Stage, Visit

PAGES = (
    *("", "tokens", "model", "layers", "heatmaps", "attention", "map?layer=2", "search?q=a+storm", "evaluate"),
    *("pairs", "why", "training", "lessons", "layers?lesson=two-banks.2"),
)


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_serious_on_a_page(look: Stage, path: str) -> None:
    """In the dark for every second page, so that each kind of element is seen both ways."""
    page = look.at(f"/{path}", dark=PAGES.index(path) % 2 == 1)
    found = [
        f"{rule['id']}: {node['target']} {node['html'][:120]} {node['failureSummary'][:300]}"
        for rule in Axe().run(page).response["violations"]
        if rule["impact"] in {"serious", "critical"}
        for node in rule["nodes"]
    ]
    assert found == []


def test_a_long_table_is_scrolled_by_the_keyboard(visit: Visit) -> None:
    page = visit("/training")
    table = page.locator(".st-key-training_rows")
    expect(table).to_have_attribute("tabindex", "0")
    table.focus()
    page.keyboard.press("PageDown")
    page.wait_for_function("document.querySelector('.st-key-training_rows').scrollTop > 100")
