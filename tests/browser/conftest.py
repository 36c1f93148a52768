"""A real server and a real Chromium. Every request that leaves the machine, and every console error, is a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.support.browser import FAILURES, NewPage, Visit, Watch, settle, started_browser
from tests.support.server import Server, start_server, stop_server
from tests.support.slow_runs import can_be_slow
from tests.support.stage import LAPTOP, PHONE, Stage


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if item.get_closest_marker("core") is None:
                item.add_marker(pytest.mark.rare)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    # Without warm-up the tests have the cores for themselves.
    running = start_server(folder / "log.txt", BERT_INTERNALS_WARM_UP="0", **can_be_slow(folder))
    yield running
    stop_server(running)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with started_browser() as started:
        yield started


@pytest.fixture(scope="session")
def context(browser: Browser, server: Server) -> Iterator[BrowserContext]:
    """One context for most tests, so that the pages' scripts are fetched and read once.

    Its first page stays empty and open from test to test: the renderer, with all it has compiled, lives as long.
    """
    # Streamlit's moving icons are drawn without a GPU here: they take as much of a core as all else that is drawn.
    shared = browser.new_context(reduced_motion="reduce")
    shared.new_page().goto(f"{server.url}/_stcore/health")
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def touch_screen(browser: Browser) -> Iterator[BrowserContext]:
    """A phone, which is touched by fingers; its browser has a store of its own."""
    shared = browser.new_context(
        viewport={"width": PHONE[0], "height": PHONE[1]}, has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    yield shared
    shared.close()


@pytest.fixture
def touched(touch_screen: BrowserContext, server: Server) -> Iterator[Visit]:
    """As `visit`, on a phone that is touched by fingers."""
    watch = Watch()
    pages: list[Page] = []

    def opened(path: str) -> Page:
        pages.append(touch_screen.new_page())
        watch.attach(pages[-1])
        pages[-1].goto(server.url + path)
        settle(pages[-1])
        return pages[-1]

    yield opened
    for page in pages:
        page.close()
    watch.check()


@pytest.fixture(scope="session")
def stage(browser: Browser, server: Server) -> Iterator[Stage]:
    """The pages that tests share which change only what an address holds.

    In a context of their own: beside them in one, about one new page of a hundred was never ready.
    """
    context = browser.new_context(reduced_motion="reduce")
    yield Stage(context, server, Watch())
    context.close()


@pytest.fixture
def new_page(context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[NewPage]:
    """Opens an empty page; afterwards nothing bad may have happened, and nothing of it stays in the browser."""
    watch = Watch()
    context.on("page", watch.attach)  # pages that a page opens, too

    def opened(width: int = 1440, height: int = 900, dark: bool = False) -> Page:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        if dark:
            page.emulate_media(color_scheme="dark")
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
            page.close()
        context.pages[0].evaluate("localStorage.clear()")  # now: a page that closes writes what its session leaves
        context.clear_permissions()
        context.clear_cookies()
    watch.check()


@pytest.fixture
def visit(new_page: NewPage, server: Server) -> Visit:
    """Opens a page of the dashboard in a session of its own, and waits until it is drawn.

    For what a new session shows, and for tests that leave behind what no address sets again: the history of the browser,
    files, marks, selections, colours. For all others `look` or `use` is enough.
    """

    def opened(path: str = "/", dark: bool = False, phone: bool = False) -> Page:
        page = new_page(*(PHONE if phone else LAPTOP), dark)
        page.goto(server.url + path)
        settle(page)
        return page

    return opened


@pytest.fixture
def look(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """As `visit`, for tests that only look, on a page that is open already: a quarter of the work."""
    yield stage
    try:
        if getattr(request.node, "failed_call", False):
            stage.photograph(request.node.name)
            stage.spoil()
        stage.watch.check()
    finally:
        stage.watch.outside.clear()
        stage.watch.console.clear()


@pytest.fixture
def use(look: Stage, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """As `look`, for tests that change what stands in the address."""
    look.used.clear()
    yield look
    if not getattr(request.node, "failed_call", False):
        look.leave()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.failed_call = report.failed  # type: ignore[attr-defined]  # read by the new_page fixture
    return report
