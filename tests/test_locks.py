"""The order of the locks (components/jobs/__init__.py): all are in the list, and busy threads keep to it."""

from __future__ import annotations

import hashlib
import random
import re
from concurrent.futures import ThreadPoolExecutor
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import components.jobs
from components.jobs import Cache, Job, Jobs, Lane, Presence, Queue, Stopped
from components.kept_files import KeptFiles, Room
from components.lessons.answers import Answers
from components.model.catalog import spec_of
from components.model.files.sources import verify_checksum
from components.model.loader import ModelLoader
from components.model.store import TraceStore
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.index.cache import IndexCache
from tests.support.locks import ROOT, Recorder, locks_of, record
from tests.support.tiny import save_tiny_masked_lm

LINE = re.compile(r"^ +(components/\S+\.py|dashboard/\S+\.py) +(\S+) ", re.MULTILINE)


def listed() -> list[str]:
    """The locks as components.jobs lists them: whoever holds one takes only those that come after it."""
    return [" ".join(found) for found in LINE.findall(components.jobs.__doc__ or "")]


def circle(order: set[tuple[str, str]]) -> list[str]:
    """Locks that threads take in a circle; empty if there is none."""
    taken_after: dict[str, set[str]] = {}
    for held, taken in order:
        taken_after.setdefault(taken, set()).add(held)
    try:
        TopologicalSorter(taken_after).prepare()
    except CycleError as problem:
        return list(problem.args[1])
    return []


def test_the_list_has_every_lock_of_the_project_once() -> None:
    paths = [path for folder in ("components", "dashboard") for path in (ROOT / folder).rglob("*.py")]
    created = [name for path in paths for *_, name in locks_of(path)]
    assert sorted(listed()) == sorted(created)


def test_a_circle_and_a_wait_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorder = record(monkeypatch)
    first, second = Cache[int](2), Cache[int](2)
    with first._lock, second._lock:
        pass
    assert recorder.order == {("components/jobs/caches.py Cache._lock", "components/jobs/caches.py Cache._lock")}
    assert circle(recorder.order)  # two caches whose locks are taken together: in which order is chance
    with first._lock:
        Job("A").finished.wait(0)
    assert recorder.held_while_waiting == {"components/jobs/caches.py Cache._lock"}
    assert circle({("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")})
    assert not circle({("a", "b"), ("b", "c"), ("a", "c")})


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorder:
    """What was recorded while four people loaded a model, ran it, built and cleared indexes, and stopped one another's jobs."""
    folder = save_tiny_masked_lm(tmp_path / "model")
    recorder = record(monkeypatch)
    presence = Presence(lambda person: person != "gone")
    lanes = dict.fromkeys(("models", "downloads", "embedding", "short embedding", "other servers"), Lane(workers=2))
    queue = Queue({**lanes, "last": Lane(gives_way=True), "few": Lane(most_waiting=1)}, is_present=presence.is_present)
    loader = ModelLoader(queue, TraceStore(1 << 20), 1, lambda model: model.trace(["the cat"]), max_bytes=1 << 30)
    indexes, answers = IndexCache(queue, tmp_path / "indexes", limit=1), Answers()
    files = KeptFiles(tmp_path / "files", Room(1_000, 3), Room(500, 2), 7, presence.is_present)
    kinds = [Jobs(queue, lane, keep=2, keep_bytes=10, retry_seconds=0) for lane in ("last", "few")]
    cache: Cache[int] = Cache(2)
    spec = spec_of(str(folder))

    def steps(report_progress, is_stopped):
        for step in range(3):
            report_progress(step, 3)
            if is_stopped():
                raise Stopped
        return step

    def visit(number: int) -> None:
        chance = random.Random(number)
        for round_ in range(12):
            person = chance.choice(("Ann", "Ben", "gone"))
            model = loader.request(spec, person)
            assert model.finished.wait(100)
            backend = model.result
            texts = tuple(chance.sample(["the cat sat", "a dog ran", "the river", "money in the bank"], 2))
            backend.trace(list(texts), attentions=True, mask_logits=chance.random() < 0.5)
            options = backend.embed_options((0, 2), ("mean",), precision=chance.choice(("float32", "auto")))
            index = indexes.request(backend, Corpus("c", texts), options, person=person)
            indexes.find(backend, Corpus("c", texts), options)
            for jobs in kinds:
                job = jobs.request(chance.choice("abc"), "A", steps, person=person, then=jobs.end_if_left)
                chance.choice((jobs.stop, jobs.forget))(job, person)
                jobs.drop(jobs.finished())
                cache.get(job.key, lambda: cache.get(round_, lambda: 1))  # noqa: B023
            indexes.jobs.stop(index, person) if chance.random() < 0.2 else index.finished.wait(100)
            indexes.jobs.forget(index, person)
            if chance.random() < 0.2:
                indexes.clear()
            name = files.keep(texts[0].encode(), person)
            assert name is not None
            files.leave(name, person)
            answers.give("question", person, round_)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(visit, range(4)))
    path = folder / "model.safetensors"
    verify_checksum(path, hashlib.sha256(path.read_bytes()).hexdigest())
    assert queue.close(100)
    return recorder


def test_busy_threads_take_locks_in_the_order_of_the_list(busy: Recorder) -> None:
    assert circle(busy.order) == []
    assert busy.held_while_waiting == set()
    places = {name: place for place, name in enumerate(listed())}
    assert [pair for pair in sorted(busy.order) if places[pair[0]] >= places[pair[1]]] == []
    used = {name.split(" ")[0] for name in busy.asked}
    assert {f"components/jobs/{name}.py" for name in ("caches", "job", "kinds", "lanes", "presence")} <= used
    assert {f"components/model/{name}.py" for name in ("loaded", "loading")} <= used
    assert {"components/kept_files.py", "components/retrieval/index/cache.py"} <= used
    # Those that jobs and queues take hold nobody up: nothing but a job's own lock is taken under them.
    ours = {pair for pair in busy.order if pair[0].startswith("components/jobs/")}
    assert ours == {("components/jobs/kinds.py Jobs._lock", "components/jobs/job.py Job.changed")}
