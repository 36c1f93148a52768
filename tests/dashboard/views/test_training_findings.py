"""What is said of a model before and after training, also where the usual story is false."""

from __future__ import annotations

import numpy as np
import pytest

from components.training import held_out
from components.training.before_after import retrieval_changes, spearman_change
from components.training.history import History, history
from dashboard.views.training import findings
from dashboard.views.training.findings import PUBLISHED, UNDAMAGED, MeasureName, ModelDifference

RECALL, SPEARMAN = MeasureName("Recall@1", "share"), MeasureName("Spearman", "correlation")


def change(first: float, second: float, is_clear: bool = True) -> ModelDifference:
    return ModelDifference(first, second, is_clear, "p = 0.02")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (0.768, 0.894, "training gained 12.6 points (more than chance, p = 0.02)."),
        (0.894, 0.768, "training lost 12.6 points (more than chance, p = 0.02)."),
        (0.8, 0.8, "training changed nothing."),
        (0.8, 0.8003, "training gained less than 0.1 points (more than chance, p = 0.02)."),
    ],
)
def test_what_training_changed_has_a_direction(first: float, second: float, said: str) -> None:
    text = findings.trained(RECALL, change(first, second), "before")
    assert text == f"Recall@1: {100 * first:.1f} % before, **{100 * second:.1f} %** after: {said}"


@pytest.mark.parametrize(
    ("before", "after", "untouched", "said"),
    [
        (  # the usual story: better than the damaged one, worse than the untouched one
            0.768,
            0.894,
            0.967,
            "training won back 12.6 of the 19.9 points that the damage took, and the trained model is 7.3 points below it (",
        ),
        (
            0.768,
            0.98,
            0.967,
            "training won back all of the 19.9 points that the damage took, and the trained model is 1.3 points above it (",
        ),
        (
            0.768,
            0.967,
            0.967,
            "training won back all of the 19.9 points that the damage took, and the trained model has as much.",
        ),
        (  # worse than before, and so than the untouched one
            0.768,
            0.7,
            0.967,
            "of the 19.9 points that the damage took, training won back none, and the trained model is 26.7 points below it (",
        ),
        (  # the damage did no harm by this measure
            0.5,
            0.6,
            0.5,
            "the damage took nothing of it, and the trained model is 10.0 points above it (",
        ),
        (0.6, 0.45, 0.5, "the damage took nothing of it, and the trained model is 5.0 points below it ("),
    ],
)
def test_a_repaired_model_stands_beside_the_undamaged_one(
    before: float, after: float, untouched: float, said: str
) -> None:
    text = findings.beside_untouched(RECALL, before, change(untouched, after), UNDAMAGED)
    assert text.startswith(f"The undamaged model has **{100 * untouched:.1f} %**: {said}")


def test_a_difference_that_may_be_chance_is_called_so() -> None:
    text = findings.beside_untouched(RECALL, 0.768, change(0.967, 0.96, is_clear=False), UNDAMAGED)
    assert text.endswith("0.7 points below it (may be chance, p = 0.02).")


def test_a_run_that_began_with_another_one_stands_beside_the_model_as_published() -> None:
    text = findings.beside_untouched(SPEARMAN, 0.7, change(0.85, 0.8), PUBLISHED)
    assert text == (
        "The model as published has **0.850**: the trained model is 0.050 below it (more than chance, p = 0.02)."
    )


def test_the_numbers_are_those_of_the_comparison() -> None:
    before, after = np.array([1, 1, 1, 2] * 20), np.array([2, 1, 1, 2] * 20)
    (compared,) = retrieval_changes(before, after, ["Recall@1"])
    found = findings.of_retrieval(compared)
    assert (found.first, found.second, found.is_clear) == (0.75, 0.5, True)
    assert found.test.startswith("p ")
    scores = np.arange(40.0)
    agreed = findings.of_correlation(spearman_change(scores, -scores, scores.tolist()))
    assert (agreed.first, agreed.second, agreed.is_clear) == (pytest.approx(1), pytest.approx(-1), True)
    text = findings.trained(SPEARMAN, agreed, "before")
    assert "1.000 before, **−1.000** after: training lost 2.000 (more than chance, 95 % interval −2.000 to" in text


def past(losses: list[float], measures: dict[str, list[float]] | None = None) -> History:
    """The curves of a run with an evaluation every ten steps."""
    events: list[dict[str, object]] = []
    for number, loss in enumerate(losses):
        values = {name: of[number] for name, of in (measures or {}).items()}
        events.append({"event": "evaluation", "step": 10 * number, "validation_loss": loss, **values})
    return history(events)


@pytest.mark.parametrize(
    ("losses", "kept", "said"),
    [
        (
            [1.87, 1.17, 1.13],
            20,
            "**It learnt: loss 1.87 → 1.13 on held-out rows; step 20, the last, is kept.** The held-out loss fell from 1.87 to "
            "1.13, and was still falling (0.04 in the last 10 steps).",
        ),
        (
            [1.87, 1.13, 1.13],
            None,
            "**It improved: loss 1.87 → 1.13 on held-out rows; step 10 is the best so far.** The 10 later steps had no "
            "lower loss. The held-out loss fell from 1.87 to 1.13, and hardly changed in the last 10 steps.",
        ),
        (  # it has learnt the rows by heart
            [1.87, 1.13, 1.4],
            10,
            "**It learnt: loss 1.87 → 1.13 on held-out rows; step 10 is kept.** The 10 later steps had no lower loss. The "
            "held-out loss fell from 1.87 to 1.40, and is above its lowest, 1.13 at step 10.",
        ),
        (  # it never learnt
            [1.2, 1.5],
            10,
            "**It became worse: loss 1.20 → 1.50 on held-out rows; step 10, the last, is kept.** The held-out loss rose from "
            "1.20 to 1.50, and is above its lowest, 1.20 at step 0.",
        ),
        (
            [1.2, 1.2],
            10,
            "**It did not improve: loss 1.20 → 1.20 on held-out rows; step 10, the last, is kept.** The held-out loss stayed "
            "at 1.20, and hardly changed in the last 10 steps.",
        ),
        ([1.2, float("nan")], None, "**Nothing is measured on held-out rows yet** but what the model was before."),
        ([], None, ""),
    ],
)
def test_a_run_that_is_watched_says_which_step_is_best_and_whether_the_loss_falls(
    losses: list[float], kept: int | None, said: str
) -> None:
    assert findings.watched(past(losses), {}, kept) == said


def test_what_decides_is_a_measure_beside_the_model_before_and_undamaged() -> None:
    of = past([2.0, 1.5, 1.0], {"recall@1": [0.27, 0.45, 0.4], "recall@10": [0.5, 0.8, 0.9]})
    assert findings.watched(of, {"recall@1": 0.6}, 10).startswith(
        "**It learnt: Recall@1 27 → 45 % on held-out rows; step 10 is kept.** Undamaged: 60 %. The 10 later steps had no "
        "better Recall@1. Recall@1 decides, not the loss: the held-out loss fell"
    )
    few, many = (findings.watched(of, {}, 10, rows) for rows in (62, 500))
    assert (
        "45 % on 62 held-out rows; step 10 is kept.** The 10 later steps had no better Recall@1, but these rows are few."
        in few
    )
    assert "45 % on 500 held-out rows; step 10 is kept.** The 10 later steps had no better Recall@1. Recall@1" in many
    # Equal ones: the lower loss decides, as in the run itself.
    equal = past([2.0, 1.5, 1.0], {"accuracy": [0.5, 0.8, 0.8]})
    assert findings.watched(equal, {}).startswith(
        "**It improved: accuracy 50 → 80 % on held-out rows; step 20, the last, is the best so far.**"
    )
    worse = findings.watched(past([2.0, 1.0], {"spearman": [0.8, 0.7]}), {}, 10)
    assert worse.startswith(
        "**It became worse: Spearman 0.80 → 0.70 on held-out rows; step 10, the last, is kept.** The held-"
    )


@pytest.mark.parametrize(
    ("losses", "measures", "said"),
    [
        ([2.0, 1.5], {"recall@1": [0.451, 0.453]}, "**It did not improve: Recall@1 45 → 45 % on held-out rows;"),
        ([1.128, 1.132], {}, "**It did not improve: loss 1.13 → 1.13 on held-out rows;"),
        ([2.0, 1.5], {"recall@1": [0.004, 0.45]}, "**It learnt: Recall@1 less than 1 % → 45 % on held-out rows;"),
        (
            [2.0, 1.5],
            {"spearman": [float("nan"), 0.7]},
            "**Spearman 0.70 on held-out rows; step 10, the last, is kept.**",
        ),
        ([2.0, 1.5], {"spearman": [float("nan")] * 2}, "**It learnt: loss 2.00 → 1.50 on held-out rows;"),
    ],
)
def test_the_verb_is_that_of_the_numbers_as_they_are_shown(
    losses: list[float], measures: dict[str, list[float]], said: str
) -> None:
    assert findings.watched(past(losses, measures), {}, 10).startswith(said)


def test_what_decides_is_the_order_of_the_run_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    of = past([2.0, 1.5, 1.0], {"recall@1": [0.1, 0.4, 0.3], "accuracy": [0.5, 0.8, 0.9]})
    assert "Recall@1 10 → 40 % on held-out rows; step 10 is" in findings.watched(of, {})
    monkeypatch.setattr(findings, "DECIDING", held_out.DECIDING[::-1])
    monkeypatch.setattr(held_out, "DECIDING", held_out.DECIDING[::-1])
    assert "accuracy 50 → 90 % on held-out rows; step 20, the last, is" in findings.watched(of, {})


def test_a_kept_step_without_the_measure_is_said_without_it() -> None:
    """All pairs had one score there, so that there was no correlation."""
    events = [
        {"event": "evaluation", "step": step, "validation_loss": loss, **found}
        for step, loss, found in (
            (0, 2.0, {"spearman": -0.5}),
            (10, 1.5, {"spearman": -0.2}),
            (20, 1.0, {}),  # better than a negative one
        )
    ]
    said = findings.watched(history(events), {}, 20)
    assert said == (
        "**Kept: step 20.** The held-out loss fell from 2.00 to 1.00, and was still falling (0.50 in the last 10 steps)."
    )


def test_a_last_measure_that_came_early_does_not_say_that_the_loss_stands_still() -> None:
    """The last step of a run is measured too, here two steps after the one before it."""
    events = [
        {"event": "evaluation", "step": step, "validation_loss": loss}
        for step, loss in ((0, 2.0), (10, 1.5), (20, 1.1), (22, 1.099))
    ]
    assert findings.watched(history(events), {}).endswith("was still falling (0.40 in the last 12 steps).")


@pytest.mark.parametrize(
    ("before", "after", "untouched", "said"),
    [
        (
            0.768,
            0.887,
            0.967,
            "**Training won back 60 % of what the damage took: 76.8 → 88.7 %**, 8.0 points below the undamaged model; 15 "
            "queries found before are lost.",
        ),
        (
            0.768,
            0.98,
            0.967,
            "**Training won back all that the damage took: 76.8 → 98.0 %**, 1.3 points above the undamaged model; 15 queries "
            "found before are lost.",
        ),
        (
            0.768,
            0.7,
            0.967,
            "**Training won back nothing of what the damage took: 76.8 → 70.0 %**, 26.7 points below the undamaged model; 15 "
            "queries found before are lost.",
        ),
        (
            0.9,
            0.95,
            0.85,
            "**Training raised Recall@1: 90.0 → 95.0 %**, 10.0 points above the undamaged model; 15 queries "
            "found before are lost.",
        ),
        (0.9, 0.85, None, "**Training lowered Recall@1: 90.0 → 85.0 %**; 15 queries found before are lost."),
        (0.9, 0.9, None, "**Training did not change Recall@1: 90.0 → 90.0 %**; 15 queries found before are lost."),
        # A difference is that of the two numbers beside it.
        (
            0.7683,
            0.8714,
            0.9672,
            "**Training won back 52 % of what the damage took: 76.8 → 87.1 %**, 9.6 points below the undamaged model; 15 "
            "queries found before are lost.",
        ),
    ],
)
def test_what_was_won_back_is_said_first(before: float, after: float, untouched: float | None, said: str) -> None:
    beside = None if untouched is None else change(untouched, after)
    assert findings.won_back("Recall@1", change(before, after), beside, 15) == said


def test_what_may_be_chance_is_said_with_it_and_so_is_the_model_as_published() -> None:
    text = findings.won_back("Recall@1", change(0.7, 0.71, is_clear=False), change(0.9, 0.71), 1, PUBLISHED)
    assert text == (
        "**Training raised Recall@1: 70.0 → 71.0 %** (may be chance), 19.0 points below the model as published; 1 query found "
        "before is lost."
    )


def test_a_distance_to_the_undamaged_model_that_may_be_chance_is_called_so() -> None:
    beside = change(0.953, 0.95, is_clear=False)
    text = findings.won_back("Recall@1", change(0.7, 0.95), beside, 2)
    assert "70.0 → 95.0 %**, 0.3 points below the undamaged model (may be chance); 2 queries found" in text
