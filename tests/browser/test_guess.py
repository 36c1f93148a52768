"""Guess the word in a browser: words are hidden by click and by key, and the picture follows, on a phone too."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.accessibility import serious_findings
from tests.support.browser import fits, wait_until, wait_until_at_rest
from tests.support.stage import PHONE, Stage
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


def expect_hidden(page: Page, word: str) -> Locator:
    """The word's button once it is the only one that is pressed; a page that is being drawn has the old picture too."""
    expect(page.locator(".guess .word[aria-pressed=true]")).to_have_text([word])
    return page.locator(".guess .word[aria-pressed=true]")


def test_a_word_is_hidden_by_a_click_and_by_a_key(use: Stage, folder: str) -> None:
    page = use.at(address(folder))
    guess = drawn(page)
    expect_hidden(page, "cat")
    guesses, layers = guess.evaluate(TABLES)
    names = guess.locator("svg .bar").evaluate_all(
        "(bars) => bars.map((bar) => bar.previousElementSibling.textContent)"
    )
    assert [row[0] for row in guesses[1:]] == names[:10]
    assert len(layers) == 5  # four layers below the names
    guess.locator(".word", has_text="sat").click()
    expect_hidden(page, "sat")
    wait_until(page, "() => new URLSearchParams(location.search).get('mp') === '3'")
    guess.locator(".word", has_text="hat").press("Enter")
    expect(expect_hidden(page, "hat")).to_be_focused()
    page.locator(".rows .chip", has_text="cat").click()
    wait_until(page, "() => new URLSearchParams(location.search).get('mp') === '2'")
    expect_hidden(page, "cat")


@pytest.mark.core
def test_it_looks_only_left(use: Stage, folder: str) -> None:
    page = use.at(address(folder))
    expect(drawn(page).locator("svg")).to_contain_text("only left")
    page.get_by_text("Only look left").click()
    expect(page.locator(".guess svg")).to_contain_text("both sides")
    expect(page.locator(".guess svg")).to_contain_text("that see only the left")
    wait_until(page, "() => new URLSearchParams(location.search).get('left') === '1'")


def test_one_of_several_masks_is_chosen(use: Stage, folder: str) -> None:
    page = use.at(address(folder, "the [mask] sat on the <mask>", ""))
    pills = drawn(page).locator(".masks button")
    expect(pills).to_have_count(2)
    expect(pills.nth(0)).to_have_attribute("aria-pressed", "true")
    pills.nth(1).click()
    expect(pills.nth(1)).to_have_attribute("aria-pressed", "true")
    wait_until(page, "() => new URLSearchParams(location.search).get('mp') === '6'")


def test_it_fits_a_phone_and_a_screen_reader(use: Stage, folder: str) -> None:
    page = use.at(address(folder))
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


def test_of_a_long_text_the_hidden_word_is_in_sight_in_whole_rows(use: Stage, folder: str) -> None:
    page = use.at(address(folder, "the cat sat on the red hat " * 8, "&mp=33"))
    drawn(page)
    for box, chosen in (
        (".st-key-few_rows", ".rows .chip.picked"),
        (".guess .surprise ol", ".guess .word[aria-pressed=true]"),
    ):
        expect(page.locator(chosen)).to_have_count(1)
        wait_until_at_rest(page.locator(chosen))
        inner, outer = page.locator(chosen).bounding_box(), page.locator(box).bounding_box()
        assert inner is not None
        assert outer is not None
        assert outer["y"] - 1 <= inner["y"] <= inner["y"] + inner["height"] <= outer["y"] + outer["height"] + 1
    cut = """(line) => {
        const {top, bottom} = line.getBoundingClientRect();
        const boxes = [...line.children].map((item) => item.getBoundingClientRect());
        const seen = boxes.filter((box) => box.bottom > top + 1 && box.top < bottom - 1);
        const whole = seen.filter((box) => box.top >= top - 1 && box.bottom <= bottom + 1);
        return [line.scrollHeight > line.clientHeight, seen.length - whole.length];
    }"""
    assert page.locator(".guess .surprise ol").evaluate(cut) == [True, 0]


def test_words_that_scroll_are_whole_and_say_that_there_are_more(use: Stage, folder: str) -> None:
    page = use.at(address(folder, "the cat sat on the red hat " * 6, "&mp=33"))
    drawn(page)
    expect(page.locator(".rows .chip.picked")).to_have_count(1)
    for size in ((1440, 900), PHONE):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        box = page.locator(".st-key-few_rows")
        wait_until_at_rest(box)
        for where in ("e.scrollHeight / 2", "e.scrollHeight", "0"):
            box.evaluate(f"(e) => {{ e.scrollTop = {where}; }}")
            wait_until_at_rest(box)
            frame = box.bounding_box()
            assert frame is not None
            rows = page.locator(".rows .chip").evaluate_all(
                "(chips) => chips.map((chip) => [chip.getBoundingClientRect().top, chip.getBoundingClientRect().bottom])"
            )
            top, bottom = frame["y"], frame["y"] + frame["height"]
            sliced = [row for row in rows if row[0] < top - 1 < row[1] - 2 or row[0] + 2 < bottom + 1 < row[1]]
            assert sliced == [], (size, where)
        more = "(e, which) => getComputedStyle(e, which).visibility"
        has_more = box.evaluate("(e) => e.scrollHeight > e.clientHeight + 1")
        assert has_more or size != PHONE
        assert box.evaluate(more, "::after") == ("visible" if has_more else "hidden")
        assert box.evaluate(more, "::before") == "hidden"


def test_bars_are_as_long_as_their_shares(use: Stage, folder: str) -> None:
    guess = drawn(use.at(address(folder)))
    shares = [float(row[1].split(" %")[0]) for row in guess.evaluate(TABLES)[0][1:]]
    widths = guess.evaluate(
        """(root) => [...root.querySelectorAll("svg .bar")].map((bar) => Number(bar.getAttribute("width")))"""
    )
    scale = widths[0] / shares[0]
    reach = next(most for most in (5, 10, 20, 50, 100) if most >= max(shares))  # per cent that the room stands for
    room = guess.evaluate("(root) => root.querySelector('svg').getBoundingClientRect().width")
    assert 0.08 * room < scale * reach < 0.6 * room
    for share, width in zip(shares, widths, strict=False):
        assert abs(width - max(2, scale * share)) < widths[0] * 0.03, share


def test_the_first_guess_is_not_blue_where_nobody_knows_the_word(use: Stage, folder: str) -> None:
    guess = drawn(use.at(address(folder, "the ___ sat on the red hat", "")))
    colours = guess.evaluate(
        """(root) => { const probe = root.appendChild(document.createElement("i"));
        probe.style.color = "var(--st-primary-color)";
        const blue = getComputedStyle(probe).color; probe.remove();
        return [blue, getComputedStyle(root.querySelector("svg .bar.own.first")).fill]; }"""
    )
    assert colours[0] != colours[1]
    assert guess.locator("svg .point.first").count() == guess.locator("svg .point").count() > 0


def test_a_word_is_hidden_beside_a_hole_in_two_sentences(use: Stage, folder: str) -> None:
    page = use.at(
        f"/inside?v=two-contexts&m={quote(folder, safe='')}&s={quote('the ___ sat on the hat')}&s={quote('we put ___ in')}"
    )
    expect(drawn(page).locator("svg")).to_contain_text("the [MASK] sat on the hat")
    instruction = page.get_by_text("Click a word to hide it.")
    words = page.locator(".rows .chip", has_text="sat")
    assert instruction.bounding_box()["y"] < words.bounding_box()["y"]
    words.click()
    expect(page.locator(".guess svg")).to_contain_text("the ___ [MASK] on the hat")
    expect(page.locator(".guess svg")).to_contain_text("we put [MASK] in")
    page.locator(".rows .chip", has_text="[MASK]").first.click()
    expect(page.locator(".guess svg")).to_contain_text("the [MASK] sat on the hat")


@pytest.mark.parametrize("width", [0, 1, 40, 150])
def test_no_size_is_negative_in_a_box_of_any_width(use: Stage, folder: str, width: int) -> None:
    """While a page changes, a box has no width for a moment; then the picture is that of its new width."""
    page = use.at(address(folder))
    guess = drawn(page)
    guess.evaluate("(root, width) => { root.style.width = `${width}px`; root.style.minWidth = 0; }", width)
    guess.locator(".word", has_text="sat").evaluate("(word) => word.click()")  # draws again
    expect(guess.locator(".word", has_text="sat")).to_have_attribute("aria-pressed", "true")
    assert use.watch.console == []
