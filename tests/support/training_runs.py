"""Folders of training runs written by hand: what a page shows of a run, without a training."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from components.training.data import Split, TrainingData
from components.training.run_folder import RunFolder, RunState, WatchToken
from components.training.settings import TrainingSettings

STEPS = 20
LOSSES = [2.0 * 0.9**step for step in range(STEPS)]
EVALUATIONS = {
    0: {"validation_loss": 2.1, "recall@1": 0.4, "recall@10": 0.8},
    10: {"validation_loss": 1.4, "recall@1": 0.6, "recall@10": 0.9},
    20: {"validation_loss": 1.2, "recall@1": 0.7, "recall@10": 0.95},
}
WATCH_STEPS = (0, 5, 10, 15, 20)
LAYERS, DIM = 4, 8


def rows(count: int = 40) -> TrainingData:
    """Pairs of made-up texts, all different."""
    return TrainingData(
        "pairs",
        "demo:pairs",
        {
            "anchor": tuple(f"the cat {number} sat" for number in range(count)),
            "positive": tuple(f"a red hat {number} ran on the river" for number in range(count)),
        },
        read_from={"anchor": "headline", "positive": "sentence"},
    )


def watch_vectors(step: int, sentences: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of watch sentences and of one token each, which grow more similar with the steps: float32."""
    random = np.random.default_rng(0)
    start = random.normal(size=(LAYERS, sentences, DIM))
    common = random.normal(size=(LAYERS, 1, DIM))
    share = step / (2 * STEPS)
    vectors = ((1 - share) * start + share * common).astype(np.float32)
    return vectors, (vectors + 0.1).astype(np.float32)


def write_run(
    folder: Path,
    name: str = "mnrl-20261122-140233-ab12",
    *,
    status: str = "done",
    result: Path | None = None,
    notices: tuple[dict[str, Any], ...] = (),
    steps: int = STEPS,
    **settings: Any,
) -> RunFolder:
    """A run in a folder of runs, as its process would have left it at `steps`; `result` is copied as its model."""
    run = RunFolder(folder / name)
    run.path.mkdir(parents=True)
    chosen = replace(TrainingSettings(), **settings)
    data = rows()
    run.write_settings(chosen)
    run.write_data(data, Split(np.arange(32), np.arange(32, 40), 40))
    run.write_watch_tokens([WatchToken(number, 2, "bank") for number in range(len(chosen.watch))])
    for step in range(steps + 1):
        if step:
            run.append(
                {
                    "event": "loss",
                    "step": step,
                    "loss": LOSSES[step - 1],
                    "learning_rate": 2e-4 * (1 - step / STEPS),
                    "sentences_per_second": 50.0 + step,
                    "seconds_left": float(STEPS - step),
                    "objective": chosen.objectives[0],
                }
            )
        if step in EVALUATIONS:
            run.append({"event": "evaluation", "step": step, **EVALUATIONS[step], "seconds": 0.1})
        if step in WATCH_STEPS:
            run.write_watch(step, *watch_vectors(step, len(chosen.watch)))
    for notice in notices:
        run.append({"event": "notice", **notice})
    run.write_state(RunState(status, step=steps, steps=STEPS, seconds=61.0))  # type: ignore[arg-type]
    if result is not None:
        shutil.copytree(result, run.model_folder)
    if status == "done":
        run.write_record({"before": EVALUATIONS[0], "after": EVALUATIONS[20], "best_step": 20, "steps": STEPS})
    return run
