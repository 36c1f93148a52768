"""How long a page takes from an action to its effect, and a trivial page for comparison."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from playwright.sync_api import Browser, Page

from tests.support.browser import settle
from tests.support.server import Server

ROUNDS = 15


def median_time(page: Page, act: Callable[[int], None], drawn: Callable[[int], str]) -> float:
    """Median seconds from an action to the moment the browser's figure shows its effect."""
    taken = []
    for number in range(ROUNDS + 3):
        condition = drawn(number)
        started = time.perf_counter()
        act(number)
        page.wait_for_function(condition, polling="raf", timeout=20_000)
        taken.append(time.perf_counter() - started)
        page.wait_for_timeout(150)
    return statistics.median(taken[3:])  # the first ones warm up


def title_is(text: str) -> str:
    return f"() => document.querySelector('.js-plotly-plot')?.layout.title?.text?.includes({text!r})"


def trivial_interaction(browser: Browser, servers: Callable[..., Server]) -> float:
    page = browser.new_page()
    page.goto(servers("tests/benchmarks/trivial_page.py").url)
    settle(page)
    page.wait_for_function(title_is("value 50"))
    slider = page.get_by_role("slider")
    slider.focus()
    taken = median_time(page, lambda _: slider.press("ArrowRight"), lambda number: title_is(f"value {51 + number}"))
    page.close()
    return taken
