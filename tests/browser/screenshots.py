"""Draws the pictures of README, docs/views.md and docs/pages.md anew: `make screenshots`.

`python -m tests.browser.screenshots NAME ...` draws only those: names of SHOTS, or keys of views.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from dashboard.declared import document, table
from tests.browser import chromium
from tests.support.browser import settle, wait_until
from tests.support.places import ROOT
from tests.support.server import Server, start_server, stop_server

# Name, address, width and height of the pictures of README and docs/views.md.
SHOTS = (
    (
        "path",
        "/inside?v=whole-path&s=The+children+skipped+stones+by+the+bank+of+the+river.&s=I+put+money+in+the+bank.&t=7&t=6"
        "&stop=look&b=0&h=4",
        1440,
        900,
    ),
    ("start", "/?look=1&s=The+trophy+does+not+fit+in+the+suitcase+because+it+is+too+big.", 1280, 860),
    ("layers", "/meaning?v=one-word", 1280, 1010),
    ("attention", "/inside?v=all-heads", 1280, 900),
    ("map", "/meaning?v=two-layers&sp=0", 1280, 1010),
    ("search", "/search?v=hits&vs=bm25", 1280, 1010),
)
PICTURES_OF_A_LECTURE = (
    "text?v=pieces#pieces",
    "inside?v=block#block_change",
    "inside?v=one-word-attention#looks",
    "meaning?v=one-word#words",
    "search?v=hits#hits",
)
MEANWHILE = "You can visit other pages in the meantime."  # while a page works
NOT_DRAWN = "[data-testid=stMain] [data-testid=stSkeleton], [data-testid=stMain] [data-testid=stProgress]"


BELOW_CONTROLS = (263, 280, 1263, 880)  # left, top, right and bottom in a picture of a view


def main() -> None:
    folder = ROOT / "assets" / "screenshots"
    folder.mkdir(exist_ok=True)
    path_of_browser = chromium.find()  # before Playwright starts: it may have to ask Playwright itself
    server = start_server(Path(tempfile.mkdtemp()) / "log.txt")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path_of_browser, args=list(chromium.ARGUMENTS))
            wanted = sys.argv[1:] or [*(name for name, *_ in SHOTS), *table.VIEWS]
            for name, path, width, height in [shot for shot in SHOTS if shot[0] in wanted]:
                page = browser.new_page(viewport={"width": width, "height": height})
                open_drawn(page, server.url + path)
                page.screenshot(path=folder / f"{name}.png")
                page.close()
            if AFTER_TRAINING.intersection(wanted):
                train(browser, server)
            take_views(browser, server, [key for key in table.VIEWS if key in wanted])
            browser.close()
    finally:
        stop_server(server)


# What a view is shown with where it opens empty.
SHOWN_WITH = {"lecture": "".join(f"&lecture={quote(star)}" for star in PICTURES_OF_A_LECTURE)}


AFTER_TRAINING = {"training-run", "before-after"}  # views that show the newest run


def train(browser: Browser, server: Server) -> None:
    """A run as the first page of Train suggests it, until it has ended."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    open_drawn(page, f"{server.url}/train?v=training-data")
    page.get_by_role("button", name="Start training").click()
    page.get_by_role("button", name="Use it on all pages").wait_for(timeout=900_000)
    page.close()


def take_views(browser: Browser, server: Server, keys: Sequence[str]) -> None:
    """A picture of each view as it opens, for docs/pages.md."""
    document.PICTURES.mkdir(exist_ok=True)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    for key in keys:
        path = f"/{table.place_of(key)}?v={key}{SHOWN_WITH.get(key, '')}"
        open_drawn(page, server.url if key == "home" else server.url + path)
        page.screenshot(path=document.PICTURES / f"{key}.jpg", type="jpeg", quality=70)
        make_small(key)
    page.close()


def make_small(key: str) -> None:
    """Of the picture of a view what is below its controls, small: for a lecture whose picture has not been drawn."""
    folder = ROOT / "assets" / "screenshots" / "small"
    folder.mkdir(exist_ok=True)
    with Image.open(document.PICTURES / f"{key}.jpg") as picture:
        picture.crop(BELOW_CONTROLS).resize((288, 173), Image.Resampling.LANCZOS).save(
            folder / f"{key}.webp", quality=70
        )


def open_drawn(page: Page, address: str) -> None:
    """Open an address and wait until all of its page is drawn: the corpus may have to be embedded first, or UMAP compiled."""
    page.goto(address)
    looks = 0
    while looks < 3:  # between two works of a page nothing shows for a moment that there is more
        settle(page, 600_000)
        wait_until(page, f"() => !document.querySelector('{NOT_DRAWN}')", timeout=600_000)
        page.wait_for_timeout(2_500)  # the figures' last animations, too
        looks = looks + 1 if page.locator(NOT_DRAWN).count() == 0 and page.get_by_text(MEANWHILE).count() == 0 else 0


if __name__ == "__main__":
    main()
