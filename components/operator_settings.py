"""What the operator of this program can set: one table, and where each value comes from.

A value comes from the environment (BERT_INTERNALS_ and the setting's name in capitals), else from the operator's TOML
file, else it is the default. The file is the one that BERT_INTERNALS_SETTINGS names, else settings.toml in the folder
bert-internals of the user's configuration, if it exists. It is read once: a change counts from the next start.

Nothing else in the program reads these variables (a test says so). Where the default depends on the server's address,
`chosen()` is None and dashboard/access.py decides: this module knows no server.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from components.errors import InputError, first_line
from components.sizes import parse_bytes

PREFIX = "BERT_INTERNALS_"
FILE_VARIABLE = f"{PREFIX}SETTINGS"
MOST_FILE_BYTES = 1 << 20
Source = Literal["default", "file", "environment"]
Value = TypeVar("Value")


@dataclass(frozen=True)
class ValueKind(Generic[Value]):
    """What a value of a setting looks like, and how it is read."""

    read: Callable[[str], Value | None]  # None for a text that is no such value
    in_file: tuple[type, ...]  # the types of TOML that may hold it
    expected: str  # a sentence: "It must be ..."
    example: str


@dataclass(frozen=True)
class OperatorSetting(Generic[Value]):
    """One row of the table. `name` is its key in the file, in the table `section`."""

    section: str
    name: str
    kind: ValueKind[Value]
    default: Value | None  # None: `rule` says what holds instead
    rule: str  # the default as people read it
    meaning: str
    is_secret: bool = False  # its value is never shown

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.name.upper()

    def chosen(self) -> Value | None:
        """What the operator set; None if nothing. Raises InputError for an invalid value or file."""
        return found(self).value if found(self).source != "default" else None

    def value(self) -> Value:
        """What the operator set, else the default. Raises InputError; only for settings that have a default."""
        value = found(self).value
        assert value is not None, f"the default of {self.name} is a rule"
        return value


@dataclass(frozen=True)
class SettingValue(Generic[Value]):
    """The value of a setting (None: its default is a rule) and where it comes from."""

    setting: OperatorSetting[Value]
    value: Value | None
    source: Source


def _switch(text: str) -> bool | None:
    lowered = text.lower()
    return True if lowered in {"1", "yes", "on", "true"} else False if lowered in {"0", "no", "off", "false"} else None


def _at_least(least: int, example: int) -> ValueKind[int]:
    def read(text: str) -> int | None:
        digits = text.replace(",", "").replace("_", "")
        is_number = digits.isdecimal() and len(digits) <= 15  # int() refuses some thousand digits
        return int(digits) if is_number and int(digits) >= least else None

    return ValueKind(read, (int, str), f"It must be a whole number, at least {least:,}.", f"a number such as {example}")


def _gigabytes(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 1 <= value * 1e9 < float("inf") else None


def _size(text: str) -> int | None:
    try:
        return parse_bytes(text, "")
    except InputError:
        return None


def _sites(text: str) -> str | None:
    return text if re.fullmatch(r"[\w.:/*'\- \[\]]+", text) else None


def _milvus(text: str) -> str | None:
    is_file = "://" not in text and text.endswith(".db")
    return text if is_file or re.fullmatch(r"https?://[\w.\[\]-]+(:\d{1,5})?/?", text) else None


SWITCH: ValueKind[bool] = ValueKind(_switch, (bool, int, str), "It must be 1 (yes) or 0 (no).", "0")
SIZE: ValueKind[int] = ValueKind(
    _size, (int, float, str), "A size is a number of bytes, or a number with K, M or G.", "a size such as 512M or 2G"
)
TEXT: ValueKind[str] = ValueKind(lambda text: text, (str,), "It must be a text.", "a text")

DEVICE = OperatorSetting(
    "models",
    "device",
    TEXT,
    None,
    "the fastest available",
    "where models run: cpu, cuda, cuda:1 or mps",
)
CPU_AFTER_FAILURE = OperatorSetting(
    "models", "cpu_after_failure", SWITCH, False, "0", "1: when the GPU has failed, models run on the CPU from then on"
)
FREE_MODELS = OperatorSetting(
    "models",
    "free_models",
    SWITCH,
    None,
    "1 on a loopback address, else 0",
    "any model of the hub by its id; 0: only models of the list",
)
BACKEND = OperatorSetting(
    "models",
    "backend",
    ValueKind(
        lambda text: text if re.fullmatch(r"ray://[\w.:\[\]-]+:\d{1,5}", text) else None,
        (str,),
        "It must be the address of a Ray Client server.",
        "an address such as ray://10.0.0.5:10001",
    ),
    None,
    "none: this process computes",
    "a model server that several dashboards share (docs/deployment.md)",
)
SERVER_FILES = OperatorSetting(
    "paths",
    "server_files",
    SWITCH,
    None,
    "1 on a loopback address with free models, else 0",
    "models and corpora by a path of this machine, and removing indexes",
)
CACHE = OperatorSetting(
    "paths",
    "cache",
    ValueKind(lambda text: text, (str,), "It must be the path of a folder.", "the path of a folder"),
    None,
    "~/.cache/bert-internals",
    "folder of embedded corpora, training runs and token vectors; only its owner may read them",
)
UPLOADS = OperatorSetting(
    "uploads", "uploads", SWITCH, True, "1", "files that people upload: corpora, queries, scored pairs and others"
)
CORPUS_SENTENCES = OperatorSetting(
    "uploads",
    "corpus_sentences",
    _at_least(1, 1_000_000),
    1_000_000,
    "1,000,000",
    "the most sentences of a corpus in the browser, and of a file that a command reads unless an option raises it",
)
CORPUS_BYTES = OperatorSetting(
    "uploads",
    "corpus_bytes",
    SIZE,
    200 << 20,
    "200M",
    "the largest file of a corpus in the browser, and of a command unless an option raises it; the files of one session may "
    "have twice as much together",
)
KEEP_UPLOADS = OperatorSetting(
    "uploads",
    "keep_uploads",
    _at_least(0, 7),
    7,
    "7",
    "days after its last use until an upload is deleted from the cache; 0: uploads are kept in memory only",
)
UPLOADS_BYTES = OperatorSetting(
    "uploads", "uploads_bytes", SIZE, 4 << 30, "4G", "disk for the uploads of all people; those not in use go first"
)
UPLOADS_FILES = OperatorSetting(
    "uploads", "uploads_files", _at_least(1, 4_000), 4_000, "4,000", "the most files of these uploads"
)
SESSION_UPLOADS_BYTES = OperatorSetting(
    "uploads",
    "session_uploads_bytes",
    SIZE,
    None,
    "twice the largest file of a corpus",
    "disk for the uploads of one session; its oldest go first",
)
SESSION_UPLOADS_FILES = OperatorSetting(
    "uploads", "session_uploads_files", _at_least(3, 100), 100, "100", "the most files of the uploads of one session"
)
TRAINING = OperatorSetting(
    "training",
    "training",
    SWITCH,
    None,
    "1 on a loopback address, else 0",
    "people may train models, and resume, stop and delete the runs of everybody",
)
TRAINING_THREADS = OperatorSetting(
    "training",
    "training_threads",
    _at_least(1, 2),
    None,
    "all cores but one",
    "threads of the training process, which has a low priority",
)
RUNS_GB = OperatorSetting(
    "training",
    "runs_gb",
    ValueKind(_gigabytes, (int, float, str), "It must be a number of gigabytes above 0.", "a number such as 5"),
    5.0,
    "5",
    "gigabytes of disk for training runs; the oldest that have ended are removed first",
)
SENTENCES = OperatorSetting(
    "limits", "sentences", _at_least(16, 64), 64, "64", "the most sentences that the pages show together"
)
CHARACTERS = OperatorSetting(
    "limits",
    "characters",
    _at_least(1_000, 20_000),
    20_000,
    "20,000",
    "the most characters of these sentences together",
)
MODEL_BYTES = OperatorSetting(
    "limits",
    "model_bytes",
    SIZE,
    None,
    "half of the machine's memory",
    "memory for the weights of models, shared by all sessions; the least recently used is removed first",
)
TRACE_BYTES = OperatorSetting("limits", "trace_bytes", SIZE, 1 << 30, "1G", "memory for traces, shared by all sessions")
CACHE_BYTES = OperatorSetting(
    "limits",
    "cache_bytes",
    SIZE,
    20 << 30,
    "20G",
    "disk for embedded corpora; the least recently used is removed first",
)
FRAMES = OperatorSetting(
    "server",
    "frames",
    ValueKind(
        _sites,
        (str,),
        "It must be sites separated by spaces, as Content-Security-Policy writes them.",
        "sites such as 'self' https://lms.school.example",
    ),
    "'self'",
    "'self'",
    "sites that may show the dashboard in a frame",
)
LOGIN = OperatorSetting(
    "server",
    "login",
    SWITCH,
    False,
    "0",
    "pages only for people who logged in with the provider in [auth] of .streamlit/secrets.toml",
)
METRICS = OperatorSetting("server", "metrics", SWITCH, False, "0", "opens /metrics and /_stcore/metrics for Prometheus")
WARM_UP = OperatorSetting("server", "warm_up", SWITCH, True, "1", "embeds the demo corpus before somebody asks for it")
VERIFY = OperatorSetting(
    "server",
    "verify",
    SWITCH,
    True,
    "1",
    "compares each model that is not included with sentence-transformers, once, in a process of its own",
)
MILVUS = OperatorSetting(
    "search",
    "milvus",
    ValueKind(
        _milvus,
        (str,),
        "It must be the path of a file that ends in .db, or an address such as http://host:19530 without a name or password.",
        "http://localhost:19530",
    ),
    None,
    "none",
    "where Milvus is, as the Search page's third engine: a file ending in .db, or http://host:19530",
)
MILVUS_TOKEN = OperatorSetting(
    "search", "milvus_token", TEXT, None, "none", "the token of that Milvus, or user:password", True
)
DEBUG = OperatorSetting(
    "server", "debug", SWITCH, False, "0", "errors with their whole messages in the log, which can hold texts of people"
)

SETTINGS: tuple[OperatorSetting[Any], ...] = (
    DEVICE,
    CPU_AFTER_FAILURE,
    FREE_MODELS,
    BACKEND,
    SERVER_FILES,
    CACHE,
    UPLOADS,
    CORPUS_SENTENCES,
    CORPUS_BYTES,
    KEEP_UPLOADS,
    UPLOADS_BYTES,
    UPLOADS_FILES,
    SESSION_UPLOADS_BYTES,
    SESSION_UPLOADS_FILES,
    TRAINING,
    TRAINING_THREADS,
    RUNS_GB,
    SENTENCES,
    CHARACTERS,
    MODEL_BYTES,
    TRACE_BYTES,
    CACHE_BYTES,
    FRAMES,
    LOGIN,
    METRICS,
    WARM_UP,
    VERIFY,
    DEBUG,
    MILVUS,
    MILVUS_TOKEN,
)


def found(setting: OperatorSetting[Value]) -> SettingValue[Value]:
    """A setting's value and where it comes from. Raises InputError for an invalid value or file."""
    text = os.environ.get(setting.variable, "").strip()
    if text:
        return SettingValue(setting, _read(setting, text, setting.variable), "environment")
    path = file_path()
    if path is not None:
        written = _file_values(path).get(setting.name)
        if written is not None:
            return SettingValue(setting, _read(setting, written, f"{setting.name} in {path}"), "file")
    return SettingValue(setting, setting.default, "default")


def check_all() -> tuple[SettingValue[Any], ...]:
    """Every setting with its value, in the order of the table. Raises InputError for the first that is invalid."""
    return tuple(found(setting) for setting in SETTINGS)


def unknown_variables() -> tuple[str, ...]:
    """A sentence for each variable of the environment that looks like a setting and is none: a misspelt one does nothing."""
    known = [setting.variable for setting in SETTINGS]
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in {*known, FILE_VARIABLE})
    return tuple(f"{name} is not a setting and does nothing.{_similar(name, known)}" for name in unknown)


def choose(setting: OperatorSetting[Any], value: object) -> None:
    """Set a value for this process and those that it starts, as the environment would."""
    os.environ[setting.variable] = str(value)


_here_alone: set[str] = set()  # variables that this process has set for itself


def set_here(name: str, value: str) -> None:
    """Set a variable of a library for this process alone, unless the operator has."""
    if name not in os.environ:
        os.environ[name] = value
        _here_alone.add(name)


def environment() -> dict[str, str]:
    """The environment for a process that is started: what the file says is in it too, wherever that process looks."""
    path = file_path()
    written = {} if path is None else _file_values(path)
    of_file = {setting.variable: written[setting.name] for setting in SETTINGS if setting.name in written}
    named = {name: text for name, text in os.environ.items() if name not in _here_alone}
    given = {name: text for name, text in named.items() if text.strip() or name not in of_file}
    if path is not None and FILE_VARIABLE in given:
        given[FILE_VARIABLE] = str(path.absolute())
    return {**of_file, **given}


def file_path() -> Path | None:
    """The operator's file; None if there is none. Raises InputError where BERT_INTERNALS_SETTINGS names no file."""
    named = os.environ.get(FILE_VARIABLE, "").strip()
    path = _file(named, os.environ.get("XDG_CONFIG_HOME", ""))
    if path is None and named:
        raise _no_file(named)
    return path


@cache
def _file(named: str, configuration: str) -> Path | None:
    """The file of this name, else the one in the folder of the user's configuration; None if it does not exist."""
    try:
        if named:
            path = Path(named).expanduser()
            # A pipe would keep its reader waiting for ever. The null device stands for an empty file.
            return path if path.is_file() or str(path) == os.devnull else None
        base = Path(configuration) if configuration else Path.home() / ".config"
        path = base / "bert-internals" / "settings.toml"
        return path if path.is_file() else None
    except (OSError, RuntimeError, ValueError):  # no home; a name that is too long
        return None


def _no_file(named: str) -> InputError:
    return InputError(
        f"{FILE_VARIABLE} is {named[:200]!r}, and there is no such file.",
        "It must be the path of a TOML file.",
        f"Correct {FILE_VARIABLE}, or leave it unset.",
    )


def _read(setting: OperatorSetting[Value], text: str, where: str) -> Value:
    value = setting.kind.read(text)
    if value is None:
        raise _invalid(setting, repr(text[:40]), where)
    return value


def _invalid(setting: OperatorSetting[Any], given: str, where: str) -> InputError:
    return InputError(
        f"{where} is {given}.", setting.kind.expected, f"Set {where} to {setting.kind.example}, or leave it unset."
    )


@cache
def _file_values(path: Path) -> Mapping[str, str]:
    """Setting to its value in the file, as the environment would write it. Raises InputError."""
    try:
        size = path.stat().st_size
        content = {} if size > MOST_FILE_BYTES else tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise _unreadable(path, problem.strerror or str(problem)) from problem
    except ValueError as problem:  # not UTF-8, or not TOML
        raise _unreadable(path, first_line(problem)) from problem
    if size > MOST_FILE_BYTES:
        raise _unreadable(path, f"it has {size:,} bytes")
    values: dict[str, str] = {}
    sections = list(dict.fromkeys(setting.section for setting in SETTINGS))
    for section, rows in content.items():
        if section not in sections or not isinstance(rows, dict):
            home = next((setting.section for setting in SETTINGS if setting.name == section), None)
            raise InputError(
                f"{path} has {section!r} where a section is expected.",
                f"The sections are {', '.join(f'[{name}]' for name in sections)}.",
                f"Write it below [{home}]." if home else f"Correct or remove it.{_similar(section, sections)}",
            )
        of_section = {setting.name: setting for setting in SETTINGS if setting.section == section}
        for name, value in rows.items():
            if name not in of_section:
                home = next((setting.section for setting in SETTINGS if setting.name == name), None)
                raise InputError(
                    f"{path} has {name!r} in [{section}], which is not a setting.",
                    f"The settings of [{section}] are {', '.join(of_section)}.",
                    f"Write it below [{home}]." if home else f"Correct or remove it.{_similar(name, list(of_section))}",
                )
            setting = of_section[name]
            if type(value) not in setting.kind.in_file:  # a bool counts as a number in Python
                raise _invalid(setting, repr(value)[:40], f"{name} in {path}")
            text = ("1" if value else "0") if isinstance(value, bool) else str(value).strip()
            if text:
                values[name] = text
    return values


def _unreadable(path: Path, reason: str) -> InputError:
    return InputError(
        f"The settings in {path} cannot be read: {reason.removesuffix('.')}.",
        "It must be a TOML file: sections such as [limits], and below them lines such as sentences = 64.",
        f"Correct the file, or name another one in {FILE_VARIABLE}.",
    )


def _similar(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f" Perhaps {close[0]} is meant." if close else ""
