"""One word's attention in a browser: what is drawn is what was sent, and heads change without the server."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support import plain_encoder as plain
from tests.support.browser import wait_until
from tests.support.stage import LAPTOP, PHONE, Stage

TROPHY = "The trophy does not fit in the suitcase because it is too big."
DRAWN = """(root) => {
  const looks = root.bertInternalsLooks, { facts } = looks;
  const names = [...root.querySelectorAll("table tr")].slice(1).map((row) => [...row.cells].map((cell) => cell.textContent));
  const boxes = [...root.querySelectorAll("svg text")].map((text) => [text.textContent, text.getBoundingClientRect().toJSON()]);
  return { head: looks.head, weights: Array.from(looks.weights), rows: facts.rows.length, heads: facts.heads, names, boxes,
    stage: root.querySelector(".stage").getBoundingClientRect().toJSON() };
}"""


def address(text: str = TROPHY, more: str = "&t=10") -> str:
    return f"/inside?v=one-word-attention&s={quote(text)}{more}"


def drawn(page: Page) -> Locator:
    looks = page.locator(".looks")
    expect(looks.locator("svg .column rect").first).to_be_attached(timeout=60_000)
    return looks


def state(looks: Locator) -> dict[str, Any]:
    found: dict[str, Any] = looks.evaluate(DRAWN)
    return found


@pytest.mark.core
def test_shares_that_are_read_are_those_of_plain_transformers(look: Stage) -> None:
    looks = drawn(look.at(address()))
    found, attention = state(looks), plain.run(TROPHY).attention[:, :, 10]
    assert found["head"] == [2, 1]
    shares = attention[2, 1]
    for (name, shown), share, piece in zip(found["names"], shares, plain.run(TROPHY).pieces, strict=True):
        assert name == (piece if piece != "it" else "itself")
        expected = f"{round(100 * float(share))} %" if share >= 0.005 else "< 1 %" if share >= 0.0005 else "0"
        assert shown == expected, name
    np.testing.assert_allclose(np.reshape(found["weights"], attention.shape), attention, atol=2e-6)


def test_a_head_is_chosen_in_the_browser_and_the_address_follows(use: Stage) -> None:
    page = use.at(address())
    looks = drawn(page)
    looks.get_by_role("button", name="2 block 3, head 1").click()
    assert state(looks)["head"] == [3, 1]  # at once
    expect(looks.get_by_role("button", name="2 block 3, head 1")).to_have_attribute("aria-pressed", "true")
    wait_until(page, "() => new URLSearchParams(location.search).get('h') === '1' && location.search.includes('b=3')")
    looks.locator(".stage").press("ArrowRight")
    assert state(looks)["head"] == [3, 2]
    wait_until(page, "() => new URLSearchParams(location.search).get('h') === '2'")
    looks.locator(".name", has_text="suitcase").click()  # a word of the fan: it opens with a head of its own
    expect(page.locator(".row .picked")).to_have_text("suitcase")
    wait_until(page, "() => !new URLSearchParams(location.search).has('h')")


def test_a_phone_has_one_block_at_a_time_with_columns_for_a_finger(use: Stage) -> None:
    page = use.at(address(), phone=True)
    looks = drawn(page)
    widths = looks.locator(".column .cell").evaluate_all(
        "cells => cells.map(cell => cell.getBoundingClientRect().width)"
    )
    assert min(widths) >= 8
    blocks = looks.get_by_role("group", name="Blocks").get_by_role("button")
    expect(blocks).to_have_count(6)
    expect(blocks.nth(2)).to_have_attribute("aria-pressed", "true")  # that of the most decisive head
    blocks.nth(4).click()
    assert state(looks)["head"] == [4, 1]
    expect(looks.locator(".column")).to_contain_text("heads of block 4")
    expect(blocks.nth(4)).to_be_focused()
    own = state(looks)
    shares = np.reshape(own["weights"], (6, own["heads"], own["rows"]))[4]
    assert looks.locator(".column .cell").count() == int((shares >= 0.01).sum())
    use.resize(page, LAPTOP)  # all blocks beside each other
    expect(blocks.first).to_be_hidden()
    expect(page.get_by_text("In block 4, head 1, “it” looks most at")).to_be_visible()  # the finding has followed


@pytest.mark.parametrize("width", [0, 1, 40, 150, 300, 900])
def test_no_size_is_negative_in_a_box_of_any_width(look: Stage, width: int) -> None:
    """While a page changes, a box is narrower than its names for a moment."""
    page = look.at(address())
    looks = drawn(page)
    looks.evaluate("(root, width) => { root.style.width = `${width}px`; }", width)
    wait_until(
        page, "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
    )
    looks.evaluate("(root) => root.bertInternalsLooks.draw()")
    assert look.watch.console == []
    looks.evaluate("(root) => { root.style.width = ''; }")
    expect(looks.locator(".column .cell").first).to_be_attached()


@pytest.mark.parametrize("size", [LAPTOP, PHONE])
@pytest.mark.parametrize(
    "text", [TROPHY, "Hello", "An unbelievably antidisestablishmentarian committee reconvened. " * 6]
)
def test_no_text_lies_over_another_or_leaves_the_drawing(use: Stage, size: tuple[int, int], text: str) -> None:
    found = state(drawn(use.at(address(text, ""), size)))
    stage, boxes = found["stage"], found["boxes"]
    for shown, box in boxes:
        assert box["left"] >= stage["left"] - 2, shown
        assert box["right"] <= stage["right"] + 2, shown
    for number, (first, one) in enumerate(boxes):
        for second, other in boxes[number + 1 :]:
            across = min(one["right"], other["right"]) - max(one["left"], other["left"])
            down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
            both_marks = first.isdigit() and second.isdigit()  # of heads beside each other
            assert across < 1 or down < 3 or both_marks, (first, second)
