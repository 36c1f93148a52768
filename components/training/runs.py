"""The training runs of this machine: creating, following, resuming and deleting them.

Each run has a folder (see components.training.run_folder) and, while it trains, a process of its own
(components.training.worker), which neither the server's memory nor its life depends on. A lock in `runs_folder()` lets only
one process train at a time, those of the command line included, whose runs lie elsewhere; others wait for it. The server
follows a process by reading its files, so a server that was started again follows the same process: it is identified by its
pid and the time of its start.

A process that works for a command ends with it: when the command is killed, or its terminal is closed, the process writes a
checkpoint after its step and ends, so that nothing trains where nobody sees it, and nothing is lost: the same command goes
on from there. A server's process outlives the server, whose pages show it again.
"""

from __future__ import annotations

import io
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from components import operator_settings
from components.errors import InputError, UserError
from components.folders import lies_in, plain_file, private_folder
from components.jobs import IsStopped, ReportProgress, Stopped, Work
from components.model.catalog import RUN_PREFIX, RUN_START, is_run_name, runs_folder
from components.model.device import goes_on_with_cpu
from components.sizes import in_words
from components.training.run_folder import ADAPTER, ENDED, LOG, RECORD, SETTINGS, RunFolder, RunState, Status

if TYPE_CHECKING:
    from filelock import FileLock

    from components.training.data import Split, TrainingData
    from components.training.settings import TrainingSettings

LOCK = ".training.lock"  # no run can have this name
UNFINISHED = ".part"  # the end of the name of a folder whose run is being created
CHECKPOINT_SECONDS = 30.0  # between two checkpoints of a run
POLL_SECONDS, WAIT_SECONDS = 0.2, 1.0
SAME_START_SECONDS = 0.005  # a tick is 0.01 s
DISK_FULL = 74  # the exit status of a run's process that could not even write the run's state
DISK_IS_FULL = "There is no space left on the disk for this run, or for larger files."
_ROOT = Path(__file__).parents[2]
log = logging.getLogger(__name__)


class RunFailed(UserError):
    """A run whose process ended with an error."""


@dataclass(frozen=True)
class RunsUsage:
    """How much disk space all runs take."""

    runs: int
    nbytes: int
    limit: int


def limit_bytes() -> int:
    """The bytes that all runs may take: the operator's setting `runs_gb`. Raises InputError for an invalid one."""
    return int(operator_settings.RUNS_GB.value() * 1e9)


def create(settings: TrainingSettings, data: TrainingData, split: Split, folder: Path | None = None) -> RunFolder:
    """A new run, which waits to be started by `follow`.

    `folder` is the run's own folder, which may not exist yet; by default one in `runs_folder()`, named as in the settings.
    The oldest runs that have ended are removed first if all runs together take more than the limit. Raises InputError for
    a name that a run already has and for a wrong limit, and OSError if the folder cannot be written.

    The files are written beside that folder, which appears with all of them: who is killed here takes no name, and what is
    left is removed when the next run is created there.
    """
    if folder is None:
        private_folder(runs_folder())
        make_room(runs_folder(), settings.model)
        folder = runs_folder() / (settings.name or _new_name(settings))
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in unfinished(folder.parent):
        shutil.rmtree(left, ignore_errors=True)
    part = folder.with_name(f".{folder.name}.{_this_process()}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        part.mkdir(mode=0o700)
        run = RunFolder(part)
        run.write_settings(settings)
        run.write_data(data, split)
        run.write_state(RunState("waiting"))
        _give_name(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)  # after an error; else it has its name no longer
    return RunFolder(folder)


def _give_name(part: Path, folder: Path) -> None:
    """Give a complete run its name. Raises InputError if something has it."""
    try:
        if folder.exists():
            raise FileExistsError(folder)
        part.rename(folder)
    except OSError as problem:
        if not folder.exists():
            raise
        raise InputError(
            f"There already is a training run {folder.name!r}.",
            "Each run needs a name of its own.",
            "Choose another name, or delete that run.",
        ) from problem


def unfinished(folder: Path) -> list[Path]:
    """The folders of runs within this one whose creation was killed; none if it cannot be read."""
    left = []
    with suppress(OSError):
        for path in folder.iterdir():
            process = path.name.removesuffix(UNFINISHED).rsplit(".", 2)[-2:-1]
            if path.name.startswith(".") and path.name.endswith(UNFINISHED) and process and not _is_at_work(process[0]):
                left.append(path)
    return left


def _this_process() -> str:
    """A name of this process that no other has, now or later: its pid, and the time of its start in hundredths."""
    return f"{os.getpid()}-{round(100 * process_start(os.getpid()))}"


def _is_at_work(process: str) -> bool:
    """Whether the process of such a name still runs."""
    import psutil

    pid, _, started = process.partition("-")
    try:
        return abs(process_start(int(pid)) - int(started) / 100) < 2 * SAME_START_SECONDS
    except (psutil.Error, ValueError):
        return False


def find(name: str) -> RunFolder | None:
    """The run of this name, or None. Raises InputError as `runs_folder` does."""
    run = RunFolder(runs_folder() / name) if is_run_name(name) else None
    return run if run is not None and run.exists else None


def list_runs(folder: Path | None = None) -> list[RunFolder]:
    """All runs, the newest first; none if the folder cannot be read. Raises InputError as `runs_folder` does."""
    parent = runs_folder() if folder is None else folder
    with suppress(OSError):
        runs = [RunFolder(path) for path in parent.iterdir() if is_run_name(path.name)]
        return sorted((run for run in runs if run.exists), key=lambda run: run.created, reverse=True)
    return []


def state_of(run: RunFolder) -> RunState:
    """The state of a run; "interrupted" where the process that wrote "running" no longer lives.

    A run that was stopped while it waited is "stopped". Raises InputError if its state is damaged.
    """
    state = run.state()
    if state.status == "running" and not is_alive(state):
        state = run.state()  # it may have ended properly between the two looks
        if state.status == "running" and not is_alive(state):
            return replace(state, status="interrupted")
    if state.status == "waiting" and run.is_asked_to_stop():  # before it had a process that could write it
        return replace(state, status="stopped")
    return state


def is_alive(state: RunState) -> bool:
    """Whether the process of a state still runs; another process that got its pid does not count."""
    import psutil

    if state.pid is None or state.process_started is None:
        return False
    try:
        is_same = abs(process_start(state.pid) - state.process_started) < SAME_START_SECONDS
        return is_same and psutil.Process(state.pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def process_start(pid: int) -> float:
    """When a process started, in seconds: on Linux since the boot, elsewhere since 1970.

    Linux computes the time since 1970 from the clock, so that it changes when somebody sets the clock. Raises
    psutil.NoSuchProcess for a process that does not exist.
    """
    import psutil

    with suppress(OSError, IndexError, ValueError):
        status = Path(f"/proc/{pid}/stat").read_bytes()
        # The second field, the program's name in brackets, may hold spaces; the 22nd is the start in ticks (man 5 proc).
        return int(status.rpartition(b")")[2].split()[22 - 3]) / os.sysconf("SC_CLK_TCK")
    return psutil.Process(pid).create_time()


@contextmanager
def turn(is_stopped: IsStopped = lambda: False) -> Iterator[None]:
    """Wait until no other process trains, and let others wait until the end.

    Raises Stopped if `is_stopped()` is true while it waits, and OSError if the folder of runs cannot be used.
    """
    from filelock import Timeout

    lock = _lock()
    while True:
        try:
            lock.acquire(timeout=WAIT_SECONDS)
            break
        except Timeout:
            if is_stopped():
                raise Stopped from None
    try:
        yield
    finally:
        lock.release()


def others_train() -> bool:
    """Whether another process trains now, so that `turn` would wait. Raises OSError as `turn` does."""
    from filelock import Timeout

    try:
        with _lock().acquire(timeout=0):
            return False
    except Timeout:
        return True


def _lock() -> FileLock:
    from filelock import FileLock

    folder = runs_folder()
    private_folder(folder)
    return FileLock(folder / LOCK, mode=0o600)


def follow(run: RunFolder, starts: bool = True, outlives: bool = True) -> Work:
    """The work of a run for components/jobs: starts its process, or follows the one that is already at work.

    Unless it `starts` one, a run without a process is interrupted: to look at a run must not start it. A process that it
    starts `outlives` this one, or else is interrupted when this one ends.

    Progress counts steps. On a stop the process is asked to end, and the work waits for it. The result is the run, whose
    state says whether it is done or was stopped; Stopped is raised only if it was stopped before it had a result, and
    RunFailed if the process ended with an error or was ended from outside. A run that was interrupted continues from its
    last checkpoint.
    """

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> RunFolder:
        process: subprocess.Popen[bytes] | None = None
        is_attached = False
        while True:
            # Before the state is read: what the process wrote before its end is then complete.
            has_ended = process is not None and process.poll() is not None
            state = state_of(run)
            if state.steps:
                report_progress(state.step, state.steps)
            if state.status in ENDED:
                if process is not None:
                    process.wait()
                return _outcome(run, state)
            is_at_work = is_alive(state)
            if not is_at_work and (has_ended or is_attached or not starts):
                raise _ended_silently(run, state, None if process is None else process.returncode)
            if is_stopped():
                run.ask_to_stop()
            if process is None and not is_at_work:
                if run.is_asked_to_stop():
                    run.write_state(replace(state, status="stopped", pid=None, process_started=None))
                    continue
                process = _start(run, outlives)
            if has_ended:  # another process of this run was faster
                process = None
            is_attached = process is None
            time.sleep(POLL_SECONDS)

    return work


def _outcome(run: RunFolder, state: RunState) -> RunFolder:
    if state.status == "failed":
        raise _failed(state.error or "The process ended with an error.")
    if not run.has_model:
        raise Stopped
    return run


def _failed(problem: str) -> RunFailed:
    return RunFailed(
        problem,
        "The run has no model.",
        "Change the settings or the data, and start again.",
    )


def _ended_silently(run: RunFolder, state: RunState, status: int | None) -> RunFailed:
    """The error of a process that wrote none: it was killed, by the system for its memory perhaps, or could not begin."""
    if status == DISK_FULL or state.error == DISK_IS_FULL:
        return RunFailed(
            DISK_IS_FULL,
            f"It needs room for checkpoints and for the model; it has {in_words(shutil.disk_usage(run.path).free)}.",
            "Make room, then continue the run: it goes on from its last checkpoint.",
        )
    with suppress(
        OSError
    ):  # of a full disk: a run whose process is gone is interrupted, whether its state says so or not
        run.write_state(replace(state, status="interrupted", pid=None, process_started=None))
    if status is None or status <= 0:
        cause = f" (signal {-status})" if status else ""
        return RunFailed(
            f"The training process of {run.name} was ended from outside{cause}.",
            "The usual cause is too little memory.",
            "Continue the run to go on from its last checkpoint, with a smaller batch in a new run if that happens again.",
        )
    lines = (run.path / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return _failed(
        f"The training process of {run.name} could not run: {lines[-1][:200] if lines else 'no reason given'}."
    )


def _start(run: RunFolder, outlives: bool) -> subprocess.Popen[bytes]:
    """Start the process of a run. It has a session of its own, so that what ends this process's group does not end it."""
    options = ["--checkpoint-seconds", str(CHECKPOINT_SECONDS), *([] if outlives else ["--parent", str(os.getpid())])]
    # A device that failed for this process would fail for the run too.
    on_cpu = {operator_settings.DEVICE.variable: "cpu"} if goes_on_with_cpu() else {}
    environment = {
        **one_accelerator(operator_settings.environment() | on_cpu),
        # No request leaves the machine: the model's files are here before a run is created.
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }
    with plain_file(run.path / LOG, "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "components.training.worker", str(run.path), *options],
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def one_accelerator(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that sees one CUDA device, the chosen one: the trainer would use all it sees."""
    changed = dict(environment)
    name, _, index = environment.get(operator_settings.DEVICE.variable, "").strip().lower().partition(":")
    visible = [part for part in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
    number = int(index) if index.isdigit() else 0
    if "CUDA_VISIBLE_DEVICES" not in environment:
        changed["CUDA_VISIBLE_DEVICES"] = str(number)
    elif number < len(visible):
        changed["CUDA_VISIBLE_DEVICES"] = visible[number]
    if name == "cuda":
        changed[operator_settings.DEVICE.variable] = "cuda"
    return changed


def resume(run: RunFolder) -> RunFolder:
    """Let a run that was stopped, interrupted or failed continue from its last checkpoint when it is followed again.

    Raises InputError for a run that is done, or at work, or whose state is damaged, or that holds what no run writes.
    """
    run.check_files()
    state = state_of(run)
    if state.status in ("done", "running"):
        raise InputError(
            f"The run {run.name} is {'done' if state.status == 'done' else 'at work'}.",
            "Only a run that was stopped or interrupted can continue.",
            "Choose another run, or start a new one.",
        )
    run.take_back_stop()
    run.write_state(replace(state, status="waiting", pid=None, process_started=None, error=""))
    return run


def delete(run: RunFolder) -> int:
    """Remove a run, and return the bytes freed. Raises InputError while its process is at work."""
    if _status(run) == "running":
        raise _at_work(run)
    size = run.nbytes
    shutil.rmtree(run.path, ignore_errors=True)
    return size


def _status(run: RunFolder) -> Status | None:
    """The status of a run; None if its state is damaged, so that nobody can be at work."""
    try:
        return state_of(run).status
    except InputError:
        return None


def _at_work(run: RunFolder) -> InputError:
    return InputError(
        f"The run {run.name} is at work.", "Only a run that has ended can be deleted.", "Stop it first, then delete it."
    )


def usage() -> RunsUsage:
    """How much disk space all runs take, and how much they may take. Raises InputError as `limit_bytes` does."""
    runs = list_runs()
    return RunsUsage(len(runs), sum(run.nbytes for run in runs), limit_bytes())


def make_room(folder: Path | None = None, needed: str = "") -> int:
    """Remove the oldest runs that have ended or were interrupted until the rest fits the limit; the bytes freed.

    The run whose model a new one starts from (its key is `needed`) stays, and so do those at work and those that wait.
    Raises InputError as `limit_bytes` does.
    """
    runs = list_runs(folder)
    sizes = {run: run.nbytes for run in runs}
    excess, freed = sum(sizes.values()) - limit_bytes(), 0
    for run in reversed(runs):
        if freed >= excess:
            break
        if RUN_PREFIX + run.name != needed.removesuffix(RUN_START) and _status(run) in (*ENDED, "interrupted", None):
            freed += delete(run)
            log.info("removed the training run %s to make room", run.name)
    return freed


def export_zip(run: RunFolder) -> io.RawIOBase:
    """A zip of the model, the adapter, the record, the settings and the metrics as CSV: a file without a name, at its start.

    It is written to the disk file by file, so its size does not matter. Nobody else sees it, and its disk space is free as
    soon as it is closed. The same run gives the same bytes. Raises InputError without a model, and OSError if files
    disappear in the meantime or the disk is full.
    """
    if not run.has_model:
        raise InputError(
            f"The run {run.name} has no model yet.",
            "Only a run that saved a result can be downloaded.",
            "Wait until it has ended, or stop it.",
        )
    with tempfile.TemporaryFile(dir=run.path.parent) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:  # weights do not compress
            for folder in (run.model_folder, run.path / ADAPTER):
                for path in sorted(path for path in folder.rglob("*") if path.is_file() and lies_in(run.path, path)):
                    archive.write(path, f"{run.name}/{path.relative_to(run.path).as_posix()}")
            for name in (RECORD, SETTINGS):
                if (run.path / name).is_file():
                    archive.write(run.path / name, f"{run.name}/{name}")
            metrics = zipfile.ZipInfo(f"{run.name}/metrics.csv")  # with a fixed time
            metrics.external_attr = 0o600 << 16
            archive.writestr(metrics, run.metrics_csv())
        file.flush()
        whole = os.fdopen(os.dup(file.fileno()), "rb", buffering=0)
    whole.seek(0)
    return whole


def _new_name(settings: TrainingSettings) -> str:
    """A name that no run has: objectives, time, four random digits."""
    return f"{'-'.join(settings.objectives)}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
