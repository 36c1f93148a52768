"""Open pages of one browser that tests share: they go from view to view, or show documents of the tests' own."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import BrowserContext, Page, WebSocket
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from dashboard.declared import table
from dashboard.declared.addresses import HOME, corrected
from tests.support.browser import FAILURES, Watch, settle, wait_until, wait_until_still
from tests.support.server import Server

PHONE, LAPTOP, PROJECTOR = (390, 844), (1440, 900), (1920, 1080)


@dataclass
class Stage:
    """A light and a dark page of one browser, which go from view to view as Back and Forward do, and a sheet for documents.

    What a test changes on them must stand in the address: the next address sets all that it does not name to its default.
    """

    context: BrowserContext
    server: Server
    watch: Watch
    pages: dict[str, Page] = field(default_factory=dict)
    sockets: dict[str, WebSocket] = field(default_factory=dict)
    used: dict[str, None] = field(default_factory=dict)  # since `leave`, in this order
    spoilt: set[str] = field(default_factory=set)  # kinds of pages that a failed test has left
    front: str = ""  # the kind of the page that is seen

    def at(
        self,
        path: str,
        size: tuple[int, int] = LAPTOP,
        dark: bool = False,
        phone: bool = False,
        projector: bool = False,
    ) -> Page:
        """The page with these colours, of this size, drawn at a path."""
        kind = "dark" if dark else "light"
        if kind not in self.pages:
            self._open(kind)
        elif kind in self.spoilt:
            self._bring_to_front(kind)
            self._load(kind)
        self.used[kind] = None
        self._bring_to_front(kind)
        self.resize(self.pages[kind], PHONE if phone else size)
        self._go(kind, path, projector)
        return self.pages[kind]

    def resize(self, page: Page, size: tuple[int, int]) -> None:
        """Give a page another size, and wait until it has it."""
        width, height = size
        if page.viewport_size == {"width": width, "height": height}:
            return
        page.set_viewport_size({"width": width, "height": height})
        wait_until_still(page, "[data-testid=stMain], .js-plotly-plot .main-svg, iframe")

    def leave(self) -> None:
        """Go to a plain page wherever a test has been: nothing that it opened or unfolded stays so."""
        for kind in [*self.used]:
            self._bring_to_front(kind)
            self._go(kind, "/about")
        self.used.clear()

    def sheet(self, width: int = 1040, height: int = 800, dark: bool = False) -> Page:
        """An empty page for a document of a test's own."""
        if "sheet" not in self.pages:
            self.pages["sheet"] = self.context.new_page()
            self.watch.attach(self.pages["sheet"])
        self._bring_to_front("sheet")
        page = self.pages["sheet"]
        page.goto("about:blank")
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        return page

    def photograph(self, name: str) -> None:
        FAILURES.mkdir(exist_ok=True)
        for kind, page in self.pages.items():
            page.screenshot(path=FAILURES / f"{name}-{kind}.png", full_page=True)

    def spoil(self) -> None:
        """The next test loads the pages anew. They are not closed: a browser may never open another where all are closed."""
        self.spoilt.update(self.sockets)
        self.used.clear()

    def _bring_to_front(self, kind: str) -> None:
        """Pages of one context are tabs of one window: one behind another is hardly ever given a frame to draw."""
        if self.front != kind:
            self.pages[kind].bring_to_front()
            self.front = kind

    def _open(self, kind: str) -> None:
        page = self.pages[kind] = self.context.new_page()
        self.front = kind
        self.watch.attach(page)
        page.set_viewport_size({"width": LAPTOP[0], "height": LAPTOP[1]})
        page.emulate_media(color_scheme="dark" if kind == "dark" else "light")
        self._load(kind)

    def _load(self, kind: str) -> None:
        """Load the page in a session of its own."""
        page = self.pages[kind]
        with page.expect_websocket() as socket:
            page.goto(f"{self.server.url}/about")
        self.spoilt.discard(kind)
        self.sockets[kind] = socket.value
        settle(page)

    def _go(self, kind: str, path: str, projector: bool = False) -> None:
        page = self.pages[kind]
        page.mouse.move(0, 0)
        # Streamlit forgets Back where another run is asked for at once, as a bar of progress does.
        wait_until(page, "() => !document.querySelector('[data-testid=stProgress]')")
        settle(page)
        parts = urlsplit(path)
        found = corrected(parts.path.strip("/"), parts.query)  # as the server redirects whoever opens an older address
        path = path if found is None else f"/{found[0]}?{found[1]}"
        # Projector mode stands in the address; an address without any value would leave the sentences as they are.
        path = f"{path}{'&' if '?' in path else '?'}proj={int(projector)}"
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


def view_of(url: str) -> tuple[str, list[str]]:
    """The page and the view that an address names; without `v` it is the page's first view."""
    parts = urlsplit(url)
    page = parts.path.strip("/") or HOME
    return page, parse_qs(parts.query).get(table.VIEW, [table.views_of(page)[0].key])


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
