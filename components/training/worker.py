"""The process of a training run: `python -m components.training.worker FOLDER`.

sentence-transformers' own trainer does the work, with its losses and its batches. What is added here reports to the run's
folder (components.training.run_folder) and makes the run safe to interrupt:

- after every step a look for the file `stop`, and for the time to write a checkpoint
- a checkpoint holds the trained weights (of the losses too), the optimizer, the schedule and all random states, so that a
  run that was killed and continued ends with the same weights as one that was not
- an evaluation changes no random state, and one that only a stop asked for is forgotten when the run goes on, so that a
  run that was stopped and continued ends with the same weights too
- a checkpoint is written beside the one before it, which stays until the new one is marked as complete
- the trained weights of the best evaluation are kept apart, and are what is saved in the end
- every epoch's order depends on the seed and the epoch alone

Two things end the process early:

- the file `stop`: it evaluates, saves the best model so far, and the run is "stopped"
- an interruption: SIGTERM, as when the machine is shut down, or with --parent the end of the command that it works for. It
  writes a checkpoint after its step, and the run is "interrupted", to go on from there. Before its first step there is
  nothing to keep, and it ends at once. Without --parent, as for a server, the process goes on to its end alone

The process has a low priority and leaves one core to others. It sends nothing anywhere, and asks nobody anything.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import logging
import math
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from components import operator_settings
from components.errors import ModelError, UserError, first_line
from components.folders import own_folder, write_json
from components.jobs import IsStopped, Stopped
from components.training.notices import Diverged, is_collapsed, is_diverged, is_overfitting
from components.training.objectives import OBJECTIVES, check_objectives
from components.training.run_folder import ADAPTER, ENDED, Event, RunFolder, Status
from components.training.runs import CHECKPOINT_SECONDS, DISK_FULL, DISK_IS_FULL, is_alive, process_start, turn
from components.training.settings import steps, warmup_steps

if TYPE_CHECKING:
    from components.training.data import TrainingData
    from components.training.held_out import HeldOut
    from components.training.objectives import ModelKind
    from components.training.settings import TrainingSettings

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no space, or none for this user, or no larger file
NICENESS, OOM_SCORE = 10, 800  # of Linux: -1000 is never ended for its memory, 1000 always first
STATE_SECONDS = 0.5  # how often the state is written
PARENT_SECONDS = 0.5  # how often the process looks whether its command is still there
MOST_LOSSES = 5_000  # events of a run; longer ones have means of several steps
MINED_AT_ONCE = 1_024  # texts that are embedded between two looks for a stop
MOST_WATCHES, MOST_WATCH_BYTES = 400, 128 << 20
WEIGHTS, COMPLETE = "trained.safetensors", "complete.json"
log = logging.getLogger(__name__)


def train(
    run: RunFolder,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    is_interrupted: IsStopped = lambda: False,
    begun: Callable[[], None] = lambda: None,
) -> None:
    """Train a run from its last complete checkpoint to its end, and save the model and the record.

    Raises UserError for data, settings or a model that cannot be used, Stopped for a run that is asked to stop while wrong
    answers are searched or that is interrupted (after a step it has a checkpoint then), and whatever the libraries raise.
    """
    import torch
    from transformers import set_seed

    from components.training import model as models
    from components.training.held_out import held_out_of

    run.check_files()
    settings = run.settings()
    data, split = run.data()
    kind = check_objectives(settings.objectives)
    if settings.damage and not run.start_folder.is_dir():
        _save_start(run, settings, kind)
    set_seed(settings.seed)
    model = models.build(settings, kind)
    sides = (data.take(split.train), data.take(split.held_out))
    train_rows, held_out_rows = _rows(settings, model, sides, lambda: run.is_asked_to_stop() or is_interrupted())
    set_seed(settings.seed)  # new weights of the losses do not depend on what was drawn before
    losses = torch.nn.ModuleDict({key: _loss(settings, key, model, train_rows[key]) for key in settings.objectives})
    texts_per_row = float(np.mean([len(rows.columns) for rows in train_rows.values()]))
    held_out = held_out_of(settings, kind, sides[1], held_out_rows[settings.objectives[0]], sides[0])
    reporter = RunReporter(
        run, settings, model, losses, held_out, texts_per_row, checkpoint_seconds, is_interrupted, begun
    )
    reporter.go_back(run.checkpoints_folder)
    total = steps(settings, *map(len, train_rows.values()))
    trainer = make_trainer(settings, model, losses, train_rows, held_out_rows, total, run.checkpoints_folder, reporter)
    reporter.begin(total)
    undamaged = _undamaged(settings, kind, held_out) if settings.damage else None
    trainer.train(resume_from_checkpoint=None if reporter.checkpoint is None else str(reporter.checkpoint))
    reporter.end()
    if reporter.is_left:
        raise Stopped
    if reporter.best is None:
        return
    models.read_trained(losses, reporter.best_file)
    trained, parameters = models.count_parameters(model)
    models.save(model, settings, run.model_folder, run.path / ADAPTER)
    run.write_record(
        {
            "settings": json.loads(settings.to_json()),
            "data": {
                "name": data.name,
                "sha256": data.sha256,
                "kind": data.kind,
                "rows": len(data),
                "dropped": dict(data.dropped),
            },
            "split": {
                "train": len(split.train),
                "held_out": len(split.held_out),
                "groups": split.groups,
                "shared_texts": split.overlap,
            },
            "rows": {key: len(rows) for key, rows in train_rows.items()},
            "seed": settings.seed,
            "versions": dict(models.versions()),
            "undamaged": undamaged,  # before the damage; None where nothing was damaged
            "before": reporter.before,
            "after": reporter.best,
            "best_step": reporter.best_step,
            "steps": reporter.state.step,
            "steps_planned": total,
            "seconds": round(reporter.seconds, 2),
            "trained_parameters": trained,
            "parameters": parameters,
            "device": str(model.device),
            "model_sha256": _sha256(run.model_folder / "model.safetensors"),
        }
    )


def _save_start(run: RunFolder, settings: TrainingSettings, kind: ModelKind) -> None:
    """Save the model after the damage and before training, so that pages can compare with it."""
    from transformers import set_seed

    from components.training import model as models

    set_seed(settings.seed)  # a new Dense layer is the one that is trained
    start = models.build(replace(settings, adapter=False), kind)
    models.save(start, settings, run.start_folder, run.path / ADAPTER)


def _undamaged(settings: TrainingSettings, kind: ModelKind, held_out: HeldOut) -> dict[str, float]:
    """The measures of the model as it was before the damage."""
    from components.training import model as models

    with models.random_states_kept():  # training draws what it would have drawn without this
        model = models.build(replace(settings, damage=0.0, adapter=False), kind)
        model.eval()
        return held_out.measure(model)


def _rows(
    settings: TrainingSettings, model: Any, sides: Sequence[TrainingData], is_stopped: IsStopped
) -> list[dict[str, TrainingData]]:
    """What each objective learns from, or is measured on, on each side of the split. Raises Stopped."""
    from components.training.model import mining_model
    from components.training.negatives import training_rows

    encoder = cache(lambda: mining_model(settings, model))  # built once, and only if wrong answers come from the model

    def embed(texts: Sequence[str], role: str) -> Any:
        blocks = []
        for start in range(0, len(texts), MINED_AT_ONCE):
            if is_stopped():
                raise Stopped
            block = list(texts[start : start + MINED_AT_ONCE])
            blocks.append(encoder().encode(block, show_progress_bar=False, convert_to_numpy=True))
        return np.concatenate(blocks)

    return [
        {key: training_rows(settings, key, side, embed, is_stopped=is_stopped) for key in settings.objectives}
        for side in sides
    ]


def _loss(settings: TrainingSettings, key: str, model: Any, rows: TrainingData) -> Any:
    from components.training.objectives import build_loss

    return build_loss(settings, key, model, len(rows.label_names) or None)


def make_trainer(
    settings: TrainingSettings,
    model: Any,
    losses: Any,
    train_rows: dict[str, TrainingData],
    held_out_rows: dict[str, TrainingData],
    total: int,
    folder: Path,
    reporter: RunReporter | None,
) -> Any:
    """sentence-transformers' trainer for these settings. Without a reporter it is the bare trainer, to compare with."""
    from datasets import Dataset, DatasetDict
    from sentence_transformers import (
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.base.sampler import BatchSamplers, MultiDatasetBatchSamplers
    from transformers import PrinterCallback

    from components.training.negatives import dataset_columns

    is_encoder = OBJECTIVES[settings.objectives[0]].models == "encoder"
    trainer_class: Any = SentenceTransformerTrainer if is_encoder else CrossEncoderTrainer
    arguments_class: Any = SentenceTransformerTrainingArguments if is_encoder else CrossEncoderTrainingArguments
    in_batch = bool({"mnrl", "simcse"} & set(settings.objectives))  # whose other rows are wrong answers
    arguments = arguments_class(
        output_dir=str(folder),
        max_steps=total,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear" if settings.schedule == "linear" else "constant_with_warmup",
        warmup_steps=warmup_steps(settings, total),
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_gradient_norm,
        seed=settings.seed,
        data_seed=settings.seed,
        batch_sampler=BatchSamplers.NO_DUPLICATES if in_batch else BatchSamplers.BATCH_SAMPLER,
        multi_dataset_batch_sampler=MultiDatasetBatchSamplers.ROUND_ROBIN,
        eval_strategy="no" if reporter is None else "steps",
        eval_steps=settings.evaluate_every,
        eval_on_start=reporter is not None and reporter.checkpoint is None,  # what the model does before training
        save_strategy="no",  # the reporter says when
        save_total_limit=2,  # of which at least one is complete
        logging_strategy="no" if reporter is None else "steps",
        logging_steps=1,  # the reporter takes means, of each objective apart
        logging_nan_inf_filter=False,  # it would replace a loss that is no number by an earlier one
        report_to=[],
        push_to_hub=False,
        disable_tqdm=True,
        dataloader_num_workers=0,
        dataloader_pin_memory=model.device.type == "cuda",
        use_cpu=model.device.type == "cpu",
    )

    def dataset(rows: dict[str, TrainingData]) -> Any:
        parts = {key: Dataset.from_dict(dataset_columns(settings, key, part)) for key, part in rows.items()}
        return DatasetDict(parts) if len(parts) > 1 else next(iter(parts.values()))

    batches = _epoch_batches()

    class Trainer(trainer_class):
        """The library's trainer, whose checkpoints hold the trained weights alone, and which tells the reporter."""

        def get_batch_sampler(self, dataset: Any, batch_size: int, drop_last: bool, **others: Any) -> Any:
            if in_batch:
                return super().get_batch_sampler(dataset, batch_size, drop_last, **others)
            return batches(dataset, batch_size=batch_size, drop_last=drop_last, **others)

        def add_model_card_callback(self, default_args_dict: Any) -> None:
            """None: a card would hold rows of the data, and its making reads the data and asks the hub."""

        def compute_loss(self, model: Any, inputs: Any, *others: Any, **named: Any) -> Any:
            if reporter is not None:
                reporter.objective = inputs.get("dataset_name") or settings.objectives[0]
            return super().compute_loss(model, inputs, *others, **named)

        def evaluate(self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval") -> Any:
            from components.training.model import random_states_kept

            started = time.monotonic()
            with random_states_kept():  # an evaluation more or less, as at a stop, must not change what training draws
                metrics = super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)
                if reporter is not None and metric_key_prefix == "eval":  # else one of several data sets
                    measured = [
                        metrics[name] for name in metrics if name.startswith("eval_") and name.endswith("_loss")
                    ]
                    reporter.evaluated(self.state.global_step, measured, time.monotonic() - started)
            return metrics

        def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
            from components.training.model import write_trained

            assert output_dir is not None
            Path(output_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
            write_trained(losses, Path(output_dir) / WEIGHTS)

        def _load_from_checkpoint(self, checkpoint_path: str, model: Any = None) -> None:
            from components.training.model import read_trained

            read_trained(losses, Path(checkpoint_path) / WEIGHTS)

    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=dataset(train_rows),
        eval_dataset=None if reporter is None else dataset(held_out_rows),
        loss=dict(losses.items()) if len(losses) > 1 else next(iter(losses.values())),
        callbacks=[] if reporter is None else [reporter.callback()],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _epoch_batches() -> Any:
    """A class of batches, created here because its base is imported late."""
    import torch
    from sentence_transformers.base.sampler import DefaultBatchSampler

    class EpochBatches(DefaultBatchSampler):
        """Batches whose order depends on the seed and the epoch alone; the library's goes on from the epoch before."""

        def __init__(self, dataset: Any, **options: Any) -> None:
            super().__init__(torch.utils.data.RandomSampler(dataset, generator=options["generator"]), **options)

        def __iter__(self) -> Iterator[list[int]]:
            if self.generator is not None:
                self.generator.manual_seed(self.seed + self.epoch)
            yield from super().__iter__()

    return EpochBatches


class RunReporter:
    """Writes what happens in a run to its folder, and decides when to evaluate, to save and to stop."""

    def __init__(
        self,
        run: RunFolder,
        settings: TrainingSettings,
        model: Any,
        losses: Any,
        held_out: HeldOut,
        texts_per_row: float,
        checkpoint_seconds: float,
        is_interrupted: IsStopped = lambda: False,
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        self.run, self.settings, self.model, self.losses, self.held_out = run, settings, model, losses, held_out
        self.state = run.state()
        self.objective = settings.objectives[0]
        self.checkpoint: Path | None = None  # from which the run continues
        self.before: Event = {}  # the measures before training
        self.best: Event | None = None  # those of the best step, which is `best_step`
        self.best_step = 0
        self.is_left = False  # an interruption ended the training after a step; its checkpoint is written
        self._is_interrupted, self._begun = is_interrupted, begun
        self._texts_per_row, self._checkpoint_seconds = texts_per_row, checkpoint_seconds
        self._unplanned: list[str] = []  # kinds of events of this step that only a stop asked for
        self._evaluations: list[Event] = []  # in training, in order
        self._training_losses: list[float] = []  # the mean of each time between two evaluations
        self._losses: list[float] = []  # since the last evaluation
        self._unwritten: dict[str, list[float]] = {}  # by objective: of steps whose mean is not written yet
        self._notices: set[str] = set()
        self._watch_every = settings.watch_every
        self._step_started = 0.0
        self._trained_seconds, self._trained_steps = 0.0, 0  # in this process, without evaluations and checkpoints
        self._seconds_before = 0.0  # in earlier processes
        self._started = self._saved_at = self._written_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """Time in training, evaluations and earlier processes included."""
        return self._seconds_before + time.monotonic() - self._started

    @property
    def best_file(self) -> Path:
        """The trained weights of the best step."""
        return self._best_file(self.best_step)

    def _best_file(self, step: int) -> Path:
        return self.run.checkpoints_folder / f"best-{step}.safetensors"

    def go_back(self, folder: Path) -> None:
        """Find the last complete checkpoint, and forget everything that was written after it."""
        own_folder(folder)
        usable = [path for path in folder.glob("checkpoint-*") if (path / COMPLETE).is_file()]
        self.checkpoint = max(usable, key=_step_of, default=None)
        step, unplanned = -1, []
        if self.checkpoint is not None:
            step, complete = _step_of(self.checkpoint), json.loads((self.checkpoint / COMPLETE).read_text())
            self._seconds_before, self._unwritten = float(complete["seconds"]), complete.get("unwritten", {})
            unplanned = complete.get("unplanned", [])
        for path in folder.glob("checkpoint-*"):
            if path not in usable or _step_of(path) > step:
                shutil.rmtree(path, ignore_errors=True)
        for path in folder.glob("best-*.safetensors*"):
            is_unplanned = "evaluation" in unplanned and _step_of(path) == step
            if path.suffix == ".new" or _step_of(path) > step or is_unplanned:
                path.unlink()
        self.run.forget_after(step, unplanned)
        for event in self.run.events():
            if event["event"] == "loss" and event["loss"] is not None:
                self._losses.append(event["loss"])
            elif event["event"] == "notice":
                self._notices.add(event["code"])
            elif event["event"] == "evaluation":
                self._remember(event)

    def begin(self, total: int) -> None:
        """Note that the training begins, and record the watch sentences as they are now if that was not done."""
        self.state = replace(self.state, steps=total, step=0 if self.checkpoint is None else _step_of(self.checkpoint))
        self._write_state(is_due=True)
        nbytes = self._watch(0, is_kept=self.checkpoint is None)
        if nbytes:
            most = min(MOST_WATCHES, max(1, MOST_WATCH_BYTES // nbytes))
            self._watch_every = max(self._watch_every, math.ceil(total / most))

    def callback(self) -> Any:
        """The trainer's callback, which calls the methods below."""
        from transformers import TrainerCallback

        reporter = self

        class Callback(TrainerCallback):
            def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                reporter._begun()
                reporter._step_started = time.monotonic()

            def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                reporter.stepped(state.global_step, control)

            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:
                if logs and "loss" in logs:
                    reporter.logged(state.global_step, logs["loss"], logs["learning_rate"])

            def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                reporter.saved(state.global_step)

        return Callback()

    def stepped(self, step: int, control: Any) -> None:
        """After a step: what to do next."""
        self._trained_seconds += time.monotonic() - self._step_started
        self._trained_steps += 1
        self.state = replace(self.state, step=step)
        is_last = step >= self.state.steps
        is_stopped = self.run.is_asked_to_stop()
        self.is_left = not is_last and not is_stopped and self._is_interrupted()
        if is_stopped or self.is_left:
            control.should_training_stop = True
        if is_last or is_stopped:
            control.should_evaluate = control.should_log = True
        is_due = not is_last and time.monotonic() - self._saved_at >= self._checkpoint_seconds
        if is_stopped or self.is_left or is_due:
            control.should_save = True
        planned = {"evaluation": step % self.settings.evaluate_every == 0, "watch": step % self._watch_every == 0}
        self._unplanned = [kind for kind in planned if is_stopped and not is_last and not planned[kind]]
        if planned["watch"] or is_last or is_stopped:
            self._watch(step)
        self._write_state()

    def logged(self, step: int, loss: float, learning_rate: float) -> None:
        """A step's loss: written at once, or in a long run as the mean of several steps of the same objective."""
        if is_diverged(loss):
            self._write_loss(step, loss, learning_rate)
            self._notice(step, "diverged", None)
            raise Diverged(f"The loss of step {step:,} is not a finite number.")
        unwritten = self._unwritten.setdefault(self.objective, [])
        unwritten.append(loss)
        # Both of two objectives have their last step among the last two.
        is_last = step > self.state.steps - len(self.settings.objectives)
        if len(unwritten) < self.state.steps / MOST_LOSSES and not is_last:
            return
        mean = float(np.mean(unwritten))
        unwritten.clear()
        self._write_loss(step, mean, learning_rate)
        self._losses.append(mean)

    def _write_loss(self, step: int, loss: float, learning_rate: float) -> None:
        left = self.state.steps - step
        seconds_per_step = (time.monotonic() - self._started) / max(1, self._trained_steps)
        texts = self.settings.batch_size * self._texts_per_row
        self.run.append(
            {
                "event": "loss",
                "step": step,
                "loss": loss,
                "learning_rate": learning_rate,
                "sentences_per_second": texts * self._trained_steps / max(1e-9, self._trained_seconds),
                "seconds_left": left * seconds_per_step,
                "objective": self.objective,
            }
        )

    def evaluated(self, step: int, validation_losses: Sequence[float], seconds: float) -> None:
        """The losses on the held-out rows are known: measure the rest, and keep the weights if they are the best."""
        started = time.monotonic()
        classifier = dict(self.losses.items()).get("softmax")
        try:
            measures = self.held_out.measure(self.model, classifier)
        except Diverged:
            self._notice(step, "diverged", None)
            raise
        event: Event = {
            "event": "evaluation",
            "step": step,
            "validation_loss": float(np.mean(validation_losses)) if validation_losses else None,
            **measures,
            "seconds": round(seconds + time.monotonic() - started, 3),
        }
        is_best = self._remember(event)
        if is_best:
            from components.training.model import write_trained

            write_trained(self.losses, self._best_file(step))
            # Those up to the last checkpoint are needed if the run goes back to it, and all if it goes on without this one.
            last = -1 if self.checkpoint is None else _step_of(self.checkpoint)
            older = sorted(map(_step_of, self.run.checkpoints_folder.glob("best-*.safetensors")))
            kept = max((other for other in older if other <= last), default=-1)
            for other in older:
                if other not in (kept, step) and not self._unplanned:
                    self._best_file(other).unlink()
        self.run.append(event)
        self._look_for_signs(step)

    def _remember(self, event: Event) -> bool:
        """Take an evaluation into account; whether it is the best one in training."""
        from components.training.held_out import is_better

        self._evaluations.append(event)
        if event["step"] == 0:
            self.before = _measures(event)
            return False
        self._training_losses.append(float(np.mean(self._losses)) if self._losses else math.nan)
        self._losses.clear()
        if self.best is not None and not is_better(event, self.best):
            return False
        self.best, self.best_step = _measures(event), event["step"]
        return True

    def _look_for_signs(self, step: int) -> None:
        cosines = [
            event["unrelated_cosine"] for event in self._evaluations if event.get("unrelated_cosine") is not None
        ]
        if is_collapsed(cosines):
            self._notice(step, "collapse", cosines[-1])
        losses = [event["validation_loss"] for event in self._evaluations if event["step"] > 0]
        if None not in losses and is_overfitting(losses, self._training_losses):
            self._notice(step, "overfitting", losses[-1])

    def _notice(self, step: int, code: str, value: float | None) -> None:
        if code not in self._notices:
            self._notices.add(code)
            self.run.append({"event": "notice", "step": step, "code": code, "value": value})

    def saved(self, step: int) -> None:
        """A checkpoint was written: only with this mark it is complete."""
        path = self.run.checkpoints_folder / f"checkpoint-{step}"
        complete = {
            "step": step,
            "seconds": self.seconds,
            "unwritten": self._unwritten,
            "unplanned": self._unplanned,  # forgotten when the run goes on from here
        }
        write_json(path / COMPLETE, complete)
        self.checkpoint, self._saved_at = path, time.monotonic()

    def end(self) -> None:
        """The training has ended; what follows is saving."""
        self._write_state(is_due=True)

    def _watch(self, step: int, is_kept: bool = True) -> int:
        """Record the watch sentences at a step; the bytes that this takes."""
        from components.training.model import watch

        if not self.settings.watch:
            return 0
        watched = watch(self.model, self.settings.watch, self.settings)
        if is_kept:
            if step == 0:
                self.run.write_watch_tokens(watched.labels)
            self.run.write_watch(step, watched.sentences, watched.tokens)
        return watched.sentences.nbytes + watched.tokens.nbytes

    def _write_state(self, is_due: bool = False) -> None:
        if is_due or time.monotonic() - self._written_at >= STATE_SECONDS:
            self.state = replace(self.state, seconds=round(self.seconds, 2))
            self.run.write_state(self.state)
            self._written_at = time.monotonic()


def _measures(event: Event) -> Event:
    """An evaluation without what is no measure."""
    return {name: value for name, value in event.items() if name not in ("event", "step", "seconds")}


def _step_of(path: Path) -> int:
    """The step in the name of a checkpoint, or of a file of weights."""
    return int(path.name.partition("-")[2].partition(".")[0])


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(
    arguments: Sequence[str] | None = None,
    interruption: threading.Event | None = None,
    preparing: threading.Event | None = None,
) -> int:
    """Wait for the turn of this run, train it, and write how it ended.

    With `preparing`, which is set from its turn to its first step, an interruption ends the whole process in this time. The
    exit status: 0, 1 after an error that the run's state explains, or DISK_FULL where the state could not be written.
    """
    parser = argparse.ArgumentParser(prog="python -m components.training.worker")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checkpoint-seconds", type=float, default=CHECKPOINT_SECONDS)
    parser.add_argument("--parent", type=int, help="the process whose end interrupts the run")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    run, interruption = RunFolder(options.folder.resolve()), interruption or threading.Event()
    if options.parent is not None:
        threading.Thread(target=_wait_for_its_end, args=(options.parent, interruption), daemon=True).start()
    if preparing is not None:
        threading.Thread(target=_end_before_the_first_step, args=(run, interruption, preparing), daemon=True).start()
    try:
        with turn(lambda: run.is_asked_to_stop() or interruption.is_set() or not run.exists):
            if not run.exists:
                return 0
            return _train_in_turn(run, options.checkpoint_seconds, interruption, preparing or threading.Event())
    except Stopped:
        if run.exists and not is_alive(
            run.state()
        ):  # it may have been deleted while it waited, or be another process's
            _leave(run)
        return 0
    except OSError as problem:
        if not is_full(problem):
            raise
        log.exception("the state of the run could not be written")
        return DISK_FULL


def _wait_for_its_end(parent: int, interruption: threading.Event) -> None:
    """Set the event once this process is no longer the child of that one."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    interruption.set()


def _end_before_the_first_step(run: RunFolder, interruption: threading.Event, preparing: threading.Event) -> None:
    """End the process once the event is set, while the run is prepared: imports, a large model, a measurement take minutes."""
    interruption.wait()
    preparing.wait()  # while the run waits for its turn, and in training, the other thread looks for the event itself
    try:
        if run.exists:
            _leave(run)
    finally:
        os._exit(0)


def _train_in_turn(
    run: RunFolder, checkpoint_seconds: float, interruption: threading.Event, preparing: threading.Event
) -> int:
    """Train a run unless it has ended; only one process at a time comes here."""
    state = run.state()
    if state.status in ENDED or is_alive(state):  # another process was faster
        return 0
    me = os.getpid()
    run.write_state(replace(state, status="running", pid=me, process_started=process_start(me), error=""))
    preparing.set()
    _give_way()
    try:
        try:
            train(run, checkpoint_seconds, interruption.is_set, preparing.clear)
        finally:
            preparing.clear()
    except Stopped:
        _leave(run)
        return 0
    except BaseException as problem:
        log.exception("the run failed")
        status: Status = "interrupted" if is_full(problem) else "failed"  # with room on the disk the run can go on
        error = DISK_IS_FULL if is_full(problem) else _explained(problem)
        run.write_state(replace(run.state(), status=status, pid=None, process_started=None, error=error))
        return 1
    state = run.state()
    status = "done" if state.step >= state.steps else "stopped"
    run.write_state(replace(state, status=status, pid=None, process_started=None))
    if status == "done":  # only now: a process that is killed before continues from them
        shutil.rmtree(run.checkpoints_folder, ignore_errors=True)
    return 0


def _leave(run: RunFolder) -> None:
    """Write that the run was stopped, by whoever asked for it, or else interrupted."""
    status: Status = "stopped" if run.is_asked_to_stop() else "interrupted"
    run.write_state(replace(run.state(), status=status, pid=None, process_started=None))


def _give_way() -> None:
    """A low priority, and one core for others, so that pages stay quick; if memory ends, this process is ended first."""
    import torch

    with suppress(OSError, AttributeError):
        os.nice(NICENESS)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
    torch.set_num_threads(threads())


def threads() -> int:
    """The threads that training computes with: the operator's setting `training_threads`, else all cores but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return operator_settings.TRAINING_THREADS.chosen() or max(1, cores - 1)


def is_full(problem: BaseException) -> bool:
    """Whether an error, or the one that led to it, says that the disk is full, in the words of any library that writes."""
    if isinstance(problem, OSError) and problem.errno in FULL:
        return True
    text = str(problem)
    is_said = any(os.strerror(number) in text for number in FULL) or "PytorchStreamWriter failed writing" in text
    return is_said or (problem.__context__ is not None and is_full(problem.__context__))


def _explained(problem: BaseException) -> str:
    """An error in one line."""
    if isinstance(problem, UserError) and not isinstance(problem, ModelError):
        return " ".join(str(problem).split())
    text = first_line(problem)
    if isinstance(problem, MemoryError) or "out of memory" in text.lower() or "can't allocate memory" in text:
        return "There is too little memory for this run. Choose a smaller batch or shorter texts, and start again."
    if isinstance(problem, UserError):
        return " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text}."


def _as_a_process() -> int:
    """`main`, with SIGTERM as an interruption."""
    interruption = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: interruption.set())
    return main(interruption=interruption, preparing=threading.Event())


if __name__ == "__main__":
    sys.exit(_as_a_process())
