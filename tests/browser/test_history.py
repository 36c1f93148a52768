"""Back and Forward, with real clicks: each entry of the history restores what its address names, and no more."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Visit, settle, wait_until

MEANING, METHODS, SPLIT = "Two sentences: why similar", "Which words matter", "The score, split"


def choose_in_options(page: Page, name: str) -> None:
    """Choose a value of a control in the panel “Options”, and close the panel."""
    page.get_by_role("button", name="Options").click()
    page.get_by_role("radio", name=name).click()
    page.wait_for_url("**pool=cls**")
    page.keyboard.press("Escape")


def go_back(page: Page, address: str | re.Pattern[str]) -> None:
    page.go_back()
    page.wait_for_url(address)
    settle(page)


@pytest.mark.core
def test_back_restores_a_setting_whose_panel_is_closed_and_leaving_a_page_adds_one_entry(visit: Visit) -> None:
    page = visit("/why?v=important-words&s=a+river+bank&s=a+money+bank&sb=2")
    choose_in_options(page, "[CLS], the first token")
    go_back(page, "**/meaning?v=important-words&*sb=2")
    # The closed panel's widget must not send its old value with the next click.
    page.get_by_text(SPLIT, exact=True).click()
    page.wait_for_url(re.compile(r"/meaning\?v=score-split&s=a\+river\+bank&s=a\+money\+bank&sb=2$"))
    # The entry of a page that is left has none of the next page's settings.
    go_back(page, "**/meaning?v=important-words&*sb=2")
    choose_in_options(page, "[CLS], the first token")
    settle(page)
    before = page.evaluate("history.length")
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name=re.compile("^Text")).click()
    page.wait_for_url("**/text?v=pieces&s=a+river*")  # without the settings of the view before
    settle(page)
    assert page.evaluate("history.length") == before + 1
    go_back(page, re.compile(r"/meaning\?v=important-words&.*pool=cls"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Which words decide the similarity?")


def test_opening_a_view_adds_one_entry(visit: Visit) -> None:
    page = visit(
        "/why?v=known-failures&s=a+river+bank&s=a+money+bank"
    )  # a view without the pair that the next one needs
    before = page.evaluate("history.length")
    page.get_by_role("radio", name=MEANING).click()
    page.wait_for_url("**/meaning?v=score-split&*sb=2*")
    settle(page)
    assert page.evaluate("history.length") == before + 1
    go_back(page, "**v=known-failures*")
    expect(page.get_by_role("heading", level=1)).to_have_text("What can the model not see?")


def test_back_after_a_link_in_the_page_restores_its_settings_at_once(visit: Visit) -> None:
    page = visit("/heatmaps?v=sentence-pairs&s=a+river+bank&s=a+money+bank&s=a+long+river")
    why = page.get_by_role("button", name="Why are these two similar?")
    expect(why).to_be_enabled()
    wait_until(page, "() => window.bertInternalsRules")  # what the page writes before them is an entry of its own
    settle(page)
    before = page.evaluate("history.length")
    why.click()
    page.wait_for_url("**/meaning?v=score-split&*sb=*")
    settle(page)
    assert page.evaluate("history.length") == before + 1
    go_back(page, re.compile(r"/meaning\?v=sentence-pairs&s=a\+river\+bank&s=a\+money\+bank&s=a\+long\+river$"))
    expect(page.locator(".st-key-why_pair input")).to_be_visible()
