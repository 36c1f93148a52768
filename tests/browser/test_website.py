"""The command `site`: its files are opened from a folder, without a server, and their numbers are those of transformers."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.website.pages import PAGES, Given
from dashboard.website.writing import MOST_BYTES, SiteReport, write
from tests.support import pages as app_pages
from tests.support.plain_encoder import cosine, run

SENTENCES = (
    "The trophy does not fit in the suitcase because it is too big.",
    "She put the <b>money</b> & a note in the bank.",
)
INSIDE = ("file:", "data:", "blob:", "http://127.0.0.1:")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> SiteReport:
    return write(tmp_path_factory.mktemp("site"), Given(app_pages.backend(), SENTENCES))


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """A page, for which a console error or a request to another place is a failure."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    opened, wrong = context.new_page(), []
    opened.on("request", lambda request: None if request.url.startswith(INSIDE) else wrong.append(request.url))
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda problem: wrong.append(str(problem)))
    yield opened
    context.close()
    assert wrong == []


def at(page: Page, site: SiteReport, name: str, place: str = "") -> Page:
    """The page of a site, drawn."""
    page.goto("about:blank")
    page.goto(f"{(site.folder / name).as_uri()}{place}")
    drawn(page)
    return page


def drawn(page: Page) -> None:
    page.wait_for_function("document.documentElement.dataset.drawn === 'yes'")
    page.wait_for_function(
        """() => [...document.querySelectorAll('.figure')].filter((box) => !box.closest('details:not([open])')).every((box) =>
            box.querySelector('.main-svg') || box.firstChild?.shadowRoot?.querySelector('canvas, svg, li, button, span'))"""
    )


def finding(page: Page) -> str:
    return page.locator(".finding").first.inner_text()


def test_every_page_opens_from_a_folder_light_dark_and_on_a_phone(site: SiteReport, page: Page) -> None:
    assert site.left_out == {}
    assert site.pages == ["index.html", *(f"{of.view}.html" for of in PAGES)]
    assert sum(path.stat().st_size for path in site.folder.rglob("*") if path.is_file()) < MOST_BYTES
    for number, name in enumerate(site.pages):
        page.set_viewport_size({"width": 390, "height": 844} if number % 2 else {"width": 1440, "height": 900})
        page.emulate_media(color_scheme="dark" if number % 3 else "light")
        at(page, site, name)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert "In the running dashboard:" in page.locator(".elsewhere").inner_text()
        links = page.eval_on_selector_all("a[href]", "(all) => all.map((a) => a.getAttribute('href'))")
        inside = {link for link in links if not link.startswith(("https:", "#"))}
        assert {link for link in inside if not (site.folder / link).is_file()} == set()
        assert inside >= set(site.pages)  # each page leads to every other
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert dark == ("rgb(18, 22, 28)" if number % 3 else "rgb(255, 255, 255)")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    at(page, site, "score-split.html")
    assert SENTENCES[1] in page.locator(".sentences").inner_text()  # what was typed stays text


def test_it_is_the_same_on_a_web_server(site: SiteReport, page: Page) -> None:
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(site.folder))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        drawn(page)
        page.locator(".views a").first.click()
        page.wait_for_url("**/whole-path.html")
        drawn(page)
        page.wait_for_load_state("networkidle")  # what the page still reads would be broken off
        server.shutdown()


def test_its_numbers_are_those_of_transformers(site: SiteReport, page: Page) -> None:
    first, second = map(run, SENTENCES)
    at(page, site, "one-word-attention.html")
    said = re.search(r"gives “(\w+)” (\d+)\s% in block (\d), head (\d+)", finding(page))
    assert said is not None
    weight = first.attention[int(said[3]), int(said[4]), first.pieces.index("it"), first.pieces.index(said[1])]
    assert round(100 * float(weight)) == int(said[2])
    at(page, site, "score-split.html")
    similarity = float(cosine(first.vectors[-1].mean(axis=0), second.vectors[-1].mean(axis=0)))
    assert f"The cosine is {similarity:.2f}" in finding(page)
    at(page, site, "whole-path.html", "#compare,10,0,0")
    expect(page.locator(".path .text")).to_contain_text(f"cosine {similarity:.2f}", ignore_case=True)
    at(page, site, "block.html")
    changed = [float(cosine(second.vectors[block], second.vectors[block + 1]).mean()) for block in range(6)]
    assert f"{min(changed):.2f}" in page.locator(".finding").nth(1).inner_text()
    assert int(np.argmin(changed)) == int(page.locator(".finding").nth(1).inner_text().split()[1])


def test_the_whole_path_is_followed_and_stored_states_open(site: SiteReport, page: Page) -> None:
    at(page, site, "whole-path.html", f"#look,{run(SENTENCES[1]).pieces.index('money')},0,0")
    assert page.locator(".path h3").inner_text() == "Where does “money” look?"
    page.locator(".path .choice.blocks button", has_text="4").click()  # its numbers stand in another file
    page.wait_for_function("document.querySelector('script[src$=\"path-all.4.js\"]')")
    page.locator(".path button.left").click()
    page.wait_for_function("document.querySelector('script[src$=\"path-left.4.js\"]')")
    assert page.locator(".path button.left").get_attribute("aria-checked") == "true"
    page.wait_for_function(
        "document.querySelector('.figure').firstChild.shadowRoot.querySelector('.found').textContent"
    )
    assert "block 4" in page.locator(".path .found").inner_text()

    at(page, site, "all-heads.html")
    before = finding(page)
    page.locator(".heads .tile[data-at='65']").click()
    assert finding(page) != before
    assert page.locator(".heads .one h3").inner_text() == "Block 5, head 5"

    at(page, site, "one-word-attention.html")
    page.locator(".choices button", has_text="suitcase").click()
    assert finding(page).startswith("“suitcase” gives ")
    page.keyboard.press("ArrowRight")
    assert "“because”" in finding(page)

    at(page, site, "index.html")
    page.locator(".typed .fig .link:visible").first.click()
    page.wait_for_url("**/one-word-attention.html")


def test_what_is_not_stored_is_said(site: SiteReport, page: Page) -> None:
    at(page, site, "hits.html")
    assert page.locator(".toast").is_hidden()
    page.locator(".hits .text").first.click()
    page.locator(".toast").wait_for(state="visible")
    assert "needs the running dashboard" in page.locator(".toast").inner_text()
    assert page.locator(".hits .side button:visible").count() == 0
