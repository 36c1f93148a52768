"""Runs: their process is followed, outlives its server and may be killed; their folders are bounded."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import psutil
import pytest

from components.command_line import program
from components.errors import InputError
from components.jobs import Stopped
from components.model.catalog import parse_model, spec_of
from components.training import runs, worker
from components.training.data import load, split
from components.training.history import HistoryReader
from components.training.run_folder import MOST_BYTES, EventReader, RunFolder, RunState
from components.training.settings import TrainingSettings
from tests.support.places import ROOT
from tests.support.training_runs import write_run


class Follower(threading.Thread):
    """Follows a run as a server's job would."""

    def __init__(self, run: RunFolder) -> None:
        super().__init__(daemon=True)
        self.work, self.is_stopped = runs.follow(run), threading.Event()
        self.progress: list[tuple[int, int]] = []
        self.result: RunFolder | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.work(lambda done, total: self.progress.append((done, total)), self.is_stopped.is_set)
        except (InputError, Stopped, runs.RunFailed) as problem:
            self.error = problem


def wait_for(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))
    return tmp_path / "runs"


def small_run(name="", **changes):
    settings = TrainingSettings(name=name, **changes)
    data = load("demo:pairs")
    return runs.create(settings, data, split(data, 0.2, 10, 40))


@pytest.mark.rare
def test_two_servers_follow_one_process_which_is_killed(new_run, monkeypatch):
    """Two followers stand for a server and for the one that was started after it; the process knows neither."""
    monkeypatch.setenv("BERT_INTERNALS_TRAINING_THREADS", "1")
    run = new_run(epochs=60, evaluate_every=40, watch_every=200, max_steps=600)
    first = Follower(run)
    wait_for(lambda: len(run.events("loss")) >= 3)
    state = run.state()
    second = Follower(run)
    time.sleep(3 * runs.POLL_SECONDS)
    assert (run.state().pid, run.state().status) == (state.pid, "running")
    assert len(started_for(run)) == 1
    assert runs.is_alive(state)
    assert psutil.Process(state.pid).nice() >= 10
    assert os.getsid(state.pid) == state.pid  # what ends the server does not end it
    memory = Path(f"/proc/{state.pid}/oom_score_adj")
    assert not memory.exists() or int(memory.read_text()) > 0  # the system ends it before the server
    with pytest.raises(InputError, match="is at work"):
        runs.delete(run)
    os.kill(state.pid, signal.SIGKILL)
    first.join(30)
    second.join(30)
    assert "signal 9" in str(first.error)
    assert "ended from outside" in str(second.error)  # and it did not start another by itself
    assert runs.state_of(run).status == "interrupted"
    assert not started_for(run)
    assert first.progress[-1][1] == 600


def started_for(run):
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if str(run.path) in (process.info["cmdline"] or []) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


def test_a_pid_that_another_process_has_now_is_not_ours(folder):
    run = small_run()
    mine, started = os.getpid(), runs.process_start(os.getpid())
    for other in (started - 500, started + 0.5, started - 0.01):  # a tick before is another process
        run.write_state(RunState("running", mine, other, 3, 10))
        assert runs.state_of(run).status == "interrupted"
    run.write_state(RunState("running", mine, started, 3, 10))
    assert runs.state_of(run).status == "running"
    with pytest.raises(InputError, match="is at work"):
        runs.resume(run)


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_process_stays_ours_when_somebody_sets_the_clock(folder, monkeypatch, seconds):
    """Linux computes the time at which a process was made from the clock of now."""
    run = small_run()
    run.write_state(RunState("running", os.getpid(), runs.process_start(os.getpid()), 3, 10))
    made = psutil.Process().create_time()
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: made + seconds)
    assert runs.state_of(run).status == "running"


def test_a_run_that_is_stopped_before_it_begins_starts_nothing(folder):
    run = small_run()
    with pytest.raises(Stopped):
        runs.follow(run)(lambda done, total: None, lambda: True)
    assert run.state().status == "stopped"
    assert started_for(run) == []
    runs.resume(run)
    assert (run.state().status, run.is_asked_to_stop()) == ("waiting", False)


def test_one_process_trains_at_a_time_also_where_the_runs_lie_elsewhere(folder, new_run, monkeypatch):
    """The runs of the command line are not in the folder of runs."""
    monkeypatch.setattr(runs, "WAIT_SECONDS", 0.05)
    run = new_run()
    assert run.path.parent != folder
    waiting = threading.Thread(target=worker.main, args=([str(run.path)],), daemon=True)
    assert not runs.others_train()
    with runs.turn():
        assert runs.others_train()
        waiting.start()
        waiting.join(0.5)
        assert run.state().status == "waiting"
        run.ask_to_stop()
        waiting.join(20)
        assert (run.state().status, run.has_model) == ("stopped", False)


@pytest.mark.parametrize("harm", ["link to a folder", "link to a file", "pipe", "size"])
def test_a_run_from_somebody_else_reaches_no_file_outside_and_ends(folder, tmp_path, capsys, harm):
    run, outside = small_run(), tmp_path / "outside"
    run.check_files()  # as it was made
    outside.mkdir()
    (outside / "config.json").write_text("{}")
    if harm == "link to a folder":
        run.model_folder.symlink_to(outside)
    elif harm == "link to a file":
        (run.path / "process.log").symlink_to(outside / "config.json")
    elif harm == "pipe":
        (run.path / "settings.json").unlink()
        os.mkfifo(run.path / "settings.json")
    else:
        (run.path / "settings.json").write_bytes(b" " * (MOST_BYTES + 1))
    given = tmp_path / "given"
    given.mkdir()
    run.path.rename(given / "run")
    assert program.main(["train", "--resume", str(given)]) == 2
    assert "cannot be used" in capsys.readouterr().err
    assert [path.name for path in outside.iterdir()] == ["config.json"]
    assert (outside / "config.json").read_text() == "{}"


def test_data_settings_and_split_come_back_as_they_were_given(folder):
    data = load("demo:nli")
    parts = split(data, 0.25, 4, 50)
    run = runs.create(TrainingSettings(data="demo:nli", objectives=("softmax",), name="mine"), data, parts)
    read, read_parts = runs.find("mine").data()
    assert (read.kind, read.columns, read.label_names, read.sha256) == (
        data.kind,
        data.columns,
        data.label_names,
        data.sha256,
    )
    np.testing.assert_array_equal(read.labels, data.labels)
    assert read.labels.dtype == data.labels.dtype
    np.testing.assert_array_equal(read_parts.train, parts.train)
    np.testing.assert_array_equal(read_parts.held_out, parts.held_out)
    assert (read_parts.groups, read_parts.overlap) == (parts.groups, 0)
    assert run.settings().objectives == ("softmax",)
    assert run.path.stat().st_mode & 0o077 == 0


def test_names_belong_to_one_run_and_lead_nowhere_else(folder):
    small_run("mine")
    with pytest.raises(InputError, match="already is a training run 'mine'"):
        small_run("mine")
    assert runs.find(f"../{folder.name}/mine") is None
    assert runs.find("other") is None
    assert [run.name for run in runs.list_runs()] == ["mine"]


@pytest.mark.parametrize("place", ["runs", "elsewhere"])
def test_whoever_is_killed_while_a_run_is_created_takes_no_name_and_leaves_nothing(
    folder, tmp_path, monkeypatch, place
):
    """Killed after a file was written: nothing tidies up. The next one of that name removes what was left."""
    parent = folder if place == "runs" else tmp_path / "out"
    settings, data = TrainingSettings(name="mine"), load("demo:pairs")
    path = None if place == "runs" else parent / "mine"

    def create():
        return runs.create(settings, data, split(data, 0.2, 10, 40), path)

    write_data = RunFolder.write_data
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_data", lambda run, *given: (write_data(run, *given), 1 / 0))
        patch.setattr(runs.shutil, "rmtree", lambda *given, **named: None)  # the dead tidy up nothing
        with pytest.raises(ZeroDivisionError):
            create()
    (left,) = parent.glob(".mine.*")
    assert (runs.list_runs(parent), runs.unfinished(parent)) == ([], [])  # its process, this one, is alive
    with monkeypatch.context() as patch:
        patch.setattr(runs, "process_start", lambda pid: 1.0)  # that of another process with the same pid
        assert runs.unfinished(parent) == [left]
        run = create()
    assert run.state().status == "waiting"
    assert [path.name for path in parent.iterdir()] == ["mine"]
    with pytest.raises(InputError, match="already is a training run 'mine'"):
        create()


def test_a_full_disk_while_a_run_is_created_leaves_nothing(folder, monkeypatch):
    def full(run, *given):
        (run.path / "data.jsonl.new").write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(RunFolder, "write_data", full)
    with pytest.raises(OSError, match="No space left"):
        small_run("mine")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("outlives", [True, False])
def test_a_process_ends_with_its_command_or_outlives_its_server(folder, monkeypatch, outlives):
    """What is asked of the process, and what it does of it."""
    asked = []
    monkeypatch.setattr(runs.subprocess, "Popen", lambda command, **named: asked.append(command))
    runs._start(small_run("mine"), outlives)
    assert (["--parent", str(os.getpid())] == asked[0][-2:]) is not outlives
    interruption = threading.Event()
    monkeypatch.setattr(worker, "PARENT_SECONDS", 0.01)
    waiting = threading.Thread(target=worker._wait_for_its_end, args=(os.getppid(), interruption), daemon=True)
    waiting.start()
    assert not interruption.wait(0.1)
    monkeypatch.setattr(worker.os, "getppid", lambda: 1)
    assert interruption.wait(20)


PREPARES = """
import os, sys, time
from components.training import worker

def train(run, checkpoint_seconds, is_interrupted, begun):
    if sys.argv[1] == "trains":
        begun()
    (run.path / "begun").touch()
    while sys.argv[1] == "prepares" or not is_interrupted():
        time.sleep(0.02)
    (run.path / "looked").touch()
    raise worker.Stopped

worker.train, worker._give_way, worker.PARENT_SECONDS = train, lambda: None, 0.05
main, arguments = worker.main, [sys.argv[2], "--parent", str(os.getppid())]
worker.main = lambda **named: main(arguments, **named)
sys.exit(worker._as_a_process())
"""
COMMAND = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', *sys.argv[1:]]); time.sleep(600)"


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize(
    ("does", "way"),
    [
        ("trains", "the command is killed"),
        pytest.param("prepares", "the command is killed", marks=pytest.mark.rare),
        pytest.param("prepares", "the process is asked to end", marks=pytest.mark.rare),
        pytest.param("trains", "the process is asked to end", marks=pytest.mark.rare),
    ],
)
def test_a_process_that_is_interrupted_before_its_first_step_ends_at_once(folder, does, way):
    """Its imports, its model and the measurement before training take minutes, in which it looks for nothing."""
    run = small_run("mine")
    command = subprocess.Popen([sys.executable, "-c", COMMAND, PREPARES, does, str(run.path)], cwd=ROOT)
    try:
        wait_for((run.path / "begun").exists)
        process = psutil.Process(run.state().pid)
        if way == "the command is killed":
            command.kill()
        else:
            process.terminate()
        wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    finally:
        command.kill()
        command.wait()
    assert run.state().status == "interrupted"
    assert (run.path / "looked").exists() is (does == "trains")


def test_a_process_that_another_one_of_its_run_forestalled_leaves_it_at_work(folder, monkeypatch):
    """The other one is that of a command that was killed; ours waits for its turn, and ends when it finds the work begun."""

    class Ended:
        returncode = 0

        def poll(self):
            run.write_state(RunState("running", os.getpid(), runs.process_start(os.getpid()), 3, 10))
            return 0

    run, steps = small_run("mine"), []
    monkeypatch.setattr(runs, "_start", lambda run, outlives: Ended())
    monkeypatch.setattr(runs, "POLL_SECONDS", 0.01)

    def report(done, total):
        steps.append(done)
        if len(steps) == 3:
            run.write_state(RunState("done", step=10, steps=10))
            (run.path / "model").mkdir()
            (run.path / "model" / "config.json").touch()

    assert runs.follow(run)(report, lambda: False) == run
    assert steps == [3, 3, 3, 10]


def test_to_look_at_a_run_starts_no_process(folder, monkeypatch):
    monkeypatch.setattr(runs, "_start", lambda run, outlives: pytest.fail("it started a process"))
    run = small_run("mine")
    run.write_state(RunState("running", pid=1 << 30, process_started=1.0))
    with pytest.raises(runs.RunFailed, match="ended from outside"):
        runs.follow(run, starts=False)(lambda done, total: None, lambda: False)
    assert runs.state_of(run).status == "interrupted"


def test_a_run_that_is_stopped_while_it_waits_is_stopped(folder):
    run = small_run("mine")
    assert runs.state_of(run).status == "waiting"
    run.ask_to_stop()
    assert runs.state_of(run).status == "stopped"
    assert runs.state_of(runs.resume(run)).status == "waiting"


def test_the_base_of_a_new_run_is_not_removed_for_it(folder, monkeypatch):
    base, other = small_run("base"), small_run("other")
    for number, run in enumerate((base, other)):
        run.write_state(RunState("done"))
        (run.path / "ballast").write_bytes(bytes(1_000_000))
        os.utime(run.path / "data.json", (number, number))
    monkeypatch.setenv("BERT_INTERNALS_RUNS_GB", "0.0015")
    small_run("new", model="run:base")
    assert {run.name for run in runs.list_runs()} == {"new", "base"}


def test_the_oldest_that_have_ended_make_room(folder, monkeypatch):
    names = ("first", "waiting", "second", "third")
    made = []
    for number, name in enumerate(names):
        run = small_run(name)
        if name != "waiting":
            run.write_state(RunState("done"))
        (run.path / "ballast").write_bytes(bytes(1_000_000))
        os.utime(run.path / "data.json", (number, number))
        made.append(run)
    assert [run.name for run in runs.list_runs()] == [*reversed(names)]
    monkeypatch.setenv("BERT_INTERNALS_RUNS_GB", "0.0025")
    small_run("new")
    assert [run.name for run in runs.list_runs()] == ["new", "third", "waiting"]
    monkeypatch.setenv("BERT_INTERNALS_RUNS_GB", "lots")
    with pytest.raises(InputError, match="BERT_INTERNALS_RUNS_GB is 'lots'"):
        runs.limit_bytes()


def test_the_zip_holds_the_model_the_record_and_the_metrics(learned, tmp_path):
    from sentence_transformers import SentenceTransformer

    with zipfile.ZipFile(runs.export_zip(learned)) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path)
    root = tmp_path / learned.name
    assert {f"{learned.name}/{name}" for name in ("record.json", "settings.json", "metrics.csv")} <= set(names)
    vectors = SentenceTransformer(str(root / "model"), device="cpu").encode(["ask1 ask2"])
    expected = SentenceTransformer(str(learned.model_folder), device="cpu").encode(["ask1 ask2"])
    np.testing.assert_array_equal(vectors, expected)
    lines = (root / "metrics.csv").read_text().splitlines()
    assert len(lines) == 1 + len(learned.events("loss")) + len(learned.events("evaluation"))
    assert {"step", "loss", "validation_loss", "recall@1"} <= set(lines[0].split(","))


def test_two_people_download_a_run_at_once_and_nothing_stays_on_the_disk(learned):
    before = {path.name for folder in (learned.path, learned.path.parent) for path in folder.iterdir()}
    with runs.export_zip(learned) as first, runs.export_zip(learned) as second:
        assert isinstance(first, io.RawIOBase)  # one of the kinds that Streamlit takes
        content = first.read()
        assert content == second.read()  # of equal files Streamlit keeps one copy
        assert zipfile.ZipFile(first).testzip() is None
        assert {path.name for folder in (learned.path, learned.path.parent) for path in folder.iterdir()} == before
    assert len(content) > (learned.model_folder / "model.safetensors").stat().st_size


def test_a_zip_of_nothing_is_refused(folder):
    with pytest.raises(InputError, match="has no model yet"):
        runs.export_zip(small_run())


def test_the_result_of_a_run_is_a_model(folder, learned):
    from components.model.backend import Backend

    run = small_run("mine")
    with pytest.raises(InputError, match="no trained model 'mine'"):
        parse_model("run:mine")
    run.model_folder.symlink_to(learned.model_folder)
    for wrong in ("run:", f"run:../{folder.name}/mine", "run:.hidden"):
        with pytest.raises(InputError, match="no trained model"):
            parse_model(wrong)
    spec = parse_model("run:mine")
    assert spec == spec_of("run:mine")
    assert (spec.source, spec.title) == ("run", "mine")
    backend = Backend.load("run:mine", device_name="cpu")
    assert backend.spec.key == "run:mine"
    assert backend.own_max_length == 32


def test_events_survive_a_torn_line_and_numbers_that_json_lacks(tmp_path):
    run = RunFolder(tmp_path)
    run.append({"event": "loss", "step": 1, "loss": 2.0})
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'{"event": "loss", "step": 2, "lo')
    reader = EventReader(run)
    first = reader.read()
    assert [event["step"] for event in first] == [1]
    assert reader.read() is first
    run.append({"event": "loss", "step": 3, "loss": float("nan")})
    assert reader.read() == (*first, {"event": "loss", "step": 3, "loss": None})
    assert [event["step"] for event in run.events()] == [1, 3]
    run.forget_after(1)
    assert tuple(run.events()) == reader.read() == first


def test_each_look_at_the_events_reads_only_what_is_new(tmp_path, monkeypatch):
    run = RunFolder(tmp_path)
    reader, read = EventReader(run), []
    load = json.loads
    monkeypatch.setattr(json, "loads", lambda line: read.append(line) or load(line))
    assert reader.read() == ()
    for step in range(1, 4):
        run.append({"event": "loss", "step": step, "loss": 1.0})
        assert [event["step"] for event in reader.read()] == list(range(1, step + 1))
        assert len(read) == step
    # The run goes back to a checkpoint, and then writes as much as before, with other numbers.
    run.forget_after(1)
    for step in range(2, 4):
        run.append({"event": "loss", "step": step, "loss": 2.0})
    assert [event["loss"] for event in reader.read()] == [1.0, 2.0, 2.0]
    shutil.rmtree(tmp_path)
    assert reader.read() == ()


def test_watch_vectors_come_back(tmp_path):
    run = RunFolder(tmp_path)
    vectors = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    run.write_watch(0, vectors, vectors[:, :2])
    run.write_watch(12, vectors + 1, vectors[:, :2])
    assert run.watch_steps() == (0, 12)
    np.testing.assert_array_equal(run.watch(12).sentences, vectors + 1)
    with pytest.raises(InputError, match=r"watch/3\.npz"):
        run.watch(3)
    (tmp_path / "watch" / "0.npz").write_bytes(b"PK damaged")
    with pytest.raises(InputError, match="is damaged"):
        run.watch(0)


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", '{"status": "odd"}', '{"status": "done", "more": 1}', "\x00", "[" * 100_000),
        *('{"status": "running", "pid": -1, "process_started": 1}', '{"status": "done", "step": "5"}'),
        *('{"status": "running", "pid": "../../tmp/x", "process_started": 1}', '{"status": "failed", "error": 5}'),
    ],
)
def test_a_damaged_state_is_said(tmp_path, content):
    (tmp_path / "state.json").write_text(content)
    with pytest.raises(InputError, match=r"state\.json of the run .* is damaged"):
        RunFolder(tmp_path).state()


@pytest.mark.parametrize(
    "line",
    [
        *("[" * 100_000, '{"event": "loss", "step": 1e999}', f'{{"event": "loss", "step": {10**30}}}'),
        *('{"event": ["loss"], "step": 1}', f'{{"event": "loss", "step": 1, "loss": {10**400}}}'),
        *('{"event": "loss", "step": 1, "loss": [1]}', '{"event": "evaluation", "step": 1, "=1+1": 5}'),
        *(
            '{"event": "loss", "step": 1, "objective": "=cmd()"}',
            '{"event": "loss", "step": 1, "objective": "\\ud800"}',
        ),
    ],
)
def test_an_event_that_no_process_writes_is_left_out(tmp_path, line):
    run = RunFolder(tmp_path)
    run.append({"event": "loss", "step": 1, "loss": 2.0, "objective": "mnrl"})
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write(f"{line}\n")
    assert [event["loss"] for event in run.events()] == [2.0]
    assert HistoryReader(run).read().last_step == 1


@pytest.mark.parametrize(
    ("file", "content"),
    [
        *(("data.json", {name: value}) for name, value in {
            "label_names": 5, "dropped": {"a": "b"}, "score_range": [1], "columns": ["a", "b"], "warnings": [1],
            "held_out": [10**30], "split": {"groups": "x", "overlap": 0}, "kind": "odd", "name": ["x"],
        }.items()),
        *(("data.jsonl", row) for row in (
            "[" * 100_000, '{"part": "train", "texts": ["one"], "label": null}',
            '{"part": "train", "texts": "ab", "label": null}', '{"part": "train", "texts": [1, 2], "label": null}',
        )),
    ],
)  # fmt: skip
def test_data_that_no_run_writes_is_said(tmp_path, file, content):
    run = write_run(tmp_path)
    path = run.path / file
    if isinstance(content, dict):
        path.write_text(json.dumps(json.loads(path.read_text()) | content))
    else:
        path.write_text(f"{content}\n{path.read_text()}")
    with pytest.raises(InputError, match="is damaged"):
        run.data()


def test_vectors_that_cannot_be_compared_are_said(tmp_path):
    run = write_run(tmp_path)
    assert [each.step for each in run.watch_at(0, 20)] == [0, 20]
    vectors = run.watch(20)
    for sentences, tokens in (
        (vectors.sentences[:, :3], vectors.tokens),
        (vectors.sentences[:2], vectors.tokens[:2]),
        (vectors.sentences, vectors.tokens[:, :2]),
        (vectors.sentences[0], vectors.tokens),
    ):
        np.savez(run.path / "watch" / "20.npz", sentences=sentences, tokens=tokens)
        with pytest.raises(InputError, match="is damaged"):
            run.watch_at(0, 20)


@pytest.mark.parametrize("change", [{"best_step": []}, {"before": [1]}, {"after": {"=1+1": 2}}, {"model_sha256": []}])
def test_a_record_that_no_process_writes_counts_as_none(tmp_path, change):
    run = write_run(tmp_path)
    assert run.record()["best_step"] == 20
    run.write_record({**run.record(), **change})
    assert run.record() is None


def test_state_is_json_for_others(tmp_path):
    RunFolder(tmp_path).write_state(RunState("waiting"))
    assert json.loads((tmp_path / "state.json").read_text())["status"] == "waiting"


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [
        (None, None, (None, "0")),
        ("cuda:1", None, ("cuda", "1")),
        ("cuda:1", "4,6", ("cuda", "6")),
        ("cuda", "4,6", ("cuda", "4")),
        ("cpu", None, ("cpu", "0")),
        (None, "", (None, "")),
    ],
)
def test_the_process_sees_one_accelerator(device, visible, expected):
    given = {"BERT_INTERNALS_DEVICE": device, "CUDA_VISIBLE_DEVICES": visible}
    environment = runs.one_accelerator({name: value for name, value in given.items() if value is not None})
    assert tuple(map(environment.get, given)) == expected
