"""The folder of a training run: everything that the training process writes and that others read while it works.

    settings.json      the settings
    data.json(l)       what the data is, and its rows, each in the training part, the held-out part or neither
    state.json         status, process, step, error
    events.jsonl       one event per line: loss, evaluation, watch, notice
    watch/STEP.npz     vectors of the watch sentences and of their tokens at a step; tokens.json says what the tokens are
    checkpoints/       what the process needs to continue after a crash
    model/             the result in sentence-transformers' format; adapter/ holds the low-rank adapter alone
    record.json        data, split, settings, seed, versions, results: complete once the run has ended
    process.log        what the libraries of the process said
    stop               exists while somebody wants the run to stop
    command.lock       held by the command that works on the run, where one does

One process writes, any number of others read. Files are replaced whole. Events are appended, so that a process that is
killed leaves at most a torn last line, which is ignored. Nothing is unpickled here.

A run may come from somebody else: a number, a text or a list counts only where the process writes one.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from components import packing
from components.arrays import Float32, read_arrays, read_only
from components.errors import InputError
from components.folders import own_folder, plain_file, read_plain, whole_file, write_json
from components.retrieval.corpora.rows.roles import COLUMNS, MOST_NEGATIVES
from components.sizes import in_words

if TYPE_CHECKING:
    from components.training.data import Split, TrainingData
    from components.training.settings import TrainingSettings

Status = Literal["waiting", "running", "stopped", "done", "failed", "interrupted"]
Event = dict[str, Any]  # "event" is loss, evaluation, watch or notice; "step" counts from 0, before training
ENDED: tuple[Status, ...] = ("stopped", "done", "failed")  # nothing happens any more unless the run is resumed
STATE, SETTINGS, DATA, ROWS, EVENTS, RECORD = (
    *("state.json", "settings.json", "data.json", "data.jsonl"),
    *("events.jsonl", "record.json"),
)
WATCH, TOKENS, STOP, LOG = "watch", "tokens.json", "stop", "process.log"
CHECKPOINTS, MODEL, ADAPTER, START = "checkpoints", "model", "adapter", "start"
MOST_WATCH_BYTES = 256 << 20  # of the vectors at a step; those of a whole run take at most 128 MB
LABEL_KINDS = (None, "float32", "int64")  # of TrainingData
MOST_PID = 2**31 - 1  # of a process, on all systems
MOST_EVENT_BYTES = 256 << 20  # a run writes some MB
MOST_BYTES = 8 << 20  # of a file that is read whole: settings are some 2 kB
_READ_WHOLE = {SETTINGS, STATE, RECORD, DATA, f"{WATCH}/{TOKENS}"}
_STEP_FILE = re.compile(r"^(\d{1,9})\.npz$")
_NAME = re.compile(
    r"[a-z][\w@ .-]{0,60}", re.ASCII
)  # of a measure, an objective, a kind of event: no formula, no markup


@dataclass(frozen=True)
class RunState:
    """How far a run is. `pid` and `process_started` identify its process: a pid alone may be used again."""

    status: Status
    pid: int | None = None
    process_started: float | None = None  # as in runs.process_start, in seconds
    step: int = 0  # optimizer steps that are done
    steps: int = 0  # of the whole run; 0 until they are known
    seconds: float = 0.0  # time in training, those before an interruption included
    error: str = ""  # one line, for people


@dataclass(frozen=True)
class WatchToken:
    """A token of a watch sentence, special tokens excluded."""

    sentence: int
    position: int  # in its sentence, the first special token at 0
    piece: str


@dataclass(frozen=True, eq=False)
class WatchVectors:
    """Vectors at one step."""

    step: int
    sentences: Float32  # [layer, sentence, dim], by the run's pooling
    tokens: Float32  # [layer, token, dim], in the order of `RunFolder.watch_tokens`


class RunFolder:
    """Reads and writes the files of one run. Safe to create for a folder that does not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunFolder) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    @property
    def name(self) -> str:
        """The run's name: its model is "run:NAME"."""
        return self.path.name

    @property
    def exists(self) -> bool:
        """Whether the run was created: its state is written last."""
        return (self.path / STATE).is_file()

    def check_files(self) -> None:
        """Raise InputError for a run that holds what no run writes: it may come from somebody else.

        A link would have files elsewhere read, moved or written, a pipe or a device never ends, and what is read whole has a
        limit. Nothing of the run is read.
        """
        folders = [self.path]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    shown = os.path.relpath(entry.path, self.path)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif not entry.is_file(follow_symlinks=False):
                        raise self._foreign(f"{shown} is a link, a pipe or a device")
                    elif shown in _READ_WHOLE and entry.stat().st_size > MOST_BYTES:
                        raise self._foreign(f"{shown} has more than {in_words(MOST_BYTES, binary=True)}")

    def _foreign(self, what: str) -> InputError:
        return InputError(
            f"The run {self.path} cannot be used: {what}.",
            "A run holds plain files that training wrote, and its settings and state are small.",
            "Use a run that was trained on this machine, or start a new one.",
        )

    @property
    def created(self) -> float:
        """When the run was created, in seconds since 1970; 0 if it was not."""
        with suppress(OSError):
            return (self.path / DATA).stat().st_mtime
        return 0.0

    @property
    def model_folder(self) -> Path:
        """The trained model in sentence-transformers' format; it exists once a result was saved."""
        return self.path / MODEL

    @property
    def has_model(self) -> bool:
        """Whether a result was saved, complete."""
        return (self.model_folder / "config.json").is_file()

    @property
    def start_folder(self) -> Path:
        """The model that training started from, where the run itself made it: one that was damaged on purpose."""
        return self.path / START

    @property
    def checkpoints_folder(self) -> Path:
        return self.path / CHECKPOINTS

    @property
    def nbytes(self) -> int:
        """Bytes of all files of the run."""
        total = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                with suppress(OSError):  # replaced or removed in the meantime
                    total += os.lstat(os.path.join(folder, name)).st_size
        return total

    # -- what the run was given

    def write_settings(self, settings: TrainingSettings) -> None:
        _replace(self.path / SETTINGS, settings.to_json())

    def settings(self) -> TrainingSettings:
        """Raises InputError if the file is missing or damaged."""
        from components.training.settings import TrainingSettings

        try:
            return TrainingSettings.from_json(read_plain(self.path / SETTINGS, MOST_BYTES))
        except OSError as problem:
            raise self._damaged(SETTINGS) from problem

    def write_data(self, data: TrainingData, split: Split) -> None:
        """Keep all rows, with the part that each belongs to."""
        parts: list[str | None] = [None] * len(data)
        for name, rows in (("train", split.train), ("held_out", split.held_out)):
            for row in rows.tolist():
                parts[row] = name
        texts = zip(*data.columns.values(), strict=True)
        labels = [None] * len(data) if data.labels is None else data.labels.tolist()
        lines = (
            json.dumps({"part": part, "texts": row_texts, "label": label}, ensure_ascii=False) + "\n"
            for part, row_texts, label in zip(parts, texts, labels, strict=True)
        )
        _replace(self.path / ROWS, *lines)
        apart = ("columns", "labels", "reading")
        rest = {field.name: getattr(data, field.name) for field in fields(data) if field.name not in apart}
        content = {
            **{name: dict(value) if isinstance(value, Mapping) else value for name, value in rest.items()},
            "columns": list(data.columns),
            "labels": None if data.labels is None else str(data.labels.dtype),
            "sha256": data.sha256,
            "split": {"groups": split.groups, "overlap": split.overlap},
        }
        write_json(self.path / DATA, content)

    @property
    def data_version(self) -> tuple[int, int]:
        """A value that changes when other data is written, for caches: time and size of its file; zeros without one."""
        with suppress(OSError):
            status = (self.path / DATA).stat()
            return status.st_mtime_ns, status.st_size
        return 0, 0

    def data(self) -> tuple[TrainingData, Split]:
        """The data and its split as they were given. Raises InputError if the files are missing or damaged."""
        from components.training.data import Split, TrainingData

        content = self._json(DATA)
        parts, texts, labels = [], [], []
        try:
            with plain_file(self.path / ROWS, "rb") as file:
                for line in file:
                    row = packing.valid(json.loads(line.decode("utf-8")))
                    parts.append(row["part"])
                    texts.append(row["texts"])
                    labels.append(row["label"])
            names, dtype, share = content.pop("columns"), content.pop("labels"), content.pop("split")
            content.pop("sha256")
            if dtype not in LABEL_KINDS:  # others take as many bytes a row as their name says
                raise ValueError(f"labels of the kind {str(dtype)[:20]}")
            rest: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
            }
            data = TrainingData(
                columns={name: tuple(row[number] for row in texts) for number, name in enumerate(names)},
                labels=None if dtype is None else read_only(np.array(labels, np.dtype(dtype))),
                **rest,
            )
            rows = {name: [row for row, part in enumerate(parts) if part == name] for name in ("train", "held_out")}
            train, held_out = (read_only(np.array(numbers, np.int64)) for numbers in rows.values())
            parted = Split(train, held_out, **share)
            if not _are_rows(names, texts, labels, data) or not _is_data(data, parted):
                raise ValueError("something else than the rows of a run")
            return data, parted
        except (OSError, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as problem:
            raise self._damaged(ROWS) from problem

    # -- how far it is

    def state(self) -> RunState:
        """What the process wrote last; see `runs.state_of` for whether the process still lives.

        Raises InputError if the file is missing or damaged.
        """
        content = self._json(STATE)
        try:
            state = RunState(**content)
        except TypeError as problem:
            raise self._damaged(STATE) from problem
        is_process = state.pid is None or _is_count(state.pid, MOST_PID)
        is_time = state.process_started is None or _is_number(state.process_started)
        counts = is_time and _is_number(state.seconds) and _is_count(state.step) and _is_count(state.steps)
        if state.status not in get_args(Status) or not is_process or not counts or not isinstance(state.error, str):
            raise self._damaged(STATE)
        return state

    def write_state(self, state: RunState) -> None:
        write_json(self.path / STATE, asdict(state))

    def append(self, event: Mapping[str, Any]) -> None:
        """Add an event. Numbers that are not finite become null, since JSON has none."""
        line = json.dumps({name: _finite(value) for name, value in event.items()}, ensure_ascii=False)
        path = self.path / EVENTS
        with plain_file(path, "ab+") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a torn line of a process that was killed: it must not swallow this one
                    file.write(b"\n")
            file.write(line.encode() + b"\n")
            file.flush()

    def events(self, kind: str | None = None) -> list[Event]:
        """All events, or those of a kind, in the order in which they were written; torn lines are left out."""
        return [event for event in EventReader(self).read() if kind is None or event.get("event") == kind]

    def forget_after(self, step: int, unplanned: Sequence[str] = ()) -> None:
        """Remove the events and watch vectors of later steps, which are computed again after a crash.

        Of the step itself go the `unplanned` kinds, which only a stop asked for: a run that goes on would not have them. With
        an evaluation goes what it made somebody notice.
        """
        gone = {*unplanned, *(["notice"] if "evaluation" in unplanned else [])}
        kept = [
            event
            for event in self.events()
            if event["step"] < step or (event["step"] == step and event["event"] not in gone)
        ]
        _replace(self.path / EVENTS, *(json.dumps(event, ensure_ascii=False) + "\n" for event in kept))
        for later in self.watch_steps():
            if later > step or (later == step and "watch" in gone):
                (self.path / WATCH / f"{later}.npz").unlink(missing_ok=True)

    def write_watch(self, step: int, sentences: Float32, tokens: Float32) -> None:
        """Keep vectors [layer, sentence, dim] and [layer, token, dim], and note them as an event."""
        folder = self.path / WATCH
        own_folder(folder)
        with whole_file(folder / f"{step}.npz") as file:
            np.savez(file, sentences=sentences.astype(np.float32), tokens=tokens.astype(np.float32))
        self.append({"event": "watch", "step": step})

    def watch_steps(self) -> tuple[int, ...]:
        """The steps with watch vectors, in order."""
        with suppress(OSError):
            names = (_STEP_FILE.match(name) for name in os.listdir(self.path / WATCH))
            return tuple(sorted(int(name.group(1)) for name in names if name))
        return ()

    def watch(self, step: int) -> WatchVectors:
        """The vectors at a step. Raises InputError if there are none, or if the file is damaged."""
        try:
            content = read_plain(self.path / WATCH / f"{step}.npz", MOST_WATCH_BYTES)
            arrays = read_arrays(content, MOST_WATCH_BYTES)
            found = WatchVectors(step, arrays["sentences"], arrays["tokens"])
            both = found.sentences, found.tokens
            if not all(each.ndim == 3 and each.dtype == np.float32 and len(each) for each in both):
                raise ValueError("no vectors by layer")
            return found
        except Exception as problem:  # a damaged archive fails in many ways
            raise self._damaged(f"{WATCH}/{step}.npz") from problem

    def watch_at(self, first: int, last: int) -> tuple[WatchVectors, WatchVectors]:
        """The vectors at two steps. Raises InputError as `watch` does, and for vectors that cannot be compared."""
        both, labels, count = (self.watch(first), self.watch(last)), self.watch_tokens(), len(self.settings().watch)
        sentences, tokens = both[0].sentences.shape, both[0].tokens.shape
        if any((each.sentences.shape, each.tokens.shape) != (sentences, tokens) for each in both):
            raise self._damaged(f"{WATCH}/{last}.npz")
        layers, dim = sentences[0], sentences[2]
        if sentences != (layers, count, dim) or tokens != (layers, len(labels), dim):
            raise self._damaged(f"{WATCH}/{first}.npz")
        if any(label.sentence >= count for label in labels):
            raise self._damaged(f"{WATCH}/{TOKENS}")
        return both

    def write_watch_tokens(self, tokens: Sequence[WatchToken]) -> None:
        own_folder(self.path / WATCH)
        write_json(self.path / WATCH / TOKENS, [asdict(token) for token in tokens])

    def watch_tokens(self) -> tuple[WatchToken, ...]:
        """What the tokens of the watch vectors are; empty before the first ones were written."""
        with suppress(InputError, TypeError):
            found = tuple(WatchToken(**token) for token in self._json(f"{WATCH}/{TOKENS}", list))
            if all(
                _is_count(each.sentence) and _is_count(each.position) and isinstance(each.piece, str) for each in found
            ):
                return found
        return ()

    # -- stopping and the result

    def ask_to_stop(self) -> None:
        """Let the process end after its current step; the best checkpoint so far is kept."""
        plain_file(self.path / STOP, "ab").close()

    def is_asked_to_stop(self) -> bool:
        return (self.path / STOP).exists()

    def take_back_stop(self) -> None:
        (self.path / STOP).unlink(missing_ok=True)

    def write_record(self, record: Mapping[str, Any]) -> None:
        write_json(self.path / RECORD, record)

    def record(self) -> dict[str, Any] | None:
        """The record; None before the run has ended, and for one that is damaged."""
        with suppress(InputError):
            record = dict(self._json(RECORD))
            return record if _is_record(record) else None
        return None

    def metrics_csv(self) -> str:
        """All losses and evaluations over time as CSV, one row per event."""
        events = [event for event in self.events() if event["event"] in ("loss", "evaluation")]
        names = list(dict.fromkeys(name for event in events for name in event))
        text = io.StringIO()
        writer = csv.DictWriter(text, names or ["event", "step"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(events)
        return text.getvalue()

    def _json(self, name: str, kind: type = dict) -> Any:
        try:
            content = packing.valid(json.loads(read_plain(self.path / name, MOST_BYTES).decode("utf-8")))
        except (OSError, ValueError, RecursionError) as problem:
            raise self._damaged(name) from problem
        if not isinstance(content, kind):
            raise self._damaged(name)
        return content

    def _damaged(self, name: str) -> InputError:
        state = "is damaged" if (self.path / name).exists() else "does not exist"
        return InputError(
            f"{name} of the run {self.name} {state}.",
            "It must be a complete file of a training run.",
            "Delete this run, and start a new one.",
        )


class EventReader:
    """Reads the events of a run again and again, each time only what was written since. Safe in several threads."""

    def __init__(self, run: RunFolder) -> None:
        self._path = run.path / EVENTS
        self._lock = threading.Lock()
        self._events: tuple[Event, ...] = ()
        self._file, self._position = 0, 0  # the file's number, and the end of its last whole line that was read

    def read(self) -> tuple[Event, ...]:
        """All events in the order in which they were written; torn lines are left out. Nothing new: the same object.

        A line that is still being written is read the next time. All events are read again where the file was replaced,
        because the run went back to a checkpoint.
        """
        with self._lock:
            try:
                with plain_file(self._path, "rb") as file:
                    status = os.fstat(file.fileno())
                    if status.st_size > MOST_EVENT_BYTES:
                        return ()
                    if status.st_ino != self._file or status.st_size < self._position:
                        self._file, self._position, self._events = status.st_ino, 0, ()
                    file.seek(self._position)
                    content = file.read()
            except OSError:
                self._file, self._position, self._events = 0, 0, ()
                return ()
            end = content.rfind(b"\n") + 1
            self._position += end
            new = tuple(_events(content[:end]))
            if new:
                self._events += new
            return self._events


def _events(content: bytes) -> Iterator[Event]:
    """The events in whole lines of the file; damaged lines are left out."""
    for line in content.splitlines():
        with suppress(ValueError, RecursionError):
            event = packing.valid(json.loads(line))
            if isinstance(event, dict) and _is_count(event.get("step")) and isinstance(event.get("event"), str):
                texts = [*event, *(value for value in event.values() if isinstance(value, str) and value)]
                rest = (value for value in event.values() if value is not None and not isinstance(value, str))
                if all(map(_NAME.fullmatch, texts)) and all(map(_is_number, rest)):
                    yield event


def _is_count(value: object, most: int = sys.maxsize) -> bool:
    """Whether JSON had a whole number from 0 on here."""
    return type(value) is int and 0 <= value <= most


def _is_number(value: object) -> bool:
    """Whether JSON had a number here that a figure can show."""
    return type(value) is float or (type(value) is int and abs(value) <= sys.maxsize)


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple | list) and all(isinstance(text, str) for text in values)


def _is_record(record: Mapping[str, Any]) -> bool:
    """Whether all of a record that others read is what the process writes."""

    def is_measured(side: object) -> bool:
        return (
            isinstance(side, dict)
            and all(map(_NAME.fullmatch, side))
            and all(value is None or _is_number(value) for value in side.values())
        )

    checks: dict[str, Callable[[object], bool]] = {
        **dict.fromkeys(("undamaged", "before", "after"), is_measured),
        **dict.fromkeys(("best_step", "steps"), _is_count),
        "seconds": _is_number,
        "model_sha256": lambda value: isinstance(value, str),
    }
    return all(record.get(name) is None or is_right(record[name]) for name, is_right in checks.items())


def _are_rows(names: Sequence[str], texts: Sequence[Any], labels: Sequence[Any], data: TrainingData) -> bool:
    """Whether the columns are those of the kind, and each row has a text for each and a label where there are any."""
    needed = COLUMNS[data.kind]
    is_of_kind = tuple(names[: len(needed)]) == needed and len(names) <= len(needed) + MOST_NEGATIVES
    classes = len(data.label_names)
    return (
        is_of_kind
        and _are_texts(names)
        and len(set(names)) == len(names)
        and all(isinstance(row, list) and len(row) == len(names) and _are_texts(row) for row in texts)
        and (data.labels is None or all(map(_is_number, labels)))
        and (data.labels is None or data.labels.dtype.kind == "f" or all(0 <= label < classes for label in labels))
    )


def _is_data(data: TrainingData, split: Split) -> bool:
    """Whether everything beside the rows is what `write_data` writes."""
    return (
        isinstance(data.name, str)
        and _are_texts(data.label_names)
        and _are_texts(data.warnings)
        and isinstance(data.read_from, dict)
        and _are_texts(list(data.read_from.values()))
        and isinstance(data.dropped, dict)
        and all(map(_is_count, data.dropped.values()))
        and isinstance(data.score_range, tuple)
        and len(data.score_range) == 2
        and all(map(_is_number, data.score_range))
        and isinstance(data.held_out, tuple)
        and all(_is_count(row, len(data) - 1) for row in data.held_out)
        and _is_count(split.groups)
        and _is_count(split.overlap)
        and min(len(split.train), len(split.held_out)) > 0
    )


def _replace(path: Path, *parts: str) -> None:
    """Write a text file completely or not at all."""
    with whole_file(path) as file:
        file.writelines(part.encode("utf-8") for part in parts)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
