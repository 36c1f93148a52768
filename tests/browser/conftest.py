"""A real server and a real Chromium. Every request that leaves the machine, and every console error, is a failure."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, WebSocket, expect, sync_playwright
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser import chromium

ROOT = Path(__file__).resolve().parents[2]
FAILURES = Path(__file__).parent / "failures"
expect.set_options(timeout=20_000)  # the five seconds of the library are too few for two browsers on two cores
LOOK_EVERY = 50  # milliseconds; Playwright's own way makes the browser draw 60 frames a second while it waits


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A dashboard in a process of its own."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path


def start_server(log: Path, script: str = "dashboard/app.py", **environment: str) -> Server:
    """Start Streamlit on a free port and wait until it answers."""
    port = free_port()
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)],
            cwd=ROOT,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "HF_HUB_OFFLINE": "1",
                "BERT_INTERNALS_CACHE": str(log.parent / "cache"),
                **environment,
            },
        )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return Server(url, process, log)
        except OSError:
            time.sleep(0.05)
        if process.poll() is not None:
            break
    process.kill()
    raise RuntimeError(f"the server did not start:\n{log.read_text()}")


def stop_server(server: Server) -> None:
    server.process.terminate()
    try:
        server.process.wait(10)
    except subprocess.TimeoutExpired:
        server.process.kill()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("server") / "log.txt"
    running = start_server(log, BERT_INTERNALS_WARM_UP="0")  # the tests have the cores for themselves
    yield running
    stop_server(running)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
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
        # Opened below its root, Streamlit's page first probes for its server under that path: two 404 of its own.
        probing = "/_stcore/" in message.location.get("url", "") and "404" in message.text
        if message.type == "error" and not probing:
            self.console.append(f"{message.text} ({message.location.get('url')})")


@pytest.fixture(scope="session")
def context(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    """One context for most tests, so that the pages' scripts are fetched and read once.

    Its first page stays empty and open from test to test: the renderer, with all it has compiled, lives as long.
    """
    shared = browser.new_context()
    shared.new_page().goto(f"{server.url}/_stcore/health")
    yield shared
    shared.close()


NewPage = Callable[..., Page]


@pytest.fixture
def new_page(context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[NewPage]:
    """Opens an empty page; afterwards nothing bad may have happened, and nothing of it stays in the browser."""
    watch = Watch()
    context.on("page", watch.attach)  # pages that a page opens, too

    def opened(width: int = 1440, height: int = 900, dark: bool = False) -> Page:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        # Streamlit's moving icons are drawn without a GPU here: they take as much of a core as all else that is drawn.
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        return page

    try:
        yield opened
        if getattr(request.node, "failed_call", False):
            FAILURES.mkdir(exist_ok=True)
            for number, page in enumerate(context.pages[1:]):
                page.screenshot(path=FAILURES / f"{request.node.name}-{number}.png", full_page=True)
    finally:
        context.remove_listener("page", watch.attach)
        for page in context.pages[1:]:
            if page.url.startswith("http"):
                page.evaluate("localStorage.clear()")
            page.close()
        context.clear_permissions()
        context.clear_cookies()
    watch.check()


@dataclass
class Stage:
    """Open pages of one browser, by size and colours, which go from view to view as Back and Forward do.

    Their size stays: a page that is resized runs again, and Streamlit forgets Back where another run is asked for at once.
    """

    context: BrowserContext
    server: Server
    watch: Watch
    pages: dict[str, Page] = field(default_factory=dict)
    sockets: dict[str, WebSocket] = field(default_factory=dict)

    def at(self, path: str, width: int = 1440, height: int = 900, dark: bool = False, projector: bool = False) -> Page:
        """The page of this kind, drawn at a path. An address with a value sets all others to their defaults."""
        kind = f"{width}x{height}{' dark' if dark else ''}{' projector' if projector else ''}"
        if kind not in self.pages:
            self._open(kind, width, height, dark)
        page = self.pages[kind]
        if projector:  # it stands in the address
            path = f"{path}{'&' if '?' in path else '?'}proj=1"
        run = RunOfHistory()
        socket = self.sockets[kind]
        socket.on("framesent", run.sent)
        try:
            with socket.expect_event("framereceived", run.is_over, timeout=60_000):
                page.evaluate(
                    "(path) => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }",
                    path,
                )
        finally:
            socket.remove_listener("framesent", run.sent)
        wanted = view_of(path)
        page.wait_for_url(lambda url: view_of(url) == wanted)
        settle(page)
        assert view_of(page.url) == wanted
        return page

    def photograph(self, name: str) -> None:
        FAILURES.mkdir(exist_ok=True)
        for kind, page in self.pages.items():
            page.screenshot(path=FAILURES / f"{name}-{kind}.png", full_page=True)

    def _open(self, kind: str, width: int, height: int, dark: bool) -> None:
        page = self.pages[kind] = self.context.new_page()
        self.watch.attach(page)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        with page.expect_websocket() as socket:
            page.goto(f"{self.server.url}/about")
        self.sockets[kind] = socket.value
        settle(page)


def view_of(url: str) -> tuple[str, list[str] | None]:
    """The page and the view that an address names."""
    parts = urlsplit(url)
    return parts.path, parse_qs(parts.query).get("view")


@dataclass
class RunOfHistory:
    """Follows the messages between browser and server until the run that Back or Forward asked for is over."""

    is_asked: bool = False
    is_begun: bool = False

    def sent(self, frame: bytes | str) -> None:
        if isinstance(frame, bytes):
            self.is_asked |= BackMsg.FromString(frame).rerun_script.is_history_navigation

    def is_over(self, frame: bytes | str) -> bool:
        if isinstance(frame, str):
            return False
        message = ForwardMsg.FromString(frame)
        self.is_begun |= self.is_asked and message.HasField("new_session")
        is_end = message.HasField("script_finished") and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
        return self.is_begun and is_end


Visit = Callable[..., Page]


@pytest.fixture
def visit(new_page: NewPage, server: Server) -> Visit:
    """Opens a page of the dashboard and waits until it is drawn."""

    def opened(path: str = "/", dark: bool = False, phone: bool = False) -> Page:
        page = new_page(390, 844, dark) if phone else new_page(dark=dark)
        page.goto(server.url + path)
        settle(page)
        return page

    return opened


@pytest.fixture(scope="module")
def stage(browser: Browser, server: Server) -> Iterator[Stage]:
    """The pages that a module's tests share where they only look."""
    context = browser.new_context(reduced_motion="reduce")
    yield Stage(context, server, Watch())
    context.close()


@pytest.fixture
def look(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """As `visit`, for tests that change nothing: on a page that is open already, a quarter of the work."""
    yield stage
    if getattr(request.node, "failed_call", False):
        stage.photograph(request.node.name)
    try:
        stage.watch.check()
    finally:
        stage.watch.outside.clear()
        stage.watch.console.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.failed_call = report.failed  # type: ignore[attr-defined]  # read by the new_page fixture
    return report


def settle(page: Page, timeout: float = 60_000) -> None:
    """Wait until the page has a title and the server has nothing left to send."""
    page.wait_for_selector("h1", timeout=timeout)
    page.wait_for_function(
        "() => document.querySelector('.stApp')?.getAttribute('data-test-script-state') === 'notRunning'"
        " && !document.querySelector('[data-stale=\"true\"]')",
        timeout=timeout,
        polling=LOOK_EVERY,
    )


def figure(page: Page, number: int = 0) -> dict[str, Any]:
    """A drawn plotly figure: its title, and name to values of its traces, as the browser holds them."""
    page.wait_for_function(
        f"() => document.querySelectorAll('.js-plotly-plot').length > {number}",
        timeout=60_000,
        polling=LOOK_EVERY,
    )
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
