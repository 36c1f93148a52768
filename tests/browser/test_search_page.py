"""The Search page as drawn: hits follow the typing, marks and "why" answer, nothing in a sentence runs."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg

from tests.support.browser import NewPage, Visit, figure, settle, use_file, wait_until, wait_until_still
from tests.support.server import Server
from tests.support.stage import LAPTOP, PHONE, Stage

MEMORY = "bertInternalsMemory"
# JavaScript: all that the browser remembers of the sessions.
KEPT = f"Object.entries(localStorage).filter(([key]) => key.startsWith('{MEMORY}')).map(([, kept]) => kept).join()"
# JavaScript: leaves in the browser what three closed sessions had marked, of which two have room; and the names of those kept.
TOO_MUCH = """() => [1, 2, 3].forEach((time) => {
    const marks = { ['a'.repeat(64)]: { [String(time).repeat(120 << 10)]: { 1: true } } };
    const kept = { time, closed: true, text: JSON.stringify({ uploads: {}, marks }) };
    localStorage.setItem('bertInternalsMemory.' + time, JSON.stringify(kept));
})"""
# JavaScript: the texts of hits, controls and lines of text that the offer lies over.
COVERED = """() => {
    const offer = document.querySelector('.st-key-remembered');
    const own = offer.getBoundingClientRect();
    const main = document.querySelector('[data-testid=stMain]');
    return [...main.querySelectorAll('.hit, button, input, p, h1')].filter((one) => {
        const {left, right, top, bottom} = one.getBoundingClientRect();
        const isSeen = !offer.contains(one) && one.checkVisibility({visibilityProperty: true});
        return isSeen && right > own.left && left < own.right && bottom > own.top && top < own.bottom;
    }).map((one) => one.textContent);
}"""
LEFT = f"() => Object.keys(localStorage).filter((key) => /^{MEMORY}\\.[123]$/.test(key)).sort()"


def hits(page: Page, number: int = 0):
    return page.locator(".hits").nth(number).locator(".hit")


@pytest.mark.core
def test_hits_follow_as_one_types(use: Stage) -> None:
    page = use.at("/search")
    expect(hits(page)).to_have_count(10, timeout=60_000)
    expect(hits(page).first).to_contain_text("Carmora")
    box = page.get_by_label("Query", exact=True)
    box.click()
    box.press("Control+a")
    box.press_sequentially("trains that crash", delay=30)  # no Enter
    expect(hits(page).first.locator(".tag")).to_contain_text("train", timeout=20_000)
    expect(box).to_have_value("trains that crash")
    page.wait_for_url(lambda url: "q=trains+that+crash" in url or "q=trains%20that%20crash" in url)  # behind the typing


def test_a_histogram_and_bars_are_drawn(look: Stage) -> None:
    page = look.at("/search?v=hits&vs=bm25")
    expect(hits(page, 1).first).to_be_visible(timeout=60_000)
    figure(page)
    marks = page.evaluate("() => document.querySelector('.js-plotly-plot')._fullData[1].x.length")
    assert marks == 10
    widths = (
        page.locator(".hits")
        .first.locator(".bar")
        .evaluate_all("(bars) => bars.map((bar) => bar.getBoundingClientRect().width)")
    )
    assert widths == sorted(widths, reverse=True)
    track = page.locator(".hits").first.locator(".track").first.bounding_box()
    assert track is not None
    assert 0.7 * track["width"] > widths[0] > widths[-1] > 0  # the best hit's cosine is 0.57: its bar is not full


def test_a_hybrid_hit_shows_its_two_terms(look: Stage) -> None:
    page = look.at("/search?v=hits&q=three+hundred+flights&vs=fused")
    first = hits(page, 1).first
    expect(first.locator(".terms")).to_have_text("vectors 1/(60+2) + words 1/(60+1)", timeout=60_000)
    bar = first.locator(".bar.of-two")
    expect(bar).to_be_visible()
    background, share = bar.evaluate(
        "(bar) => [getComputedStyle(bar).backgroundImage, bar.style.getPropertyValue('--first')]"
    )
    assert "linear-gradient" in background
    assert abs(float(share.removesuffix("%")) - 100 * (1 / 62) / (1 / 62 + 1 / 61)) < 0.02
    expect(hits(page).first.locator(".terms")).to_have_count(0)  # vectors alone have no terms


def test_a_mark_counts_and_is_taken_back_and_is_offered_again_once_its_session_has_ended(visit: Visit) -> None:
    page = visit("/search")
    relevant = hits(page).first.get_by_role("button", name="Relevant to the query (rank 1)")
    expect(relevant).to_be_visible(timeout=60_000)
    relevant.click()
    expect(page.get_by_text("Precision of 1 judged query")).to_be_visible()
    expect(page.locator("[data-testid=stTable] td", has_text="0.20")).to_have_count(1)  # P@5: one of five
    expect(page.locator("[data-testid=stTable] td", has_text="0.10")).to_have_count(1)
    expect(relevant).to_have_attribute("aria-pressed", "true")
    relevant.click()
    expect(page.get_by_text("Mark hits with")).to_be_visible()
    relevant.click()
    wait_until(page, f"() => {KEPT}.includes('true')")
    page.reload()  # a new session
    offer = page.locator(".st-key-remembered")
    expect(offer).to_contain_text("Used in this browser before: marks for 1 query.", timeout=60_000)
    expect(hits(page)).to_have_count(10, timeout=60_000)
    expect(relevant).to_have_attribute("aria-pressed", "false")
    for width, height in (LAPTOP, PHONE):  # the offer covers nothing
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        wait_until_still(page, "[data-testid=stMain], .st-key-remembered")
        assert page.evaluate(COVERED) == [], width
    offer.get_by_role("button", name="Use again").click()
    expect(relevant).to_have_attribute("aria-pressed", "true")
    expect(offer).to_have_count(0)
    relevant.click()
    wait_until(page, f"() => {KEPT} === ''")


def test_two_tabs_keep_their_marks_beside_each_other(visit: Visit) -> None:
    """Both are marked in turn; once they are closed, a third is offered the marks of both. An open tab's are not offered."""
    first = visit("/search?q=volcano+erupted")
    marked = "Relevant to the query (rank 1)"
    hits(first).first.get_by_role("button", name=marked).click(timeout=60_000)
    wait_until(first, f"() => {KEPT}.includes('volcano erupted')")
    second = first.context.new_page()
    second.goto(first.url.replace("volcano+erupted", "actor+wins+award"))
    hits(second).first.get_by_role("button", name=marked).click(timeout=60_000)
    wait_until(second, f"() => {KEPT}.includes('actor wins award')")
    expect(second.locator(".st-key-remembered")).to_have_count(0)  # the first is open
    one_mark = first.evaluate(f"() => {KEPT}.length")
    hits(first).nth(1).get_by_role("button", name="Relevant to the query (rank 2)").click()
    wait_until(first, f"(before) => {KEPT}.length > before && {KEPT}.includes('actor wins award')", one_mark)
    address = first.url
    third = first.context.new_page()
    for tab in (first, second):
        tab.goto("about:blank")
    third.goto(address)
    offer = third.locator(".st-key-remembered")
    expect(offer).to_contain_text("Used in this browser before: marks for 2 queries.", timeout=60_000)
    offer.get_by_role("button", name="Use again").click()
    expect(third.get_by_text("Precision of 2 judged queries")).to_be_visible(timeout=30_000)
    wait_until(third, f"() => Object.keys(localStorage).filter((key) => key.startsWith('{MEMORY}')).length === 1")


def test_the_offer_outlives_pages_that_use_no_marks(visit: Visit) -> None:
    """One input and Start use none: there it is not offered, and on the way back it is."""
    page = visit("/search")
    hits(page).first.get_by_role("button", name="Relevant to the query (rank 1)").click(timeout=60_000)
    wait_until(page, f"() => {KEPT}.includes('true')")
    page.goto(page.url.split("/search")[0] + "/pairs?v=one-input")
    settle(page)
    offer = page.locator(".st-key-remembered")
    expect(offer).to_have_count(0)
    for name in ("Start", "Search"):
        page.locator("[data-testid=stSidebarNav]").get_by_role("link", name=re.compile(f"^{name}")).click()
        settle(page)
    expect(offer).to_contain_text("Used in this browser before: marks for 1 query.", timeout=60_000)


def test_the_oldest_of_what_is_kept_makes_room(visit: Visit) -> None:
    """When a session has more to keep, and when one begins: an open tab can have written again what was dropped."""
    page = visit("/search")
    marked = hits(page).first.get_by_role("button", name="Relevant to the query (rank 1)")
    marked.click(timeout=60_000)
    # The page's script comes behind what the page shows: what is left before it has begun is offered, and makes no room.
    wait_until(page, f"() => {KEPT}.includes('true')")
    page.evaluate(TOO_MUCH)
    hits(page).nth(1).get_by_role("button", name="Relevant to the query (rank 2)").click()
    said = page.get_by_text("Your browser had no room for what 1 other session had left")
    expect(said).to_be_visible(timeout=30_000)
    assert page.evaluate(LEFT) == [f"{MEMORY}.2", f"{MEMORY}.3"]
    page.evaluate(TOO_MUCH)
    page.reload()
    expect(page.locator(".st-key-remembered")).to_contain_text("marks for 3 queries", timeout=60_000)
    expect(said).to_be_visible(timeout=30_000)
    assert page.evaluate(LEFT) == [f"{MEMORY}.2", f"{MEMORY}.3"]


@pytest.mark.core
def test_a_click_on_a_hit_says_why(use: Stage) -> None:
    page = use.at("/search?v=hits&q=volcano+erupted")
    expect(hits(page)).to_have_count(10, timeout=60_000)
    hits(page).nth(1).get_by_text("Why?", exact=True).click()
    expect(page.get_by_text("Why is number", exact=False)).to_be_visible(timeout=30_000)
    expect(page.get_by_text(re.compile(r"Of the cosine \d"))).to_be_visible(timeout=30_000)
    page.get_by_text("MaxSim (did not rank it)", exact=True).click()
    wait_until(
        page,
        "() => [...document.querySelectorAll('.js-plotly-plot')].some((plot) => plot._fullData?.[0].type === 'heatmap')",
    )
    page.wait_for_url("**why=**")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_text("Why is number", exact=False)).to_have_count(0)


def test_a_link_to_an_explanation_shows_it_and_so_does_back(visit: Visit) -> None:
    page = visit("/search?v=hits&q=trains+that+crash&why=39")
    heading = page.get_by_text("Why is number 39 a hit?")
    expect(heading).to_be_in_viewport(timeout=60_000)
    settle(page)
    page.get_by_role("button", name="Why is this here?").click()
    page.wait_for_url("**/meaning?*")
    settle(page)
    page.go_back()
    page.wait_for_url(re.compile(r"/search\?v=hits&q=trains\+that\+crash&why=39$"))
    expect(heading).to_be_in_viewport(timeout=30_000)


def test_a_phone_shows_whole_sentences(look: Stage) -> None:
    page = look.at("/search", phone=True)
    expect(hits(page)).to_have_count(10, timeout=60_000)
    wide = page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollWidth")
    assert wide <= 390
    box = hits(page).first.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390


def test_a_tick_of_a_blind_comparison_stays_with_its_query(new_page: NewPage, server: Server) -> None:
    page = new_page()
    with page.expect_websocket() as socket:
        page.goto(f"{server.url}/search?v=hits&q=volcano+erupted&vs=bm25&blind=1&class=a-browser")
    settle(page)
    left = page.locator(".st-key-blind_list_0 [data-testid=stCheckbox]")
    left.nth(1).locator("label").click()
    expect(page.get_by_text("hits ticked on 1 query.")).to_be_visible()
    first = left.first.text_content() or ""
    page.get_by_text("election results announced", exact=True).click()
    page.wait_for_url("**q=election*")
    expect(left.first).not_to_have_text(first)  # on a slow machine the hits of the query before stand for a while
    settle(page)
    for _ in range(2):  # looks at the votes of others, which send what the browser knows of the boxes
        socket.value.wait_for_event("framesent", is_asked_by_itself)
        settle(page)
    expect(page.get_by_text("hits ticked on 1 query.")).to_be_visible()
    # In one look: boxes that are asked one by one can be those of two states of the page. On a slow machine the hits of the
    # query before may stand until now, so it is looked until they are gone; a tick that had moved would stay.
    boxes = "[...document.querySelectorAll('.st-key-blind_list_0 [data-testid=stCheckbox] input')]"
    wait_until(page, f"() => {boxes}.length > 2 && !{boxes}.some((box) => box.checked)")


def is_asked_by_itself(frame: bytes | str) -> bool:
    """Whether a page asks the server for a run that no person asked for."""
    return isinstance(frame, bytes) and BackMsg.FromString(frame).rerun_script.is_auto_rerun


@pytest.mark.core
def test_markup_in_a_corpus_is_text(visit: Visit, tmp_path) -> None:
    path = tmp_path / "nasty.txt"
    path.write_text("<img src=x onerror=\"document.title='broken'\"> volcano\n</script><b>volcano</b>\nplain volcano\n")
    page = visit("/search?v=corpus")  # a session of its own: what was typed stays where another corpus is chosen
    use_file(page, path)
    settle(page)
    page.get_by_role("button", name="Search this corpus").click()
    expect(page.get_by_text("No query yet.")).to_be_visible(timeout=60_000)  # that of the demo corpus is gone
    page.get_by_label("Query", exact=True).fill("volcano")
    expect(hits(page)).to_have_count(3, timeout=60_000)
    expect(hits(page).filter(has_text="<img src=x")).to_have_count(1)
    hits(page).filter(has_text="<img src=x").locator("button.text").click()
    expect(page.get_by_text("Why is number", exact=False)).to_be_visible(timeout=30_000)
    page.wait_for_url(lambda url: "why=" in url)  # behind the click
    assert page.title() != "broken"
    assert page.locator("img[src='x']").count() == 0
