"""The grid of poolings and combinations, on a tiny model."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from components.jobs import Stopped
from components.retrieval.evaluation.sts import ScoredPairs
from components.training import grid as grid_module
from components.training import runs, worker
from components.training.data import from_columns, split
from components.training.grid import COMBINATIONS, AblationGrid, run_grid
from components.training.settings import TrainingSettings

WORDS = ("cat", "dog", "bank", "river", "money", "hat", "red", "walk")
TWO_WORDS = [(first, second) for first in WORDS for second in WORDS if first != second]
SCORED = ScoredPairs(
    tuple(f"the {first} sat" for first, _ in TWO_WORDS),
    tuple(f"a {second} ran on the {first}" for first, second in TWO_WORDS),
    tuple(float(number % 6) for number in range(len(TWO_WORDS))),
)


@pytest.fixture
def nli():
    data = from_columns(
        {
            "premise": [f"{a} {b} the x" for a, b in TWO_WORDS],
            "hypothesis": [f"{b} {a} we will" for a, b in TWO_WORDS],
            "label": [str(number % 3) for number in range(len(TWO_WORDS))],
        },
        "tiny.csv",
    )
    return data, split(data, seed=1)


def test_every_cell_is_trained_and_its_files_are_removed(nli, tiny_folder, tmp_path):
    settings = TrainingSettings(model=str(tiny_folder("bert")), max_steps=2, batch_size=8, learning_rate=0.02)
    done = []
    grid = run_grid(
        settings,
        *nli,
        SCORED,
        tmp_path,
        poolings=("cls",),
        combinations=COMBINATIONS[:1],
        seeds=(1, 2),
        progress=lambda *report: done.append(report),
    )
    assert grid.spearman.shape == (1, 1, 2)
    assert not np.isnan(grid.spearman).any()
    assert (grid.spearman != grid.before[:, None, None]).all()  # two steps at this rate change the order
    assert grid.spearman[0, 0, 0] != grid.spearman[0, 0, 1]  # and the seed what they change
    assert done == [(1, 2), (2, 2)]
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_cell_waits_for_its_turn_and_computes_with_the_threads_of_a_run(nli, tmp_path, monkeypatch):
    trained, before = [], torch.get_num_threads()
    monkeypatch.setattr(worker, "train", lambda run: trained.append(torch.get_num_threads()))
    monkeypatch.setenv("BERT_INTERNALS_TRAINING_THREADS", str(before + 2))
    monkeypatch.setattr(runs, "WAIT_SECONDS", 0.05)
    cell = threading.Thread(target=grid_module.train_here, args=(TrainingSettings(), *nli, tmp_path / "cell"))
    with runs.turn():  # as the process of a server's run does
        cell.start()
        cell.join(0.5)
        assert trained == []
    cell.join(20)
    assert trained == [before + 2]
    assert torch.get_num_threads() == before


def test_each_run_gets_its_own_settings_and_is_measured_as_saved(nli, tiny_folder, tmp_path):
    settings = TrainingSettings(model=str(tiny_folder("bert")), projection=8)
    given = []

    def copied(cell, data, parts, folder):
        """A run that changes nothing."""
        run = runs.create(cell, data, parts, folder=folder)
        run.model_folder.symlink_to(tiny_folder("bert"))
        given.append(cell)
        return run

    grid = run_grid(settings, *nli, SCORED, tmp_path, copied, ("mean", "max"), COMBINATIONS[4:6], (7, 8))
    assert [(cell.pooling, cell.softmax_parts, cell.seed) for cell in given] == [
        (pooling, parts, seed) for pooling in ("mean", "max") for parts in COMBINATIONS[4:6] for seed in (7, 8)
    ]
    assert {(cell.objectives, cell.projection) for cell in given} == {(("softmax",), None)}
    np.testing.assert_array_equal(grid.spearman, np.broadcast_to(grid.before[:, None, None], (2, 2, 2)))
    assert grid.before[0] != grid.before[1]
    with pytest.raises(Stopped):
        run_grid(settings, *nli, SCORED, tmp_path, copied, is_stopped=lambda: True)


def test_mean_and_spread_by_hand():
    values = np.array([[[0.2, 0.4, 0.6]], [[0.5, np.nan, 0.5]]])
    grid = AblationGrid(("mean", "max"), (("u, v", "|u-v|"),), (1, 2, 3), values, np.array([0.1, np.nan]), 9)
    assert grid.mean[0, 0] == pytest.approx(0.4)
    assert grid.spread[0, 0] == pytest.approx(0.2)
    first, second = grid.rows()
    assert first == {
        "pooling": "mean",
        "combination": "u, v, |u-v|",
        "before": 0.1,
        "spearman": 0.4,
        "spread": 0.2,
        "by_seed": {"1": 0.2, "2": 0.4, "3": 0.6},
    }
    assert (second["spearman"], second["by_seed"]["2"]) == (None, None)  # one of its models collapsed
    alone = AblationGrid(("mean",), (("u*v",),), (1,), values[:1, :, :1], np.array([0.1]), 9)
    assert np.isnan(alone.spread).all()
