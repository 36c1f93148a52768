"""Each view as it opens: where its first figure stands (whole on a laptop's and a projector's screen, begun on a phone's), that
it is no wider than a phone, and what axe-core finds, light and dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import serious_findings
from tests.browser.conftest import LOOK_EVERY, Server, Stage, settle
from tests.training_runs import write_run

# What each view shows first: a figure, or what takes its place.
VIEWS = {
    "/": ".js-plotly-plot",
    "/tokens": ".row",
    "/tokens?view=tensors": ".bi-grids",
    "/tokens?rd=together": ".row",
    "/model": ".js-plotly-plot",
    "/model?view=vectors": ".js-plotly-plot",
    "/model?view=zero": ".js-plotly-plot",
    "/model?view=compare": ".js-plotly-plot",
    "/layers": ".js-plotly-plot",
    "/layers?view=within": ".js-plotly-plot",
    "/layers?view=against": ".js-plotly-plot",
    "/layers?view=sentences": ".js-plotly-plot",
    "/heatmaps": ".js-plotly-plot",
    "/heatmaps?view=inside": ".js-plotly-plot",
    "/heatmaps?view=tokens": ".js-plotly-plot",
    "/heatmaps?view=pairs": ".js-plotly-plot",
    "/heatmaps?view=layers": ".js-plotly-plot",
    "/heatmaps?view=sentences": ".js-plotly-plot",
    "/attention": "iframe",
    "/attention?view=model": "iframe",
    "/attention?view=matrix": ".js-plotly-plot",
    "/attention?view=glance": ".heads",
    "/attention?view=patterns": "canvas, [data-testid=stDataFrame]",
    "/attention?view=flow": ".js-plotly-plot",
    "/map?by=pca": ".js-plotly-plot",
    "/map?by=pca&rd=together": ".js-plotly-plot",
    "/map?view=through&by=pca": ".js-plotly-plot",
    "/map?view=senses": ".st-key-senses_map .js-plotly-plot",
    "/attention?view=neuron": "iframe",
    "/search": ".hits",
    "/evaluate": ".js-plotly-plot",
    "/evaluate?view=compare": ".js-plotly-plot, [data-testid=stDataFrame], [data-testid=stTable]",
    "/evaluate?view=kinds": ".js-plotly-plot",
    "/evaluate?view=similarity": ".js-plotly-plot, [data-testid=stDataFrame], [data-testid=stTable]",
    "/evaluate?view=approximation": ".js-plotly-plot",
    "/pairs": ".row",
    "/pairs?view=scores": ".js-plotly-plot",
    "/pairs?view=rerank": ".js-plotly-plot",
    "/pairs?view=disagree": ".js-plotly-plot",
    "/pairs?view=learnt": ".js-plotly-plot",
    "/why": ".js-plotly-plot",
    "/why?by=blocks": ".js-plotly-plot",
    "/why?view=methods": ".js-plotly-plot",
    "/why?view=experiments": ".js-plotly-plot",
    "/why?view=debugger": ".js-plotly-plot",
    "/why?view=debugger&fo=worst": ".js-plotly-plot",
    "/why?view=clinic": ".js-plotly-plot",
    "/training": ".js-plotly-plot",
    "/training?view=objective": ".js-plotly-plot",
    "/training?view=run&run=first-screen": ".js-plotly-plot",
    "/training?view=after&part=sentences&run=first-screen": ".js-plotly-plot",
    "/training?view=after&part=words&run=first-screen": ".js-plotly-plot",
    "/training?view=after&part=layers&run=first-screen": ".js-plotly-plot",
}
# Their results take long in each new session: they are read on a laptop alone.
SLOW = ("/pairs?view=learnt", "/pairs?view=rerank", "/pairs?view=scores")
LISTS = ("/search", "/tokens")  # they go on below the first screen
BOX = """(selector) => {
    const main = document.querySelector('[data-testid=stMain]');
    const all = (root) => [...root.querySelectorAll('*')].flatMap(
        (element) => [element, ...(element.shadowRoot ? all(element.shadowRoot) : [])]);
    const shown = all(main).filter((element) => element.matches(selector) && element.getBoundingClientRect().height > 20);
    if (!shown.length || document.querySelector('[data-testid=stProgress]')) return null;
    const box = shown[0].getBoundingClientRect();
    return {top: box.top, bottom: box.bottom};
}"""


def first_figure(page: Page, selector: str) -> dict[str, float]:
    page.wait_for_function(f"({BOX})({selector!r}) !== null", timeout=120_000, polling=LOOK_EVERY)
    settle(page)
    page.wait_for_timeout(300)
    # A view that draws its first results while the rest goes on replaces the figure: look when one is there.
    return page.wait_for_function(f"({BOX})({selector!r})", timeout=120_000, polling=LOOK_EVERY).json_value()


@pytest.fixture(scope="module", autouse=True)
def _recorded_run(server: Server, embedded_folder: Path) -> Iterator[None]:
    """A training run to look at; its model is a copy of the included one's configuration, which no view here loads."""
    run = write_run(server.log.parent / "cache" / "runs", "first-screen")
    run.model_folder.mkdir()
    shutil.copy(embedded_folder / "config.json", run.model_folder)
    yield
    shutil.rmtree(run.path)


@pytest.mark.parametrize("path", VIEWS)
def test_the_first_figure_is_on_the_first_screen(look: Stage, path: str) -> None:
    page, selector = look.at(path), VIEWS[path]
    laptop = first_figure(page, selector)
    assert laptop["top"] <= 330
    if not path.startswith(LISTS):
        assert laptop["bottom"] <= 900
    assert serious_findings(page) == []


@pytest.mark.parametrize("path", [path for path in VIEWS if path not in SLOW])
def test_the_first_figure_begins_on_a_phones_first_screen(look: Stage, path: str) -> None:
    page = look.at(path, 390, 844)
    assert first_figure(page, VIEWS[path])["top"] <= 520
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("(element) => element.scrollWidth - element.clientWidth") <= 1


@pytest.mark.parametrize("path", [path for path in VIEWS if path not in SLOW])
def test_the_first_figure_is_whole_for_a_projector_in_the_dark(look: Stage, path: str) -> None:
    page = look.at(path, 1920, 1080, dark=True, projector=True)
    drawn = first_figure(page, VIEWS[path])
    expect(page.get_by_role("button", name="Leave")).to_be_visible()
    if not path.startswith(LISTS):
        assert drawn["bottom"] <= 1080
    assert serious_findings(page) == []
