"""The Map page as drawn: markers, the animation, a lasso, and browsers without WebGL."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LOOK_EVERY, NewPage, Server, Visit, settle

SQUARE = ((0.25, 0.25), (0.75, 0.25), (0.75, 0.75), (0.25, 0.75), (0.25, 0.27))


def plots(page: Page) -> list[dict[str, Any]]:
    """What the browser holds of each figure: types, places, selections, the slider's step."""
    return page.evaluate(
        """() => [...document.querySelectorAll('.js-plotly-plot')].map((plot) => ({
            types: plot._fullData.filter((trace) => trace.mode !== 'text').map((trace) => trace.type),
            labels: [...plot.querySelectorAll('.textpoint text')].filter((label) => {
                const style = getComputedStyle(label);
                return style.display !== 'none' && style.fillOpacity !== '0';
            }).map((label) => {
                const {left, right, top, bottom} = label.getBoundingClientRect();
                return [left, right, top, bottom];
            }),
            rows: plot._fullData.flatMap((trace) => [...(trace.customdata || [])]),
            x: plot._fullData.filter((trace) => trace.mode !== 'text').flatMap((trace) => [...(trace.x || [])]),
            selected: plot._fullData.flatMap((trace) =>
                (trace.selectedpoints || []).map((at) => trace.customdata[at])),
            step: plot.layout.sliders?.[0]?.active ?? null,
            markers: plot.querySelectorAll('.scatterlayer .point').length,
            title: plot.layout.title?.text.replace(/<\\/?b>/g, ''),
        }))"""
    )


def wait_for_maps(page: Page, count: int) -> None:
    page.wait_for_function(
        f"() => document.querySelectorAll('.js-plotly-plot').length === {count}"
        " && !/being drawn|getting ready|Reading the tokens/.test(document.body.innerText)",
        timeout=120_000,
        polling=LOOK_EVERY,
    )
    settle(page)


def lasso(page: Page, number: int, corners: tuple[tuple[float, float], ...] = SQUARE) -> None:
    plot = page.locator(".js-plotly-plot").nth(number)
    plot.scroll_into_view_if_needed()
    plot.hover()
    plot.locator("[data-title='Lasso Select']").click()
    page.wait_for_function(
        f"() => document.querySelectorAll('.js-plotly-plot')[{number}]._fullLayout.dragmode === 'lasso'"
    )
    box = plot.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    where = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners]
    page.mouse.move(*where[0])
    page.mouse.down()
    for corner in where[1:]:
        page.mouse.move(*corner, steps=5)
    page.mouse.up()


@pytest.mark.parametrize("dark", [False, True])
def test_two_maps_are_drawn_and_a_lasso_lists_its_tokens(visit: Visit, dark: bool) -> None:
    page = visit("/map?by=pca", dark=dark)
    wait_for_maps(page, 2)
    left, right = plots(page)
    assert left["markers"] == right["markers"] == len(left["x"]) == 32
    assert [left["title"], right["title"]] == ["Layer 0, PCA", "Layer 6, PCA"]
    lasso(page, 1)
    expect(page.get_by_text("of 32 tokens")).to_be_visible()
    settle(page)
    chosen = plots(page)
    assert 0 < len(chosen[1]["selected"]) < 32
    assert sorted(chosen[0]["selected"]) == sorted(chosen[1]["selected"])  # both maps mark the same tokens
    expect(page.get_by_text(f"{len(chosen[0]['selected'])} of 32 tokens")).to_be_visible()
    # The choice holds while the layer moves.
    page.get_by_role("slider", name="Second layer").press("ArrowLeft")
    page.wait_for_function(
        "() => document.querySelectorAll('.js-plotly-plot')[1]?.layout.title.text.includes('Layer 5, PCA')",
        timeout=30_000,
    )
    assert sorted(plots(page)[1]["selected"]) == sorted(chosen[1]["selected"])


def test_a_click_shows_a_tokens_true_neighbours(visit: Visit) -> None:
    page = visit("/map?by=pca")
    wait_for_maps(page, 2)
    box = page.locator(".js-plotly-plot").nth(1).locator(".point").first.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 40, y - 40)
    page.mouse.move(x, y, steps=5)
    expect(page.locator(".hoverlayer .hovertext")).to_be_visible()
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_text("True nearest neighbours of")).to_be_visible()


def test_play_moves_the_tokens_to_the_last_layer_and_a_lasso_leaves_them_there(visit: Visit) -> None:
    page = visit("/map?view=through&by=pca")
    wait_for_maps(page, 1)
    (before,) = plots(page)
    assert before["step"] == 0
    page.get_by_text("▶ Play").click()
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot').layout.sliders[0].active === 6", timeout=30_000
    )
    page.wait_for_timeout(1_000)  # the last glide
    (after,) = plots(page)
    assert after["rows"] == before["rows"]
    moved = [abs(one - other) for one, other in zip(before["x"], after["x"], strict=True)]
    assert max(moved) > 0.05
    lasso(page, 0)
    expect(page.get_by_text("of 32 tokens")).to_be_visible()
    settle(page)
    (held,) = plots(page)
    assert held["step"] == 6  # the list below is new, the picture is not
    assert held["x"] == after["x"]
    assert held["selected"]


def test_umap_replaces_pca_by_itself(visit: Visit) -> None:
    page = visit("/map")
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot')?.layout.title.text.includes('Layer 0, UMAP')",
        timeout=240_000,
        polling=LOOK_EVERY,
    )
    wait_for_maps(page, 2)
    assert [plot["title"] for plot in plots(page)] == ["Layer 0, UMAP", "Layer 6, UMAP"]


def overlap(one: list[float], other: list[float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def test_a_large_map_has_labels_that_do_not_overlap_and_more_after_a_zoom(visit: Visit) -> None:
    page = visit("/map?src=corpus&n=500&by=pca")
    wait_for_maps(page, 2)
    page.wait_for_timeout(1_500)  # the labels are thinned after the drawing
    before = plots(page)[0]["labels"]
    assert len(before) > 5
    assert not any(overlap(one, other) for at, one in enumerate(before) for other in before[:at])
    plot = page.locator(".js-plotly-plot").first
    plot.hover()
    for _ in range(3):
        plot.locator("[data-title='Zoom in']").click()
        page.wait_for_timeout(400)
    page.wait_for_timeout(1_000)
    hidden = page.evaluate(
        """() => [...document.querySelector('.js-plotly-plot').querySelectorAll('.textpoint text')]
            .filter((label) => label.dataset.more === 'true' && getComputedStyle(label).display !== 'none').length"""
    )
    assert hidden > 0  # labels that had no room before
    after = plots(page)[0]["labels"]
    assert not any(overlap(one, other) for at, one in enumerate(after) for other in after[:at])


def test_labels_of_forty_sentences_do_not_overlap(visit: Visit) -> None:
    sentences = "".join(f"&s=Number {number} of our {word} sentences says the {word} is late" for number, word in enumerate(
        f"{colour} {thing}" for colour in ("red", "blue", "green", "old", "new") for thing in
        ("train", "river", "storm", "bridge", "paper", "summer", "judge", "engine")
    ))  # fmt: skip
    page = visit(f"/map?by=pca{sentences}")
    wait_for_maps(page, 2)
    page.wait_for_timeout(1_500)  # the labels are thinned after the drawing
    for plot in plots(page):
        shown = plot["labels"]
        assert len(shown) > 5
        assert not any(overlap(one, other) for at, one in enumerate(shown) for other in shown[:at])


def test_some_occurrences_of_a_sense_word_are_labelled(visit: Visit) -> None:
    page = visit("/map?view=senses&w=match&by=pca")
    wait_for_maps(page, 2)
    page.wait_for_timeout(1_500)
    shown = plots(page)[0]["labels"]
    assert len(shown) >= 4
    assert not any(overlap(one, other) for at, one in enumerate(shown) for other in shown[:at])


def test_a_large_map_is_drawn_by_webgl(visit: Visit) -> None:
    page = visit("/map?src=corpus&n=2000&by=pca")
    wait_for_maps(page, 2)
    for plot in plots(page):
        assert set(plot["types"]) == {"scattergl"}
        assert len(plot["x"]) == 2_000


@pytest.fixture
def without_webgl(new_page: NewPage) -> Page:
    """A page in a browser that gives no WebGL context."""
    page = new_page()
    page.add_init_script(
        """const given = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
            return /webgl/.test(kind) ? null : given.call(this, kind, ...rest);
        };"""
    )
    return page


def test_without_webgl_a_large_map_is_drawn_as_svg_and_three_dimensions_as_two(
    without_webgl: Page, server: Server
) -> None:
    page = without_webgl
    page.goto(server.url + "/map?src=corpus&n=2000&by=pca")
    settle(page)
    wait_for_maps(page, 2)
    for plot in plots(page):
        assert set(plot["types"]) == {"scatter"}
        assert plot["markers"] == 2_000
    page.goto(server.url + "/map?d=3&by=pca")
    settle(page)
    wait_for_maps(page, 2)
    assert {kind for plot in plots(page) for kind in plot["types"]} == {"scatter"}
    expect(page.get_by_text("This browser has no WebGL")).to_be_visible()


def test_the_senses_of_a_word_are_drawn_on_a_phone(visit: Visit) -> None:
    page = visit("/map?view=senses&w=match&by=pca", phone=True)
    wait_for_maps(page, 2)
    senses, curve = plots(page)
    assert "match" in curve["title"]
    assert senses["markers"] == 20
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    word, panel = page.get_by_role("combobox", name="Word"), page.get_by_role("button", name="Options")
    assert word.bounding_box()["x"] < panel.bounding_box()["x"]  # type: ignore[index]
    assert word.bounding_box()["y"] < panel.bounding_box()["y"] + panel.bounding_box()["height"]  # type: ignore[index]


def test_markup_in_a_sentence_stays_text(visit: Visit) -> None:
    page = visit("/map?by=pca&s=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%20a%20b%20c&s=%3Cb%3Ebold%3C%2Fb%3E&q=img")
    wait_for_maps(page, 2)
    assert page.locator("img[src='x']").count() == 0
    assert plots(page)[0]["markers"] > 10


def test_the_labels_of_the_word_that_the_sentences_share_stay(visit: Visit) -> None:
    page = visit("/map")  # the three bank sentences, at layers 0 and 6
    page.wait_for_function(
        """() => [...document.querySelectorAll('[class*="st-key-map_"] .js-plotly-plot')]
            .filter((plot) => plot.querySelector('.textpoint text')).length === 2""",
        timeout=60_000,
    )
    page.wait_for_timeout(1_500)  # the labels are thinned after the drawing
    shown = page.evaluate(
        """() => [...document.querySelectorAll('[class*="st-key-map_"] .js-plotly-plot')].map((plot) =>
            [...plot.querySelectorAll('.textpoint text')]
                .filter((label) => label.textContent === 'bank' && getComputedStyle(label).display !== 'none').length)"""
    )
    assert shown == [3, 3]
