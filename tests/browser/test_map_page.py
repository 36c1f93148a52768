"""Maps as drawn: markers, the animation, a lasso, and browsers without WebGL."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import NewPage, Visit, settle, wait_for_title, wait_until, wait_until_still
from tests.support.server import Server
from tests.support.stage import Stage

MAPS = ":is([class*='st-key-map_'], .st-key-senses_map) .js-plotly-plot"
LABELS = (
    f"[...document.querySelectorAll(`{MAPS}`)].slice(0, count)"
    ".flatMap((map) => [...map.querySelectorAll('.textpoint text')])"
)
# map_labels.js marks each label, and shows it as the style sheet says or not at all.
ARE_THINNED = f"""(count) => {{
    const labels = {LABELS};
    return labels.length > 0 && labels.every((label) => label.dataset.more && label.style.display !== 'inline');
}}"""
UNTHIN = f"(count) => {LABELS}.forEach((label) => (label.style.display = 'inline'))"
SQUARE = ((0.25, 0.25), (0.75, 0.25), (0.75, 0.75), (0.25, 0.75), (0.25, 0.27))


def plots(page: Page) -> list[dict[str, Any]]:
    """What the browser holds of each figure: types, places, selections, the slider's step."""
    return page.evaluate(
        """() => [...document.querySelectorAll('.js-plotly-plot')].map((plot) => ({
            types: plot._fullData.filter((trace) => !['text', 'lines'].includes(trace.mode)).map((trace) => trace.type),
            labels: [...plot.querySelectorAll('.textpoint text')].filter((label) => {
                const style = getComputedStyle(label);
                return style.display !== 'none' && style.fillOpacity !== '0';
            }).map((label) => {
                const {left, right, top, bottom} = label.getBoundingClientRect();
                return [left, right, top, bottom];
            }),
            rows: plot._fullData.flatMap((trace) => [...(trace.customdata || [])]),
            x: plot._fullData.filter((trace) => !['text', 'lines'].includes(trace.mode))
                .flatMap((trace) => [...(trace.x || [])]),
            selected: plot._fullData.flatMap((trace) =>
                (trace.selectedpoints || []).map((at) => trace.customdata[at])),
            step: plot.layout.sliders?.[0]?.active ?? null,
            markers: plot.querySelectorAll('.scatterlayer .point').length,
            title: plot.layout.title?.text.replace(/<\\/?b>/g, ''),
        }))"""
    )


def wait_for_maps(page: Page, count: int) -> None:
    wait_until(
        page,
        f"() => document.querySelectorAll('.js-plotly-plot').length === {count}"
        " && !/being drawn|getting ready|Reading the tokens/.test(document.body.innerText)",
        timeout=120_000,
    )
    settle(page)


def wait_for_labels(page: Page, count: int = 2) -> None:
    """Wait until map_labels.js has thinned the labels of the first maps, a moment after they are drawn or zoomed."""
    wait_until(page, ARE_THINNED, count)
    wait_until_still(
        page, f"{MAPS} .textpoint text", frames=8
    )  # an event may follow another, and it waits 60 ms after each


def lasso(page: Page, number: int, corners: tuple[tuple[float, float], ...] = SQUARE) -> None:
    plot = page.locator(".js-plotly-plot").nth(number)
    plot.scroll_into_view_if_needed()
    plot.hover()
    plot.locator("[data-title='Lasso Select']").click()
    wait_until(page, f"() => document.querySelectorAll('.js-plotly-plot')[{number}]._fullLayout.dragmode === 'lasso'")
    box = plot.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    where = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners]
    page.mouse.move(*where[0])
    page.mouse.down()
    for corner in where[1:]:
        page.mouse.move(*corner, steps=5)
    page.mouse.up()


@pytest.mark.core
def test_two_maps_are_drawn_whose_tokens_are_clicked_and_lassoed(visit: Visit) -> None:
    page = visit("/map?v=two-layers&by=pca", dark=True)
    wait_for_maps(page, 2)
    left, right = plots(page)
    assert left["markers"] == right["markers"] == len(left["x"]) == 32
    assert [left["title"], right["title"]] == ["Layer 0, PCA", "Layer 6, PCA"]
    # A click shows a token's true neighbours.
    box = page.locator(".js-plotly-plot").nth(1).locator(".point").first.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 40, y - 40)
    page.mouse.move(x, y, steps=5)
    expect(page.locator(".hoverlayer .hovertext")).to_be_visible()
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_text("True nearest neighbours of")).to_be_visible()
    settle(page)
    # A lasso lists its tokens.
    lasso(page, 1)
    expect(page.get_by_text("True nearest neighbours of")).to_have_count(0)
    expect(page.get_by_text("of 32 tokens")).to_be_visible()
    settle(page)
    chosen = plots(page)
    assert 1 < len(chosen[1]["selected"]) < 32
    assert sorted(chosen[0]["selected"]) == sorted(chosen[1]["selected"])  # both maps mark the same tokens
    expect(page.get_by_text(f"{len(chosen[0]['selected'])} of 32 tokens")).to_be_visible()
    # The choice holds while the layer moves.
    page.get_by_role("button", name="Options").click()
    page.get_by_role("slider", name="Second layer").press("ArrowLeft")
    wait_for_title(page, "Layer 5, PCA", 1)
    assert sorted(plots(page)[1]["selected"]) == sorted(chosen[1]["selected"])


def test_play_moves_the_tokens_to_the_last_layer_and_a_lasso_leaves_them_there(use: Stage) -> None:
    page = use.at("/map?v=layer-by-layer&by=pca")
    wait_for_maps(page, 1)
    (opened,) = plots(page)
    assert opened["step"] == 6  # where the sentence above it ends
    play = page.locator(".updatemenu-button", has_text="Play")
    play.hover()
    assert (
        play.locator("rect").evaluate("(box) => getComputedStyle(box).fill") == "rgb(31, 102, 163)"
    )  # never looks off
    page.get_by_text("▶ Play").click()
    wait_until(page, "() => document.querySelector('.js-plotly-plot').layout.sliders[0].active === 0", timeout=30_000)
    (before,) = plots(page)
    wait_until(page, "() => document.querySelector('.js-plotly-plot').layout.sliders[0].active === 6", timeout=30_000)
    wait_until_still(page, ".js-plotly-plot .scatterlayer .point", frames=8)  # the last glide
    (after,) = plots(page)
    assert after["rows"] == before["rows"] == opened["rows"]
    moved = [abs(one - other) for one, other in zip(before["x"], after["x"], strict=True)]
    assert max(moved) > 0.05
    lasso(page, 0)
    expect(page.get_by_text("of 32 tokens")).to_be_visible()
    settle(page)
    (held,) = plots(page)
    assert held["step"] == 6  # the list below is new, the picture is not
    assert held["x"] == after["x"]
    assert held["selected"]


def test_umap_replaces_pca_by_itself_and_the_labels_of_the_word_that_the_sentences_share_stay(look: Stage) -> None:
    page = look.at("/map")  # the three bank sentences, at layers 0 and 6: an older address without a method
    wait_for_title(page, "Layer 0, UMAP", timeout=240_000)
    wait_for_maps(page, 2)
    assert [plot["title"] for plot in plots(page)] == ["Layer 0, UMAP", "Layer 6, UMAP"]
    wait_for_labels(page)
    shown = page.evaluate(
        """() => [...document.querySelectorAll('[class*="st-key-map_"] .js-plotly-plot')].map((plot) =>
            [...plot.querySelectorAll('.textpoint text')]
                .filter((label) => /^bank( ×\\d)?$/.test(label.textContent) && getComputedStyle(label).display !== 'none')
                .reduce((sum, label) => sum + Number(label.dataset.times), 0))"""
    )
    assert shown == [3, 3]


def overlap(one: list[float], other: list[float]) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def test_a_large_map_has_labels_that_do_not_overlap_and_more_after_a_zoom(use: Stage) -> None:
    page = use.at("/map?v=two-layers&src=corpus&nt=500&by=pca")
    wait_for_maps(page, 2)
    wait_for_labels(page)
    before = plots(page)[0]["labels"]
    assert len(before) > 5
    assert not any(overlap(one, other) for at, one in enumerate(before) for other in before[:at])
    plot = page.locator(".js-plotly-plot").first
    plot.hover()
    for _ in range(3):
        page.evaluate(UNTHIN, 1)
        plot.locator("[data-title='Zoom in']").click()
        wait_for_labels(page, 1)
    hidden = page.evaluate(
        """() => [...document.querySelector('.js-plotly-plot').querySelectorAll('.textpoint text')]
            .filter((label) => label.dataset.more === 'true' && getComputedStyle(label).display !== 'none').length"""
    )
    assert hidden > 0  # labels that had no room before
    after = plots(page)[0]["labels"]
    assert not any(overlap(one, other) for at, one in enumerate(after) for other in after[:at])


def test_labels_of_forty_sentences_do_not_overlap(look: Stage) -> None:
    sentences = "".join(f"&s=Number {number} of our {word} sentences says the {word} is late" for number, word in enumerate(
        f"{colour} {thing}" for colour in ("red", "blue", "green", "old", "new") for thing in
        ("train", "river", "storm", "bridge", "paper", "summer", "judge", "engine")
    ))  # fmt: skip
    page = look.at(f"/map?v=two-layers&by=pca{sentences}")
    wait_for_maps(page, 2)
    wait_for_labels(page)
    for plot in plots(page):
        shown = plot["labels"]
        assert len(shown) > 5
        assert not any(overlap(one, other) for at, one in enumerate(shown) for other in shown[:at])


def test_the_senses_of_a_word_are_named_in_its_map(look: Stage) -> None:
    page = look.at("/map?v=word-senses&w=match&by=pca")
    wait_for_maps(page, 2)
    names = page.locator(".st-key-senses_map .annotation-text").all_text_contents()
    assert sorted(names) == ["fire", "game"]


def test_a_large_map_is_drawn_by_webgl(look: Stage) -> None:
    page = look.at("/map?v=two-layers&src=corpus&nt=2000&by=pca")
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
    page.goto(server.url + "/map?v=two-layers&src=corpus&nt=2000&by=pca")
    settle(page)
    wait_for_maps(page, 2)
    for plot in plots(page):
        assert set(plot["types"]) == {"scatter"}
        assert plot["markers"] == 2_000
    page.goto(server.url + "/map?v=two-layers&d=3&by=pca")
    settle(page)
    wait_for_maps(page, 2)
    assert {kind for plot in plots(page) for kind in plot["types"]} == {"scatter"}
    expect(page.get_by_text("This browser has no WebGL")).to_be_visible()


def test_the_senses_of_a_word_are_drawn_on_a_phone(look: Stage) -> None:
    page = look.at("/map?v=word-senses&w=match&by=pca", phone=True)
    wait_for_maps(page, 2)
    senses, curve = plots(page)
    assert "match" in senses["title"]
    assert "Same sense" in curve["title"]
    assert senses["markers"] == 20
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    word, panel = page.get_by_role("combobox", name="Word"), page.get_by_role("button", name="Options")
    assert word.bounding_box()["x"] < panel.bounding_box()["x"]  # type: ignore[index]
    assert word.bounding_box()["y"] < panel.bounding_box()["y"] + panel.bounding_box()["height"]  # type: ignore[index]


def test_markup_in_a_sentence_stays_text(look: Stage) -> None:
    page = look.at(
        "/map?v=two-layers&by=pca&s=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%20a%20b%20c&s=%3Cb%3Ebold%3C%2Fb%3E&q=img"
    )
    wait_for_maps(page, 2)
    assert page.locator("img[src='x']").count() == 0
    assert plots(page)[0]["markers"] > 10


BOXES = """() => [...document.querySelectorAll("[class*='st-key-map_'] .js-plotly-plot")].map((plot) => {
    const frame = plot.querySelector('.nsewdrag').getBoundingClientRect();
    const boxes = [...plot.querySelectorAll('.textpoint text')].filter((text) => getComputedStyle(text).display !== 'none')
        .map((text) => { const {left, right, top, bottom} = text.getBoundingClientRect(); return [left, right, top, bottom]; });
    return {frame: [frame.left, frame.right, frame.top, frame.bottom], boxes};
})"""


def test_labels_are_neither_cut_nor_on_each_other_and_lines_join_the_chosen_word(look: Stage) -> None:
    page = look.at("/meaning?v=two-layers")
    wait_for_maps(page, 2)
    wait_for_labels(page)
    for plot in page.evaluate(BOXES):
        left, right, top, bottom = plot["frame"]
        assert len(plot["boxes"]) > 12
        for number, (x0, x1, y0, y1) in enumerate(plot["boxes"]):
            assert left <= x0, "cut at the left"
            assert x1 <= right, "cut at the right"
            assert top <= y0, "cut above"
            assert y1 <= bottom, "cut below"
            for a0, a1, b0, b1 in plot["boxes"][:number]:
                assert x1 <= a0 + 1 or a1 <= x0 + 1 or y1 <= b0 + 1 or b1 <= y0 + 1, "labels on each other"
    # Each of the three lines begins on a point of the word, in blue, and ends at the other map's frame, as high as one there.
    ends = page.evaluate(
        """() => {
            const lines = document.querySelector('svg.bi-joined'), home = lines.getBoundingClientRect();
            const points = [0, 1].map((number) => [...document.querySelectorAll(`.st-key-map_${number} .scatterlayer .point`)]
                .filter((point) => point.style.fill === 'rgb(43, 123, 186)').map((point) => {
                    const box = point.getBoundingClientRect();
                    return [(box.left + box.right) / 2 - home.left, (box.top + box.bottom) / 2 - home.top];
                }));
            const endsOf = (path) => [0, path.getTotalLength()].map((at) => path.getPointAtLength(at));
            const left = document.querySelector('.st-key-map_1 .nsewdrag').getBoundingClientRect().left - home.left;
            const away = (end, side) => ([x, y]) => Math.hypot((side ? left : x) - end.x, y - end.y);
            return [...lines.querySelectorAll('path')].map((path) => endsOf(path)
                .map((end, side) => Math.min(...points[side].map(away(end, side)))));
        }"""
    )
    assert len(ends) == 3
    assert max(distance for both in ends for distance in both) < 2.5
    # From there a thin line goes on to that point.
    thin = page.locator("svg.bi-joined line").evaluate_all(
        "(lines) => lines.map((line) => [line.x1, line.y1, line.x2, line.y2].map((end) => end.baseVal.value))"
    )
    assert len(thin) == 3
    assert all(abs(y1 - y2) < 1 and x2 > x1 for x1, y1, x2, y2 in thin)


@pytest.mark.core
def test_ribbons_show_the_pairs_of_the_word_that_is_pointed_at(use: Stage) -> None:
    page = use.at("/meaning?v=score-split&s=The+patient+may+leave.&s=The+patient+may+not+leave.")
    expect(page.locator("svg.why .word")).to_have_count(7 + 8)
    expect(page.get_by_text("The only word that differs")).to_be_visible()
    sums = [
        page.locator(f"svg.why [data-word^='{side} ']").evaluate_all(
            "(words) => words.map((word) => parseFloat(word.getAttribute('aria-label').split(': ').at(-1).replace('−', '-')))"
        )
        for side in (0, 1)
    ]
    for numbers in sums:  # each is rounded to a whole per cent
        assert abs(sum(numbers) - 100) <= len(numbers) / 2
    page.locator("svg.why [data-word='1 4']").hover()
    expect(page.get_by_text("Strongest pairs of “not”")).to_be_visible()
    assert page.locator("svg.why path.ribbon").count() <= 7
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("() => innerWidth === 390")
    settle(page)
    box = page.locator("svg.why").bounding_box()
    assert box is not None
    assert box["width"] <= 390
