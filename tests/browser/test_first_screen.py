"""Each view as it opens: where its first figure stands (whole on a laptop's and a projector's screen, begun on a phone's), that
it is no wider than a phone, and what axe-core finds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from dashboard.declared import table
from dashboard.declared.view import Figure
from tests.browser.accessibility import serious_findings
from tests.support.browser import fits, settle, use_file, wait_until
from tests.support.places import ROOT
from tests.support.server import Server
from tests.support.stage import LAPTOP, PHONE, PROJECTOR, Stage
from tests.support.training_runs import write_run
from tests.support.views import views_of_pages

PLOT, TABLE = ".js-plotly-plot", "[data-testid=stTable], [data-testid=stDataFrame]"
# What stands for each kind of first figure.
SELECTORS: dict[Figure, str] = {
    "plot": PLOT,
    "chips": ".row",
    "grids": ".bi-grids, .bi-aligned, .bi-texts, .bi-known",
    "table": TABLE,
    "frame": "iframe",
    "heads": ".heads",
    "hits": ".hits",
    "start": ".path canvas[data-drawn]",
    "path": ".path canvas[data-drawn]",
    "looks": ".looks svg",
    "architecture": ".arch > svg",
    "lists": ".reranked",
    "cards": ".bi-rows",
    "pairs": ".bi-kinds, .bi-near",
    "found": ".bi-found",
    "plot or table": f"{PLOT}, {TABLE}",
    "canvas or table": f"canvas, {TABLE}",
    "guess or plot": f".guess .figure svg, {PLOT}",
    "text": "h1",
}
# The first figure of a view where another one of its kind stands before it.
FIRST = {
    "word-senses": ".st-key-senses_map .js-plotly-plot",
    "score-split": "svg.why, .js-plotly-plot",
    "attention-flow": "svg.why",
    "compare-runs": ".bi-runs",
    "failed-search": ".failed",
}
# What else the address of a view holds: what it needs, what takes less time, and figures of its own.
FURTHER = {
    "pieces": ("", "rd=together"),
    "pooling-lab": ("corpus={small}",),
    "what-helps": ("corpus={small}",),
    "approximation": ("corpus={small}",),
    "two-layers": ("by=pca", "by=pca&rd=together"),
    "layer-by-layer": ("by=pca",),
    "word-senses": ("by=pca",),
    "disagreement": ("nq=6",),
    "learnt-ranking": ("lq=60",),
    "score-split": ("", "by=blocks"),
    "failed-search": ("", "fo=nearest"),
    "training-run": ("run=first-screen",),
    "before-after": tuple(f"part={part}&run=first-screen" for part in ("sentences", "words", "layers")),
}
BEGINS = {LAPTOP: 330, PHONE: 520}  # pixels: where the first figure begins at the latest
# Views with more settings above it, where it begins lower.
BEGINS_LOWER = {
    "home": {LAPTOP: 330, PHONE: 560},  # the drawing, below the words of its stop
    "whole-path": {LAPTOP: 400, PHONE: 640},
    "all-heads": {LAPTOP: 375, PHONE: 545},  # below the finding
    "attention-matrix": {LAPTOP: 345, PHONE: 520},
    "feed-forward": {LAPTOP: 345, PHONE: 560},
    "pooling-lab": {LAPTOP: 360, PHONE: 590},
}
# They go on below the first screen.
LISTS = ("hits", "failed-search", "similar-pairs", "many-queries", "pieces", "available-models")
BOX = """(selector) => {
    const main = document.querySelector('[data-testid=stMain]');
    const all = (root) => [...root.querySelectorAll('*')].flatMap(
        (element) => [element, ...(element.shadowRoot ? all(element.shadowRoot) : [])]);
    const shown = all(main).filter((element) => element.matches(selector) && element.getBoundingClientRect().height > 20);
    const unfinished = '[data-testid=stProgress], [data-testid=stSkeleton], [data-stale="true"]';
    if (!shown.length || document.querySelector(unfinished)) return null;
    const box = shown[0].getBoundingClientRect();
    return {top: box.top, bottom: box.bottom};
}"""
# Sentences in which a line may end between a number and its %.
TORN = """() => [...document.querySelectorAll('[data-testid=stMarkdownContainer], .stHtml')]
    .map((place) => place.innerText).filter((text) => /\\d %/.test(text))"""
# The same once it has been so in three looks one after another.
BOX_AT_REST = f"""(selector) => {{
    const box = ({BOX})(selector), now = JSON.stringify([selector, innerWidth, box]);
    const same = window.lastLook?.now === now ? window.lastLook.same + 1 : 1;
    window.lastLook = {{now, same}};
    return same >= 3 ? box : null;
}}"""


def addresses() -> dict[str, tuple[str, bool]]:
    """Each address that is opened, with the key of the view that it shows, and whether it is the first of its page."""
    found = {}
    for page, views in views_of_pages().items():
        for number, key in enumerate(views):
            for place, further in enumerate(FURTHER.get(key, ("",))):
                values = "&".join(filter(None, (f"v={key}" if len(views) > 1 else "", further)))
                path = f"/{'' if page == 'home' else page}" + (f"?{values}" if values else "")
                found[path] = (key, number == place == 0)
    return found


ADDRESSES = addresses()
# Those with a figure that has to fit, and the first of each page, whose frame and colours are looked at too.
FOR_A_PROJECTOR = {
    path
    for path, (view, is_first) in ADDRESSES.items()
    if is_first or not (view in LISTS or table.VIEWS[view].figure == "text")
}


def first_figure(page: Page, view: str) -> dict[str, float] | None:
    """Where a view's first figure stands, once it is drawn and stays there; None for a view without."""
    kind = table.VIEWS[view].figure
    selector = FIRST.get(view, SELECTORS[kind])
    settle(page)
    # A view that draws its first results while the rest goes on replaces the figure.
    try:
        box: dict[str, float] = wait_until(page, BOX_AT_REST, selector, timeout=120_000)
    except TimeoutError as problem:
        said = page.get_by_test_id("stAlert").all_inner_texts()
        raise AssertionError(
            f"{view}: nothing matches {selector} ({kind=} in its declaration); it says: {said}"
        ) from problem
    return None if kind == "text" else box


@pytest.fixture(scope="module")
def _recorded_run(server: Server, embedded_folder: Path) -> Iterator[None]:
    """A training run to look at; its model is a copy of the included one's configuration, which no view here loads."""
    run = write_run(server.log.parent / "cache" / "runs", "first-screen")
    run.model_folder.mkdir()
    shutil.copy(embedded_folder / "config.json", run.model_folder)
    yield
    shutil.rmtree(run.path)


@pytest.fixture(scope="module")
def _small(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The key of a tenth of the demo corpus, for figures that look the same with all of it."""
    path = tmp_path_factory.mktemp("corpus") / "small.jsonl"
    lines = (ROOT / "assets" / "demo_corpus.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    path.write_text("\n".join(lines), encoding="utf-8")
    page = stage.at("/evaluate?v=evaluated-data")
    use_file(page, path)
    expect(page.get_by_text("60 queries, 60 texts searched")).to_be_visible()
    expect(page.get_by_label("Path of a file on this machine")).to_be_hidden()  # the bar has closed itself
    return str(wait_until(page, "() => new URLSearchParams(location.search).get('corpus')"))


@pytest.fixture
def address(path: str, request: pytest.FixtureRequest) -> str:
    """The address of a test's view, with the key of the small corpus where it has that."""
    request.getfixturevalue("_recorded_run")
    return path.format(small=request.getfixturevalue("_small")) if "{small}" in path else path


@pytest.mark.core
def test_the_tables_name_views_that_there_are() -> None:
    assert {*FIRST, *FURTHER, *LISTS, *BEGINS_LOWER, *CORE} <= table.VIEWS.keys()


def problems_on_a_laptop_and_a_phone(look: Stage, path: str, address: str) -> list[str]:
    view, is_first = ADDRESSES[path]
    # First the size that the page has since the view before: each change draws all figures again.
    sizes = (LAPTOP, PHONE) if [*ADDRESSES].index(path) % 2 == 0 else (PHONE, LAPTOP)
    page = look.at(address, sizes[0])
    problems = []
    for size in sizes:
        look.resize(page, size)
        drawn = first_figure(page, view)
        name = "laptop" if size == LAPTOP else "phone"
        if drawn and drawn["top"] > BEGINS_LOWER.get(view, BEGINS)[size]:
            problems.append(f"{name}: the first figure begins at {drawn['top']}")
        if not fits(page):
            problems.append(f"{name}: it is wider than the screen")
        if size == LAPTOP:
            if drawn and drawn["bottom"] > LAPTOP[1] and view not in LISTS:
                problems.append(f"laptop: the first figure ends at {drawn['bottom']}")
            problems += [f"laptop: a % may stand alone in {text[:80]!r}" for text in page.evaluate(TORN)]
            problems += [f"laptop: axe: {finding}" for finding in serious_findings(page, with_frame=is_first)]
    return problems


def problems_for_a_projector_in_the_dark(look: Stage, path: str, address: str) -> list[str]:
    view, is_first = ADDRESSES[path]
    page = look.at(address, PROJECTOR, dark=True, projector=True)
    drawn = first_figure(page, view)
    expect(page.get_by_role("button", name="Leave", exact=True)).to_be_visible()
    problems = [f"axe: {finding}" for finding in serious_findings(page)] if is_first else []
    if drawn and drawn["bottom"] > PROJECTOR[1] and view not in LISTS:
        problems.append(f"the first figure ends at {drawn['bottom']}")
    return problems


FOR_ALL = (problems_on_a_laptop_and_a_phone,)
# In each run of the tests: the drawing of Start, chips, the path's drawing and a list.
CORE = {"home", "pieces", "whole-path", "hits"}
# All of a view one after the other: the server keeps few results, and would compute them again after those of other views.
VISITS = [
    pytest.param(path, problems, marks=[pytest.mark.core] if is_first and view in CORE and problems in FOR_ALL else [])
    for path, (view, is_first) in ADDRESSES.items()
    for problems in (*FOR_ALL, *([problems_for_a_projector_in_the_dark] if path in FOR_A_PROJECTOR else []))
]


@pytest.mark.parametrize(("path", "problems"), VISITS)
def test_a_view_is_whole(
    look: Stage, path: str, address: str, problems: Callable[[Stage, str, str], list[str]]
) -> None:
    assert problems(look, path, address) == []
