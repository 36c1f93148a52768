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
from dashboard.ui.browser import RESULTS
from tests.browser import chromium
from tests.support.browser import settle
from tests.support.server import start_server, stop_server

WIDTH, HEIGHT = 1_300, 1_600  # pixels of the page: with its sidebar, and so high that no first result is cut
SHARPNESS = 2  # pixels of a picture for each pixel of the page
COLOURS = 64  # enough for a figure, and a fifth of the bytes
MARGIN = 8  # pixels around the result
HIGHEST = 560  # pixels: a longer list ends after its last item that fits
# Controls within results; those of the list of hits are in its shadow root, which a style sheet of the page cannot reach.
CONTROLS = (
    ".modebar-container, .stExpander, [data-testid=stElementToolbar], [class*=st-key-pair_] :is(a, button), .stHeader"
)
ALL = """(results) => [...document.querySelector('.stMain').querySelectorAll(results)].filter((element) =>
    !element.closest('.st-key-page_header, .stExpander') && element.getBoundingClientRect().height >= 40)"""
CLIP = (
    f"([results, highest]) => {{ const all = ({ALL})(results);"
    + """
    // Two lists of hits are compared, and so are the readings of a pair; of figures the first one is shown, and what stands
    // beside it.
    const kind = (element) => ['pair_', 'hits_'].find((part) => element.closest(`[class*=st-key-${part}]`));
    const isBeside = (element) => Math.abs(element.getBoundingClientRect().top - all[0].getBoundingClientRect().top) < 8;
    const shown = all.filter((element) => isBeside(element) || (kind(element) && kind(element) === kind(all[0])));
    const boxes = shown.map((element) => {
        const box = element.getBoundingClientRect();
        const container = element.closest('.stElementContainer');
        const title = kind(element) === 'hits_' && container.previousElementSibling?.querySelector('.stMarkdown, .stHeading');
        const top = title ? title.getBoundingClientRect().top : box.top;
        let bottom = box.bottom;
        const host = [element, ...element.querySelectorAll('*')].find((part) => part.shadowRoot);
        const items = [...(host?.shadowRoot ?? element).querySelectorAll('.hit')];
        if (items.length) {
            const controls = items.flatMap((item) => [...item.querySelectorAll('.marks, .why')]);
            controls.forEach((part) => (part.style.display = 'none'));
            const whole = items.filter((item) => item.getBoundingClientRect().bottom - top <= highest);
            items.slice(whole.length).forEach((item) => (item.style.visibility = 'hidden'));
            bottom = whole.length ? whole.at(-1).getBoundingClientRect().bottom : box.bottom;
        }
        return {left: box.left, right: box.right, top, bottom};
    });
    const [left, top] = ['left', 'top'].map((side) => Math.min(...boxes.map((box) => box[side])));
    const [right, bottom] = ['right', 'bottom'].map((side) => Math.max(...boxes.map((box) => box[side])));
    return {x: left, y: top, width: right - left, height: bottom - top};
}"""
)
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
            arguments = [*chromium.ARGUMENTS, "--process-per-site"]  # see tests.support.browser
            browser = playwright.chromium.launch(executable_path=path_of_browser, args=arguments)
            context = browser.new_context(
                viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SHARPNESS, reduced_motion="reduce"
            )
            context.new_page().goto(f"{server.url}/_stcore/health")  # it keeps the scripts that the pages share
            for path, scene in missing.items():
                page = context.new_page()
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
        is_drawn = page.evaluate(f"(results) => ({ALL})(results).length > 0", RESULTS)
        quiet = quiet + 1 if now == before and is_drawn and not page.locator(BUSY).count() else 0
        before = now


def _picture(page: Page) -> bytes:
    """The page's first result as a PNG, without controls."""
    page.add_style_tag(content=f"{CONTROLS} {{ display: none !important; }}")
    box = page.evaluate(CLIP, [RESULTS, HIGHEST])
    clip = {
        "x": box["x"] - MARGIN,
        "y": box["y"] - MARGIN,
        "width": box["width"] + 2 * MARGIN,
        "height": box["height"] + 2 * MARGIN,
    }
    image = Image.open(io.BytesIO(page.screenshot(clip=clip)))
    packed = io.BytesIO()
    image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(packed, "PNG", optimize=True)
    return packed.getvalue()


if __name__ == "__main__":
    main()
