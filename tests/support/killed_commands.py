"""Commands that are ended at a chosen moment: a process that has everything imported, and forks one for each command.

`python -m tests.support.killed_commands` reads one request a line from its standard input, and answers each with a line. What a
command writes on standard error lies in `stderr.txt` of its folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.made_up_corpora import sentences
from tests.support.places import ROOT

SENTENCES_PER_BLOCK = 32  # of an index, so that a small corpus has several blocks
STDERR = "stderr.txt"
CORPUS = sentences(3 * SENTENCES_PER_BLOCK + 7).texts
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}  # audit events that change the disk


@dataclass(frozen=True)
class End:
    """How a command is ended: by which signal, and before which of its changes to the disk, or after how many seconds."""

    signal: int
    change: int | None = None  # counted from 1
    seconds: float | None = None


@dataclass(frozen=True)
class Ended:
    """How a command has ended: its status (-N for signal N), its changes to the disk, seconds, and standard error."""

    status: int
    changes: int
    seconds: float
    stderr: str


class Stage:
    """The process that runs the commands."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, folder: Path, *arguments: str, end: End | None = None, full_after: int | None = None) -> Ended:
        """Run a command in a folder. No file can become larger than `full_after` bytes: a disk that is full."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        said = folder / STDERR
        said.unlink(missing_ok=True)  # a command that is ended at once writes none: not that of the one before
        request = {"folder": str(folder), "arguments": arguments, "end": end and asdict(end), "full_after": full_after}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Ended(**answer, stderr=said.read_text(encoding="utf-8") if said.exists() else "")


@contextmanager
def stage(*models: Path | str) -> Iterator[Stage]:
    """A process that has loaded these models once, so that all that a command imports is at hand."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, *map(str, models)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},  # threads do not outlive a fork
    )
    try:
        yield Stage(process)
    finally:
        process.kill()
        process.wait()


def index_command(model: Path) -> tuple[str, ...]:
    return (
        *("index", "corpus.csv", "--text-column", "text", "--model", str(model), "--layers", "2"),
        *("--poolings", "mean", "--precision", "float32", "--out", "idx", "--json", "made.json"),
    )


def new_folder(folder: Path) -> Path:
    """A folder with a corpus that has another column."""
    folder.mkdir()
    rows = "".join(f"{number % 3},{text}\n" for number, text in enumerate(CORPUS))
    (folder / "corpus.csv").write_text(f"label,text\n{rows}")
    return folder


def contents(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file below a folder, without what the stage writes and where the result says that it lies."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        if name == "made.json":
            result = json.loads(content)
            content = json.dumps({key: value for key, value in result.items() if key != "folder"}).encode()
        if name not in ("stdout.txt", "stderr.txt"):
            found[name] = hashlib.sha256(content).hexdigest()
    return found


def without_killed_results(found: dict[str, str]) -> dict[str, str]:
    """Without a result that was being written when its command was killed: nothing can remove it then."""
    return {name: content for name, content in found.items() if not name.startswith("made.json.")}


def _serve(models: list[str]) -> None:
    """Answer the requests of the standard input."""
    import scipy.stats  # noqa: F401 - imported by commands

    from components.command_line import program  # noqa: F401
    from components.model.backend import Backend
    from components.retrieval.evaluation import grid
    from components.retrieval.index import build

    for model in models:
        Backend.load(model)
    build.build_index = partial(build.build_index, sentences_per_block=SENTENCES_PER_BLOCK)  # type: ignore[assignment]
    grid.IN_MEMORY = 0  # vectors are kept on the disk
    for line in sys.stdin:
        request = json.loads(line)
        reading, writing = os.pipe()
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _run(request, writing)
        os.close(writing)
        end = request["end"]
        if end is not None and end["seconds"] is not None:
            time.sleep(end["seconds"])
            with suppress(ProcessLookupError):  # it has ended, and is still to be waited for
                os.kill(pid, end["signal"])
        with os.fdopen(reading, "rb") as pipe:
            changes = len(pipe.read())  # one byte for each
        _, status = os.waitpid(pid, 0)
        answer = {
            "status": os.waitstatus_to_exitcode(status),
            "changes": changes,
            "seconds": time.monotonic() - started,
        }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _run(request: dict[str, Any], told: int) -> None:
    """The command, in the forked process, which it ends."""
    status = 70
    try:
        os.chdir(request["folder"])
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, stream in (("stdout.txt", sys.stdout), (STDERR, sys.stderr)):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream.fileno())
        if request["full_after"] is not None:
            import resource

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing fails, as it does on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (request["full_after"], resource.RLIM_INFINITY))
        end = request["end"] or {"change": None}
        _count_changes(request["folder"], told, end["change"], end.get("signal", 0))
        from components.command_line.program import main

        status = main(request["arguments"])
        sys.stdout.flush()
    except KeyboardInterrupt:  # before the program could take it, as in components/__main__.py
        status = 130
    finally:
        os._exit(status)


def _count_changes(folder: str, told: int, change: int | None, number: int) -> None:
    """Tell of each change to the disk below the folder or the temporary one, and send a signal before one of them."""
    changes, places = 0, (folder, os.environ.get("TMPDIR") or folder)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal changes
        if event == "open":
            path, _, flags = arguments
            is_change = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))
        else:
            path = arguments[0] if arguments else None
            is_change = event in CHANGES
        if not is_change or not isinstance(path, (str, bytes, os.PathLike)):
            return
        if os.path.abspath(os.fsdecode(path)).startswith(places):
            changes += 1
            os.write(told, b".")
            if changes == change:
                os.kill(os.getpid(), number)

    sys.addaudithook(hook)


if __name__ == "__main__":
    _serve(sys.argv[1:])
