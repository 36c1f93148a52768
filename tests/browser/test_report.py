"""A report with rows of tokens and a view of bertviz, opened from a file: all is drawn, and nothing is asked of anybody."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Request, expect

from components.charts.bertviz.views import attention_page
from components.charts.stand_alone import page as stand_alone
from components.charts.stand_alone.page import Frame, PagePart
from tests.support.stage import Stage

TOKENS = ["[CLS]", "dog", "</script><b>", "[SEP]"]


@pytest.mark.parametrize("view", ["head", "model", "neuron"])
def test_it_opens_without_a_network(look: Stage, view: str) -> None:
    weights = np.full((2, 2, 4, 4), 0.25, np.float32)
    vectors = np.ones((2, 2, 4, 8), np.float32)
    more = {"queries": vectors, "keys": vectors} if view == "neuron" else {}
    document = attention_page(view, weights, TOKENS, **more)  # type: ignore[arg-type]  # one of its views
    words = [
        {"tint": "1", "tokens": [{"piece": piece, "under": ["7"], "hint": "id 7", "marks": [], "picked": False}]}
        for piece in TOKENS
    ]
    row = {"index": 0, "number": 1, "label": "Sentence 1", "direction": "ltr", "words": words}
    parts = [PagePart(chips=[row]), PagePart(frame=Frame(document, 300, "Attention"))]
    page = look.sheet()
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    page.set_content(stand_alone.page("A report", parts, "Its foot"))
    expect(page.locator(".chip")).to_have_count(4)
    assert page.locator(".chip").nth(2).inner_text().startswith("</script><b>")
    assert page.locator(".chip").first.evaluate("chip => getComputedStyle(chip).borderTopStyle") == "solid"
    expect(page.frame_locator("iframe").locator("#vis svg").first).to_be_visible()
    page.remove_listener("request", note)
    assert asked == []
