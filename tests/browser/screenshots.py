"""Draws the pictures of README and docs/pages.md anew: `make screenshots`.

`python -m tests.browser.screenshots NAME ...` draws only those: names of README's pictures, or keys of views.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from dashboard.declared import document, table
from tests.browser import chromium
from tests.support.browser import settle, wait_until
from tests.support.places import ROOT
from tests.support.server import Server, start_server, stop_server

# Name, address, dark, height
SHOTS = (
    ("layers", "/layers", False, 1010),
    ("layers-dark", "/layers?v=one-against-all", True, 1010),
    (
        "tokens",
        "/tokens?v=pieces&s=An+unputdownable+novella+about+antihistamines.&s=I+love+na%C3%AFve+caf%C3%A9s.",
        False,
        720,
    ),
    ("model", "/model", False, 900),
    ("attention", "/attention", False, 900),
    ("map", "/map?v=two-layers&colour=sentence&sp=0", False, 1010),
    ("search", "/search?v=hits&vs=bm25", False, 1010),
    ("evaluate", "/evaluate?v=layer-grid&l=6&pool=cls", False, 1010),
    ("pairs", "/pairs?v=retrieve-rerank", False, 1010),
    ("why", "/why?v=score-split&s=The+dog+chased+the+ball.&s=A+puppy+ran+after+a+toy.", False, 1010),
    ("training", "/training?v=training-data&preset=collapse", False, 1180),
)


NOT_DRAWN = "[data-testid=stMain] [data-testid=stSkeleton], [data-testid=stMain] [data-testid=stProgress]"


def main() -> None:
    folder = ROOT / "assets" / "screenshots"
    folder.mkdir(exist_ok=True)
    path_of_browser = chromium.find()  # before Playwright starts: it may have to ask Playwright itself
    server = start_server(Path(tempfile.mkdtemp()) / "log.txt")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path_of_browser, args=list(chromium.ARGUMENTS))
            wanted = sys.argv[1:] or [*(name for name, *_ in SHOTS), *table.VIEWS]
            for name, path, dark, height in [shot for shot in SHOTS if shot[0] in wanted]:
                page = browser.new_page(
                    viewport={"width": 1280, "height": height}, color_scheme="dark" if dark else "light"
                )
                page.goto(server.url + path)
                settle(page)
                page.locator(".js-plotly-plot .main-svg, iframe, .row, .hits").first.wait_for(timeout=60_000)
                if path.startswith("/search"):  # both rankings: the demo corpus has to be embedded first
                    page.locator(".hits").nth(1).wait_for(timeout=60_000)
                if path.startswith("/evaluate"):  # every sentence has to be embedded first
                    page.get_by_text("Recall@k at layer 6").wait_for(timeout=120_000)
                if path.startswith("/pairs"):  # the corpus has to be embedded, and its first hits scored
                    page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=120_000)
                if path.startswith("/map"):  # UMAP has to be compiled first
                    page.get_by_text("Layer 0, UMAP").wait_for(timeout=300_000)
                if path.startswith("/training"):  # a run takes a minute or two
                    page.get_by_role("button", name="Start training").click()
                    page.get_by_text("Done").wait_for(timeout=600_000)
                    settle(page)
                page.wait_for_timeout(1_500)  # the figure's last animation
                page.screenshot(path=folder / f"{name}.png")
                page.close()
            take_views(browser, server, [key for key in table.VIEWS if key in wanted])
            browser.close()
    finally:
        stop_server(server)


def take_views(browser: Browser, server: Server, keys: Sequence[str]) -> None:
    """A picture of each view as it opens, for docs/pages.md."""
    document.PICTURES.mkdir(exist_ok=True)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    for key in keys:
        page.goto(f"{server.url}/{table.place_of(key)}?v={key}" if key != "home" else server.url)
        settle(page, 300_000)
        wait_until(page, f"() => !document.querySelector('{NOT_DRAWN}')", timeout=300_000)
        page.wait_for_timeout(2_500)  # the figures' last animations
        page.screenshot(path=document.PICTURES / f"{key}.jpg", type="jpeg", quality=70)
    page.close()


if __name__ == "__main__":
    main()
