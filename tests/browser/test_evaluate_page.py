"""Evaluation as drawn: a cell that is clicked, runs that are saved and loaded again, phones and the dark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Visit, downloaded, figure, fits, settle, use_file, wait_until, wait_until_at_rest
from tests.support.places import ROOT
from tests.support.stage import Stage


def plots(page: Page) -> list[dict[str, Any]]:
    """What the browser holds of each figure: title, types, cells, the values of each trace."""
    return page.evaluate(
        """() => [...document.querySelectorAll('.js-plotly-plot')].map((plot) => ({
            title: plot.layout.title?.text.replace(/<[^>]*>/g, ' ').replace(/ +/g, ' ').trim(),
            types: plot._fullData.map((trace) => trace.type),
            // White numbers lie on a matrix as a second one.
            cells: [...(plot.calcdata.find((data) => data[0].z)?.[0].z ?? [])].map((row) => [...row]),
            texts: [...plot.querySelectorAll('.heatmaplayer text')].map((text) => text.textContent)
                .filter((text) => text.trim()),
            points: plot.querySelectorAll('.scatterlayer .point').length,
            lines: plot.querySelectorAll('.scatterlayer .js-line').length,
            names: plot._fullData.map((trace) => trace.name),
        }))"""
    )


def wait_for(page: Page, *titles: str) -> list[dict[str, Any]]:
    """The page's figures, once they have these titles and nothing is on its way any more."""
    wait_until(
        page,
        """(titles) => {
            const plots = [...document.querySelectorAll('.js-plotly-plot')];
            return plots.length === titles.length && !document.querySelector('[data-testid=stProgress]')
                && plots.every((plot, at) => (plot.layout?.title?.text || '').replace(/<[^>]*>/g, ' ').includes(titles[at]));
        }""",
        list(titles),
        timeout=120_000,
    )
    settle(page)
    return plots(page)


def click_cell(page: Page, number: int, row: int, column: int) -> None:
    """Click a cell of a heatmap by its place on the axes."""
    plot = page.locator(".js-plotly-plot").nth(number)
    plot.scroll_into_view_if_needed()
    wait_until_at_rest(plot)
    box = plot.bounding_box()
    assert box is not None
    x, y = plot.evaluate(
        """(plot, [row, column]) => {
            const {xaxis, yaxis} = plot._fullLayout;
            return [xaxis._offset + xaxis.d2p(column), yaxis._offset + yaxis.d2p(row)];
        }""",
        [row, column],
    )
    page.mouse.move(box["x"] + x - 3, box["y"] + y)
    page.mouse.move(box["x"] + x, box["y"] + y, steps=3)
    page.mouse.click(box["x"] + x, box["y"] + y)


def click_point(page: Page, pooling: int, layer: int) -> None:
    """Click the point of a pooling's line at a layer."""
    plot = page.locator(".js-plotly-plot").first
    plot.scroll_into_view_if_needed()
    wait_until_at_rest(plot)
    box = plot.bounding_box()
    assert box is not None
    x, y = plot.evaluate(
        """(plot, [line, place]) => {
            const {xaxis, yaxis} = plot._fullLayout, {x, y} = plot._fullData[line];
            return [xaxis._offset + xaxis.d2p(x[place]), yaxis._offset + yaxis.d2p(y[place])];
        }""",
        [pooling, layer],
    )
    page.mouse.move(box["x"] + x - 3, box["y"] + y)
    page.mouse.move(box["x"] + x, box["y"] + y, steps=3)
    page.mouse.click(box["x"] + x, box["y"] + y)


@pytest.mark.core
def test_the_layers_are_drawn_and_a_click_shows_a_points_curve(use: Stage) -> None:
    page = use.at("/evaluate")
    lines, _ = wait_for(page, "Recall@1", "Recall@k at layer 6, Mean")
    assert lines["types"] == ["scatter"] * 4  # three poolings and the ring
    assert lines["lines"] == 3
    assert lines["points"] == 22
    values = page.locator(".js-plotly-plot").first.evaluate("(plot) => plot._fullData.slice(0, 3).map((d) => [...d.y])")
    assert values[1][0] == 0  # [CLS] at layer 0
    assert max(map(max, values)) == values[0][6]
    expect(page.get_by_text(f"{values[0][6]:.1f} %", exact=True).first).to_be_visible()
    rows = page.locator(".bi-candidates tbody tr")
    expect(rows.first).to_contain_text("layer 6, Mean")
    expect(page.locator(".bi-candidates")).to_contain_text(
        re.compile(r"On other queries the best loses \d+\.\d points")
    )
    click_point(page, 2, 3)
    _, curve = wait_for(page, "Recall@1", "Recall@k at layer 3, Max")
    assert curve["lines"] >= 2
    page.wait_for_url("**l=3**")
    assert "pool=max" in page.url
    click_point(page, 1, 0)  # [CLS], layer 0
    wait_for(page, "Recall@1", "Recall@k at layer 0, [CLS]")
    page.go_back()
    wait_for(page, "Recall@1", "Recall@k at layer 3, Max")


def test_runs_are_drawn_saved_and_loaded_again(visit: Visit, tmp_path: Path) -> None:
    page = visit("/evaluate?v=compare-runs&r=m.6.mean&r=m.0.mean&r=bm25")
    (drawn,) = wait_for(page, "Recall@k of every run")
    assert drawn["lines"] == 3
    names = ["Layer 6, Mean", "Layer 0, Mean", "BM25"]
    assert sorted(drawn["names"]) == sorted(names)  # the run that is opened stands first
    # Once the times per query are measured the page is drawn again, and a click on a button that is replaced is lost.
    settle(page)
    page.get_by_text("All runs as a table").click()  # in which it is said
    expect(page.get_by_text("the time per query is measured")).to_have_count(0, timeout=60_000)
    settle(page)
    expect(page.get_by_text("the time per query is measured")).to_have_count(0, timeout=60_000)
    download = downloaded(page, page.get_by_role("button", name="Save the runs (JSON)"))
    path = tmp_path / download.suggested_filename
    download.save_as(path)
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    assert [run["name"] for run in runs] == [
        "all-MiniLM-L6-v2, layer 6, Mean",
        "all-MiniLM-L6-v2, layer 0, Mean",
        "BM25",
    ]
    assert [len(run["ranks"]) for run in runs] == [630] * 3
    for run in runs:
        assert run["measures"]["recall"]["1"] == pytest.approx(100 * run["ranks"].count(1) / 630, abs=0.01)
        assert run["made"].endswith("+00:00")
    assert {"torch", "transformers"} <= set(runs[0]["versions"])  # what its ranks came from
    for name, start in (("Markdown table", "| run"), ("LaTeX table", r"\begin{tabular}")):
        download = downloaded(page, page.get_by_role("button", name=name))
        assert Path(download.path()).read_text(encoding="utf-8").startswith(start)

    page.get_by_text("Load saved runs").click()
    page.locator(".st-key-load_runs input[type=file]").set_input_files(path)
    wait_until(page, "() => document.querySelector('.js-plotly-plot')?._fullData.length === 6")
    (drawn,) = wait_for(page, "Recall@k of every run")
    lines = figure(page)["traces"]
    assert lines.keys() == {*names, *(f"{run['name']} (loaded)" for run in runs)}
    for name, run in zip(names, runs, strict=True):
        assert lines[f"{run['name']} (loaded)"] == lines[name]
    panel = page.locator(".st-key-load_runs")
    expect(panel.get_by_text("3 loaded runs are in the table")).to_be_visible()  # it stays open
    panel.get_by_role("button", name="Remove", exact=True).click()
    wait_until(page, "() => document.querySelector('.js-plotly-plot')?._fullData.length === 3")


def test_a_row_of_the_query_table_opens_it(use: Stage) -> None:
    page = use.at("/evaluate?v=compare-runs&r=m.6.mean&r=bm25&f=wrong")
    wait_for(page, "Recall@k of every run")
    table = page.locator(".st-key-queries_by_rank canvas").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 15, box["y"] + 52)  # the first row's box
    opened = page.locator(".st-key-opened_query")
    expect(opened).to_be_visible(timeout=30_000)
    expect(opened).to_contain_text("Correct answer:")
    expect(opened.locator("ol")).to_have_count(2)
    page.wait_for_url("**oq=**")
    settle(page)
    opened.get_by_role("button", name="Close").click()
    expect(opened).to_have_count(0)


# Each view once on a phone, some in the dark: what is drawn, and that it fits.


def test_a_link_opens_a_query_on_a_phone(look: Stage) -> None:
    page = look.at("/evaluate?v=compare-runs&r=m.6.mean&r=bm25&oq=1", phone=True)
    wait_for(page, "Recall@k of every run")
    opened = page.locator(".st-key-opened_query")
    expect(opened).to_contain_text("Lightning wipes cloud data")
    expect(opened).to_contain_text("when lightning struck the same centre four times. ✓")
    assert fits(page)


def test_the_pairs_are_a_scatter(look: Stage) -> None:
    page = look.at("/evaluate?v=sentence-similarity", phone=True, dark=True)
    _, scatter = wait_for(page, "Spearman", "Layer 6, Mean against people")
    lines = page.locator(".js-plotly-plot").first.locator(".scatterlayer .js-line")
    expect(lines).to_have_count(9)  # three poolings, six baselines
    assert scatter["points"] == 150
    assert fits(page)


def test_the_lab_draws_its_grids_and_curves_of_a_file(visit: Visit, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    lines = (ROOT / "assets" / "demo_corpus.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    path.write_text("\n".join(lines), encoding="utf-8")
    page = visit("/diagnose?v=evaluated-data", phone=True)
    use_file(page, path)
    expect(page.get_by_text("60 queries, 60 texts searched")).to_be_visible()
    page.wait_for_url("**corpus=*")
    (corpus,) = parse_qs(urlsplit(page.url).query)["corpus"]
    page.goto(urljoin(page.url, f"/laboratory?v=pooling-lab&l=3&d=8&corpus={corpus}"))
    recall, spearman, *curves = wait_for(
        page,
        "Correct answer first (%), layer",
        "Agreement with people, layer",
        "Correct answer first (%), Mean",
        "Agreement with people, Mean",
    )
    assert recall["types"][0] == spearman["types"][0] == "heatmap"
    assert [len(row) for row in recall["cells"]] == [5] * 5
    assert len(recall["texts"]) == 25
    for curve in curves:
        assert curve["names"] == ["Random projection", "PCA projection", "PCA, whitened", "all numbers, cosine"]
    assert fits(page)
    click_cell(page, 0, 0, 2)  # a cell of the column Max
    wait_for(
        page,
        "Correct answer first (%), layer",
        "Agreement with people, layer",
        "Correct answer first (%), Max",
        "Agreement with people, Max",
    )
    page.wait_for_url("**lp=max**")


def test_the_precision_of_graded_answers_is_drawn(look: Stage) -> None:
    page = look.at("/evaluate?v=graded-relevance&r=m.6.mean&r=bm25", phone=True)
    measures, curves = wait_for(page, "", "Precision by share of answers found")
    assert measures["types"][0] == "bar"
    assert curves["lines"] == 2
    assert fits(page)
