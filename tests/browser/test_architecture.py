"""Architecture in a browser: a click or Enter tells what a part is, and a phone has a drawing of its own."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.support.stage import PHONE, Stage


@pytest.mark.core
def test_a_part_says_what_it_is_and_leads_to_its_view(use: Stage) -> None:
    page = use.at("/inside?v=model-facts")
    card = page.locator(".arch .card")
    expect(card.locator("h3")).to_have_text("Table of pieces")  # the largest part, which the finding names first
    page.locator(".arch rect.forward").first.click()
    expect(card.locator("h3")).to_have_text("Feed-forward")
    expect(card.locator(".share")).to_have_text("31 %")
    pieces = page.locator(".arch rect.pieces")
    pieces.focus()
    page.keyboard.press("Enter")
    expect(card.locator(".share")).to_have_text("52 %")
    expect(pieces).to_have_attribute("aria-pressed", "true")
    assert page.locator(".arch image").count() == 8  # layers 0 to 6, and the sentence
    page.locator(".arch rect.forward").first.click()
    card.get_by_role("button", name="See it work").click()
    page.wait_for_url("**v=feed-forward**")


def test_on_a_phone_the_card_stands_below_the_drawing(use: Stage) -> None:
    page = use.at("/inside?v=model-facts", PHONE)
    expect(page.locator(".arch.narrow")).to_be_visible()
    drawing, card = page.locator(".arch > svg").bounding_box(), page.locator(".arch .card").bounding_box()
    assert drawing is not None
    assert card is not None
    assert drawing["width"] <= PHONE[0]
    assert card["y"] >= drawing["y"] + drawing["height"]
