"""`train` as a process of its own, on a model so small that most of its time is Python's start: to be killed and run again."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from components.training.run_folder import RunFolder
from tests.support.concepts import concept_pairs, save_concept_model
from tests.support.places import ROOT

STEPS = 24
MOST_SECONDS = 1_200.0  # of the clock, after which a command hangs
# A checkpoint after every step, so that a kill often meets one that is being written.
_PROGRAM = """
import sys
from components.training import runs
runs.CHECKPOINT_SECONDS = 0.0
{patch}
from components.command_line.program import main
sys.exit(main(sys.argv[1:]))
"""


class TrainCommands:
    """The same command again and again, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        save_concept_model(folder / "model")
        rows = zip(*concept_pairs(120).columns.values(), strict=True)
        lines = (json.dumps(dict(zip(("anchor", "positive"), row, strict=True))) + "\n" for row in rows)
        (folder / "pairs.jsonl").write_text("".join(lines))

    def start(
        self, out: Path, *, resumes: bool = False, patch: str = "", largest: int | None = None
    ) -> subprocess.Popen[str]:
        """Begin the command; `patch` is Python that runs before it, and no file grows beyond `largest` bytes."""

        def begin() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # as tests.support.interrupts says
            if largest is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))

        settings = ("--full", "--epochs", "4", "--batch", "16", "--learning-rate", "0.006", "--evaluate-every", "5")
        new = (str(self.folder / "pairs.jsonl"), "--model", str(self.folder / "model"), "--out", str(out), *settings)
        arguments = ("train", *(("--resume", str(out)) if resumes else new), "--json", "-")
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(patch=patch), *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                "BERT_INTERNALS_CACHE": str(self.folder / "cache"),
                "BERT_INTERNALS_TRAINING_THREADS": "1",
                "OMP_NUM_THREADS": "1",  # sums are then the same to the last bit
                # Python would keep the first bytes of what it compiled, and fail on them the next time.
                "PYTHONDONTWRITEBYTECODE": "" if largest is None else "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=begin,
        )

    def run(self, out: Path, *, resumes: bool = False) -> dict[str, Any]:
        """The command to its end, which must be a good one: what it leaves."""
        process = self.start(out, resumes=resumes)
        said, errors = process.communicate(timeout=MOST_SECONDS)
        assert process.returncode == 0, errors
        return left_by(out, json.loads(said))


def left_by(out: Path, result: dict[str, Any]) -> dict[str, Any]:
    """What must be the same however often the command was killed: what it said, its files, the weights, the events."""
    timed = {"seconds", "seconds_left", "sentences_per_second", "model"}

    def untimed(values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name not in timed}

    run = RunFolder(out / "run")
    assert run.state().status == "done"
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    return {
        "result": untimed(result),
        "files": files,
        "weights": (out / "model.safetensors").read_bytes(),
        "events": [untimed(event) for event in run.events()],
    }


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Until something is so. Fails if the process ends before, or if it takes too long."""
    end = time.monotonic() + MOST_SECONDS
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)


def worker_of(process: subprocess.Popen[str]) -> psutil.Process | None:
    """The process that trains for a command, if it has one now."""
    try:
        return next(iter(psutil.Process(process.pid).children()), None)
    except psutil.NoSuchProcess:
        return None
