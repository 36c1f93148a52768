"""Training as drawn: a recorded run, the pictures of objectives, and phones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from components.charts.training import smoothed
from components.training.run_folder import RunFolder
from tests.support.browser import Visit, figure, fits, settle, wait_until_still
from tests.support.server import Server
from tests.support.stage import Stage
from tests.support.training_runs import EVALUATIONS, LOSSES, write_run


def runs_of(server: Server) -> Path:
    """Where a server of the tests keeps its runs."""
    return server.log.parent / "cache" / "runs"


@pytest.fixture
def recorded(server: Server) -> Iterator[RunFolder]:
    import shutil

    run = write_run(runs_of(server), "mnrl-20261122-140233-ab12")
    yield run
    shutil.rmtree(run.path, ignore_errors=True)


@pytest.mark.core
def test_a_run_is_drawn_with_the_values_that_it_recorded(use: Stage, recorded: RunFolder) -> None:
    page = use.at(f"/training?v=training-run&run={recorded.name}")
    figure(page, 3)  # all are drawn
    loss = figure(page, 1)
    assert "Loss" in loss["title"]
    assert loss["lines"] == 2  # each step's own loss is a dot
    np.testing.assert_allclose(loss["traces"]["training loss, each step"], LOSSES, rtol=1e-6)
    mean = loss["traces"]["training loss, mean of 10 steps"]
    np.testing.assert_allclose(mean, smoothed(np.array(LOSSES), 10), rtol=1e-6)
    recall = figure(page, 0)["traces"]["Recall@1"]
    np.testing.assert_allclose(recall, [item["recall@1"] for item in EVALUATIONS.values()], rtol=1e-6)
    assert figure(page, 2)["types"][0] == figure(page, 3)["types"][0] == "heatmap"
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("ArrowLeft")  # one step back by the keyboard
    page.wait_for_url("**step=15**")
    settle(page)
    assert "After step 15" in figure(page, 3)["title"]


def test_the_sidebar_shows_at_once_that_all_pages_use_the_result(
    visit: Visit, recorded: RunFolder, embedded_folder: Path
) -> None:
    import shutil

    shutil.copytree(embedded_folder, recorded.model_folder)
    page = visit(f"/training?v=training-run&run={recorded.name}")
    model = page.get_by_role("combobox", name="Model", exact=True)
    expect(model).to_have_value(re.compile(r"^all-MiniLM-L6-v2\s· .*\s· included$"))
    page.get_by_role("button", name="Use it on all pages").click()
    expect(model).to_have_value("mnrl, 22 Nov 14:02 · trained here")
    expect(page.get_by_role("button", name="All pages use it")).to_be_disabled()
    expect(page.get_by_text("The trained model is now the model of all pages")).to_be_visible()


def test_the_run_can_be_deleted_after_a_question(visit: Visit, recorded: RunFolder) -> None:
    page = visit(f"/training?v=training-run&run={recorded.name}")
    row = page.locator(f".st-key-row_run_{recorded.name}")
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("until you train a model")).to_be_visible(timeout=30_000)
    assert not recorded.path.exists()


@pytest.mark.parametrize("objective", ["mnrl", "contrastive", "triplet", "cosine", "tsdae", "relevance"])
def test_labels_of_an_objectives_picture_do_not_overlap_or_leave_it(look: Stage, objective: str) -> None:
    page = look.at(
        f"/training?v=training-objective&obj={objective}" + ("&src=demo:scored" if objective == "cosine" else ""),
        phone=True,
    )
    figure(page, 0)
    wait_until_still(page, ":is(.js-plotly-plot, .js-plotly-plot .textpoint text, .js-plotly-plot .annotation-text)")
    outside, overlaps = page.evaluate(
        """() => {
            const plot = document.querySelector('.js-plotly-plot'), frame = plot.getBoundingClientRect();
            const labels = [...plot.querySelectorAll('.textpoint text, .annotation-text')]
                .filter((label) => label.textContent.trim())
                .map((label) => ({text: label.textContent, box: label.getBoundingClientRect()}));
            const outside = labels.filter(({box}) => box.left < frame.left - 1 || box.right > frame.right + 1);
            const overlaps = labels.flatMap((a, i) => labels.slice(i + 1).filter((b) =>
                a.box.left < b.box.right - 2 && b.box.left < a.box.right - 2
                && a.box.top < b.box.bottom - 2 && b.box.top < a.box.bottom - 2).map((b) => [a.text, b.text]));
            return [outside.map(({text}) => text), overlaps];
        }"""
    )
    assert outside == []
    assert overlaps == []
    assert fits(page)
