"""Models in memory: loaded once for everybody, the last few kept, a failure remembered for a moment."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import threading
import time
import types
import weakref

import psutil
import pytest
import torch
from safetensors.torch import load_file

from components.errors import ModelError
from components.jobs import RETRY_SECONDS, Lane, Queue
from components.model import device
from components.model import loader as loader_module
from components.model.backend import Backend
from components.model.catalog import ModelSpec, catalog_spec, parse_model
from components.model.loader import DOWNLOAD_LANE, LANE, ModelLoader
from components.model.store import TraceStore
from tests.support.hub_server import HubServer, use_hub
from tests.support.places import ROOT
from tests.support.tiny import save_tiny


def spec_of(key):
    return ModelSpec(key, "hub", f"title of {key}")


@pytest.fixture
def loads(monkeypatch):
    """Backend.load replaced by a stand-in that notes what it was asked for and obeys `then`."""
    asked = types.SimpleNamespace(keys=[], sizes={}, then=lambda spec, progress, is_stopped: None)

    def load(spec, store, progress, is_stopped, make_room):
        asked.keys.append(spec.key)
        asked.then(spec, progress, is_stopped)
        return types.SimpleNamespace(spec=spec, store=store, nbytes=asked.sizes.get(spec.key, 0))

    monkeypatch.setattr(Backend, "load", load)
    return asked


def model_loader(store_bytes=1_000, **options):
    return ModelLoader(
        Queue({LANE: Lane(workers=4), DOWNLOAD_LANE: Lane(workers=4)}), TraceStore(store_bytes), **options
    )


@pytest.fixture
def loader():
    return model_loader(capacity=2)


def finished(job):
    assert job.finished.wait(20)
    return job


def failing(problem="offline"):
    def then(spec, progress, is_stopped):
        raise ModelError(problem, "given", "expected", "mend")

    return then


def stopped_download(spec, progress, is_stopped):
    end = time.monotonic() + 10
    while not is_stopped() and time.monotonic() < end:
        time.sleep(0.001)
    failing("stopped" if is_stopped() else "offline")(spec, progress, is_stopped)


def test_thirty_requests_cost_one_load(loader, loads):
    everybody_asked = threading.Event()
    loads.then = lambda *_: everybody_asked.wait(10)
    jobs = [None] * 30

    def work(number):
        jobs[number] = loader.request(spec_of("a"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not jobs[0].finished.is_set()
    everybody_asked.set()
    finished(jobs[0])
    assert {id(job) for job in jobs} == {id(jobs[0])}
    assert loads.keys == ["a"]
    assert jobs[0].result.store is loader.store
    assert loader.request(spec_of("a")).result is jobs[0].result
    assert loads.keys == ["a"]


def test_a_failure_is_remembered_and_forgotten_on_demand(loader, loads):
    loads.then = failing()
    job = finished(loader.request(spec_of("a")))
    assert job.error.kind == "offline"
    assert job.result is None
    assert loader.request(spec_of("a")) is job
    assert loads.keys == ["a"]

    loader.forget("a")
    loads.then = lambda *_: None
    again = finished(loader.request(spec_of("a")))
    assert again is not job
    assert again.result is not None
    assert loads.keys == ["a", "a"]


def test_a_failure_is_forgotten_after_a_while(loader, loads):
    loads.then = failing()
    job = finished(loader.request(spec_of("a")))
    job.finished_at -= RETRY_SECONDS - 1
    assert loader.request(spec_of("a")) is job
    job.finished_at -= 2
    assert finished(loader.request(spec_of("a"))) is not job
    assert loads.keys == ["a", "a"]


def loaded(loader):
    """Keys of the models in memory, least recently used first."""
    return [job.key for job in loader.jobs.finished() if job.result is not None]


def test_a_failure_holds_on_to_nothing_that_was_loaded(loader, loads):
    class Weights:
        pass

    kept = []

    def then(spec, progress, is_stopped):
        weights = Weights()
        kept.append(weakref.ref(weights))
        failing()(spec, progress, is_stopped)

    loads.then = then
    logging.disable(logging.CRITICAL)  # pytest keeps what is logged, the traceback with it
    try:
        job = finished(loader.request(spec_of("a")))
    finally:
        logging.disable(logging.NOTSET)
    assert job.error is not None
    end = time.monotonic() + 5
    while kept[0]() is not None and time.monotonic() < end:
        gc.collect()
    assert kept[0]() is None


def test_a_stopped_download_does_not_start_again_by_itself(loader, loads):
    loads.then = stopped_download
    job = loader.request(spec_of("a"), "me")
    loader.jobs.stop(job, "me")
    finished(job).finished_at -= 10 * RETRY_SECONDS
    assert loader.request(spec_of("a"), "me") is job
    loads.then = lambda *_: None
    loader.forget("a", "me")
    assert finished(loader.request(spec_of("a"), "me")).result is not None


def test_a_folder_saved_anew_is_loaded_anew(tmp_path):
    folder = save_tiny(tmp_path / "tiny", seed=0)
    loader = model_loader(1 << 20)
    spec = parse_model(str(folder))
    first = finished(loader.request(spec))
    assert loader.request(spec) is first
    save_tiny(folder, seed=1)
    second = finished(loader.request(spec))
    assert second is not first
    assert second.result.revision != first.result.revision


def test_forget_leaves_loaded_models_and_unknown_keys_alone(loader, loads):
    job = finished(loader.request(spec_of("a")))
    loader.forget("a")
    loader.forget("never asked for")
    assert loader.request(spec_of("a")) is job
    assert loaded(loader) == ["a"]


def test_an_unexpected_exception_belongs_to_the_job(loader, loads):
    def broken(*_):
        raise ZeroDivisionError("a fault of ours")

    loads.then = broken
    job = finished(loader.request(spec_of("a")))
    assert isinstance(job.error, ZeroDivisionError)
    assert loaded(loader) == []


def test_beyond_capacity_the_least_recently_used_goes(loader, loads):
    for key in ("a", "b"):
        finished(loader.request(spec_of(key)))
    loader.request(spec_of("a"))  # used again, after b
    finished(loader.request(spec_of("c")))
    assert loaded(loader) == ["a", "c"]
    finished(loader.request(spec_of("b")))
    assert loaded(loader) == ["c", "b"]
    assert loads.keys == ["a", "b", "c", "b"]


def test_beyond_the_bytes_the_least_recently_used_goes_and_the_newest_stays(loads):
    loader = model_loader(capacity=4, max_bytes=100)
    loads.sizes = {"a": 40, "b": 40, "c": 30, "large": 150}
    for key in ("a", "b"):
        finished(loader.request(spec_of(key)))
    loader.request(spec_of("a"))
    finished(loader.request(spec_of("c")))
    assert loaded(loader) == ["a", "c"]  # 70 of 100 bytes; with b they would be 110
    finished(loader.request(spec_of("large")))
    assert loaded(loader) == ["large"]
    finished(loader.request(spec_of("b")))
    assert loaded(loader) == ["b"]


def test_models_fit_together_by_what_is_known_of_their_sizes(loads):
    loader = model_loader(capacity=4, max_bytes=100)
    loads.sizes = {"a": 60, "b": 60}
    a, b = spec_of("a"), spec_of("b")
    assert loader.fits(b, [a])  # nothing is known of either
    for spec in (a, b):
        finished(loader.request(spec))
    assert not loader.fits(b, [a])
    assert loader.fits(a, [a])  # one model takes its memory once
    listed = catalog_spec("google-bert/bert-base-uncased")
    assert loader.size(listed) == 4 * listed.facts.parameters


def test_the_weights_of_a_model_count_once(tmp_path):
    backend = Backend.load(parse_model(str(save_tiny(tmp_path / "tiny", "albert"))), device_name="cpu")
    stored = sum(tensor.nbytes for tensor in load_file(tmp_path / "tiny" / "model.safetensors").values())
    buffers = sum(tensor.nbytes for tensor in backend.encoder.buffers())
    assert backend.nbytes == stored + buffers


def test_the_limit_is_the_setting_or_else_half_of_what_the_container_may_use(monkeypatch, tmp_path):
    monkeypatch.delenv("BERT_INTERNALS_MODEL_BYTES", raising=False)
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "no limit").write_text("max\n")
    monkeypatch.setattr(device, "CONTAINER_LIMITS", (tmp_path / "no limit", tmp_path / "missing"))
    assert loader_module.configured_bytes() == psutil.virtual_memory().total // 2
    monkeypatch.setattr(device, "CONTAINER_LIMITS", (tmp_path / "memory.max",))
    assert loader_module.configured_bytes() == 1_500_000
    monkeypatch.setenv("BERT_INTERNALS_MODEL_BYTES", "2K")
    assert loader_module.configured_bytes() == 2048


def test_a_failure_takes_no_place(loader, loads):
    for key in ("a", "b"):
        finished(loader.request(spec_of(key)))
    loads.then = failing()
    finished(loader.request(spec_of("c")))
    assert loaded(loader) == ["a", "b"]


def test_what_follows_a_load_runs_once_for_each(loads):
    ran = []
    loader = model_loader(after_load=ran.append)
    for key in ("a", "b", "a"):
        finished(loader.request(spec_of(key)))
    end = time.monotonic() + 5
    while len(ran) < 2 and time.monotonic() < end:  # it runs after those who wait were told
        time.sleep(0.001)
    assert len(ran) == 2


def test_progress_can_be_read_while_it_loads(loader, loads):
    half, go_on = threading.Event(), threading.Event()

    def then(spec, progress, is_stopped):
        progress(30_000_000, 60_000_000)
        half.set()
        go_on.wait(10)
        progress(60_000_000, 60_000_000)

    loads.then = then
    job = loader.request(spec_of("a"))
    assert half.wait(10)
    assert (job.fraction, job.done, job.total) == (0.5, 30_000_000, 60_000_000)
    go_on.set()
    finished(job)
    assert job.fraction == 1.0


def test_the_title_says_whether_it_is_downloaded(loader, loads, monkeypatch, tmp_path):
    monkeypatch.setattr(loader_module.hub, "cached_folder", lambda key: None if key == "a" else tmp_path)
    jobs = [finished(loader.request(spec_of(key))) for key in "ab"]
    assert [job.title for job in jobs] == [
        "Downloading title of a and loading it into memory",
        "Loading title of b into memory",
    ]


def test_a_stop_is_heard_and_says_what_the_download_said(loader, loads):
    started = threading.Event()

    def then(*given):
        started.set()
        stopped_download(*given)

    loads.then = then
    job = loader.request(spec_of("a"), "me")
    assert started.wait(10)
    loader.jobs.stop(job, "me")
    assert finished(job).error.kind == "stopped"
    assert job.is_stopped_for("me")


def test_a_model_that_is_in_memory_is_found_without_a_start(loader, loads):
    assert loader.find("a") is None
    job = finished(loader.request(spec_of("a")))
    assert loader.find("a") is job.result
    loads.then = failing()
    finished(loader.request(spec_of("b")))
    assert loader.find("b") is None
    assert loads.keys == ["a", "b"]


def test_a_stopped_download_of_the_real_client_can_be_asked_for_again(monkeypatch, tmp_path, embedded_folder):
    monkeypatch.setenv("BERT_INTERNALS_DEVICE", "cpu")
    loader = model_loader(1 << 20)
    spec = catalog_spec("sentence-transformers/all-MiniLM-L6-v2")
    with HubServer({spec.key: embedded_folder}) as server:
        use_hub(monkeypatch, server.address, tmp_path / "cache")
        server.pause = 0.04
        job = loader.request(spec)
        end = time.monotonic() + 10
        while job.done < 15_000_000 and time.monotonic() < end:
            time.sleep(0.005)
        assert 0 < job.fraction < 1
        loader.jobs.stop(job)
        assert finished(job).error.kind == "stopped"
        server.pause = 0.0
        loader.forget(spec.key)
        again = finished(loader.request(spec))
        assert again.error is None
        assert again.fraction == 1.0
        assert again.result.revision == server.commit(spec.key)
        assert loaded(loader) == [spec.key]


@pytest.mark.rare
def test_two_models_of_different_kinds_are_loaded_at_once_in_a_fresh_process(tiny_folder):
    """transformers imports its parts on demand, and fails where two threads ask for the first at once."""
    script = """
import sys, threading
from pathlib import Path
from components.model.loading import from_pretrained
together, loaded = threading.Barrier(2), []
def load(folder):
    together.wait()
    loaded.append(type(from_pretrained(Path(folder), "x")[0]).__name__)
threads = [threading.Thread(target=load, args=(folder,)) for folder in sys.argv[1:]]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*sorted(loaded))
"""
    folders = [str(tiny_folder(family)) for family in ("bert", "deberta-v2")]
    found = subprocess.run(
        [sys.executable, "-c", script, *folders], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert found.stdout.split() == ["BertModel", "DebertaV2Model"], found.stderr[-2000:]


def test_models_that_are_loaded_at_once_count_each_other(loads):
    loader = model_loader(max_bytes=100)
    room: list[tuple[int, int]] = []
    loader.jobs.make_room = lambda size, limit: room.append((size, limit))
    cpu = torch.device("cpu")
    loader._make_room("a", cpu, 60)
    loader._make_room("b", cpu, 30)
    loads.then = lambda spec, progress, is_stopped: loader._make_room(spec.key, cpu, 5)
    assert loader.request(spec_of("embedded")).finished.wait(10)
    loader._make_room("c", cpu, 1)
    assert room == [(60, 100), (90, 100), (95, 100), (91, 100)]
