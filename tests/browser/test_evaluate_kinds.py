"""Evaluate's two kinds of search, its figure of both similarities, and the choice of fields, as drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.support.browser import Visit, fits, settle, wait_until
from tests.support.judged_collections import FIELDED
from tests.support.stage import Stage

BARS = """() => [...document.querySelectorAll('.js-plotly-plot')].map((plot) => ({
    names: plot._fullData.map((trace) => trace.name),
    values: plot._fullData.map((trace) => [...trace.y]),
    bars: plot.querySelectorAll('.barlayer .point path').length,
    whiskers: plot.querySelectorAll('.errorbars path, .errorbar path').length,
    texts: [...plot.querySelectorAll('.g-xtitle, .g-x2title, .g-gtitle, .legend')].map((text) => {
        const {left, right, top, bottom} = text.getBoundingClientRect();
        return {left, right, top, bottom};
    }).filter((box) => box.right > box.left),
    width: plot.getBoundingClientRect().right,
}))[0]"""


def bars_of(page: Page, title: str) -> dict[str, Any]:
    """The page's figure with this title, once it is drawn."""
    wait_until(
        page,
        """(title) => (document.querySelector('.js-plotly-plot')?.layout?.title?.text || '').includes(title)
            && !document.querySelector('[data-testid=stProgress]')""",
        title,
        timeout=120_000,
    )
    settle(page)
    drawn: dict[str, Any] = page.evaluate(BARS)
    return drawn


def test_both_kinds_are_drawn_and_fit_a_phone(use: Stage) -> None:
    page = use.at("/evaluate?v=search-kinds", phone=True, dark=True)
    drawn = bars_of(page, "Recall by kind of search")
    assert drawn["names"] == ["all-MiniLM-L6-v2", "BM25"] * 2
    assert drawn["bars"] == 12
    assert drawn["whiskers"] >= 12
    assert drawn["values"][0][0] > drawn["values"][1][0] > drawn["values"][3][0]
    for number, box in enumerate(drawn["texts"]):
        assert 0 <= box["left"] <= box["right"] <= drawn["width"]
        for other in drawn["texts"][number + 1 :]:
            apart = box["right"] <= other["left"] or other["right"] <= box["left"]
            assert apart or box["bottom"] <= other["top"] or other["bottom"] <= box["top"]
    assert fits(page)
    page.get_by_role("radio", name="Dot product").click()
    page.wait_for_url("**sim=dot**")
    by_dot = bars_of(page, "dot product")
    assert by_dot["values"][1] == drawn["values"][1]  # BM25 has no vectors
    assert by_dot["values"][0] != drawn["values"][0]


def test_cosine_and_dot_product_are_drawn(look: Stage) -> None:
    page = look.at("/evaluate?v=compare-runs&fig=similarities&r=m.6.mean&r=m.6.max")
    drawn = bars_of(page, "Cosine and dot product")
    assert drawn["names"] == ["cosine"] * 3 + ["dot product"] * 3
    assert drawn["bars"] == 12
    longer = drawn["values"][1], drawn["values"][4]
    assert all(dot > cosine for cosine, dot in zip(*longer, strict=True))  # dot product favours long vectors
    expect(page.get_by_text("By dot product, the vectors of the first hits are on average")).to_be_visible()
    assert fits(page)


def test_the_fields_of_uploaded_files_are_chosen(visit: Visit, tmp_path: Path) -> None:
    for name, content in FIELDED.items():
        (tmp_path / name).write_bytes(content)
    page = visit("/evaluate?v=graded-relevance&gs=file&r=bm25&gm=mrr")
    page.get_by_role("button", name="Options").click()
    page.locator(".st-key-graded_files input[type=file]").set_input_files(sorted(tmp_path.iterdir()))
    field = page.locator(".st-key-w_graded_query_field")
    expect(field).to_be_visible(timeout=60_000)
    field.get_by_role("combobox").click()
    expect(page.get_by_role("option")).to_have_text(["Text", "Title", "Narrative"])
    page.get_by_role("option", name="Narrative").click()
    page.wait_for_url("**gq=narrative**")
    expect(page.get_by_text("Each query's narrative is searched for in the documents' title and text.")).to_be_visible()
