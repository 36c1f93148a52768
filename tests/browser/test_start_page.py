"""Start in a browser: a sentence is typed, a word clicked, and the stored pictures stand before the model."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import NewPage, Visit, settle, wait_until
from tests.support.server import Server
from tests.support.stage import Stage

READ = 120_000  # milliseconds: the included sentences are read once, on a busy machine


def field(page: Page) -> None:
    """The page with its field in sight."""
    expect(page.get_by_role("textbox", name="Your sentence")).to_be_visible()


def type_sentence(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Your sentence").fill(text)
    page.get_by_role("textbox", name="Your sentence").press("Enter")


def figures(page: Page) -> list[str]:
    """The sentences above the three figures, once all are there."""
    expect(page.locator(".near li")).to_have_count(5, timeout=READ)
    return page.locator(".fig h2").all_inner_texts()


@pytest.mark.core
def test_a_sentence_becomes_three_figures_and_a_click_on_a_word_redraws_them(visit: Visit) -> None:
    page = visit("/")
    field(page)
    expect(page.get_by_role("textbox", name="Your sentence")).to_be_focused()  # there is a mouse
    page.get_by_role("button", name="Look inside").click()
    said = page.get_by_role("textbox", name="Your sentence").evaluate("(field) => field.validationMessage")
    assert said == "Type a sentence first."
    expect(page.locator(".senses svg circle")).to_have_count(20 + 1)  # ten in each panel, and one in the key
    expect(page.locator(".failures h2")).to_contain_text("0.88 against 0.48")
    type_sentence(page, "The trophy does not fit in the suitcase because it is too big.")
    before = figures(page)
    expect(page.locator(".draw svg")).to_have_count(2)  # the fan and the curves; the nearest words are a list
    expect(page.locator(".chip.picked")).to_have_text("it")
    assert "gives “" in before[0]
    assert "s=The" in page.url
    # In the browser alone: the figures are those of the word at once, and the address follows.
    page.get_by_role("button", name="suitcase", exact=True).click()
    expect(page.locator(".chip.picked")).to_have_text("suitcase")
    assert page.locator(".fig h2").all_inner_texts() != before
    wait_until(page, "() => new URLSearchParams(location.search).get('t') === '8'")
    page.reload()
    settle(page)
    expect(page.locator(".chip.picked")).to_have_text("suitcase", timeout=READ)
    page.get_by_role("button", name=re.compile("One word's attention")).click()
    wait_until(page, "() => new URLSearchParams(location.search).get('v') === 'one-word-attention'")


def test_clear_and_back_lead_to_the_stored_pictures_and_sentences_are_not_lost(visit: Visit) -> None:
    page = visit("/")
    field(page)
    page.get_by_role("button", name="Good, and not good").click()
    expect(page.locator(".row .chip.picked")).to_have_text("good", timeout=READ)
    page.go_back()
    expect(page.locator(".senses svg")).to_be_visible()
    page.go_forward()
    expect(page.locator(".row .chip.picked")).to_have_text("good", timeout=READ)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".senses svg")).to_be_visible()
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value("")
    type_sentence(page, "one boat | two boats")
    typed = page.locator(".row .chip", has_text="boats")  # the stored picture of the path has rows too
    expect(typed).to_be_visible(timeout=READ)
    page.get_by_role("button", name="Clear").click()
    expect(typed).to_have_count(0)
    page.get_by_role("button", name="Yours: one boat | two boats").click()
    expect(typed).to_be_visible(timeout=READ)
    # Nor is Clear, while a sentence is read.
    page.get_by_role("textbox", name="Your sentence").fill("a red ship | a blue ship")
    # In one task of the page, so that nothing of the sentence can be drawn between the two.
    page.get_by_role("button", name="Clear").evaluate(
        "(clear) => { clear.closest('form').requestSubmit(); clear.click(); }"
    )
    wait_until(page, "() => new URLSearchParams(location.search).get('look') === '0'")
    expect(page.get_by_role("button", name="Yours: a red ship | a blue ship")).to_be_visible()
    expect(page.locator(".row .chip", has_text="ship")).to_have_count(0)
    expect(page.locator(".senses svg")).to_be_visible()
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value("")


def test_what_is_typed_goes_along_with_a_click_that_leaves_the_page(visit: Visit) -> None:
    page = visit("/")
    typed = "Seven owls sleep in our barn"
    own = "() => new URLSearchParams(location.search).get('s')"
    for name, view in (("Open with your own sentence", "whole-path"), ("Can it guess a hidden word?", "mask-token")):
        page.get_by_role("textbox", name="Your sentence").fill(typed)
        page.get_by_role("button", name=name).click()
        wait_until(page, f"() => new URLSearchParams(location.search).get('v') === '{view}'")
        assert page.evaluate(own) == typed
        page.locator("[data-testid=stSidebarNavLink]", has_text="Start").click()
        expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(typed)
        page.get_by_role("button", name="Clear").click()
        expect(page.locator(".senses svg")).to_be_visible()
        typed += " tonight"
    page.get_by_role("textbox", name="Your sentence").fill(typed)
    page.locator("[data-testid=stSidebarNavLink]", has_text="Text").click()
    wait_until(page, "() => new URLSearchParams(location.search).get('v') === 'pieces'")
    assert page.evaluate(own) == typed
    page.go_back()
    expect(page.get_by_role("textbox", name="Your sentence")).to_have_value(typed)


def test_the_blocks_play_and_a_picture_opens_its_view(use: Stage) -> None:
    page = use.at("/")
    last = page.locator(".senses svg text", has_text="layer 4")
    expect(last).to_be_visible()
    page.get_by_role("button", name="Play the blocks").click()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    expect(last).to_be_hidden()
    expect(last).to_be_visible()  # it has come to the end by itself
    expect(page.get_by_role("button", name="Play the blocks")).to_be_visible()
    page.locator(".failures .link").click()
    wait_until(page, "() => new URLSearchParams(location.search).get('v') === 'known-failures'")


def test_the_figures_are_read_as_tables_and_a_row_from_the_right_is_walked_to_the_left(use: Stage) -> None:
    page = use.at("/?look=1&s=The+trophy+does+not+fit+in+the+suitcase+because+it+is+too+big.&s=שלום+עולם+טוב.")
    figures(page)
    looks, changes = page.locator(".fig .read table").all()
    expect(looks.locator("tr").nth(5)).to_have_text(re.compile(r"^big\d+ %$"))
    expect(changes.get_by_role("columnheader")).to_have_text(
        ["cosine by layer (0 = before the first block)", "its start", "the others"]
    )
    expect(changes.get_by_role("row")).to_have_count(1 + 7)
    rows = page.locator(".chips")
    assert [row.get_attribute("dir") for row in rows.all()] == ["ltr", "rtl"]
    for row, key in zip(rows.all(), ("ArrowRight", "ArrowLeft"), strict=True):
        words = row.locator(".chip:enabled")
        words.first.focus()
        words.first.press(key)
        expect(words.nth(1)).to_be_focused()
    expect(page.locator(".st-key-start_cards").get_by_role("heading", level=2)).to_have_text(
        ["I teach", "I am curious", "My search is wrong"]
    )


def test_on_a_phone_the_keyboard_does_not_open_by_itself_and_rows_are_swiped(touched: Visit) -> None:
    page = touched("/?look=1")
    expect(page.locator(".near li")).to_have_count(5, timeout=READ)
    expect(page.get_by_role("textbox", name="Your sentence")).not_to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]  # type: ignore[index]
    assert page.locator(".row .chip.picked").bounding_box()["x"] > 0  # type: ignore[index]


@pytest.mark.core
def test_the_first_pictures_stand_before_the_model_is_loaded(server: Server, new_page: NewPage) -> None:
    """They are drawn though the chosen model is none that could be loaded."""
    page = new_page()
    page.goto(f"{server.url}/?m=prajjwal1/bert-tiny")
    expect(page.locator(".senses svg")).to_be_visible()
    expect(page.get_by_text("My search is wrong")).to_be_visible()
