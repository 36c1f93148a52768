"""`train DATA --out DIR`: fine-tune an encoder or a cross-encoder, in a process of its own.

DIR is the trained model, which sentence-transformers loads with one line; DIR/run holds the record, the events and what is
needed to continue after a stop or a crash (see components.training.run_folder).

Whatever ends the command, the same command (or --resume DIR) goes on, and ends with the model that it would have had:
- Ctrl-C and SIGTERM stop the run after its step: the best model so far is put into DIR, and the command ends.
- When the command is killed, or its terminal is closed, its process writes a checkpoint after its step and ends too: nothing
  trains where nobody sees it. Until then the same command waits for it.
- When the process is killed, the command says so, and the same command goes on from the last checkpoint.
- When nothing is left to do, the same command says again what it said.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from components import operator_settings
from components.command_line import options as shared
from components.errors import InputError, UserError
from components.folders import check_writable, write_text
from components.jobs import Stopped
from components.model.catalog import typed_model

if TYPE_CHECKING:
    from components.jobs import ReportProgress, Work
    from components.training.data import Split, TrainingData
    from components.training.run_folder import RunFolder
    from components.training.settings import PoolingName, TrainingSettings

NAME = "train"
HELP = (
    "fine-tune an encoder or a cross-encoder on pairs, triplets, scored or labelled sentences; the result loads in "
    "sentence-transformers"
)
RUN, LOCK = "run", "command.lock"
MOST_SEEDS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        help="a .csv, .tsv, .jsonl or .parquet file, or demo:pairs, demo:scored, demo:nli, demo:not (not needed with --resume)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="where the model is saved: a folder that does not exist, or that of the same command, which then goes on",
    )
    parser.add_argument(
        "--resume", metavar="DIR", type=Path, help="continue a run that was stopped or killed, as the same command does"
    )
    parser.add_argument(
        "--objective",
        default=None,
        help="mnrl, contrastive, online-contrastive, cosine, softmax, triplet, simcse, tsdae, or for a cross-encoder relevance "
        "or regression; two with a comma between them take turns (default: mnrl)",
    )
    parser.add_argument("--preset", default=None, help="begin with the settings of a preset; other options change them")
    shared.add_rows(
        parser,
        "anchor=headline,positive=text",
        "the train rows, with the dev rows held out; test rows are never trained on",
    )
    shared.add_dialect(parser)
    parser.add_argument(
        "--model", type=typed_model, default=None, help="a hub id, a folder, run:NAME, or embedded (the default)"
    )
    parser.add_argument("--full", action="store_true", help="train all weights (default: low-rank adapters)")
    parser.add_argument("--rank", type=int, help="rank of the adapters (default: 8)")
    parser.add_argument("--epochs", type=int, help="passes over the training rows (default: 4)")
    parser.add_argument("--max-steps", type=int, help="end after so many steps")
    parser.add_argument("--batch", type=int, help="rows in a batch (default: 16)")
    parser.add_argument("--learning-rate", type=float, help="default: 2e-4 for adapters, 2e-5 for all weights")
    parser.add_argument("--max-length", type=int, help="truncate texts to this many tokens (default: 128)")
    parser.add_argument("--pooling", help="mean, cls or max (default: the model's own if it is one of them, else mean)")
    parser.add_argument("--projection", type=int, help="add a Dense layer with so many outputs behind the pooling")
    parser.add_argument("--negatives", help="wrong answers: none, random, bm25 or model (default: random)")
    parser.add_argument("--max-rows", type=int, help="train on so many rows at most")
    parser.add_argument(
        "--held-out", type=float, help="share of the rows that is held out for evaluation (default: 0.2)"
    )
    parser.add_argument("--evaluate-every", type=int, help="evaluate after so many steps (default: 10)")
    parser.add_argument(
        "--damage",
        type=float,
        help="add noise to the encoder's matrices before training, as a share of each one's standard deviation (default: 0)",
    )
    parser.add_argument("--seed", type=int, help="of order, new weights, damage and dropout (default: 10)")
    parser.add_argument("--threads", type=int, help="threads to compute with (default: all cores but one)")
    shared.add_limits(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="say what was recognised and how long it may take; train nothing"
    )
    parser.add_argument(
        "--grid",
        type=int,
        metavar="SEEDS",
        help="train the softmax objective on labelled data with every pooling and every combination of u, v, |u-v| and u*v, "
        "with so many seeds each, and write how well each model agrees with --scored; no model is kept",
    )
    parser.add_argument(
        "--scored",
        metavar="FILE",
        type=Path,
        help="scored pairs that --grid measures (sentence1, sentence2, score; default: the demo's)",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    if options.threads is not None:
        if options.threads < 1:
            raise InputError(
                f"--threads is {options.threads}.", "It must be a number above 0.", "Correct it, or leave it out."
            )
        operator_settings.choose(operator_settings.TRAINING_THREADS, options.threads)
    if options.resume is not None:
        folder = options.resume.expanduser().resolve()
        return _train(_unfinished(folder), folder, options)
    if options.data is None or (options.out is None and not options.dry_run):
        raise InputError(
            f"No {'data' if options.data is None else 'folder for the model'} was given.",
            "The command needs the data to train on, and a folder for the result.",
            "Write for example: train pairs.csv --out DIR",
        )
    if options.grid is not None:
        return _grid(options, _settings(options))
    return _new_or_same(options)


def _new_or_same(options: argparse.Namespace) -> dict[str, Any]:
    """Train a new run, or go on with the one that the same command began."""
    from components.model.catalog import parse_model
    from components.model.files.sources import find_files
    from components.training import runs
    from components.training.data import split
    from components.training.negatives import row_counts
    from components.training.objectives import check_objectives
    from components.training.run_folder import RunFolder

    settings = _settings(options)
    kind = check_objectives(settings.objectives)
    if options.out is not None:
        _check_out(options.out)
    data = _rows(options)
    if data.reading is not None:
        shared.write_reading(data.reading, with_preview=options.dry_run)
    parts = split(data, settings.held_out_share, settings.seed, settings.max_rows)
    rows = row_counts(settings, data, parts)
    spec = parse_model(settings.model)
    settings = replace(settings, model=spec.key)  # a folder by its whole path: the process works in another folder
    with shared.progress_bar(f"Downloading {spec.title}", "B") as report_progress:
        find_files(spec, report_progress)  # the process of the run asks nobody for anything
    if options.pooling is None and options.preset is None:  # of a model that was downloaded just now
        settings = replace(settings, pooling=_published_pooling(settings.model) or settings.pooling)
    run = None if options.out is None else RunFolder(options.out / RUN)
    if run is not None and run.exists:
        run.check_files()
        _check_same(run, settings, data, options.out)
    _say(options, settings, data, parts, rows)
    if run is None or options.dry_run:
        return {**_plan(settings, data, parts, rows, kind, options), "not_applied": _not_applied(lambda: settings)}
    return _train(run if run.exists else runs.create(settings, data, parts, run.path), options.out, options)


def _not_applied(settings: Callable[[], TrainingSettings]) -> list[str]:
    """What of the published model is not applied, also written to standard error. It is loaded for this, and let go."""
    from components.model.backend import Backend
    from components.model.catalog import EMBEDDED_KEY
    from components.training.objectives import check_objectives

    try:
        chosen = settings()
        if chosen.model == EMBEDDED_KEY or check_objectives(chosen.objectives) == "cross-encoder":
            return []
        said = [f"{chosen.model}: {sentence}" for sentence in Backend.load(chosen.model).not_applied]
    except UserError as problem:  # a run that has ended no longer needs the model that it began with
        said = [f"The model that was trained was not looked at: {problem}"]
    for sentence in said:
        shared.note(sentence)
    return said


def _grid(options: argparse.Namespace, settings: TrainingSettings) -> dict[str, Any]:
    """Train and measure every pooling and combination; see components.training.grid."""
    from components.retrieval.corpora.corpus import read_corpus
    from components.retrieval.evaluation.sts import scored_pairs
    from components.training.data import DEMO_SCORED, split
    from components.training.grid import run_grid
    from components.training.runs import one_accelerator

    if not 1 <= options.grid <= MOST_SEEDS:
        raise InputError(
            f"--grid is {options.grid}.",
            f"It must be a number of seeds from 1 to {MOST_SEEDS}.",
            "Write for example --grid 3",
        )
    if options.dry_run:
        raise InputError("Both --grid and --dry-run are given.", "They exclude each other.", "Leave one out.")
    _check_out(options.out, may_hold_run=False)
    data = _rows(options)
    if data.kind != "labelled":
        raise InputError(
            f"{data.name} has {data.kind}.",
            "It needs labelled pairs, since --grid trains the softmax objective.",
            "Choose other data, such as demo:nli.",
        )
    parts = split(data, settings.held_out_share, settings.seed, settings.max_rows)
    path = DEMO_SCORED if options.scored is None else options.scored
    scored = scored_pairs(read_corpus(path, path.name, "sentence1", limits=shared.limits_of(options)))
    seeds = tuple(range(settings.seed, settings.seed + options.grid))
    _say_that_it_waits()
    os.environ.update(one_accelerator(operator_settings.environment()))  # of several GPUs the trainer would use all
    with shared.progress_bar("Training the grid", " runs") as report_progress:
        grid = run_grid(settings, data, parts, scored, options.out, seeds=seeds, progress=report_progress)
    rows = grid.rows()
    if options.json != "-":
        sys.stdout.write(f"{'pooling':<8}{'combination':<20}{'before':>9}{'Spearman':>10}{'spread':>9}\n")
        for row in rows:
            numbers = f"{_number(row['before']):>9}{_number(row['spearman']):>10}{_number(row['spread']):>9}"
            sys.stdout.write(f"{row['pooling']:<8}{row['combination']:<20}{numbers}\n")
    return {"data": data.name, "scored": path.name, "pairs": grid.pairs, "seeds": list(seeds), "grid": rows}


def _rows(options: argparse.Namespace) -> TrainingData:
    """The rows of the command's file, as its options read them."""
    from components.training.data import load

    return load(
        options.data,
        chosen=shared.columns_of(options),
        limits=shared.limits_of(options),
        part=options.part,
        dialect=shared.dialect_of(options),
        encoding=options.encoding,
    )


def _settings(options: argparse.Namespace) -> TrainingSettings:
    """The settings that the options mean. Raises InputError."""
    from components.training.settings import FULL_LEARNING_RATE, OPTIONS, PRESETS, TrainingSettings

    if options.preset is not None and options.preset not in PRESETS:
        raise InputError(
            f"There is no preset {options.preset[:80]!r}.",
            f"There are these: {', '.join(PRESETS)}.",
            "Choose one of them, or leave it out.",
        )
    base = TrainingSettings() if options.preset is None else PRESETS[options.preset].settings
    given = {field: getattr(options, name) for name, field in OPTIONS.items()}
    changes = {field: value for field, value in given.items() if value is not None}
    if options.objective is not None:
        changes["objectives"] = tuple(part.strip() for part in options.objective.split(","))
    if options.full:
        changes = {"adapter": False, "learning_rate": FULL_LEARNING_RATE, **changes}
    if "pooling" not in changes and options.preset is None:
        changes["pooling"] = _published_pooling(changes.get("model", base.model)) or base.pooling
    return replace(base, data=str(options.data), **changes)


def _published_pooling(model: str) -> PoolingName | None:
    """The pooling of the files of a model that is here, if a run can have it."""
    from components.errors import UserError
    from components.model.catalog import parse_model
    from components.model.files import hub
    from components.model.files.sentence_config import read_sentence_config
    from components.model.files.sources import folder_of
    from components.training.settings import PoolingName

    try:
        spec = parse_model(model)
    except UserError:  # said by what loads the model
        return None
    folder = folder_of(spec) or (hub.cached_folder(spec.hub_id) if spec.source == "hub" else None)
    published = read_sentence_config(folder).pooling
    return next((name for name in get_args(PoolingName) if name == published), None)


def _check_out(folder: Path, may_hold_run: bool = True) -> None:
    """Refuse a folder that holds something else than a run, and one that cannot be written. Raises InputError."""
    from components.training.run_folder import RunFolder
    from components.training.runs import unfinished

    if folder.exists() and not (may_hold_run and RunFolder(folder / RUN).exists):
        # Of a command that was killed while it created its run.
        left = set(unfinished(folder)) if may_hold_run and folder.is_dir() else set()
        if not folder.is_dir() or set(folder.iterdir()) - left:
            raise InputError(
                f"{folder} already exists.",
                "The result needs a folder that does not exist or is empty, or that of the same command.",
                f"Choose another folder, or delete {folder}.",
            )
    _check_writable(folder)


def _check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written, or made, before the work begins. Raises InputError."""
    nearest = next(path for path in (folder / RUN, folder, *folder.absolute().parents) if path.is_dir())
    try:
        with tempfile.TemporaryDirectory(dir=nearest, prefix=".train-") as folder_of_trial:
            check_writable(Path(folder_of_trial))
    except OSError as problem:
        raise InputError(
            f"{nearest} cannot be written: {problem.strerror or problem}.",
            "The model and its run are written there.",
            "Choose another folder, or check its permissions and the free space.",
        ) from problem


def _check_same(run: RunFolder, settings: TrainingSettings, data: TrainingData, folder: Path) -> None:
    """Refuse a run that another command began. Raises InputError."""
    fix = f"Choose another folder, continue that run with --resume {folder}, or delete {folder}."
    with _or_deleted(folder):
        begun, is_same_data = run.settings(), run.data()[0].sha256 == data.sha256
    ours, theirs = (replace(each, data="") for each in (settings, begun))  # another name of the same rows is no change
    changed = [name for name, value in vars(ours).items() if getattr(theirs, name) != value]
    changed += [] if is_same_data else ["data"]
    if changed:
        raise InputError(
            f"{folder} already exists and holds a training run with other settings ({', '.join(changed)}).",
            "Only the same command goes on with a run.",
            fix,
        )


@contextmanager
def _or_deleted(folder: Path) -> Iterator[None]:
    """A damaged file of a run is told with the folder to delete."""
    try:
        yield
    except InputError as problem:
        fix = f"Delete {folder}, and run the command again."
        raise InputError(problem.problem, problem.expected, fix) from problem


def _unfinished(folder: Path) -> RunFolder:
    """The run of --resume. Raises InputError."""
    from components.training.run_folder import RunFolder

    found = RunFolder(folder / RUN)
    if not found.exists:
        raise InputError(
            f"{folder} holds no training run.",
            "It must be the folder of a run that was stopped or killed.",
            "Check the path, or start a new run with --out.",
        )
    found.check_files()
    _check_writable(folder)
    return found


@contextmanager
def _only_command(run: RunFolder, folder: Path) -> Iterator[None]:
    """No other command works on this run. Raises InputError if one does."""
    from filelock import FileLock, Timeout

    lock = FileLock(run.path / LOCK, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout as problem:
        raise InputError(
            f"Another command trains in {folder}.",
            "One command at a time works on a run.",
            "Wait until it has ended, or stop it.",
        ) from problem
    try:
        yield
    finally:
        lock.release()


def _train(run: RunFolder, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Train a run to its end, or as far as a stop lets it come, put its model into the folder, and say how it went."""
    not_applied = _not_applied(run.settings)
    with _only_command(run, folder):
        with _or_deleted(folder), shared.progress_bar("Training", " steps") as report_progress:
            _to_its_end(run, report_progress)
        _deliver(run, folder)
    return {**_told(run, folder, options), "not_applied": not_applied}


def _to_its_end(run: RunFolder, report_progress: ReportProgress) -> None:
    """Wait for a process that an earlier command left behind, then train what is left.

    Raises KeyboardInterrupt for a run that is stopped before it has a model, and RunFailed.
    """
    from components.training import runs

    run.take_back_stop()
    try:
        if runs.state_of(run).status == "running":
            with suppress(runs.RunFailed):  # it was killed, or interrupted: this command goes on
                _followed(run, runs.follow(run, starts=False), report_progress)
        if runs.state_of(run).status == "done":
            sys.stderr.write("The run is done: nothing is left to train.\n")
            return
        if not run.is_asked_to_stop():
            runs.resume(run)
            _say_that_it_waits()
            _followed(run, runs.follow(run, outlives=False), report_progress)
    except Stopped:  # stopped before there was a model
        raise KeyboardInterrupt from None
    except runs.RunFailed as problem:
        if runs.state_of(run).status != "interrupted":
            raise
        again = "Run the same command again: it goes on from the last checkpoint."
        raise runs.RunFailed(problem.problem, problem.expected, again) from problem


def _followed(run: RunFolder, work: Work, report_progress: ReportProgress) -> None:
    """Follow a process to its end; Ctrl-C asks it to stop, and so does SIGTERM (see command_line/stopping.py)."""
    try:
        work(report_progress, lambda: False)
    except KeyboardInterrupt:
        run.ask_to_stop()
        sys.stderr.write("\nStopping after this step; the best model so far is kept.\n")
        work(report_progress, lambda: False)


def _deliver(run: RunFolder, folder: Path) -> None:
    """Put a run's model into the folder. Who is killed here does the rest the next time. Raises InputError without a model."""
    if run.model_folder.is_dir():
        for path in sorted(run.model_folder.iterdir()):
            target = folder / path.name
            if target.is_dir():
                shutil.rmtree(target)
            path.replace(target)
        card = folder / "README.md"  # with the folder that was chosen
        if card.is_file():
            write_text(card, card.read_text("utf-8").replace(f"({run.model_folder.name!r})", f"({str(folder)!r})"))
        run.model_folder.rmdir()
    if not (folder / "config.json").is_file():
        raise InputError(
            f"The run in {folder} has ended, and its model is not there.",
            "It was moved or deleted after the training.",
            f"Delete {folder}, and run the command again.",
        )
    if run.state().status == "done":  # what was left by processes that were killed
        shutil.rmtree(run.checkpoints_folder, ignore_errors=True)
        for path in run.path.glob("*.new"):
            if path.is_file():
                path.unlink()


def _told(run: RunFolder, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Say how a run went, and return it."""
    record, state = run.record() or {}, run.state()
    result = {
        "model": str(folder),
        "status": state.status,
        "steps": state.step,
        "best_step": record.get("best_step"),
        "undamaged": record.get("undamaged"),
        "before": record.get("before"),
        "after": record.get("after"),
        "split": record.get("split"),
        "seconds": record.get("seconds"),
        "notices": [event.get("code") for event in run.events("notice")],
    }
    if options.json != "-":
        sides = {"undamaged": record.get("undamaged"), "before": record.get("before"), "after": record.get("after")}
        if sides["undamaged"] is None:  # nothing was damaged: before training it is the model as it was given
            del sides["undamaged"]
        sys.stdout.write(f"{'':<20}{''.join(f'{name:>10}' for name in sides)}\n")
        for name in sides["after"] or {}:
            numbers = "".join(f"{_number((side or {}).get(name)):>10}" for side in sides.values())
            sys.stdout.write(f"{name:<20}{numbers}\n")
        steps = f"{state.step:,} of {state.steps:,} steps" if state.status == "stopped" else f"{state.steps:,} steps"
        best = record.get("best_step")
        which = "" if best is None else f", the best after step {best:,}"
        sys.stdout.write(f"{steps}{which}. Saved in {folder}\n")
    return result


def _say_that_it_waits() -> None:
    from components.training import runs

    if runs.others_train():
        sys.stderr.write("Another training run is at work on this machine: this one begins when it has ended.\n")
        sys.stderr.flush()


def _say(
    options: argparse.Namespace,
    settings: TrainingSettings,
    data: TrainingData,
    parts: Split,
    rows: Mapping[str, tuple[int, int]],
) -> None:
    """Write to standard error what was recognised."""
    from components.training.negatives import few_answers

    columns = ", ".join(f"{ours} = {theirs}" for ours, theirs in data.read_from.items())
    sys.stderr.write(f"{data.name}: {len(data):,} {data.kind}{f' ({columns})' if columns else ''}.\n")
    if data.dropped:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in data.dropped.items())
        sys.stderr.write(f"Rows left out: {reasons}.\n")
    for warning in data.warnings:
        sys.stderr.write(f"{warning}\n")
    sys.stderr.write(
        f"{len(parts.train):,} rows to train on, {len(parts.held_out):,} held out; {parts.overlap:,} texts in both.\n"
    )
    for warning in few_answers(settings, data, parts):
        sys.stderr.write(f"{warning}\n")
    for key, (train, held_out) in rows.items():
        sys.stderr.write(f"{key}: {train:,} training rows, {held_out:,} held out.\n")
    sys.stderr.flush()


def _plan(
    settings: TrainingSettings,
    data: TrainingData,
    parts: Split,
    rows: Mapping[str, tuple[int, int]],
    kind: str,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """What a run would do, and about how long it would take."""
    from components.training.negatives import few_answers
    from components.training.settings import steps, warmup_steps

    total = steps(settings, *(train for train, _ in rows.values()))
    seconds = total * _seconds_per_step(settings, data, parts)
    if options.json != "-":
        sys.stdout.write(
            f"{total:,} steps, {warmup_steps(settings, total):,} of them warm-up; about {max(1, round(seconds / 60)):,} min "
            "on this machine without evaluations.\n"
        )
    return {
        "data": {
            "name": data.name,
            "kind": data.kind,
            "rows": len(data),
            "columns": dict(data.read_from),
            "dropped": dict(data.dropped),
            "warnings": [*data.warnings, *few_answers(settings, data, parts)],
            "texts_of_a_row": list(data.columns),
            "reading": None if data.reading is None else data.reading.as_json(),
        },
        "split": {
            "train": len(parts.train),
            "held_out": len(parts.held_out),
            "groups": parts.groups,
            "shared_texts": parts.overlap,
        },
        "objectives": {key: {"train": train, "held_out": held_out} for key, (train, held_out) in rows.items()},
        "model": settings.model,
        "trains": kind,
        "steps": total,
        "warmup_steps": warmup_steps(settings, total),
        "estimated_seconds": round(seconds, 1),
    }


def _seconds_per_step(settings: TrainingSettings, data: TrainingData, parts: Split) -> float:
    """About how long one step takes: three times a forward pass, since the backward pass takes twice as long."""
    from components.model.backend import Backend

    backend = Backend.load(settings.model)
    batch = data.take(parts.train[: settings.batch_size])
    texts = [text for column in batch.columns.values() for text in column]
    embed_options = backend.embed_options(
        max_length=min(settings.max_length, backend.own_max_length), precision="float32"
    )
    durations = []
    for _ in range(2):  # the first is longer
        started = time.perf_counter()
        backend.embed(texts, options=embed_options)
        durations.append(time.perf_counter() - started)
    return 3 * min(durations)


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.4f}"
