"""Pages in a real browser: how one is started and watched, when a page is drawn, and what it has drawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Download, Locator, Page, TimeoutError, expect, sync_playwright

from tests.browser import chromium
from tests.support.places import ROOT

FAILURES = ROOT / "tests" / "browser" / "failures"
expect.set_options(timeout=20_000)  # the five seconds of the library are too few for two browsers on two cores
LOOK_EVERY = 50  # milliseconds; Playwright's own way makes the browser draw 60 frames a second while it waits
# What a page holds when a test has waited in vain.
SHOWN = """() => ({
    heading: document.querySelector('h1')?.innerText,
    run: document.querySelector('.stApp')?.getAttribute('data-test-script-state'),
    replaced: document.querySelectorAll('[data-stale="true"]').length,
    progress: [...document.querySelectorAll('[data-testid=stProgress], [data-testid=stAlert]')].map((box) => box.innerText),
    figures: [...document.querySelectorAll('.js-plotly-plot')].map((plot) => plot.layout?.title?.text),
})"""
# Resolves once the boxes, the colours and the opacity of what a selector finds are the same in some frames one after another.
STILL = """([selector, frames]) => new Promise((done, failed) => {
    const state = () => JSON.stringify([...document.querySelectorAll(selector)].map((element) => {
        const {left, top, width, height} = element.getBoundingClientRect();
        const {opacity, color, backgroundColor} = getComputedStyle(element);
        return [left, top, width, height, opacity, color, backgroundColor];
    }));
    const end = performance.now() + 60_000;
    let before = "", same = 0;
    const look = () => {
        const now = state();
        same = now === before ? same + 1 : 0;
        before = now;
        if (same >= frames - 1) done();
        else if (performance.now() > end) failed(new Error(`it does not come to rest: ${selector}`));
        else requestAnimationFrame(look);
    };
    look();
})"""
AT_REST = """(element, frames) => new Promise((done) => {
    let before = "", same = 0;
    const look = () => {
        const {left, top, width, height} = element.getBoundingClientRect();
        const now = JSON.stringify([left, top, width, height, element.scrollTop, element.scrollHeight]);
        same = now === before ? same + 1 : 0;
        before = now;
        if (same >= frames) done();
        else requestAnimationFrame(look);
    };
    look();
})"""
NewPage = Callable[..., Page]
Visit = Callable[..., Page]


@contextmanager
def started_browser() -> Iterator[Browser]:
    """A Chromium until the block ends; the test fails where there is none."""
    path = chromium.find()
    if path is None:
        pytest.fail("no Chromium: run `python -m tests.browser.chromium` (make test does)")
    with sync_playwright() as playwright:
        # All pages in one renderer: one that starts anew reads and compiles the pages' scripts again, 3 s of a core.
        arguments = [*chromium.ARGUMENTS, "--process-per-site"]
        started = playwright.chromium.launch(executable_path=path, args=arguments)
        yield started
        started.close()


@dataclass
class Watch:
    """What pages did that they should not."""

    outside: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def attach(self, page: Page) -> None:
        # Not by a route of Playwright's, which switches the browser's cache off. That nothing leaves the machine is
        # one of the browser's arguments.
        page.on("request", lambda request: self._asked(request.url))
        page.on("websocket", lambda socket: self._asked(socket.url))
        page.on("pageerror", lambda problem: self.console.append(str(problem)))
        page.on("console", self._message)

    def check(self) -> None:
        assert self.outside == []
        assert self.console == []

    def _asked(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "about:")):
            self.outside.append(url)

    def _message(self, message: Any) -> None:
        if message.type == "error":
            self.console.append(f"{message.text} ({message.location.get('url')})")


def wait_until(page: Page, condition: str, arg: Any = None, timeout: float = 60_000) -> Any:
    """What a function of JavaScript returns on the page, once that is true; a failure says what the page showed."""
    try:
        return page.wait_for_function(condition, arg=arg, timeout=timeout, polling=LOOK_EVERY).json_value()
    except TimeoutError as problem:
        problem.add_note(
            f"waited for {condition.strip()} with {arg!r} at {page.url}; the page showed {page.evaluate(SHOWN)}"
        )
        raise


def settle(page: Page, timeout: float = 60_000) -> None:
    """Wait until the page has a title and the server has nothing left to send."""
    page.wait_for_selector("h1", timeout=timeout)
    wait_until(
        page,
        "() => document.querySelector('.stApp')?.getAttribute('data-test-script-state') === 'notRunning'"
        " && !document.querySelector('[data-stale=\"true\"]')",
        timeout=timeout,
    )


def wait_until_still(page: Page, selector: str, frames: int = 3) -> None:
    """Wait until what a selector finds keeps its places and colours for some frames, as after an animation or a layout."""
    page.evaluate(STILL, [selector, frames])


def wait_until_at_rest(element: Locator, frames: int = 6) -> None:
    """Wait until an element, which may stand in a component, keeps its box and what it has scrolled for some frames."""
    element.evaluate(AT_REST, frames)


def downloaded(page: Page, button: Locator) -> Download:
    """What a button saves. One that moves or is drawn anew while it is pressed saves nothing, so it comes to rest first."""
    settle(page)
    wait_until_at_rest(button)
    with page.expect_download() as download:
        button.click()
    return download.value


def wait_for_title(page: Page, words: str, number: int = 0, timeout: float = 60_000) -> None:
    """Wait until the title of a page's figure has these words."""
    titles = "[...document.querySelectorAll('.js-plotly-plot')].map((plot) => plot.layout?.title?.text)"
    wait_until(page, f"([words, number]) => {titles}[number]?.includes(words)", [words, number], timeout)


def wait_for_animations(element: Locator) -> None:
    """Wait until no animation or transition of an element, or within it, is left."""
    element.evaluate("(one) => Promise.all(one.getAnimations({subtree: true}).map(({finished}) => finished))")


def figure(page: Page, number: int = 0) -> dict[str, Any]:
    """A drawn plotly figure: its title, and name to values of its traces, as the browser holds them."""
    wait_until(page, "(number) => document.querySelectorAll('.js-plotly-plot').length > number", number)
    return page.evaluate(
        """(number) => {
            const plot = document.querySelectorAll('.js-plotly-plot')[number];
            const lines = plot.querySelectorAll('.scatterlayer .js-line').length;
            const values = (array) => array && array._inputArray ? [...array._inputArray] : [...(array || [])];
            return {
                title: plot.layout.title?.text,
                lines,
                traces: Object.fromEntries(plot._fullData.map((trace) => [trace.name, values(trace.y)])),
                types: plot._fullData.map((trace) => trace.type),
            };
        }""",
        number,
    )


def fits(page: Page) -> bool:
    """Whether nothing of the page lies beyond its right edge."""
    return page.evaluate(
        """() => document.documentElement.scrollWidth <= window.innerWidth
            && document.querySelector('[data-testid=stMain]').scrollWidth <= window.innerWidth"""
    )


def use_file(page: Page, path: Path) -> None:
    """Choose a file of this machine as the corpus, in the bar of a view that shows one."""
    source = page.get_by_text("File on this machine", exact=True)
    if not source.is_visible():
        page.locator(".st-key-corpus_bar summary").click()
    settle(page)  # a click on what is being replaced is lost
    box = page.get_by_label("Path of a file on this machine")
    wait_until_at_rest(source)  # on a slow machine the bar is drawn again for a while after it opens
    settle(page)
    source.click()
    settle(page)
    box.fill(str(path))
    box.press("Enter")
    page.get_by_role("button", name=re.compile("^Use (this|these) ")).click()
