"""Attention as drawn: bertviz's views in their frames, the canvas of all heads, and the way between."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Visit, figure, fits, settle, wait_for_title, wait_until, wait_until_still
from tests.support.stage import LAPTOP, PHONE, PROJECTOR, Stage

CANVAS = "canvas[data-drawn]"
HEADS = ".heads[data-drawn]"
ALL_LINES = (
    "[...document.querySelectorAll('*')].map((one) => one.shadowRoot?.querySelectorAll('.heads .plot path').length ?? 0)"
    ".reduce((sum, count) => sum + count, 0)"
)


# The drawing ends within its frame.
IS_WHOLE = """() => {
    const frame = document.querySelector('iframe'), svg = frame?.contentDocument?.querySelector('#vis svg');
    return svg && svg.getBoundingClientRect().bottom <= frame.clientHeight;
}"""


def frame_of(page: Page):
    return page.frame_locator("iframe")


@pytest.mark.parametrize("dark", [False, True])
def test_the_head_view_opens_with_the_lines_of_the_most_telling_head(look: Stage, dark: bool) -> None:
    page = look.at("/attention", dark=dark)
    lines = frame_of(page).locator("svg #attention line")
    expect(lines.first).to_be_attached(timeout=30_000)
    assert frame_of(page).get_by_role("checkbox", checked=True).all_text_contents() == [""]
    expect(frame_of(page).get_by_role("checkbox", name="Head 0", exact=True)).to_be_checked()
    expect(frame_of(page).get_by_text("river", exact=True)).to_have_count(0)
    expect(frame_of(page).get_by_text("bank", exact=True).first).to_be_visible()
    expect(frame_of(page).locator("body")).to_have_css(
        "background-color", f"rgb({'18, 22, 28' if dark else '255, 255, 255'})"
    )


def test_on_a_phone_the_list_stands_directly_below_the_lines(look: Stage) -> None:
    page = look.at("/attention?v=head-view", PHONE)
    expect(frame_of(page).locator("svg #attention line").first).to_be_attached(timeout=30_000)
    wait_until(
        page,
        "() => { const gap = document.querySelector('.bi-kinds').getBoundingClientRect().top - "
        "document.querySelector('iframe').getBoundingClientRect().bottom; return gap >= 0 && gap < 60; }",
    )


@pytest.mark.core
def test_the_model_view_has_six_by_twelve_cells(use: Stage) -> None:
    page = use.at("/attention?v=model-view")
    expect(frame_of(page).locator(".attn_background")).to_have_count(72, timeout=30_000)
    wait_until(page, IS_WHOLE)
    frame_of(page).get_by_role("button", name="Block 0, head 2", exact=True).click()
    expect(frame_of(page).locator("text.detail")).to_have_text("Block 0, Head 2")


def test_the_neuron_view_draws_connections(look: Stage) -> None:
    page = look.at("/attention?v=neuron-view")
    lines = frame_of(page).locator("svg line")
    expect(lines.first).to_be_attached(timeout=30_000)
    assert lines.count() > 20
    wait_until(page, IS_WHOLE)


@pytest.mark.core
def test_a_click_on_a_tile_opens_that_head_beside_the_tiles(use: Stage) -> None:
    page = use.at("/attention?v=all-heads")
    heads = page.locator(HEADS)
    expect(heads).to_have_attribute("data-drawn", "6x12x10")
    expect(heads.locator("h3")).to_have_text("Block 0, head 0")
    expect(heads.locator(".halo")).to_have_text("49 %")
    # The most telling heads are framed, so that it is seen which tile a number belongs to.
    for tile in heads.locator(".tile.telling").all():
        expect(tile).to_have_css("outline-style", "solid")
    expect(heads.locator(".tile.telling")).to_have_count(3)
    heads.get_by_role("button", name="Block 0, head 2 ").click()
    expect(heads.locator("h3")).to_have_text("Block 0, head 2")
    expect(heads.locator(".tile[aria-pressed=true]")).to_have_count(1)
    expect(heads.locator(".does")).to_contain_text("On average it looks at the token before")
    wait_until(page, "() => new URLSearchParams(location.search).get('h') === '2'")
    heads.get_by_role("button", name="Matrix", exact=True).click()
    expect(heads.locator(".plot rect title")).to_have_count(100)
    expect(heads.locator(".plot rect title", has_text="bank → a: 100 %")).to_have_count(1)
    wait_until(page, "() => new URLSearchParams(location.search).get('as') === 'matrix'")
    heads.locator(".pill").nth(1).click()
    expect(heads.locator("h3")).to_have_text("Block 5, head 11")
    expect(heads.locator(".plot .ring")).to_have_count(1)
    heads.get_by_role("button", name="Exact values").click()
    wait_for_title(page, "Block 5, head 11")
    # The cells, numbers in white on the dark ones, and both again in the small type for a phone.
    assert figure(page)["types"] == 4 * ["heatmap"]


def test_all_heads_are_worked_by_keyboard(use: Stage) -> None:
    page = use.at("/attention?v=all-heads&b=0&h=0&tiles=block")
    heads = page.locator(HEADS)
    expect(heads.locator(".keys .name")).to_have_count(5)
    heads.locator(".tile[aria-pressed=true]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(heads.locator(".hint")).to_contain_text("Block 1, head 1")
    page.keyboard.press("Enter")
    expect(heads.locator("h3")).to_have_text("Block 1, head 1")
    page.keyboard.press("ArrowLeft")  # the focus has stayed
    expect(heads.locator(".hint")).to_contain_text("Block 1, head 0")
    heads.locator(
        ".plot [tabindex='0']"
    ).focus()  # the lines of the open head: one stop of the Tab key, and then arrows
    for key, at in (("ArrowDown", "from 1"), ("ArrowDown", "from 2"), ("ArrowRight", "whom 2"), ("ArrowUp", "whom 1")):
        page.keyboard.press(key)
        expect(heads.locator(".plot [data-at]:focus")).to_have_attribute("data-at", at)
    page.keyboard.press("Enter")
    expect(page.locator(".looks svg")).to_contain_text("who looks: block 1, head 1")


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/attention?v=all-heads&tiles=block", ".heads .tile[aria-label^='Block 1, head 1 ']"),
        ("/inside?v=attention-flow", "svg.why [data-word='0 3']"),
    ],
)
def test_the_focus_stays_where_the_picture_is_drawn_at_another_width(use: Stage, path: str, part: str) -> None:
    page = use.at(path)
    page.locator(part).focus()
    expect(page.locator(part)).to_be_focused()
    page.set_viewport_size({"width": 1200, "height": 900})
    wait_until_still(page, part)
    expect(page.locator(part)).to_be_focused()


def test_pointing_at_a_token_shows_its_lines_alone(use: Stage) -> None:
    page = use.at("/attention?v=all-heads&b=0&h=0")
    heads = page.locator(HEADS)
    wait_until(page, f"() => {ALL_LINES} > 12")
    heads.locator(".plot rect:not(.whom)").nth(5).hover()  # bank
    wait_until(page, f"() => {ALL_LINES} > 0 && {ALL_LINES} <= 10")
    expect(heads.locator(".plot .halo", has_text="49 %")).to_have_count(1)
    heads.locator("h3").hover()
    wait_until(page, f"() => {ALL_LINES} > 12")
    heads.locator(".plot .whom").nth(5).click()  # a word under "at what": who looks at it, in this head
    expect(page.locator(".looks svg")).to_contain_text("who looks: block 0, head 0")
    wait_until(page, "() => ['dir=to', 'b=0', 'h=0'].every((part) => location.search.includes(part))")


def test_no_names_of_kinds_lie_over_each_other_on_a_phone(look: Stage) -> None:
    page = look.at("/attention?v=all-heads", phone=True)
    expect(page.locator(HEADS)).to_be_visible(timeout=30_000)
    boxes = page.locator(f"{HEADS} .tiles .name").evaluate_all(
        "(all) => all.map((one) => { const {left, right, top, bottom} = one.getBoundingClientRect();"
        " return [left, right, top, bottom]; })"
    )
    assert len(boxes) == 6
    assert all(right <= 390 for _, right, _, _ in boxes)
    for number, (left, right, top, bottom) in enumerate(boxes):
        for other in boxes[number + 1 :]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top


def test_tiles_are_worked_by_keyboard(use: Stage) -> None:
    page = use.at("/attention?v=head-patterns")
    canvas = page.locator(CANVAS)
    key = page.locator(".heads .key")  # what the colours and the numbers in the tiles stand for
    expect(key).to_have_text("% of attention to the token before: 0 100")
    assert key.locator("i").evaluate("bar => getComputedStyle(bar).backgroundImage.includes('rgb(31, 95, 158)')")
    canvas.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_for_title(page, "Block 1, head 2")


@pytest.mark.core
def test_ribbons_of_the_flow_follow_the_token_that_is_pointed_at_or_pressed(use: Stage) -> None:
    page = use.at("/inside?v=attention-flow&fs=1&fl=through")
    words = page.locator("svg.why .word")
    expect(words).to_have_count(20)  # ten tokens that give, and the same ten that take
    chosen = page.locator("svg.why .chosen")
    expect(chosen.locator(".name")).to_have_text("bank")

    def taken() -> list[float]:
        labels = [word.get_attribute("aria-label") or "" for word in words.all()]
        return [float(label.split(": ")[-1].removesuffix(" %")) for label in labels if label.endswith("%")]

    assert len(taken()) == 10
    assert abs(sum(taken()) - 100) <= 5  # each is rounded to a whole per cent
    page.locator("svg.why [data-word='0 3']").hover()  # what “rob” gives to each token
    expect(page.locator("svg.why .on .name")).to_have_text("rob")
    assert len(taken()) == 10
    page.locator("svg.why [data-word='1 7']").focus()
    page.keyboard.press("Enter")
    wait_until(page, "() => new URLSearchParams(location.search).get('ft') === '7'")
    expect(chosen.locator(".name")).to_have_text("week")
    page.mouse.move(5, 5)
    expect(page.locator("svg.why .on.chosen .name")).to_have_text("week")
    expect(page.get_by_text("of “week” after block 5 comes from itself")).to_be_visible()
    # The numbers stand at the words, not once more in a list.
    expect(page.get_by_text("Strongest pairs")).to_have_count(0)


def test_ribbons_reach_the_token_that_takes_on_a_phone(look: Stage) -> None:
    page = look.at("/inside?v=attention-flow&fl=through", phone=True)
    chosen = page.locator("svg.why .chosen rect")
    expect(chosen).to_be_visible()
    ribbons = page.locator("svg.why .ribbon")
    ends = ribbons.evaluate_all("all => all.map((each) => each.getPointAtLength(each.getTotalLength()).x)")
    begins = ribbons.evaluate_all("all => all.map((each) => each.getPointAtLength(0).x)")
    assert ends
    left = float(chosen.get_attribute("x") or 0)
    assert all(0 <= left - end <= 8 for end in ends)
    # At the other side there is room for each token's number.
    numbers = page.locator("svg.why .number").evaluate_all(
        "all => all.map((each) => each.getBBox().x + each.getBBox().width)"
    )
    assert max(numbers) < min(begins) + 2


@pytest.mark.parametrize("view", ["head", "model", "neuron", "matrix", "glance"])
def test_markup_in_a_sentence_is_inert(look: Stage, view: str) -> None:
    nasty = "</script><script>top.pwned=1</script> <img src=x onerror=top.pwned=1> <!-- x"
    page = look.at(f"/attention?view={view}&s={quote(nasty)}")
    drawn = {"matrix": page.locator(".js-plotly-plot .heatmaplayer"), "glance": page.locator(HEADS)}
    expect(drawn.get(view, frame_of(page).locator("svg").first)).to_be_attached(timeout=30_000)
    assert page.locator("img[src=x]").count() == frame_of(page).locator("img").count() == 0
    assert page.evaluate("window.pwned") is None


def test_heatmaps_are_drawn_with_the_diagonal(look: Stage) -> None:
    page = look.at("/heatmaps")
    # Of both blocks the other tokens, the diagonal, black and white numbers; the strip of all blocks, and its cells to click.
    assert figure(page, 0)["types"] == 9 * ["heatmap"] + ["scatter"]
    assert set(figure(page, 2)["types"]) == {"scatter"}  # the second is a phone's, hidden


def test_on_a_phone_the_model_view_has_heads_that_a_finger_meets_and_an_opened_one_fits(look: Stage) -> None:
    page = look.at("/attention?v=model-view", phone=True)
    frame = frame_of(page)
    tiles = frame.locator(".attn_background")
    expect(tiles).to_have_count(72, timeout=30_000)
    boxes = tiles.evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect()).map((box) => [box.left, box.right])"
    )
    assert max(right for _, right in boxes) <= 390
    assert min(right - left for left, right in boxes) >= 44
    assert len({round(left) for left, _ in boxes}) == 6
    frame.get_by_role("button", name="Block 2, head 10").click()
    opened = frame.locator("rect.detail")
    expect(opened).to_be_attached()
    box, tile = opened.bounding_box(), frame.locator("#attn_background_2_10").bounding_box()
    assert box is not None
    assert tile is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert 0 <= box["y"] - (tile["y"] + tile["height"]) <= 12  # directly below its small picture
    expect(frame.locator("text.detail")).to_have_text("Block 2, Head 10")
    expect(frame.locator("#note")).to_be_empty()
    room = page.evaluate("document.querySelector('iframe').parentElement.getBoundingClientRect().height")
    assert 0 <= room - frame.locator("#vis svg").evaluate("(svg) => svg.getBoundingClientRect().bottom") <= 40


def test_head_numbers_are_large_enough_for_fingers(touched: Visit) -> None:
    phone = touched("/attention")
    squares = frame_of(phone).get_by_role("checkbox")
    expect(squares).to_have_count(12, timeout=30_000)
    boxes = squares.evaluate_all(
        "(all) => all.map((one) => { const {left, right, top, bottom} = one.getBoundingClientRect();"
        " return [left, right, top, bottom]; })"
    )
    assert all(right - left >= 32 and bottom - top >= 32 for left, right, top, bottom in boxes)
    assert all(left >= 0 and right <= 390 for left, right, _, _ in boxes)
    tokens = (
        frame_of(phone).locator("#left text").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().top)")
    )
    assert min(tokens) >= max(bottom for *_, bottom in boxes) - 1  # the second row of squares covers no token
    squares.nth(11).tap()
    expect(frame_of(phone).get_by_role("checkbox", name="Head 11", exact=True)).to_be_checked()
    phone.goto(phone.url.split("?")[0] + "?v=all-heads")
    tiles = phone.locator(f"{HEADS} .tile")
    expect(tiles).to_have_count(72, timeout=30_000)
    sizes = tiles.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().width)")
    assert min(sizes) >= 32


def test_the_two_sentences_have_labels_on_a_phone(use: Stage) -> None:
    page = use.at("/attention?v=attention-matrix", phone=True)
    for setting, label in (("sentence_a", "Sentence"), ("sentence_b", "Sentence B")):
        if setting == "sentence_b":
            page.get_by_role("button", name="Options").click()
        text = page.locator(f"[class*=st-key-w_{setting}] label p")
        expect(text).to_have_text(label, timeout=30_000)
        box = text.bounding_box()
        assert box is not None
        assert box["width"] > 40
        assert box["height"] > 8


def test_bertviz_grows_in_projector_mode(look: Stage) -> None:
    drawn = "document.querySelector('iframe')?.contentDocument.querySelector('#vis svg')?.getBoundingClientRect().width"
    page = look.at("/attention?v=model-view", PROJECTOR)
    before = wait_until(page, f"() => {drawn}")
    wait_until_still(page, "iframe")
    page = look.at("/attention?v=model-view", PROJECTOR, projector=True)
    wait_until(page, f"(before) => {drawn} > 1.1 * before", before)


def test_play_shows_the_blocks_in_order_and_stops_at_the_last(use: Stage) -> None:
    page = use.at("/heatmaps?v=block&b1=3")
    page.get_by_role("button", name="Play", exact=True).first.click()
    wait_for_title(page, "Before and after block 5")
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    page.wait_for_url("**b1=5**")


def test_on_a_phone_the_blocks_stand_below_each_other_with_room_for_their_numbers(use: Stage) -> None:
    page = use.at("/inside?v=block", PHONE)
    wait_for_title(page, "Before and after blocks 0 and 5")
    expect(page.locator(".st-key-block_change .js-plotly-plot")).to_be_hidden()
    figure = page.locator(".st-key-phone_block_change")
    expect(figure).to_be_visible()
    number = figure.locator(".heatmap-label").filter(has_text="0.86").first
    cell = figure.locator(".x2y2 image").first.bounding_box()
    box = number.bounding_box()
    assert box is not None
    assert cell is not None
    assert 15 < box["width"] < cell["width"] / 10
    places = [
        figure.get_by_text(text).first.bounding_box() for text in ("Block 5 (last)", "Block 0 (first)", "Itself,")
    ]
    tops = [place["y"] for place in places if place]
    assert len(tops) == 3
    assert tops == sorted(tops)  # the block of which the finding speaks first
    assert tops[0] < PHONE[1] / 2 + 140
    assert fits(page)
    # A column of the strip opens its block.
    figure.get_by_text("Itself,").first.scroll_into_view_if_needed()
    strip = figure.locator(".x3y3 image").bounding_box()
    assert strip is not None
    page.mouse.click(strip["x"] + 2.5 * strip["width"] / 6, strip["y"] + strip["height"] / 3)
    page.wait_for_url("**b2=2**")
    page.set_viewport_size({"width": LAPTOP[0], "height": LAPTOP[1]})
    expect(page.locator(".st-key-block_change .js-plotly-plot")).to_be_visible()
    expect(figure).to_be_hidden()


def test_on_a_touch_screen_the_strip_below_one_picture_can_be_tapped(touched: Visit) -> None:
    page = touched("/inside?v=block&b1=5&b2=5")
    strip = page.locator(".st-key-phone_block_change .x2y2 image")
    strip.scroll_into_view_if_needed()
    settle(page)
    of_touches = "(one) => getComputedStyle(one).pointerEvents"
    drags = page.locator(".st-key-phone_block_change .draglayer > *")
    assert [drag.locator(".nsewdrag").evaluate(of_touches) for drag in drags.all()] == ["none", "all"]
    box = strip.bounding_box()
    assert box is not None
    for _ in range(2):  # plotly takes the first one for a click that selects nothing
        page.touchscreen.tap(box["x"] + 2.5 * box["width"] / 6, box["y"] + box["height"] / 3)
    page.wait_for_url("**b2=2**")


def test_on_a_phone_the_blocks_of_a_long_text_are_swiped(use: Stage) -> None:
    text = "We will rob a bank next week, and put all the money in a bank. " * 5
    page = use.at(f"/inside?v=block&s={quote(text.strip())}", PHONE)
    wait_for_title(page, "Before and after blocks 0 and 5")
    shown = page.locator(".st-key-block_change")
    expect(shown.locator(".js-plotly-plot")).to_be_visible()
    expect(page.locator(".st-key-phone_block_change")).to_have_count(0)
    wait_until(
        page, "() => document.querySelector('.st-key-block_change .js-plotly-plot').offsetWidth > 1.5 * innerWidth"
    )
    assert shown.evaluate("(one) => one.scrollWidth > 1.5 * one.clientWidth")
    assert fits(page)


def test_fast_clicks_write_no_defaults_into_the_address(visit: Visit) -> None:
    page = visit("/inside?v=block")
    names = ["Architecture", "Attention", "Flow", "Before and after a block"]
    for name in 2 * names:
        page.get_by_role("radio", name=name, exact=True).click(delay=0, no_wait_after=True)
        page.wait_for_timeout(60)  # a fast person
    expect(page.get_by_role("radio", name=names[-1], exact=True)).to_be_checked()
    wait_until(page, "() => location.search === '?v=block'")
    settle(page)
    assert page.url.endswith("?v=block"), page.url
