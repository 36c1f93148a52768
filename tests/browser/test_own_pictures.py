"""Pictures that we draw ourselves leave as files: what the browser saves shows what stands on the page."""

from __future__ import annotations

import io
import struct

import pytest
from PIL import Image
from playwright.sync_api import Page

from tests.support.browser import downloaded, settle
from tests.support.stage import Stage

# Each with the picture on the page.
PICTURES = {
    "/attention?v=all-heads": ".st-key-glance",
    "/inside?v=one-word-attention": ".st-key-word_looks",
    "/inside?v=attention-flow": ".st-key-flow_picture",
    "/inside?v=model-facts": ".st-key-architecture",
    "/attention?v=head-view": "iframe",
    "/text?v=pieces": ".st-key-chips_tokens",
    "/text?v=input-tensors": ".bi-grids table",
    "/text?v=two-tokenizers": ".bi-aligned",
}


def saved(page: Page, name: str) -> bytes:
    download = downloaded(page, page.get_by_role("button", name=name))
    assert download.suggested_filename.endswith(".png")
    return download.path().read_bytes()


@pytest.mark.parametrize("path", PICTURES)
def test_a_picture_of_our_own_is_saved_as_it_is_on_the_page_and_as_a_slide(use: Stage, path: str) -> None:
    page = use.at(path)
    settle(page)
    page.locator(PICTURES[path]).first.scroll_into_view_if_needed()
    page.get_by_role("button", name="Share").first.click()
    picture = Image.open(io.BytesIO(saved(page, "Picture (PNG)")))
    slide = saved(page, "Slide (PNG)")
    page.keyboard.press("Escape")
    assert struct.unpack(">II", slide[16:24]) == (1920, 1080)
    settle(page)
    place = page.locator(PICTURES[path]).first
    shown = Image.open(io.BytesIO(place.screenshot()))
    assert abs(picture.width - 2 * shown.width) <= 6
    # The same darkness in every part of both: nothing is missing, moved, or black.
    small = [image.convert("L").resize((48, 32), Image.Resampling.BOX) for image in (picture, shown)]
    pairs = list(zip(*(image.tobytes() for image in small), strict=True))
    differences = [abs(one - other) for one, other in pairs]
    assert sum(differences) / len(differences) < 6, path
    assert len(set(small[0].tobytes())) > 8  # not an empty sheet
