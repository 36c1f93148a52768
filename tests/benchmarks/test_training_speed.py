"""Training's promise, as a ratio in one run (`make bench -s`)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.test_speed import report

STEPS, ROUNDS = 16, 3


@pytest.mark.timeout(900)
def test_steps_per_second_against_the_bare_trainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model, adapter, rows, loss and order; ours also logs, watches and looks for the stop file.

    Evaluations are left out: how often they are made is a setting. Processor time, since others use the machine too.
    """
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.base.sampler import BatchSamplers
    from transformers import set_seed

    from components.training import model, runs, worker
    from components.training.data import load, split
    from components.training.objectives import build_loss
    from components.training.settings import TrainingSettings, warmup_steps

    settings = TrainingSettings(max_steps=STEPS, evaluate_every=10 * STEPS)
    data = load("demo:pairs")
    parts = split(data, settings.held_out_share, settings.seed)
    make_trainer, ours, bare = worker.make_trainer, [], []

    def timed(*arguments: Any) -> Any:
        trainer = make_trainer(*arguments)
        train = trainer.train

        def train_and_measure(**options: Any) -> None:
            started = time.process_time()
            train(**options)
            ours.append(time.process_time() - started)

        trainer.train = train_and_measure
        return trainer

    monkeypatch.setattr(worker, "make_trainer", timed)
    evaluated: list[float] = []
    evaluate = SentenceTransformerTrainer.evaluate

    def measured(trainer: Any, *arguments: Any, **options: Any) -> Any:
        started = time.process_time()
        result = evaluate(trainer, *arguments, **options)
        evaluated.append(time.process_time() - started)
        return result

    monkeypatch.setattr(SentenceTransformerTrainer, "evaluate", measured)
    told = worker.Reporter.evaluated

    def evaluated_here(reporter: Any, *arguments: Any) -> None:
        started = time.process_time()
        told(reporter, *arguments)
        evaluated.append(time.process_time() - started)

    monkeypatch.setattr(worker.Reporter, "evaluated", evaluated_here)
    for number in range(ROUNDS):  # in turn, so that a slow minute hits both
        run = runs.create(settings, data, parts, tmp_path / str(number))
        evaluated.clear()
        worker.train(run)
        ours[-1] -= sum(evaluated)

        set_seed(settings.seed)
        plain = model.build(settings, "encoder")
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
        )
        started = time.process_time()
        trainer.train()
        bare.append(time.process_time() - started)
    ratio = min(bare) / min(ours)
    report(
        f"training steps per second of the bare trainer: {ratio:.3f} x ({STEPS / min(ours):.2f} per second of one core)"
    )
    assert ratio >= 0.95
