"""Diagnose in a browser: what failed queries share, their list and the query that is open, all on the first screen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from dashboard.corpora import current
from tests.support.browser import Visit, fits, settle

MISSPELT = 32  # queries, each with two letters exchanged in every long word; as many are found


@pytest.fixture(scope="module")
def rows() -> str:
    """Queries with their right texts, as they are pasted."""
    demo = current.demo()
    texts, queries = demo.texts[: 2 * MISSPELT], demo.columns["compressed"]
    lines = []
    for row, text in enumerate(texts):
        words = queries[row].split()
        if row < MISSPELT:
            words = [f"{word[:2]}{word[3]}{word[2]}{word[4:]}" if len(word) > 4 else "" for word in words]
        lines.append(f"{' '.join(words).strip() or queries[row]}\t{text}")
    return "\n".join(lines)


def test_pasted_queries_are_on_the_first_screen_and_a_click_chooses_a_trait_and_a_query(
    visit: Visit, rows: str
) -> None:
    page = visit("/diagnose?v=failed-search")
    page.get_by_role("button", name="Your queries").click()
    page.get_by_label("One row a line").fill(rows)
    page.get_by_role("button", name="Find the failed queries").click()
    trait = page.locator(".failed .trait", has_text="Likely misspelling")
    # The view of before, of the 630 demonstration texts, stands until the rows are read.
    expect(trait).to_have_attribute("title", re.compile(r"of \d\d found"), timeout=120_000)
    settle(page)
    for part in (".failed .trait >> nth=0", ".failed .queries", ".bi-case", ".bi-repairs", ".st-key-why_words"):
        box = page.locator(part).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900, part
    queries = page.locator(".failed .query")
    count = queries.count()
    queries.nth(count - 1).click()
    expect(page.locator(".bi-case .query")).to_have_text(queries.nth(count - 1).locator(".asked").inner_text())
    trait.click()
    expect(trait).to_have_attribute("aria-pressed", "true")
    assert 0 < queries.count() < count
    expect(page.locator(".bi-case .query")).to_have_text(queries.first.locator(".asked").inner_text())
    last = queries.nth(queries.count() - 1)
    asked = last.locator(".asked").inner_text()
    last.click()
    expect(page.locator(".bi-case .query")).to_have_text(asked)
    assert "Traits: likely misspelling" in page.locator(".bi-case").inner_text()
    page.get_by_role("button", name=f"all {count}").click()
    expect(queries).to_have_count(count)
    expect(page.locator(".bi-case .query")).to_have_text(asked)  # it stays open
    page.locator(".st-key-view_names").get_by_text("What helps").click()
    expect(page.locator("h1")).to_contain_text("What helps")
    expect(page.get_by_role("button", name="Options")).to_have_count(1, timeout=120_000)  # a hidden one has no role
    page.go_back()
    expect(page.locator(".failed .trait").first).to_be_visible(timeout=60_000)
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    expect(page.locator(".failed .trait").first).to_be_visible(timeout=60_000)
    settle(page)
    box = page.locator(".failed .queries").bounding_box()
    assert box is not None
    assert box["y"] < 844  # the list begins on the first screen
    assert fits(page)
