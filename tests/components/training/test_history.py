"""The curves in a run's events."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from components.training.history import HistoryReader, Notice, history
from tests.support.training_runs import EVALUATIONS, LOSSES, STEPS, write_run


def test_the_curves_are_what_the_run_wrote(tmp_path: Path) -> None:
    past = history(write_run(tmp_path, notices=({"step": 10, "code": "collapse", "value": 0.97},)).events())
    steps, values = past.losses["mnrl"]
    np.testing.assert_array_equal(steps, np.arange(1, STEPS + 1))
    np.testing.assert_allclose(values, LOSSES)
    np.testing.assert_array_equal(past.validation[0], list(EVALUATIONS))
    np.testing.assert_allclose(past.validation[1], [item["validation_loss"] for item in EVALUATIONS.values()])
    assert list(past.measures) == ["recall@1", "recall@10"]
    np.testing.assert_allclose(past.measures["recall@1"][1], [0.4, 0.6, 0.7])
    np.testing.assert_allclose(past.learning_rate[1][0], 2e-4 * 0.95)
    np.testing.assert_allclose(past.sentences_per_second[1][-1], 50 + STEPS)
    assert past.last_step == STEPS
    assert past.notices == (Notice(10, "collapse", 0.97),)


def test_the_curves_are_made_again_only_when_there_are_new_events(tmp_path: Path) -> None:
    run = write_run(tmp_path, steps=5)
    reader = HistoryReader(run)
    before = reader.read()
    assert reader.read() is before
    run.append({"event": "loss", "step": 6, "loss": 0.5, "objective": "mnrl"})
    assert (before.last_step, reader.read().last_step) == (5, 6)


def test_a_loss_that_was_not_finite_is_a_gap_and_a_repeated_step_counts_once() -> None:
    past = history(
        [
            {"event": "loss", "step": 1, "loss": 3.0, "objective": "mnrl"},
            {"event": "loss", "step": 2, "loss": 9.0, "objective": "mnrl"},
            {"event": "loss", "step": 2, "loss": None, "objective": "mnrl"},
            {"event": "loss", "step": 2, "loss": 1.0, "objective": "contrastive"},
            {"event": "evaluation", "step": 0, "validation_loss": None, "spearman": 0.5},
            {"event": "notice", "step": 2, "code": "diverged", "value": None},
        ]
    )
    assert list(past.losses) == ["mnrl", "contrastive"]
    np.testing.assert_array_equal(past.losses["mnrl"][1], [3.0, np.nan])
    np.testing.assert_array_equal(past.validation[1], [np.nan])
    np.testing.assert_array_equal(past.measures["spearman"][1], [0.5])
    assert np.isnan(past.notices[0].value)


def test_what_is_no_number_is_no_measure_and_the_last_step_is_no_count_of_losses() -> None:
    past = history(
        [
            {"event": "evaluation", "step": 7, "recall@1": 0.5, "part": "held out"},
            {"event": "loss", "step": 8, "loss": 0.4, "objective": "mnrl"},
            {"event": "loss", "step": 9, "loss": 0.3, "objective": "mnrl"},
        ]
    )
    assert (list(past.measures), past.last_step) == (["recall@1"], 9)


def test_a_run_that_has_not_begun_has_empty_curves() -> None:
    past = history([])
    assert (past.losses, past.measures, past.notices, past.last_step) == ({}, {}, (), 0)
    assert len(past.validation[0]) == 0
