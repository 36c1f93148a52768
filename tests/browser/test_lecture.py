"""A lecture as a person gives it: stars, an order by key and by mouse, the arrow keys on the projector, the page to keep."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from dashboard.declared import table
from tests.support.browser import Visit, downloaded, settle, wait_for_title, wait_until

BLOCK, MASK = (table.VIEWS[key].question for key in ("block", "mask-token"))
EXPORT = re.compile("^(download )?Export (as one page|1 of 2 pictures)")  # the name begins with its icon's
LECTURE = "/lecture?lecture=inside?v=block%23block_change&lecture=inside?v=mask-token%23mask_vectors"


def names(page: Page) -> list[str]:
    return page.locator(".lecture b").all_text_contents()


def test_a_picture_with_a_star_stands_in_the_lecture_and_leaves_as_a_page(visit: Visit, tmp_path: Path) -> None:
    page = visit("/inside?v=mask-token")
    page.get_by_role("button", name="Put into my lecture").nth(1).click()  # the first picture is what the model guesses
    expect(page.get_by_text("My lecture now has 1 picture.")).to_be_visible()
    expect(page.get_by_role("button", name="Take out of my lecture")).to_be_visible()
    page.get_by_role("link", name="My lecture").click()
    expect(page.locator(".lecture .says")).to_contain_text("depend most on")
    download = downloaded(page, page.get_by_role("button", name="Export as one page"))
    path = tmp_path / "lecture.html"
    download.save_as(path)
    page.goto("about:blank")
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    page.set_content(path.read_text(encoding="utf-8"))
    expect(page.get_by_role("heading", name=f"1. {MASK}")).to_be_visible()
    expect(page.locator(".js-plotly-plot .bars path").first).to_be_visible()
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == []


def exported_with(page: Page, folder: Path) -> Path:
    """The file of a lecture in which the first figure of a view stands too, as the browser downloads it."""
    page.get_by_role("button", name="Put into my lecture").first.click()
    expect(page.get_by_role("button", name="Take out of my lecture")).to_be_visible()
    page.locator("i[data-of]").first.wait_for(
        state="attached"
    )  # the browser takes the picture 1.2 s after the last drawing
    settle(page)
    page.get_by_role("link", name="My lecture").click()
    export = page.get_by_role("button", name=EXPORT)
    expect(export).to_be_visible()
    download = downloaded(page, export)
    path = folder / "lecture.html"
    download.save_as(path)
    return path


def test_a_picture_that_we_draw_ourselves_is_in_the_page_too(visit: Visit, tmp_path: Path) -> None:
    page = visit("/attention?v=all-heads")
    path = exported_with(page, tmp_path)
    page.set_content(path.read_text(encoding="utf-8"))
    picture = page.locator("img.drawn")
    expect(picture).to_be_visible()
    assert picture.evaluate("(image) => image.naturalWidth") == 1600
    expect(page.get_by_text("Data of this figure")).to_be_visible()


def test_pictures_are_put_in_order_by_key_and_by_mouse(visit: Visit) -> None:
    page = visit(LECTURE)
    expect(page.locator(".lecture li")).to_have_count(2)
    assert names(page) == [BLOCK, MASK]
    page.get_by_role("button", name="Move picture 1").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".lecture b").first).to_have_text(MASK)
    expect(page.locator(".lecture .number").first).to_have_text("1")
    page.keyboard.press("Home")  # the dots of the picture that was moved have kept the keyboard's place
    expect(page.locator(".lecture b").first).to_have_text(BLOCK)
    page.keyboard.press("End")
    expect(page.locator(".lecture b").first).to_have_text(MASK)
    settle(page)  # the list is drawn again with the server's answer, and what is measured before is gone then
    handle, target = (page.locator(".lecture .dots").nth(number).bounding_box() for number in (1, 0))
    assert handle is not None
    assert target is not None
    page.mouse.move(handle["x"] + 5, handle["y"] + 5)
    page.mouse.down()
    page.mouse.move(target["x"] + 5, target["y"] - 10, steps=5)
    page.mouse.up()
    expect(page.locator(".lecture b").first).to_have_text(BLOCK)
    settle(page)
    page.get_by_role("button", name="Take picture 1 out").click()
    expect(page.locator(".lecture li")).to_have_count(1)
    page.get_by_role("button", name="Bring back what was taken out").click()
    expect(page.locator(".lecture li")).to_have_count(2)
    assert names(page) == [BLOCK, MASK]


def test_on_a_phone_two_buttons_move_a_picture_and_keep_the_keyboards_place(visit: Visit) -> None:
    page = visit(LECTURE, phone=True)
    expect(page.locator(".lecture li")).to_have_count(2)
    expect(page.locator(".lecture .dots").first).to_be_hidden()
    for number in range(4):
        box = page.locator(".lecture .moves button").nth(number).bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44
    up, down = (page.get_by_role("button", name=f"Move picture {place}") for place in ("1 up", "2 down"))
    for end in (up, down):  # the first is no further up, the last no further down
        expect(end).to_have_attribute("aria-disabled", "true")
        end.click(force=True)  # such a button is for Playwright a disabled one
        assert names(page) == [BLOCK, MASK]
    page.get_by_role("button", name="Move picture 1 down").click()
    expect(page.locator(".lecture b").first).to_have_text(MASK)
    settle(page)
    expect(down).to_be_focused()  # the same picture, which is now the second
    page.get_by_role("button", name="Move picture 2 up").press("Enter")
    expect(page.locator(".lecture b").first).to_have_text(BLOCK)


@pytest.mark.core
def test_the_arrow_keys_go_through_the_lecture_on_the_projector(visit: Visit) -> None:
    page = visit(LECTURE)
    page.get_by_role("button", name="Begin the lecture").click()
    expect(page.get_by_role("heading", name=BLOCK)).to_be_visible()
    expect(page.locator(".walk .place")).to_have_text("1 of 2")
    # The question, the finding and the picture alone.
    for hidden in (".st-key-page_header", ".st-key-figure_controls", ".st-key-view_names"):
        expect(page.locator(hidden).first).to_be_hidden()
    expect(page.locator(".st-key-block_change .js-plotly-plot")).to_be_visible()
    settle(page)
    # The bar covers nothing, and a key draws no frame around the page.
    main, bar = page.locator(".stMain").bounding_box(), page.locator(".walk").bounding_box()
    assert main is not None
    assert bar is not None
    assert main["y"] + main["height"] <= bar["y"]
    page.locator(".stMain").focus()
    page.keyboard.press("ArrowDown")
    drawn = page.locator(".stMain").evaluate(
        "(main) => [getComputedStyle(main).outlineStyle, getComputedStyle(main, '::before').boxShadow]"
    )
    assert drawn == ["none", "none"]
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name=MASK)).to_be_visible()
    expect(page.locator(".walk .place")).to_have_text("2 of 2")
    settle(page)
    expect(page.locator(".st-key-mask_vectors .js-plotly-plot")).to_be_visible()
    for other in (".st-key-guess", ".st-key-mask_change"):  # pictures of the same view
        expect(page.locator(other)).to_be_hidden()
    page.keyboard.press("ArrowRight")  # there is no further one
    page.keyboard.press("PageUp")
    expect(page.get_by_role("heading", name=BLOCK)).to_be_visible()
    settle(page)
    page.get_by_role("button", name="Show the controls").click()
    page.get_by_role("button", name="Dark colours").click()
    expect(page.locator(".stApp")).to_have_css("color-scheme", "dark")
    expect(page.locator(".walk .place")).to_have_text("1 of 2")
    settle(page)
    expect(page.locator(".st-key-block_change .js-plotly-plot")).to_be_visible()
    expect(page.locator(".st-key-figure_controls")).to_be_visible()
    # In a field the keys belong to the field.
    field = page.get_by_role("spinbutton").first
    settle(page)
    page.evaluate("() => addEventListener('keydown', (event) => { window.hasLed = event.defaultPrevented; })")
    field.focus()
    field.press("ArrowRight")
    assert page.evaluate("window.hasLed") is False
    expect(page.locator(".walk .place")).to_have_text("1 of 2")
    page.get_by_role("button", name="End the lecture").click()
    expect(page.get_by_role("heading", name="My lecture")).to_be_visible()
    expect(page.locator(".walk")).to_have_count(0)
    assert page.evaluate("'bare' in document.documentElement.dataset") is False
    page.get_by_role("button", name="Begin the lecture").click()  # with its picture alone, as always
    expect(page.locator(".walk .place")).to_have_text("1 of 2")
    expect(page.locator(".st-key-page_header").first).to_be_hidden()


def test_page_keys_lead_from_a_control_and_escape_gives_the_arrow_keys_back(visit: Visit) -> None:
    page = visit("/lecture?lecture=meaning?v=word-senses%23senses_map&lecture=inside?v=block%23block_change")
    page.get_by_role("button", name="Begin the lecture").click()
    slider = page.get_by_role("slider", name="Layer of the map")
    slider.wait_for()
    settle(page)
    layer, place, hint = slider.input_value(), page.locator(".walk .place"), page.locator(".walk .hint")
    expect(hint).to_be_hidden()
    slider.focus()
    expect(hint).to_have_text("Esc: arrow keys lead again")
    page.keyboard.press("Escape")
    expect(hint).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(place).to_have_text("2 of 2")
    settle(page)
    page.keyboard.press("PageUp")
    expect(place).to_have_text("1 of 2")
    slider.wait_for()
    expect(page.locator(".st-key-senses_map .js-plotly-plot")).to_be_visible()
    settle(page)
    assert slider.input_value() == layer
    slider.focus()
    page.keyboard.press("PageDown")
    expect(place).to_have_text("2 of 2")
    expect(page.get_by_role("heading", name=BLOCK)).to_be_visible()


def test_a_lecture_scrolls_to_the_figure_that_a_phone_shows_in_anothers_place(visit: Visit) -> None:
    wait_for_title(visit("/inside?v=block"), "Before and after blocks")  # the model is in memory then
    page = visit("/lecture?lecture=inside?v=block%23block_change")
    page.set_viewport_size({"width": 390, "height": 320})
    page.get_by_role("button", name="Begin the lecture").click()
    expect(page.locator(".walk .place")).to_have_text("1 of 1")
    figure = page.locator(".st-key-phone_block_change")
    expect(figure).to_be_visible(timeout=30_000)
    wait_until(
        page,
        "() => { const box = document.querySelector('.st-key-phone_block_change').getBoundingClientRect();"
        " return box.top < 0.6 * innerHeight && box.bottom > 0.4 * innerHeight; }",
    )


def test_arrow_keys_and_a_remote_control_go_through_the_stops_of_the_whole_path(visit: Visit) -> None:
    page = visit("/inside?v=whole-path&proj=1&stop=pool")
    path, hint = page.locator(".path"), page.locator(".walk .hint")
    stop = "(root) => root.bertInternalsPath.state.stop"
    expect(hint).to_contain_text("stops")
    page.keyboard.press("ArrowLeft")
    assert path.evaluate(stop) == "blocks"
    path.get_by_label("Stop", exact=True).focus()  # also where the keyboard is on a part of the path
    for key, expected in (("ArrowRight", "pool"), ("PageUp", "blocks"), ("PageDown", "pool"), ("PageDown", "compare")):
        page.keyboard.press(key)
        assert path.evaluate(stop) == expected
    for _ in range(2):
        page.keyboard.press("PageUp")
    for _ in range(2):  # the second is sent as a repetition, as by a key that is held
        page.keyboard.down("PageDown")
    page.keyboard.up("PageDown")
    assert path.evaluate(stop) == "pool"
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowRight")  # there is no further stop
    following = table.views_of("inside")[1]
    expect(page.get_by_role("heading", name=following.question)).to_be_visible()
    expect(hint).to_be_hidden()
    settle(page)
    page.keyboard.press("ArrowLeft")
    expect(path).to_be_visible()
    settle(page)
    path.locator(".stage canvas").focus()
    page.keyboard.press("End")
    page.keyboard.press("PageDown")  # there is no further stop for these keys either
    expect(page.get_by_role("heading", name=following.question)).to_be_visible()
    page.get_by_role("link", name="Start", exact=True).click()  # whose picture has stops too
    path.locator(".stage canvas").wait_for()
    settle(page)
    expect(hint).to_contain_text("stops")
    before = path.evaluate(stop)
    page.keyboard.press("ArrowRight")
    assert path.evaluate(stop) != before
    page.get_by_role("button", name="Hide all but").click()
    expect(page.locator(".st-key-start_field")).to_be_hidden()


def test_a_picture_fills_a_large_window_and_is_not_cut_in_a_small_one(visit: Visit) -> None:
    page = visit("/lecture?lecture=inside?v=one-word-attention%23word_looks")
    page.get_by_role("button", name="Begin the lecture").click()
    picture = page.locator(".st-key-word_looks")
    for size, least in (((1100, 620), 0.6), ((1920, 1080), 1.05)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        expect(picture).to_have_css("zoom", re.compile(r"^(?!1$)[01]\.\d+$"))
        settle(page)
        page.wait_for_timeout(1500)
        main, bar, drawn = (page.locator(place).bounding_box() for place in (".stMain", ".walk", ".st-key-word_looks"))
        assert main is not None
        assert bar is not None
        assert drawn is not None
        assert main["y"] + main["height"] <= bar["y"]
        assert drawn["y"] + drawn["height"] <= bar["y"]
        assert float(picture.evaluate("(shown) => getComputedStyle(shown).zoom")) > least


def test_the_arrow_keys_go_from_picture_to_picture_in_the_exported_page(visit: Visit, tmp_path: Path) -> None:
    page = visit(LECTURE)
    page.get_by_role("button", name="Draw 2 pictures").click()
    all_drawn = page.get_by_role("button", name="Export as one page")
    expect(all_drawn).to_be_visible(timeout=120_000)
    download = downloaded(page, all_drawn)
    path = tmp_path / "lecture.html"
    download.save_as(path)
    page.goto("about:blank")
    page.set_content(path.read_text(encoding="utf-8"))
    titles = page.locator("h2.part")
    expect(titles).to_have_count(2)
    for key, place in (("ArrowRight", 0), ("PageDown", 1), ("ArrowRight", 1), ("ArrowLeft", 0)):
        page.keyboard.press(key)
        box = titles.nth(place).bounding_box()
        assert box is not None
        assert -2 <= box["y"] <= 30, key


def test_the_exported_page_has_the_hits_as_a_picture_and_goes_by_the_arrow_keys(visit: Visit, tmp_path: Path) -> None:
    page = visit("/search?v=hits&lecture=inside?v=block%23block_change")
    path = exported_with(page, tmp_path)
    page.goto("about:blank")
    page.set_content(path.read_text(encoding="utf-8"))
    picture = page.locator("img.drawn")
    expect(picture).to_be_visible()
    assert picture.evaluate("(image) => image.naturalWidth") > 1000
    expect(page.get_by_text("How to read this").first).to_be_visible()
    first, second = page.locator("h2.part").all()
    for key, shown in (("ArrowRight", first), ("PageDown", second), ("ArrowLeft", first)):
        page.keyboard.press(key)
        box = shown.bounding_box()
        assert box is not None
        assert -2 <= box["y"] <= 30, key
