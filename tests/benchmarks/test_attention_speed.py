"""What the views of attention promise: a head in a matrix, all heads at a glance (`make bench -s`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.support.browser import settle
from tests.support.interactions import median_time, title_is, trivial_interaction
from tests.support.measurements import report
from tests.support.saved_models import twelve_by_twelve
from tests.support.server import Server


def step(page: Page, setting: str, is_down: int) -> None:
    """Click the button beside a number that shows the next one, or the one before."""
    button = "stNumberInputStepDown" if is_down else "stNumberInputStepUp"
    page.locator(f".st-key-stepped_{setting}").get_by_test_id(button).click()


def test_switching_a_head_costs_at_most_two_and_a_half_trivial_interactions(
    browser: Browser,
    servers: Callable[..., Server],
) -> None:
    trivial = trivial_interaction(browser, servers)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{servers().url}/attention?v=attention-matrix")
    settle(page)
    page.wait_for_function(title_is("Block 0, head 0"))
    head = median_time(page, lambda n: step(page, "head", n % 2), lambda n: title_is(f"Block 0, head {1 - n % 2}"))
    block = median_time(page, lambda n: step(page, "block", n % 2), lambda n: title_is(f"Block {1 - n % 2}, head 0"))
    page.close()
    report(
        f"trivial {1000 * trivial:.0f} ms; head {1000 * head:.0f} ms = {head / trivial:.2f}, "
        f"block {1000 * block:.0f} ms = {block / trivial:.2f}"
    )
    assert head <= 2.5 * trivial
    assert block <= 2.5 * trivial


def test_144_heads_at_128_tokens_are_drawn_within_a_second(
    browser: Browser,
    servers: Callable[..., Server],
    tmp_path: Path,
) -> None:
    """From the click on the view to the canvas, and what travels for it. The forward pass is done before."""
    folder = twelve_by_twelve(tmp_path / "wide")
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    received: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    sentence = "+".join(["cat", "dog"] * 63)
    page.goto(f"{servers().url}/attention?v=attention-matrix&m={folder}&s={sentence}")
    settle(page)
    page.wait_for_function(title_is("Block "), timeout=60_000)
    before, started = sum(received), time.perf_counter()
    page.get_by_text("All heads", exact=True).click()
    page.wait_for_function(
        "() => [...document.querySelectorAll('*')].some((element) =>"
        " element.shadowRoot?.querySelector('.heads[data-drawn=\"12x12x128\"]'))",
        polling="raf",
        timeout=20_000,
    )
    taken, sent = time.perf_counter() - started, sum(received) - before
    page.close()
    report(f"12 x 12 heads at 128 tokens: {taken:.2f} s, {sent / 2**20:.2f} MiB")
    assert sent < 4 * 2**20
    assert taken < 1


def test_512_by_512_tokens_are_drawn_within_a_second(
    browser: Browser,
    servers: Callable[..., Server],
) -> None:
    """Heatmaps: from the click beside the layer to the picture, and what travels for it; no forward pass."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    received: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    sentence = "+".join(["bank", "river", "money"] * 200)
    page.goto(f"{servers().url}/heatmaps?v=token-pairs&ag=0&s={sentence}")
    settle(page)
    page.wait_for_function(title_is("Sentence 1 with itself, layer 6"), timeout=60_000)
    times, sizes = [], []
    for layer in (5, 4, 3):
        before, started = sum(received), time.perf_counter()
        step(page, "layer", is_down=1)
        page.wait_for_function(title_is(f"Sentence 1 with itself, layer {layer}"), polling="raf", timeout=20_000)
        times.append(time.perf_counter() - started)
        sizes.append(sum(received) - before)
        settle(page)
    page.close()
    report(f"512 x 512 cells: {min(times):.2f} to {max(times):.2f} s, {max(sizes) / 2**20:.2f} MiB")
    assert max(sizes) < 3 * 2**20
    assert sorted(times)[1] < 1
