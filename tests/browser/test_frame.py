"""The frame of every page as drawn: the bar of sentences, links between pages, the history, projector mode, colours."""

from __future__ import annotations

import re
import time
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import NewPage, Visit, figure, settle, wait_until
from tests.support.places import ROOT
from tests.support.server import Server
from tests.support.slow_runs import slow_runs
from tests.support.stage import Stage

EDITOR = "One sentence per line"
HAS_RULES = "() => window.bertInternalsRules"


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
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name=re.compile(f"^{title}")).click(
        no_wait_after=True
    )


@pytest.mark.core
def test_the_page_follows_while_a_person_types_and_the_next_page_has_the_sentences(use: Stage) -> None:
    page = use.at("/tokens?v=pieces&s=the+cat")
    editor = editor_of(page)
    editor.press("Control+End")
    editor.press_sequentially(" sat on a kite", delay=30)
    expect(page.get_by_role("button", name=re.compile("^kite"))).to_be_visible()
    expect(editor).to_be_focused()
    editor.press_sequentially(" flying", delay=30)
    expect(page.get_by_role("button", name=re.compile("^flying"))).to_be_visible()
    expect(editor).to_have_value("the cat sat on a kite flying")
    expect(page.locator(".st-key-sentence_bar summary")).to_contain_text("the cat sat on a kite flying")
    editor.fill("A red kite.\nA kite in the wind.")
    expect(page.get_by_role("button", name=re.compile("^wind"))).to_be_visible()
    page.get_by_role("link", name=re.compile("^.*Next: Inside")).click()
    page.wait_for_url("**/inside*")
    settle(page)
    expect(editor_of(page)).to_have_value("A red kite.\nA kite in the wind.")


def test_on_a_phone_the_list_of_pages_closes_when_one_was_chosen(touched: Visit) -> None:
    page = touched("/")
    page.get_by_test_id("stExpandSidebarButton").tap()
    link = page.get_by_test_id("stSidebarNavLink").filter(has_text="Meaning")
    expect(link).to_be_in_viewport()
    link.tap()
    page.wait_for_url("**/meaning*")
    settle(page)
    expect(link).not_to_be_in_viewport()


def test_the_last_door_leads_back_to_the_start(use: Stage) -> None:
    page = use.at("/train?v=training-data")
    back = page.get_by_test_id("stPageLink-NavLink").filter(has_text="Back to the start")
    expect(back).to_have_attribute("href", "/")
    back.click()
    expect(page.get_by_role("textbox", name="Your sentence")).to_be_visible()


def test_what_opens_above_a_page_has_its_colours(look: Stage) -> None:
    page = look.at("/", dark=True)
    page.get_by_role("button", name="Paste rows").click()
    button = page.get_by_role("button", name="Find the failed queries")
    expect(button).to_have_css("color", "rgb(18, 22, 28)")  # dark type: the primary colour is light here
    page.keyboard.press("Escape")


def test_the_catalogue_opens_above_a_page_and_chooses_a_model(use: Stage) -> None:
    page = use.at("/glossary")
    page.get_by_role("button", name="See all models").click()
    sheet = page.get_by_role("dialog")
    expect(sheet.get_by_role("button", name="Download 440 MB")).to_have_count(1)
    sheet.get_by_role("radio", name="Score pairs").click()
    expect(sheet.get_by_role("button", name="Download 440 MB")).to_have_count(0)
    sheet.get_by_role("button", name="Choose", exact=True).click()
    expect(sheet).to_have_count(0)
    go(page, "Inside")
    wait_until(page, "() => new URLSearchParams(location.search).get('m') === 'embedded-cross-encoder'")


def test_the_corpus_is_chosen_in_one_bar_on_every_page_of_it(visit: Visit) -> None:
    page = visit("/search?v=hits")
    bar = page.locator(".st-key-corpus_bar summary")
    expect(bar).to_contain_text("Demo news · 630 sentences")
    bar.click()
    page.locator(".st-key-corpus_bar").get_by_role("radio", name="Upload a file").click()
    rows = b"A cat slept here.\nShips sailed home.\nRain fell today.\n"
    page.locator(".st-key-corpus_file input").set_input_files(
        {"name": "mine.txt", "mimeType": "text/plain", "buffer": rows}
    )
    page.get_by_role("button", name="Use these 3 sentences").click()
    expect(bar).to_contain_text("mine.txt · 3 sentences")
    go(page, "Diagnose")
    expect(page.locator(".st-key-corpus_bar summary")).to_contain_text("mine.txt · 3 sentences")


def test_a_term_opens_its_entry_where_it_stands(use: Stage) -> None:
    page = use.at("/inside?v=all-heads&b=2&h=0&s=A+head+of+state+spoke.")
    title = page.locator(".st-key-view_title").get_by_role("button", name="Glossary: head")
    title.click()
    entry = page.get_by_role("dialog", name="Glossary: head")
    expect(entry).to_contain_text("One of several attentions that a block computes")
    page.keyboard.press("Escape")
    expect(entry).to_have_count(0)
    expect(title).to_be_focused()
    # In the finding the sentence's own “head” stands in quotation marks: it is nobody's term.
    finding = page.locator("p", has=page.get_by_label("insights icon")).first
    expect(finding).to_contain_text("“")
    wait_until(
        page, "() => [...document.querySelectorAll('.bi-terms')].some((layer) => layer.of.textContent.includes('“'))"
    )
    # What is drawn anew is marked anew, and the link goes on with the session.
    page.get_by_role("radio", name="Matrix", exact=True).click()
    page.locator(".st-key-view_header").get_by_role("button", name="Glossary: token").first.press("Enter")
    page.get_by_role("dialog").get_by_role("link", name="Glossary").click()
    page.wait_for_url("**/glossary*")
    expect(page.locator(".bi-entry")).to_have_count(0)


def type_and_go(page: Page, times: int) -> None:
    """Type, and click another page's link at once, again and again: neither text nor page change may be lost."""
    wait_until(page, HAS_RULES)
    editor_of(page)
    for number in range(times):
        title = ("Meaning", "Inside", "Text")[number % 3]
        editor = editor_of(page)
        editor.press("Control+End")
        editor.press_sequentially(f" {number}x")
        go(page, title)
        is_there = "([path, text]) => location.pathname === path && location.search.includes(text)"
        wait_until(page, is_there, [f"/{title.lower()}", f"+{number}x"])
    settle(page)
    expect(editor_of(page)).to_have_value(re.compile(" 0x.* 1x.* " + f"{times - 1}x$", re.S))


def test_a_click_right_after_typing_is_not_lost(use: Stage) -> None:
    type_and_go(use.at("/tokens"), 4)


def test_the_bar_is_folded_on_the_next_page_and_its_text_kept(visit: Visit) -> None:
    page = visit("/tokens?v=pieces&s=a+money+bank")  # a session of its own, which has seen no other view
    wait_until(page, HAS_RULES)
    editor_of(page).press("Control+End")
    page.keyboard.type(" by a river")
    go(page, "Meaning")
    page.wait_for_url("**/meaning?v=one-word&s=a+money+bank+by+a+river*")
    settle(page)
    expect(page.get_by_role("textbox", name=EDITOR)).not_to_be_visible()
    expect(page.locator(".st-key-sentence_bar summary")).to_contain_text("a money bank by a river")
    page.locator(".js-plotly-plot").first.wait_for()
    box = page.locator(".js-plotly-plot").first.bounding_box()
    assert box is not None
    assert box["y"] <= 330
    page.go_back()
    page.wait_for_url("**/text*")
    settle(page)
    expect(page.get_by_role("textbox", name=EDITOR)).not_to_be_visible()


def test_taps_right_after_typing_on_a_phone_are_not_lost(touched: Visit) -> None:
    page = touched("/tokens?v=pieces&s=taps")
    wait_until(page, HAS_RULES)
    for number, title in enumerate(["Inside", "Meaning", "Search"]):
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
            wait_until(page, "(text) => location.search.includes(text)", f"+{number}x")


def test_a_click_right_after_typing_is_not_lost_on_a_slow_server(visit: Visit, server: Server) -> None:
    page = visit("/tokens")  # a session of its own, which has seen no other view
    wait_until(page, HAS_RULES)
    with slow_runs(server.log.parent):
        started = time.monotonic()
        go(page, "Inside")
        page.wait_for_url("**/inside?v=whole-path")
        assert time.monotonic() - started > 0.5
        type_and_go(page, 6)


def test_one_choice_and_one_visit_are_one_entry_of_the_history_each(visit: Visit) -> None:
    page = visit("/tokens?v=pieces&s=a+river+bank&s=a+money+bank")
    wait_until(page, HAS_RULES)
    before = page.evaluate("history.length")
    page.get_by_text("Input tensors", exact=True).click()
    page.wait_for_url("**v=input-tensors*")
    assert page.evaluate("history.length") == before + 1
    expect(page).to_have_title("What exactly does the model read? · BERT Internals")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("How does text become numbers?")
    expect(page).to_have_title("How does text become numbers? · BERT Internals")
    settle(page)
    for number, title in enumerate(["Inside", "Meaning", "Text"], start=1):
        go(page, title)
        page.wait_for_url(f"**/{title.lower()}?v=*&s=a+river*")
        settle(page)
        assert page.evaluate("history.length") == before + number
    for title in ("meaning", "inside", "text"):
        page.go_back()
        page.wait_for_url(f"**/{title}?v=*&s=a+river*")
        settle(page)
        expect(editor_of(page)).to_have_value("a river bank\na money bank")


@pytest.mark.parametrize("is_pressed", [True, False])
def test_a_press_before_the_rules_arrive_counts(new_page: NewPage, server: Server, is_pressed: bool) -> None:
    """On a busy machine the file of the rules can arrive after a person's first press."""
    page = new_page()
    # Said in the browser's place, which takes every script that a test runs in the page for a press.
    presses = f"{{ hasBeenActive: {str(is_pressed).lower()} }}"
    page.add_init_script(f"Object.defineProperty(navigator, 'userActivation', {{ value: {presses} }})")
    page.goto(server.url + "/_stcore/health")  # a page without rules
    before = page.evaluate("history.length")
    page.evaluate(
        """async (source) => {
            const { default: draw } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
            const button = "<button><span class=text></span></button>";
            const parentElement = document.createElement("div");
            parentElement.innerHTML = button + button;
            draw({ data: { link: { label: "" }, theme: { label: "" }, glossary: {} }, parentElement });
            history.pushState(null, "", location.pathname + "?s=a+kite");
        }""",
        "".join((ROOT / "assets" / "web" / f"{name}.js").read_text(encoding="utf-8") for name in ("terms", "tools")),
    )
    assert page.evaluate("history.length") == before + int(is_pressed)


def test_a_press_while_a_page_is_drawn_adds_no_entry(visit: Visit) -> None:
    page = visit("/tokens")
    wait_until(page, HAS_RULES)
    editor_of(page).press_sequentially("A kite. ")
    page.wait_for_url("**/text?v=pieces&s=*kite*")
    before = page.evaluate("history.length")
    # The title comes before the figures, whose vectors nobody has computed yet.
    page.evaluate(
        """() => new MutationObserver(() => {
            const title = document.querySelector("h1")?.textContent;
            if (title === "How does a word's vector change?" && !window.pressed) {
                window.pressed = true;
                window.dispatchEvent(new PointerEvent("pointerdown"));
            }
        }).observe(document.body, { childList: true, subtree: true, characterData: true })"""
    )
    go(page, "Meaning")
    page.wait_for_url("**/meaning?v=one-word&s=*kite*")
    settle(page)
    assert page.evaluate("window.pressed")
    assert page.evaluate("history.length") == before + 1


def test_on_a_phone_the_names_of_the_open_view_are_in_sight(use: Stage) -> None:
    page = use.at("/meaning?v=token-pairs", phone=True)
    for kind in ("view_names", "view_choices"):
        chosen = page.locator(f".st-key-{kind} [aria-checked=true]")
        wait_until(
            page,
            """(kind) => {
                const chosen = document.querySelector(`.st-key-${kind} [aria-checked=true]`); // none while it is drawn anew
                const box = chosen?.getBoundingClientRect();
                return Boolean(box) && box.left >= 0 && box.right <= innerWidth;
            }""",
            kind,
        )
        expect(chosen).to_be_visible()


@pytest.mark.core
def test_copy_link_copies_the_address(use: Stage) -> None:
    page = use.at("/layers?v=one-word&t=3&t=3&t=2")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.get_by_role("button", name="Copy link")
    button.click()
    expect(button).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.context.clear_permissions()


@pytest.mark.core
def test_projector_mode_hides_the_sidebar_keeps_the_bar_and_comes_back(use: Stage) -> None:
    page = use.at("/tokens")
    size = "() => parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)"
    wait_until(page, f"() => ({size})() < 30")
    before = page.evaluate(size)
    page.get_by_role("button", name="Projector").click()
    leave = page.get_by_role("button", name="Leave", exact=True)
    expect(leave).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).not_to_be_visible()
    wait_until(page, f"() => ({size})() > {1.2 * before}")
    editor_of(page).fill("a lecture about kites")
    expect(page.get_by_role("button", name=re.compile("^lecture"))).to_be_visible()
    leave.click()
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^lecture"))).to_be_visible()


def test_on_a_small_projector_a_view_begins_with_its_picture(visit: Visit) -> None:
    page = visit("/attention?v=attention-matrix&proj=1")
    page.set_viewport_size({"width": 1280, "height": 720})
    place = "document.querySelector('.js-plotly-plot').getBoundingClientRect().top"
    wait_until(page, f"() => document.querySelector('.js-plotly-plot') && {place} < 340")
    expect(page.get_by_test_id("stHeader")).not_to_be_empty()
    box = "(selector) => document.querySelector(selector).getBoundingClientRect()"
    assert page.evaluate(f"({box})('[data-testid=stHeader]').bottom <= ({box})('.st-key-page_header').top + 1")


def test_the_colours_change_on_every_page(visit: Visit) -> None:
    page = visit("/tokens")
    background = "() => getComputedStyle(document.querySelector('.stApp') ?? document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark colours").click()
    wait_until(page, f"() => ({background})() === 'rgb(18, 22, 28)'")
    settle(page)
    go(page, "Meaning")
    page.wait_for_url("**/meaning*")
    page.reload()
    settle(page)
    assert page.evaluate(background) == "rgb(18, 22, 28)"
    page.get_by_role("button", name="Light colours").click()
    wait_until(page, f"() => ({background})() === 'rgb(255, 255, 255)'")


def test_figures_follow_the_systems_colours_while_a_page_is_open(use: Stage) -> None:
    page = use.at("/layers?v=one-word")
    figure(page)
    paper = "() => document.querySelector('.js-plotly-plot')?.layout?.paper_bgcolor"  # none while it is drawn anew
    light = page.evaluate(paper)
    page.emulate_media(color_scheme="dark")
    wait_until(page, f"(light) => ({paper})() && ({paper})() !== light", light)
    page.emulate_media(color_scheme="light")
    wait_until(page, f"(light) => ({paper})() === light", light)


def test_an_emptied_editor_stays_empty_and_what_ends_a_text_stays_in_its_line(visit: Visit) -> None:
    page = visit("/tokens?v=pieces&s=hello+there")
    expect(page.locator(".rows .chip")).to_have_count(4)
    # At no width [SEP] stands alone in a line, where it would read as the beginning of another text.
    for width in range(360, 241, -20):
        page.set_viewport_size({"width": width, "height": 900})
        tops = page.locator(".rows .chip").evaluate_all(
            "(chips) => chips.map((chip) => chip.getBoundingClientRect().top)"
        )
        assert tops[-1] == pytest.approx(tops[-2], abs=1)
    page.set_viewport_size({"width": 1280, "height": 900})
    editor_of(page).fill("")
    expect(page.get_by_text("No sentence yet.")).to_be_visible()
    wait_until(page, "() => location.search === '?v=pieces&s='")
    page.reload()
    expect(page.get_by_text("No sentence yet.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("How does text become numbers?")


# Whether a page has not been scrolled for a second.
AT_REST = """() => {
  const [top, now, seen] = [document.querySelector(".stMain").scrollTop, performance.now(), window.seen ?? {}];
  if (top !== seen.top) window.seen = { top, since: now };
  return top === seen.top && now - seen.since > 1000;
}"""


def test_the_colours_change_where_a_person_is(visit: Visit) -> None:
    """No page is loaded, and what is drawn, scrolled to and typed stays."""
    page = visit("/layers?v=one-word&s=a+river+bank")
    figure(page)
    wait_until(page, HAS_RULES)
    page.evaluate("window.isSamePage = true")
    typed = editor_of(page)
    expect(page.locator(".bi-words")).to_be_visible(timeout=60_000)  # until then the page changes its height
    settle(page)
    page.locator(".stMain").evaluate("(main) => main.scrollTo({ top: 150, behavior: 'instant' })")
    top = "() => document.querySelector('.js-plotly-plot').getBoundingClientRect().top"
    wait_until(page, AT_REST)  # the browser keeps in place what is read while the line of sentences above it grows
    before, address = page.evaluate(top), page.url
    paper = "() => document.querySelector('.js-plotly-plot')?.layout?.paper_bgcolor"
    light = page.evaluate(paper)
    press = "(button) => button.click()"  # without leaving the field
    twice = "(button) => { button.click(); button.click(); }"  # the second one before the menu is drawn
    page.get_by_role("button", name="Dark colours").evaluate(twice)
    expect(page.locator(".stApp")).to_have_css("background-color", "rgb(18, 22, 28)")
    wait_until(page, f"(light) => ({paper})() && ({paper})() !== light", light)
    settle(page)
    assert page.evaluate(top) == pytest.approx(before, abs=2)
    assert page.url == address
    typed.press("Control+Home")
    page.keyboard.type("money ")
    page.get_by_role("button", name="Light colours").evaluate(press)  # before it is sent
    expect(page.locator(".stApp")).to_have_css("background-color", "rgb(255, 255, 255)")
    wait_until(page, f"(light) => ({paper})() === light", light)
    settle(page)
    expect(typed).to_have_value("money a river bank")
    expect(typed).to_be_focused()
    assert page.evaluate("window.isSamePage")
    expect(page.get_by_role("menu")).to_have_count(0)


def test_an_embedded_page_offers_no_colours_which_only_a_new_page_could_change(visit: Visit) -> None:
    page = visit("/tokens?embed=true")
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()
    wait_until(page, HAS_RULES)
    expect(page.get_by_role("button", name="Dark colours")).to_have_count(0)
