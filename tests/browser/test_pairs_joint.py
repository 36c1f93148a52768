"""Pairs that are read together, as drawn: Tokens' chips, Heatmaps' pictures side by side, the Map's two texts."""

from __future__ import annotations

from itertools import pairwise
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import figure, settle, wait_until
from tests.support.stage import Stage

TEXTS = (
    "How do volcanoes erupt?",
    "Magma breaks through the crust.",
    "The stock market fell.",
    "Why does a volcano erupt?",
    "Lava reached the village.",
)
ADDRESS = "&".join(f"s={quote(text)}" for text in TEXTS)


def boxes(page: Page) -> list[tuple[float, float, float]]:
    """Left, top and right of each figure."""
    wait_until(page, "() => document.querySelectorAll('.js-plotly-plot .heatmaplayer image').length === 4")
    return page.evaluate(
        """() => [...document.querySelectorAll('.js-plotly-plot')].map((plot) => {
            const {left, top, right} = plot.getBoundingClientRect();
            return [left, top, right];
        })"""
    )


def test_four_pairs_stand_side_by_side_with_labels_apart(look: Stage) -> None:
    page = look.at(f"/heatmaps?v=read-together&{ADDRESS}", dark=True)
    drawn = boxes(page)
    assert len({round(top) for _, top, _ in drawn}) == 1
    assert drawn[0][1] <= 330
    assert all(right <= left for (_, _, right), (left, _, _) in pairwise(drawn))
    titles = [figure(page, number)["title"].replace("<b>", "").replace("</b>", "") for number in range(4)]
    assert titles == [f"1 + {number}, layer 6" for number in (2, 3, 4, 5)]
    for number in range(4):
        plot = page.locator(".js-plotly-plot").nth(number)
        labels = plot.locator(".xtick text").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect()).map(({left, right}) => [left, right])"
        )
        assert 2 <= len(labels) <= 9
        assert all(right <= left + 1 for (_, right), (left, _) in pairwise(labels))


def test_on_a_phone_the_pairs_stand_one_below_the_other(look: Stage) -> None:
    page = look.at(f"/heatmaps?v=read-together&{ADDRESS}", phone=True)
    drawn = boxes(page)
    tops = [top for _, top, _ in drawn]
    assert tops == sorted(set(tops))
    assert tops[0] <= 520
    assert all(left >= 0 and right <= 390 for left, _, right in drawn)


@pytest.mark.core
def test_the_chips_of_a_pair_show_token_types_and_a_click_its_facts(use: Stage) -> None:
    page = use.at(f"/tokens?rd=together&{ADDRESS}")
    chips = page.locator(".chip")
    expect(chips).to_have_count(15)
    assert chips.locator("small").all_inner_texts()[0] == "101 · 0"
    assert chips.locator("small").all_inner_texts()[-1] == "102 · 1"
    chips.nth(3).click()
    expect(page.locator(".st-key-token_facts")).to_contain_text("A (sentence 1)")
    settle(page)
    page.wait_for_url("**jt=3**")


@pytest.mark.parametrize("phone", [False, True])
def test_the_map_colours_both_texts_of_a_pair(use: Stage, phone: bool) -> None:
    page = use.at(f"/map?by=pca&{ADDRESS}", phone=phone)
    page.get_by_role("button", name="Options").click()
    page.get_by_role("radio", name="A + B").click()
    page.wait_for_url("**rd=together**")
    page.keyboard.press("Escape")
    wait_until(
        page,
        "() => document.querySelectorAll('.js-plotly-plot').length === 2"
        " && [...document.querySelectorAll('.js-plotly-plot')].every((plot) => plot._fullData?.[0].name === 'A')",
    )
    settle(page)
    for number in range(2):
        assert list(figure(page, number)["traces"]) == ["A", "B", "special tokens"]
        assert sum(map(len, figure(page, number)["traces"].values())) == 15
    box = page.locator(".js-plotly-plot").first.bounding_box()
    assert box is not None
    assert box["y"] <= (520 if phone else 330)


def test_the_labels_of_the_pickers_cover_nothing_on_a_phone(look: Stage) -> None:
    page = look.at(f"/tokens?rd=together&{ADDRESS}", phone=True)
    reading = page.locator("[class*=st-key-w_reading]").bounding_box()
    assert reading is not None
    for name in ("a", "b"):
        label = page.locator(f"[class*=st-key-w_sentence_{name}] label").bounding_box()
        assert label is not None
        assert label["y"] >= reading["y"] + reading["height"]
