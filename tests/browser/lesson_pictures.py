"""Draws the pictures of the lessons' handouts anew: `python -m tests.browser.lesson_pictures` (or make lesson-pictures).

One picture for each address that a step shows, named after it (dashboard.lessons.printed.picture_path). Pictures whose
address no lesson has any more are removed.
"""

from __future__ import annotations

import io
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from dashboard import ready_made
from dashboard.lessons.printed import PICTURES, picture_path
from dashboard.lessons.steps import query_of
from tests.browser import chromium
from tests.browser.conftest import settle, start_server, stop_server

WIDTH, HEIGHT = 1_000, 700  # pixels of a picture: the page below its first line
COLOURS = 64  # enough for a figure, and a fifth of the bytes
LONGEST_WAIT = 240.0  # seconds: the first UMAP of a server has to be compiled, and a corpus embedded
BUSY = "[data-testid=stProgress], [data-testid=stSkeleton], [data-testid=stStatusWidget], [data-testid=stSpinner]"


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    scenes = {
        picture_path(scene): scene
        for lesson in ready_made.lessons().values()
        for step in lesson.steps
        for scene in step.scenes
    }
    for path in set(PICTURES.glob("*.png")) - set(scenes):
        path.unlink()
    missing = {path: scene for path, scene in scenes.items() if not path.exists()}
    path_of_browser = chromium.find()  # before Playwright starts: it may have to ask Playwright itself
    server = start_server(Path(tempfile.mkdtemp()) / "log.txt")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path_of_browser, args=list(chromium.ARGUMENTS))
            for path, scene in missing.items():
                page = browser.new_page(viewport={"width": WIDTH + 330, "height": HEIGHT + 120})
                page.goto(f"{server.url}/{scene.page}?{query_of(scene)}")
                _wait(page)
                path.write_bytes(_picture(page))
                page.close()
            browser.close()
    finally:
        stop_server(server)


def _wait(page: Page) -> None:
    """Wait until the page is drawn and nothing changes any more."""
    settle(page)
    end, quiet, before = time.monotonic() + LONGEST_WAIT, 0, ""
    while time.monotonic() < end and quiet < 4:
        page.wait_for_timeout(400)
        now = page.evaluate("document.querySelector('.stMain').innerText.length + ' ' + document.images.length")
        quiet = quiet + 1 if now == before and not page.locator(BUSY).count() else 0
        before = now


def _picture(page: Page) -> bytes:
    header = page.locator(".st-key-view_header").bounding_box()
    assert header is not None
    clip = {"x": header["x"] - 8, "y": header["y"], "width": header["width"] + 16, "height": HEIGHT}
    image = Image.open(io.BytesIO(page.screenshot(clip=clip)))
    packed = io.BytesIO()
    image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(packed, "PNG", optimize=True)
    return packed.getvalue()


if __name__ == "__main__":
    main()
