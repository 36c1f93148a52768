"""The frame of every page as drawn: the bar of sentences, links between pages, the history, projector mode, colours."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import ROOT, NewPage, Server, Visit, settle, start_server, stop_server

EDITOR = "One sentence per line"
# Imported by Python at its start: every run of a page pauses before and after Streamlit decides which page it draws. Of two
# runs that begin together, the second overtakes the first, which then decides the page for both.
SLOW = """
import threading, time

def slow_down():
    from streamlit.runtime.pages_manager import PagesManager
    decide = PagesManager.set_script_intent
    started = [0.0]
    def paused(self, *arguments):
        before, started[0] = started[0], time.monotonic()
        time.sleep(0.1 if started[0] - before < 0.2 else 0.3)
        decide(self, *arguments)
        time.sleep(0.3)
    PagesManager.set_script_intent = paused

def wait():
    import sys
    while "streamlit.web.server.server" not in sys.modules:
        time.sleep(0.05)
    time.sleep(0.5)
    slow_down()

threading.Thread(target=wait, daemon=True).start()
"""


def editor_of(page: Page) -> Locator:
    """The editor, with the bar of this page (not that of the page before, which may still be drawn) unfolded."""
    page.locator(f".st-key-sentence_bar_{urlsplit(page.url).path.strip('/') or 'home'}").wait_for()
    editor = page.get_by_role("textbox", name=EDITOR)
    if not editor.is_visible():
        page.locator(".st-key-sentence_bar summary").click()
    expect(editor).to_be_visible()
    return editor


def go(page: Page, title: str) -> None:
    """Click a page's link in the sidebar with no time between press and release."""
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name=title, exact=True).click(no_wait_after=True)


def test_the_page_follows_while_a_person_types(visit: Visit) -> None:
    page = visit("/tokens?s=the+cat")
    editor = editor_of(page)
    editor.press("Control+End")
    editor.press_sequentially(" sat on a kite", delay=30)
    expect(page.get_by_role("button", name=re.compile("^kite"))).to_be_visible()
    expect(editor).to_be_focused()
    editor.press_sequentially(" flying", delay=30)
    expect(page.get_by_role("button", name=re.compile("^flying"))).to_be_visible()
    expect(editor).to_have_value("the cat sat on a kite flying")
    expect(page.locator(".st-key-sentence_bar summary")).to_contain_text("the cat sat on a kite flying")


def test_sentences_stay_from_page_to_page(visit: Visit) -> None:
    page = visit("/tokens")
    editor_of(page).fill("A red kite.\nA kite in the wind.")
    expect(page.get_by_role("button", name=re.compile("^wind"))).to_be_visible()
    page.get_by_role("link", name=re.compile("^.*Next: Model")).click()
    page.wait_for_url("**/model*")
    settle(page)
    expect(editor_of(page)).to_have_value("A red kite.\nA kite in the wind.")


def type_and_go(page: Page, times: int) -> None:
    """Type, and click another page's link at once, again and again: neither text nor page change may be lost."""
    page.wait_for_function("() => window.bertInternalsRules")
    editor_of(page)
    for number in range(times):
        title = ("Layers", "Model", "Tokens")[number % 3]
        editor = editor_of(page)
        editor.press("Control+End")
        editor.press_sequentially(f" {number}x")
        go(page, title)
        page.wait_for_function(
            "([path, text]) => location.pathname === path && location.search.includes(text)",
            arg=[f"/{title.lower()}", f"+{number}x"],
        )
    settle(page)
    expect(editor_of(page)).to_have_value(re.compile(" 0x.* 1x.* " + f"{times - 1}x$", re.S))


def test_a_click_right_after_typing_is_not_lost(visit: Visit) -> None:
    type_and_go(visit("/tokens"), 12)


def test_the_bar_is_folded_on_the_next_page_and_its_text_kept(visit: Visit) -> None:
    page = visit("/tokens?s=a+money+bank")
    page.wait_for_function("() => window.bertInternalsRules")
    editor_of(page).press("Control+End")
    page.keyboard.type(" by a river")
    go(page, "Attention")
    page.wait_for_url("**/attention?s=a+money+bank+by+a+river*")
    settle(page)
    expect(page.get_by_role("textbox", name=EDITOR)).not_to_be_visible()
    expect(page.locator(".st-key-sentence_bar summary")).to_contain_text("a money bank by a river")
    page.locator("iframe").wait_for()
    box = page.locator("iframe").bounding_box()
    assert box is not None
    assert box["y"] <= 330
    page.go_back()
    page.wait_for_url("**/tokens*")
    settle(page)
    expect(page.get_by_role("textbox", name=EDITOR)).not_to_be_visible()


def test_taps_right_after_typing_on_a_phone_are_not_lost(browser: Browser, server: Server) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    try:
        page = context.new_page()
        page.goto(server.url + "/tokens?s=taps")
        settle(page)
        page.wait_for_function("() => window.bertInternalsRules")
        for number, title in enumerate(["Model", "Layers", "Heatmaps", "Attention", "Map", "Search"]):
            editor = page.get_by_role("textbox", name=EDITOR)
            expect(editor).not_to_be_visible()  # folded on each page
            page.locator(".st-key-sentence_bar summary").tap()
            editor.tap()
            editor.press("Control+End")
            editor.press_sequentially(f" {number}x")
            link = page.locator("[data-testid=stPageLink] a", has_text=f"Next: {title}")  # at the page's foot
            link.tap(no_wait_after=True)
            page.wait_for_url(f"**/{title.lower()}*")
            settle(page)
            if title != "Search":  # has no sentences in its address
                page.wait_for_function("(text) => location.search.includes(text)", arg=f"+{number}x")
    finally:
        context.close()


@pytest.fixture
def slow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose every run of a page begins with a pause."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "sitecustomize.py").write_text(SLOW, encoding="utf-8")
    running = start_server(folder / "log.txt", PYTHONPATH=str(folder), BERT_INTERNALS_WARM_UP="0")
    yield running
    stop_server(running)


def test_a_click_right_after_typing_is_not_lost_on_a_slow_server(slow_server: Server, new_page: NewPage) -> None:
    page = new_page()
    page.goto(slow_server.url + "/tokens")
    settle(page)
    page.wait_for_function("() => window.bertInternalsRules")
    page.wait_for_timeout(1_500)  # the first run may draw the links anew under the pointer
    started = time.monotonic()
    go(page, "Model")
    page.wait_for_url("**/model")
    assert time.monotonic() - started > 0.5
    type_and_go(page, 8)


def test_one_visit_is_one_entry_of_the_history(visit: Visit) -> None:
    page = visit("/tokens?s=a+river+bank&s=a+money+bank")
    page.wait_for_function("() => window.bertInternalsRules")
    before = page.evaluate("history.length")
    for number, title in enumerate(["Model", "Layers", "Heatmaps"], start=1):
        go(page, title)
        page.wait_for_url(f"**/{title.lower()}?s=a+river*")
        settle(page)
        assert page.evaluate("history.length") == before + number
    for title in ("layers", "model", "tokens"):
        page.go_back()
        page.wait_for_url(f"**/{title}?s=a+river*")
        settle(page)
        expect(editor_of(page)).to_have_value("a river bank\na money bank")


@pytest.mark.parametrize("is_pressed", [True, False])
def test_a_press_before_the_rules_arrive_counts(new_page: NewPage, server: Server, is_pressed: bool) -> None:
    """On a busy machine the file of the rules can arrive after a person's first press."""
    page = new_page()
    page.add_init_script("window.bertInternalsRules = true")  # the page itself adds none
    # Said in the browser's place, which takes every script that a test runs in the page for a press.
    presses = f"{{ hasBeenActive: {str(is_pressed).lower()} }}"
    page.add_init_script(f"Object.defineProperty(navigator, 'userActivation', {{ value: {presses} }})")
    page.goto(server.url + "/about")
    settle(page)
    before = page.evaluate("history.length")
    page.evaluate(
        """async (source) => {
            window.bertInternalsRules = false;
            const { default: draw } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
            const button = "<button><span class=text></span></button>";
            const parentElement = document.createElement("div");
            parentElement.innerHTML = button + button;
            draw({ data: { link: { label: "" }, theme: { label: "" } }, parentElement });
            history.pushState(null, "", "/about?s=a+kite");
        }""",
        (ROOT / "assets" / "web" / "tools.js").read_text(encoding="utf-8"),
    )
    assert page.evaluate("history.length") == before + int(is_pressed)


def test_a_press_while_a_page_is_drawn_adds_no_entry(visit: Visit) -> None:
    page = visit("/tokens")
    page.wait_for_function("() => window.bertInternalsRules")
    editor_of(page).press_sequentially("A kite. ")
    page.wait_for_url("**/tokens?s=*kite*")
    before = page.evaluate("history.length")
    # The title comes before the figures, whose vectors nobody has computed yet.
    page.evaluate(
        """() => new MutationObserver(() => {
            const title = document.querySelector("h1")?.textContent;
            if (title === "What does a block do to each token?" && !window.pressed) {
                window.pressed = true;
                window.dispatchEvent(new PointerEvent("pointerdown"));
            }
        }).observe(document.body, { childList: true, subtree: true, characterData: true })"""
    )
    go(page, "Heatmaps")
    page.wait_for_url("**/heatmaps?s=*kite*")
    settle(page)
    assert page.evaluate("window.pressed")
    assert page.evaluate("history.length") == before + 1


def test_a_choice_is_an_entry_of_its_own(visit: Visit) -> None:
    page = visit("/tokens")
    before = page.evaluate("history.length")
    page.get_by_text("Input tensors", exact=True).click()
    page.wait_for_url("**view=tensors*")
    assert page.evaluate("history.length") == before + 1
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("How does text become numbers?")


def test_copy_link_copies_the_address(visit: Visit) -> None:
    page = visit("/layers?t=3&t=3&t=2")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.get_by_role("button", name="Copy link")
    button.click()
    expect(button).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_projector_mode_hides_the_sidebar_keeps_the_bar_and_comes_back(visit: Visit) -> None:
    page = visit("/tokens")
    size = "() => parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)"
    page.wait_for_function(f"() => ({size})() < 30")
    before = page.evaluate(size)
    page.get_by_role("button", name="Projector").click()
    leave = page.get_by_role("button", name="Leave")
    expect(leave).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).not_to_be_visible()
    page.wait_for_function(f"() => ({size})() > {1.2 * before}")
    editor_of(page).fill("a lecture about kites")
    expect(page.get_by_role("button", name=re.compile("^lecture"))).to_be_visible()
    leave.click()
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^lecture"))).to_be_visible()


def test_the_colours_change_on_every_page(visit: Visit) -> None:
    page = visit("/tokens")
    background = "() => getComputedStyle(document.querySelector('.stApp') ?? document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark colours").click()
    page.wait_for_function(f"() => ({background})() === 'rgb(18, 22, 28)'")
    settle(page)
    go(page, "Layers")
    page.wait_for_url("**/layers*")
    page.reload()
    settle(page)
    assert page.evaluate(background) == "rgb(18, 22, 28)"
    page.get_by_role("button", name="Light colours").click()
    page.wait_for_function(f"() => ({background})() === 'rgb(255, 255, 255)'")


def test_an_emptied_editor_stays_empty_after_a_reload(visit: Visit) -> None:
    page = visit("/tokens?s=hello+there")
    editor_of(page).fill("")
    expect(page.get_by_text("No sentence yet.")).to_be_visible()
    page.wait_for_function("() => location.search === '?s='")
    page.reload()
    expect(page.get_by_text("No sentence yet.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("How does text become numbers?")


def test_sentences_too_long_for_an_address_survive_the_change_of_colours(visit: Visit) -> None:
    page = visit("/tokens")
    page.locator(".st-key-sentence_bar summary").click()
    field = page.locator(".st-key-sentence_editor textarea")
    text = "\n".join(
        random.Random(number).randbytes(150).hex() for number in range(60)
    )  # no compression makes it short
    field.fill(text)
    field.blur()
    expect(page.get_by_role("button", name="Copy link")).to_be_disabled()
    settle(page)
    page.get_by_role("button", name="Dark colours").click()
    expect(page.get_by_role("button", name="Light colours")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("button", name="Copy link")).to_be_disabled(timeout=60_000)
    assert field.input_value() == text
