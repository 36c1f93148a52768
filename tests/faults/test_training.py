"""`train` is interrupted at every moment and in every way: the same command again ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from components.training import runs
from components.training.run_folder import RunFolder
from tests.support.train_commands import MOST_SECONDS, STEPS, TrainCommands, wait_for, worker_of

ROUNDS = int(os.environ.get("FUZZ_MOMENTS", "100"))  # of make fuzz
# Each makes a moment long that is too short to be met: after the first file of a run, after the first file of the model.
SLOW_CREATION = """
import time
from components.training.run_folder import RunFolder
write = RunFolder.write_data
RunFolder.write_data = lambda run, *given: (write(run, *given), time.sleep(600))
"""
SLOW_DELIVERY = """
import time
from pathlib import Path
replace = Path.replace
Path.replace = lambda path, target: (replace(path, target), time.sleep(600) if path.parent.name == "model" else None)[0]
"""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> TrainCommands:
    return TrainCommands(tmp_path_factory.mktemp("commands"))


@pytest.fixture(scope="module")
def whole(commands: TrainCommands, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a command leaves that nothing interrupts; and how long it took."""
    started = time.monotonic()
    left = commands.run(tmp_path_factory.mktemp("whole") / "out")
    assert left["result"]["steps"] == STEPS
    return left | {"duration": time.monotonic() - started}


def check_same(left: dict[str, Any], whole: dict[str, Any]) -> None:
    for name, value in left.items():
        assert value == whole[name], name


def begun(commands: TrainCommands, out: Path, moment: str) -> subprocess.Popen[str]:
    """A command that has come to a moment."""
    run = RunFolder(out / "run")
    if moment == "created":
        process = commands.start(out, patch=SLOW_CREATION)
        wait_for(lambda: out.is_dir() and list(out.glob(".run.*/data.json")), process)
    elif moment == "middle":
        process = commands.start(out)
        wait_for(lambda: 3 <= len(run.events("loss")) < STEPS - 5, process)
    else:
        process = commands.start(out, patch=SLOW_DELIVERY)
        wait_for((out / "1_Pooling").exists, process)
    return process


@pytest.mark.rare
@pytest.mark.parametrize("moment", ["created", "middle", "delivery"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_same_command_goes_on_after_a_signal(
    commands: TrainCommands, whole: dict[str, Any], tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    out = tmp_path / "out"
    process = begun(commands, out, moment)
    process.send_signal(number)
    said, errors = process.communicate(timeout=60)
    if number == signal.SIGKILL:
        assert process.returncode == -number
    elif moment == "middle":
        assert process.returncode == 0
        assert "Stopping after this step; the best model so far is kept." in errors
        assert json.loads(said)["status"] == "stopped"
        assert (out / "config.json").is_file()
    else:
        assert process.returncode == (143 if number == signal.SIGTERM else 130)
        assert errors.strip().splitlines()[-1].startswith("Stopped.")
    check_same(commands.run(out), whole)
    check_same(commands.run(out, resumes=True), whole)


@pytest.mark.rare
def test_nothing_trains_for_a_command_that_was_killed(
    commands: TrainCommands, whole: dict[str, Any], tmp_path: Path
) -> None:
    """Its process writes a checkpoint and ends; the next command goes on from there."""
    run = RunFolder(tmp_path / "out" / "run")
    process = begun(commands, tmp_path / "out", "middle")
    worker = worker_of(process)
    assert worker is not None
    process.kill()
    psutil.wait_procs([worker], timeout=60)
    assert not worker.is_running()
    assert runs.state_of(run).status == "interrupted"
    assert 3 <= run.state().step < STEPS
    assert list(run.checkpoints_folder.glob(f"checkpoint-{run.state().step}/complete.json"))
    process.communicate()
    check_same(commands.run(tmp_path / "out", resumes=True), whole)


@pytest.mark.rare
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_ended_from_outside_is_told_and_goes_on(
    commands: TrainCommands, whole: dict[str, Any], tmp_path: Path, number: signal.Signals
) -> None:
    process = begun(commands, tmp_path / "out", "middle")
    worker = worker_of(process)
    assert worker is not None
    worker.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "ended from outside" in errors
    assert errors.rstrip().endswith("Run the same command again: it goes on from the last checkpoint.")
    check_same(commands.run(tmp_path / "out"), whole)


@pytest.mark.rare
@pytest.mark.parametrize(("moment", "largest"), [("created", 2_000), ("begun", 100_000), ("middle", 100_000)])
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    commands: TrainCommands, whole: dict[str, Any], tmp_path: Path, moment: str, largest: int
) -> None:
    """A limit of the size of files stands for it: the rows of the run do not fit, or the weights of a checkpoint."""
    out = tmp_path / "out"
    run = RunFolder(out / "run")
    if moment == "middle":  # with a checkpoint of an earlier command
        process = begun(commands, out, "middle")
        worker = worker_of(process)
        process.kill()
        psutil.wait_procs([worker], timeout=60)
        process.communicate()
    checkpoints = sorted(path.parent.name for path in run.checkpoints_folder.glob("*/complete.json"))
    assert bool(checkpoints) == (moment == "middle")
    process = commands.start(out, largest=largest)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    last = errors.strip().splitlines()[-1]
    if moment == "created":
        assert "File too large" in last
        assert not out.exists() or not list(out.iterdir())
    else:
        assert last.startswith("There is no space left on the disk for this run, or for larger files.")
        assert last.endswith("Run the same command again: it goes on from the last checkpoint.")
        assert checkpoints[-1:] == [
            path.parent.name
            for path in run.checkpoints_folder.glob("*/complete.json")
            if path.parent.name in checkpoints[-1:]
        ]
    check_same(commands.run(out), whole)


@pytest.mark.fuzz
@pytest.mark.timeout(3_600)  # a round takes half a minute of a processor, of which a busy machine has little
@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_command_that_is_killed_at_a_random_moment_ends_like_one_that_is_not(
    commands: TrainCommands, whole: dict[str, Any], tmp_path: Path, number: int
) -> None:
    """One or two times, the command, its process or both, in each way; then the same command or --resume, at once."""
    chance = random.Random(20_261_125 + number)
    out = tmp_path / "out"
    run = RunFolder(out / "run")
    for _ in range(chance.choice((1, 1, 2))):
        resumes = run.exists and chance.random() < 0.3
        process = commands.start(out, resumes=resumes)
        _kill(process, chance, whole["duration"])
        process.communicate(timeout=MOST_SECONDS)
    check_same(commands.run(out, resumes=run.exists and chance.random() < 0.3), whole)


def _kill(process: subprocess.Popen[str], chance: random.Random, duration: float) -> None:
    """Send a signal to the command, to its process, or kill both, at any moment of their time."""
    target = chance.choice(("command", "command", "worker", "both"))
    moment = time.monotonic() + chance.random() * duration
    sent = signal.SIGKILL if target == "both" else chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    if target == "worker" and sent == signal.SIGINT:
        sent = signal.SIGKILL
    while time.monotonic() < moment and process.poll() is None:
        time.sleep(0.002)
    worker = worker_of(process)
    for goal in (process, worker) if target == "both" else (worker or process,) if target == "worker" else (process,):
        try:
            if goal is not None:
                goal.send_signal(sent)
        except psutil.NoSuchProcess:
            continue
