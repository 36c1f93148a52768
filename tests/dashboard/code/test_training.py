"""Training: the code reads the curves and vectors of a run's folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from components.training import runs
from tests.dashboard.code.shown import codes, figure, numbers, points, same, same_points, y, z
from tests.support import tiny
from tests.support.pages import Open, at_rest, plain_table
from tests.support.snippets import Run
from tests.support.training_runs import write_run


@pytest.fixture(autouse=True)
def _own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))


def test_a_run(open_page: Open, run: Run) -> None:
    write_run(runs.runs_folder())
    app = open_page("training", v="training-run", step="10")
    names = run(codes(app)["training_loss"].snippet)
    (steps, losses), *_ = names["values"].values()
    assert len(steps) == len(losses)
    assert any(len(item) == len(losses) and np.allclose(item, losses) for item in y(app, "training_loss"))
    measures = run(codes(app)["training_measures"].snippet)["values"]
    for _, values in measures.values():
        assert any(len(item) == len(values) and np.allclose(item, values) for item in y(app, "training_measures"))
    for name in ("before", "now"):
        shown = z(app, f"watch_matrix_{name}")
        kept = ~np.isnan(shown)
        same(run(codes(app)[f"watch_matrix_{name}"].snippet)["values"][kept], shown[kept])
        same(run(codes(app)[f"watch_curves_{name}"].snippet)["values"], y(app, f"watch_curves_{name}"))
        found = numbers(run(codes(app)[f"watch_map_{name}"].snippet)["values"])
        same_points(found, points(app, f"watch_map_{name}"), 1e-5)


def test_the_plan_of_a_run_and_the_measured_grid(open_page: Open, run: Run) -> None:
    app = at_rest(open_page("training", v="training-objective", src="demo:nli", obj="softmax"))
    same(run(codes(app)["training_schedule"].snippet)["values"], y(app, "training_schedule")[0], 1e-9)
    values = run(codes(app)["ablation"].snippet)["values"]
    same(values, np.ravel(figure(app, "ablation")["data"][0]["z"]), 1e-4)


def test_a_run_before_and_after(open_page: Open, run: Run, tiny_folder: Callable[[str], Path], tmp_path: Path) -> None:
    tuned = tiny.save_tiny(tmp_path / "tuned", seed=1)
    write_run(runs.runs_folder(), result=tuned, model=str(tiny_folder("bert")))
    app = at_rest(open_page("training", v="before-after", part="layers"))
    change = run(codes(app)["after_layers"].snippet)["change"]
    same([1 - change.cka, 1 - change.cosine], y(app, "after_layers"))
    app = at_rest(open_page("training", v="before-after", part="heads"))
    same(run(codes(app)["after_heads"].snippet)["values"], z(app, "after_heads"), 1e-3)
    app = at_rest(open_page("training", v="before-after", part="sentences"))
    shown = z(app, "after_matrix_now")
    kept = ~np.isnan(shown)
    same(run(codes(app)["after_matrix_now"].snippet)["values"][kept], shown[kept])


@pytest.mark.parametrize("damage", [0.0, 0.4])
@pytest.mark.parametrize(("source", "count"), [("news", 3), ("scored", 1), ("held-out", 3)])
def test_measures_before_and_after(
    open_page: Open,
    run: Run,
    tiny_folder: Callable[[str], Path],
    tmp_path: Path,
    source: str,
    count: int,
    damage: float,
) -> None:
    """The bars show the first measure and the table all; from a damaged start there is a third model, measured too."""
    tuned = tiny.save_tiny(tmp_path / "tuned", seed=1)
    name = "mnrl-20261125-140233-ab12" if damage else "mnrl-20261122-140233-ab12"  # servers keep models by this name
    written = write_run(runs.runs_folder(), name, result=tuned, model=str(tiny_folder("bert")), damage=damage)
    if damage:
        tiny.save_tiny(written.start_folder, seed=2)
    app = at_rest(open_page("training", v="before-after", part="measures", on=source))
    values = run(codes(app)["after_measures"].snippet)["values"]
    assert len(values) == count
    factor = 1 if source == "scored" else 100
    drawn = figure(app, "after_measures")["data"]
    assert len(drawn) == (3 if damage else 2)
    measure, first = next(iter(values.items()))
    assert measure == ("Spearman" if source == "scored" else "Recall@1")
    for trace, side in zip(drawn, first[2:] + first[:2], strict=True):  # the untouched model is drawn first
        same([factor * side.value], trace["x"], 1e-3)
        same([[factor * side.low, factor * side.high]], trace["customdata"], 1e-3)
    tables = [table for table in map(partial(plain_table, app), range(len(app.table))) if "measure" in table]
    assert len(tables) == (0 if source == "scored" else 1)
    for table in tables:
        shown = table.drop(columns=["difference (95 % interval)", "significant"]).to_numpy().tolist()
        for (named, *found), (name_of, sides) in zip(shown, values.items(), strict=True):
            assert named == name_of
            assert found[: len(sides)] == [f"{100 * side.value:.1f} %" for side in sides]


@pytest.mark.parametrize("damage", [0.0, 0.4])
def test_known_failures_before_and_after(
    open_page: Open, run: Run, tiny_folder: Callable[[str], Path], tmp_path: Path, damage: float
) -> None:
    """The bars are what the code gives, with a third one only where there is a third model."""
    tuned = tiny.save_tiny(tmp_path / "tuned", seed=1)
    name = "mnrl-20261125-150233-ab12" if damage else "mnrl-20261122-150233-ab12"
    written = write_run(runs.runs_folder(), name, result=tuned, model=str(tiny_folder("bert")), damage=damage)
    if damage:
        tiny.save_tiny(written.start_folder, seed=2)
    app = at_rest(open_page("training", v="before-after", part="failures", run=name))
    values = run(codes(app)["after_failures"].snippet)["values"]
    drawn = figure(app, "after_failures")["data"]
    assert len(drawn) == len(values) == (3 if damage else 2)
    for shares, trace in zip(values, drawn, strict=True):
        same([100 * share.value for share in shares.values()], trace["x"], 1e-3)
