"""Models in memory: loaded once for everybody, the last few kept, a failure remembered for a moment."""

from __future__ import annotations

import gc
import logging
import threading
import time
import types
import weakref

import pytest

from components.errors import ModelError
from components.model import loader as shelf_module
from components.model.backend import Backend
from components.model.catalog import ModelSpec, catalog_spec, parse_model
from components.model.loader import LoadJob, ModelShelf
from components.model.store import TraceStore
from tests.hub_server import HubServer, use_hub
from tests.tiny import save_tiny


def spec_of(key):
    return ModelSpec(key, "hub", f"title of {key}")


@pytest.fixture
def loads(monkeypatch):
    """Backend.load replaced by a stand-in that notes what it was asked for and obeys `then`."""
    asked = types.SimpleNamespace(keys=[], then=lambda spec, progress, cancelled: None)

    def load(spec, store, progress, cancelled):
        asked.keys.append(spec.key)
        asked.then(spec, progress, cancelled)
        return types.SimpleNamespace(spec=spec, store=store)

    monkeypatch.setattr(Backend, "load", load)
    return asked


@pytest.fixture
def shelf():
    return ModelShelf(TraceStore(1_000), capacity=2)


def finished(job):
    assert job.finished.wait(20)
    return job


def failing(problem="offline"):
    def then(spec, progress, cancelled):
        raise ModelError(problem, "given", "expected", "mend")

    return then


def test_thirty_requests_cost_one_load(shelf, loads):
    everybody_asked = threading.Event()
    loads.then = lambda *_: everybody_asked.wait(10)
    jobs = [None] * 30

    def work(number):
        jobs[number] = shelf.request(spec_of("a"))

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
    assert jobs[0].backend.store is shelf.store
    assert shelf.request(spec_of("a")).backend is jobs[0].backend
    assert loads.keys == ["a"]


def test_a_failure_is_remembered_and_forgotten_on_demand(shelf, loads):
    loads.then = failing()
    job = finished(shelf.request(spec_of("a")))
    assert job.error.kind == "offline"
    assert job.backend is None
    assert shelf.request(spec_of("a")) is job
    assert loads.keys == ["a"]

    shelf.forget("a")
    loads.then = lambda *_: None
    again = finished(shelf.request(spec_of("a")))
    assert again is not job
    assert again.backend is not None
    assert loads.keys == ["a", "a"]


def test_a_failure_is_forgotten_after_a_while(shelf, loads, monkeypatch):
    loads.then = failing()
    job = finished(shelf.request(spec_of("a")))
    later = time.monotonic() + shelf_module.FAILURE_KEPT_SECONDS
    monkeypatch.setattr(shelf_module, "time", types.SimpleNamespace(monotonic=lambda: later - 1))
    assert shelf.request(spec_of("a")) is job
    monkeypatch.setattr(shelf_module, "time", types.SimpleNamespace(monotonic=lambda: later + 1))
    assert finished(shelf.request(spec_of("a"))) is not job
    assert loads.keys == ["a", "a"]


def loaded(shelf):
    """Keys of the models in memory, least recently used first."""
    return [key for key, job in shelf._jobs.items() if job.backend is not None]


def test_stale_failures_are_not_kept(shelf, loads, monkeypatch):
    loads.then = failing()
    for number in range(50):
        finished(shelf.request(spec_of(f"wrong{number}")))
    later = time.monotonic() + shelf_module.FAILURE_KEPT_SECONDS + 1
    monkeypatch.setattr(shelf_module, "time", types.SimpleNamespace(monotonic=lambda: later))
    finished(shelf.request(spec_of("one more")))
    assert list(shelf._jobs) == ["one more"]


def test_a_failure_holds_on_to_nothing_that_was_loaded(shelf, loads):
    class Weights:
        pass

    kept = []

    def then(spec, progress, cancelled):
        weights = Weights()
        kept.append(weakref.ref(weights))
        failing()(spec, progress, cancelled)

    loads.then = then
    logging.disable(logging.CRITICAL)  # pytest keeps what is logged, the traceback with it
    try:
        job = finished(shelf.request(spec_of("a")))
    finally:
        logging.disable(logging.NOTSET)
    assert job.error is not None
    end = time.monotonic() + 5
    while kept[0]() is not None and time.monotonic() < end:
        gc.collect()
    assert kept[0]() is None


def test_a_cancelled_download_does_not_start_again_by_itself(shelf, loads, monkeypatch):
    loads.then = failing("cancelled")
    job = finished(shelf.request(spec_of("a")))
    later = time.monotonic() + 10 * shelf_module.FAILURE_KEPT_SECONDS
    monkeypatch.setattr(shelf_module, "time", types.SimpleNamespace(monotonic=lambda: later))
    assert shelf.request(spec_of("a")) is job
    shelf.forget("a")
    assert finished(shelf.request(spec_of("a"))) is not job


def test_a_folder_saved_anew_is_loaded_anew(tmp_path):
    folder = save_tiny(tmp_path / "tiny", seed=0)
    shelf = ModelShelf(TraceStore(1 << 20))
    spec = parse_model(str(folder))
    first = finished(shelf.request(spec))
    assert shelf.request(spec) is first
    save_tiny(folder, seed=1)
    second = finished(shelf.request(spec))
    assert second is not first
    assert second.backend.revision != first.backend.revision


def test_forget_leaves_loaded_models_and_unknown_keys_alone(shelf, loads):
    job = finished(shelf.request(spec_of("a")))
    shelf.forget("a")
    shelf.forget("never asked for")
    assert shelf.request(spec_of("a")) is job
    assert loaded(shelf) == ["a"]


def test_an_unexpected_exception_belongs_to_the_job(shelf, loads):
    def broken(*_):
        raise ZeroDivisionError("a fault of ours")

    loads.then = broken
    job = finished(shelf.request(spec_of("a")))
    assert isinstance(job.error, ZeroDivisionError)
    assert loaded(shelf) == []


def test_beyond_capacity_the_least_recently_used_goes(shelf, loads):
    for key in ("a", "b"):
        finished(shelf.request(spec_of(key)))
    shelf.request(spec_of("a"))  # used again, after b
    finished(shelf.request(spec_of("c")))
    assert loaded(shelf) == ["a", "c"]
    finished(shelf.request(spec_of("b")))
    assert loaded(shelf) == ["c", "b"]
    assert loads.keys == ["a", "b", "c", "b"]


def test_a_failure_takes_no_place(shelf, loads):
    for key in ("a", "b"):
        finished(shelf.request(spec_of(key)))
    loads.then = failing()
    finished(shelf.request(spec_of("c")))
    assert loaded(shelf) == ["a", "b"]


def test_what_follows_a_load_runs_once_for_each(loads):
    ran = []
    shelf = ModelShelf(TraceStore(1_000), after_load=ran.append)
    for key in ("a", "b", "a"):
        finished(shelf.request(spec_of(key)))
    end = time.monotonic() + 5
    while len(ran) < 2 and time.monotonic() < end:  # it runs after those who wait were told
        time.sleep(0.001)
    assert len(ran) == 2


def test_progress_can_be_read_while_it_loads(shelf, loads):
    half, go_on = threading.Event(), threading.Event()

    def then(spec, progress, cancelled):
        progress(30_000_000, 60_000_000)
        half.set()
        go_on.wait(10)
        progress(60_000_000, 60_000_000)

    loads.then = then
    job = shelf.request(spec_of("a"))
    assert half.wait(10)
    assert (job.fraction, job.message) == (0.5, "Fetching title of a: 30 of 60 MB")
    go_on.set()
    finished(job)
    assert (job.fraction, job.message) == (1.0, "Loading title of a into memory")


def test_without_a_download_there_is_no_fraction():
    job = LoadJob(spec_of("a"))
    assert (job.fraction, job.message) == (None, "Loading title of a into memory")


def test_a_cancel_is_heard(shelf, loads):
    started = threading.Event()

    def then(spec, progress, cancelled):
        started.set()
        end = time.monotonic() + 10
        while not cancelled() and time.monotonic() < end:
            time.sleep(0.001)
        failing("cancelled" if cancelled() else "offline")(spec, progress, cancelled)

    loads.then = then
    job = shelf.request(spec_of("a"))
    assert started.wait(10)
    job.cancel.set()
    assert finished(job).error.kind == "cancelled"


def test_a_cancelled_download_of_the_real_client_can_be_asked_for_again(monkeypatch, tmp_path, embedded_folder):
    monkeypatch.setenv("BERT_INTERNALS_DEVICE", "cpu")
    shelf = ModelShelf(TraceStore(1 << 20))
    spec = catalog_spec("sentence-transformers/all-MiniLM-L6-v2")
    with HubServer({spec.key: embedded_folder}) as server:
        use_hub(monkeypatch, server.address, tmp_path / "cache")
        server.pause = 0.04
        job = shelf.request(spec)
        end = time.monotonic() + 10
        while job.done_bytes < 15_000_000 and time.monotonic() < end:
            time.sleep(0.005)
        assert 0 < job.fraction < 1
        job.cancel.set()
        assert finished(job).error.kind == "cancelled"
        server.pause = 0.0
        shelf.forget(spec.key)
        again = finished(shelf.request(spec))
        assert again.error is None
        assert again.fraction == 1.0
        assert again.backend.revision == server.commit(spec.key)
        assert loaded(shelf) == [spec.key]
