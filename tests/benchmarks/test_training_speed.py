"""Training's promises, as ratios in one run (`make bench -s`)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.conftest import start_server, stop_server
from tests.load.visits import plain_visits, report
from tests.places import ROOT

STEPS, ROUNDS = 20, 3
SESSIONS, VISITS, PAUSE = 30, 6, 8.0  # people, what each does, and the most seconds between two of these


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


@pytest.mark.timeout(900)
def test_pages_stay_quick_while_a_model_is_trained(tmp_path: Path) -> None:
    """The median interaction of 30 sessions beside a run takes at most three times that of an idle server.

    The idle server is measured before and after the run, since later rounds find more in the caches; the quicker one counts.
    """
    from components.training import runs
    from components.training.data import load, split
    from components.training.settings import TrainingSettings

    settings = TrainingSettings(epochs=100)  # it goes on for longer than the sessions
    data = load("demo:pairs")
    server = start_server(tmp_path / "log.txt")
    try:
        plain_visits(server, SESSIONS, VISITS, PAUSE)  # the first ones load the model
        idle = plain_visits(server, SESSIONS, VISITS, PAUSE)
        run = runs.create(settings, data, split(data, settings.held_out_share, settings.seed), tmp_path / "run")
        worker = subprocess.Popen([sys.executable, "-m", "components.training.worker", str(run.path)], cwd=ROOT)
        try:
            deadline = time.monotonic() + 120
            while run.state().step < 3:
                assert worker.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.2)
            first_step = run.state().step
            beside = plain_visits(server, SESSIONS, VISITS, PAUSE)
            assert worker.poll() is None  # it was at work all the time
            steps = run.state().step - first_step
        finally:
            worker.kill()
            worker.wait()
        idle_after = plain_visits(server, SESSIONS, VISITS, PAUSE)
    finally:
        stop_server(server)
    medians = min(statistics.median(idle), statistics.median(idle_after)), statistics.median(beside)
    ratio = medians[1] / medians[0]
    report(
        f"{SESSIONS} sessions: median interaction {1000 * medians[0]:.0f} ms, beside a training run "
        f"{1000 * medians[1]:.0f} ms = {ratio:.2f} x ({steps} steps in the meantime)"
    )
    assert ratio <= 3
