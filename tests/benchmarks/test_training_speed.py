"""Training's promises, as ratios in one run (`make bench -s`)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.measurements import report

STEPS, ROUNDS = 20, 3


@pytest.mark.timeout(900)
def test_steps_per_second_against_the_bare_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model, adapter, rows, loss and order; ours also logs, watches and looks for the stop file.

    From the beginning of a step to that of the next, so without evaluations: how often they are made is a setting. In
    processor time, the least of some rounds for each step, since others use the machine too.
    """
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.base.sampler import BatchSamplers
    from transformers import TrainerCallback, set_seed

    from components.training import model, runs, worker
    from components.training.data import load, split
    from components.training.objectives import build_loss
    from components.training.settings import TrainingSettings, warmup_steps

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.began: list[float] = []

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.began.append(time.process_time())

    settings = TrainingSettings(max_steps=STEPS, evaluate_every=10 * STEPS)
    data = load("demo:pairs")
    parts = split(data, settings.held_out_share, settings.seed)
    make_trainer, ours, bare = worker.make_trainer, [], []

    def with_clock(*arguments: Any) -> Any:
        trainer = make_trainer(*arguments)
        ours.append(Clock())
        trainer.add_callback(ours[-1])
        return trainer

    monkeypatch.setattr(worker, "make_trainer", with_clock)
    for number in range(ROUNDS):  # in turn, so that a slow minute hits both
        worker.train(runs.create(settings, data, parts, tmp_path / str(number)))
        set_seed(settings.seed)
        plain = model.build(settings, "encoder")
        bare.append(Clock())
        trainer = SentenceTransformerTrainer(
            model=plain,
            args=SentenceTransformerTrainingArguments(
                output_dir=str(tmp_path / "bare"),
                max_steps=STEPS,
                per_device_train_batch_size=settings.batch_size,
                learning_rate=settings.learning_rate,
                warmup_steps=warmup_steps(settings, STEPS),
                batch_sampler=BatchSamplers.NO_DUPLICATES,
                seed=settings.seed,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=plain.device.type == "cpu",
                dataloader_pin_memory=False,
            ),
            train_dataset=Dataset.from_dict(
                {name: list(texts) for name, texts in data.take(parts.train).columns.items()}
            ),
            loss=build_loss(settings, "mnrl", plain),
            callbacks=[bare[-1]],
        )
        trainer.train()
    seconds = [np.min([np.diff(clock.began) for clock in clocks], axis=0).sum() for clocks in (bare, ours)]
    ratio, speed = seconds[0] / seconds[1], (STEPS - 1) / seconds[1]
    report(f"training steps per second of the bare trainer: {ratio:.3f} x ({speed:.2f} per second of processor time)")
    assert ratio >= 0.95
