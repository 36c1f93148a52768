"""Issue-level promises of speed and memory, each as a ratio or a growth measured in one run (`make bench -s`)."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser

from tests.support.browser import figure, settle
from tests.support.interactions import median_time, title_is, trivial_interaction
from tests.support.measurements import report
from tests.support.places import ROOT
from tests.support.server import Server, start_server, stop_server

MARK = "first picture"  # which assets/web/path.js sets
HAS_COLOURS = """canvas => new Set(new Uint32Array(
    canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 20"""
LIBRARIES = Path(sysconfig.get_path("purelib"))


def has_trace(name: str) -> str:
    """In the browser: whether the first figure has a trace whose name begins with this."""
    return (
        f"() => document.querySelector('.js-plotly-plot')?._fullData?.some((trace) => trace.name?.startsWith({name!r}))"
    )


def test_interactions_cost_at_most_two_and_a_half_trivial_ones(
    browser: Browser,
    servers: Callable[..., Server],
) -> None:
    trivial = trivial_interaction(browser, servers)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{servers().url}/meaning?v=one-word")
    settle(page)
    page.wait_for_function(has_trace("unrelated tokens"), timeout=60_000)
    chips = [("the ×4", "the ("), ("bank ×3", "bank (")]

    def chip(number: int) -> None:
        page.get_by_text(chips[number % 2][0], exact=True).click()

    token = median_time(page, chip, lambda number: has_trace(chips[number % 2][1]))
    axes = ["centred cosine", "cosine similarity"]

    def axis_is(number: int) -> str:
        return f"() => document.querySelector('.js-plotly-plot')?.layout.yaxis?.title?.text === {axes[number % 2]!r}"

    # A switch: one click turns it over.
    page.get_by_role("button", name="Options").click()
    switch = median_time(page, lambda _: page.get_by_text("Centred vectors").click(), axis_is)
    page.goto(f"{page.url.split('?')[0]}?v=sentence-curves")
    settle(page)
    page.wait_for_function(title_is("Sentence vectors (Mean)"))
    poolings = ["Max", "Mean"]
    pooling = median_time(
        page,
        lambda number: page.get_by_role("radio", name=poolings[number % 2], exact=True).click(),
        lambda number: title_is(f"Sentence vectors ({poolings[number % 2]})"),
    )
    page.close()
    measured = {"token": token, "switch": switch, "pooling": pooling}
    report(
        f"trivial {1000 * trivial:.0f} ms; "
        + ", ".join(f"{name} {1000 * taken:.0f} ms = {taken / trivial:.2f}" for name, taken in measured.items())
    )
    for name, taken in measured.items():
        assert taken <= 2.5 * trivial, name


def test_the_first_figure_comes_within_one_and_a_half_plain_starts(
    browser: Browser,
    tmp_path: Path,
) -> None:
    """From process start to the drawn figure, against a script that imports, loads and runs one sentence."""
    plain, ours = [], []
    for number in range(4):
        plain.append(plain_start())
        page = browser.new_page()
        page.goto("about:blank")
        started = time.perf_counter()
        server = start_server(tmp_path / f"log{number}.txt")
        page.goto(f"{server.url}/layers")
        page.wait_for_function("() => document.querySelector('.js-plotly-plot .js-line')", timeout=60_000)
        ours.append(time.perf_counter() - started)
        page.close()
        stop_server(server)
    ratio = statistics.median(ours[1:]) / statistics.median(plain[1:])  # the first fills the disk cache
    times = f"plain start {statistics.median(plain[1:]):.2f} s, first figure {statistics.median(ours[1:]):.2f} s"
    report(f"{times} = {ratio:.2f}")
    assert ratio <= 1.5


def plain_start() -> float:
    """Seconds that a script needs which imports, loads and runs one sentence."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "tests/benchmarks/plain_script.py"], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - started


def first_picture(browser: Browser, log: Path) -> float:
    """Seconds from process start until the browser has drawn the whole path on Start. torch is not loaded by then."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto("about:blank")
    sent: list[bytes] = []
    page.on(
        "websocket",
        lambda socket: socket.on(
            "framesent", lambda frame: sent.append(bytes(frame, "latin-1") if isinstance(frame, str) else frame)
        ),
    )
    started = time.time()
    server = start_server(log)
    page.goto(server.url)
    page.wait_for_function(f"performance.getEntriesByName({MARK!r}).length", timeout=60_000)
    drawn = page.evaluate(f"performance.timeOrigin + performance.getEntriesByName({MARK!r})[0].startTime") / 1000
    assert page.locator(".path .stage canvas").evaluate(HAS_COLOURS)
    # The model follows by itself, once the browser has said so.
    deadline = time.monotonic() + 60
    while not is_torch_loaded(server.process.pid) and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert is_torch_loaded(server.process.pid)
    assert any(b"drawn" in frame for frame in sent)
    page.close()
    stop_server(server)
    return drawn - started


def is_torch_loaded(pid: int) -> bool:
    return any("libtorch_cpu" in part.path for part in psutil.Process(pid).memory_maps())


def drop_from_memory(folder: Path) -> None:
    """Let the system read a folder's files from the disk again, as after a start of the machine; what is in use stays."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_cold", [False, True], ids=["warm", "cold"])
def test_the_first_picture_takes_half_of_a_plain_start_or_less(browser: Browser, tmp_path: Path, is_cold: bool) -> None:
    plain, ours = [], []
    for number in range(3 if is_cold else 4):
        if is_cold:
            drop_from_memory(LIBRARIES)
        plain.append(plain_start())
        if is_cold:
            drop_from_memory(LIBRARIES)
        ours.append(first_picture(browser, tmp_path / f"log{number}.txt"))
    kept = slice(0 if is_cold else 1, None)  # the first of the warm ones fills the disk cache
    usual = statistics.median(plain[kept]), statistics.median(ours[kept])
    kind = "from the disk" if is_cold else "from memory"
    report(f"{kind}: plain start {usual[0]:.2f} s, first picture {usual[1]:.2f} s = {usual[1] / usual[0]:.2f}")
    assert usual[1] <= 0.5 * usual[0]


def test_sessions_do_not_pile_up_memory(browser: Browser, servers: Callable[..., Server]) -> None:
    """Resident memory of the server after the 5th and after the 20th session opened and closed."""
    server = servers()
    process = psutil.Process(server.process.pid)
    resident = []
    for _ in range(20):
        context = browser.new_context()
        page = context.new_page()
        for path in ("/layers", "/model?v=output-vectors"):
            page.goto(server.url + path)
            settle(page)
            figure(page)
        context.close()
        time.sleep(0.2)
        resident.append(process.memory_info().rss / 2**20)
    growth = resident[-1] - resident[4]
    report(f"after 5 sessions {resident[4]:.0f} MiB, after 20 {resident[-1]:.0f} MiB: growth {growth:.1f} MiB")
    assert growth <= 30
