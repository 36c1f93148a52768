"""The ranking learnt from [CLS] vectors as drawn: its bars, another C, every layer, and the saved files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit, settle

BARS = """() => {
    const plot = document.querySelector('.js-plotly-plot');
    if (!plot?._fullData || document.querySelector('[data-testid=stProgress]')) return null;
    const trace = plot._fullData[0];
    if (trace.type !== 'bar') return null;
    return Object.fromEntries(trace.y.map((name, row) => [name.replace('<br>', ' '), trace.x[row]]));
}"""


def bars(page: Page) -> dict[str, float]:
    values = page.wait_for_function(BARS, timeout=240_000).json_value()
    settle(page)
    return dict(values)


def test_a_ranking_is_learnt_compared_and_saved(visit: Visit, tmp_path: Path) -> None:
    page = visit("/pairs?view=learnt&lq=60")
    first = bars(page)
    assert {"Learnt: [CLS] layer 6", "Cosine: [CLS] layer 6", "Cross-encoder", "BM25", "Random order"} < set(first)
    expect(page.get_by_text("Learnt MAP")).to_be_visible()
    assert page.locator(".js-plotly-plot").count() == 2  # and the curve of precision

    with page.expect_download() as download:
        page.get_by_text("Vectors as a file").click()
        page.get_by_role("button", name="Save the vectors").click()
    with np.load(io.BytesIO(Path(download.value.path()).read_bytes()), allow_pickle=False) as saved:
        assert saved["first"].shape == (7, 2, 60, 384)
        assert saved["second"].shape == (7, 2, 630, 384)
        assert str(saved["model"]) == "embedded"

    page.get_by_role("button", name="Train for every layer").click()
    page.wait_for_function(
        "() => document.querySelectorAll('.js-plotly-plot').length === 3"
        " && !document.querySelector('[data-testid=stProgress]')",
        timeout=240_000,
    )
    # A link holds the choice of C and gives the same ranking again.
    page = visit("/pairs?view=learnt&lq=60&lc=1")
    other = bars(page)
    assert other["Bi-encoder"] == first["Bi-encoder"]
    assert other["Learnt: [CLS] layer 6"] != first["Learnt: [CLS] layer 6"]
