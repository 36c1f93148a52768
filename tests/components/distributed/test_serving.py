"""The model server: requests that share a pass, what a dashboard does without it, and a real one on Ray."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.arrays import Float32
from components.distributed import direct, serving
from components.distributed.serving import ModelServer, PassesOfModel, Served, TraceRequest, joined
from components.errors import InputError, UserError
from components.jobs import Stopped, WorkFailed
from components.model.backend import Backend
from components.model.elsewhere import part_of_trace
from components.model.embedding import embedder
from components.model.embedding.options import EmbedOptions, EmbedReport
from components.model.trace import Trace, TraceOptions
from tests.support.closeness import assert_close
from tests.support.model_server import ENVIRONMENT, Cluster, model_server, wait_until_connected
from tests.support.places import ROOT
from tests.support.tiny import save_tiny

TEXTS = ["the cat sat on the red hat.", "a dog ran", "we will put money in the bank by the river !"]
PLAIN, WITH_ATTENTIONS = TraceOptions(), TraceOptions(attentions=True)


class Counted:
    """Another process that answers with our own model's results; `is_there` says whether it answers."""

    def __init__(self, backend: Backend, is_served: bool = True) -> None:
        self.backend, self.is_there = backend, is_served
        self.answers = True
        self.traces: list[tuple[str, ...]] = []
        self.embedded: list[int] = []

    def trace(self, texts: Any, pairs: Any, options: TraceOptions) -> Trace | None:
        self.traces.append(tuple(texts))
        return replace(self.backend.run(texts, pairs, options), head=None) if self.answers else None

    def embed(self, texts: Any, options: EmbedOptions) -> tuple[Float32, EmbedReport] | None:
        self.embedded.append(len(texts))
        if not self.answers:
            return None
        return self.backend.embed(texts, options=options), EmbedReport(10 * len(texts), 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def backend(folder: Path) -> Backend:
    return Backend.load(str(folder))


@pytest.fixture(scope="module")
def other(folder: Path) -> Backend:
    return Backend.load(str(folder))


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    """A thread as pages have: the main one may run the event loop of browser tests, in which nobody may wait for Ray."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def request(*texts: str, options: TraceOptions = PLAIN, model: str = "tiny") -> TraceRequest:
    return TraceRequest(model, texts, None, options)


def test_requests_of_one_model_share_a_pass_up_to_the_most_sentences() -> None:
    several = [
        request("a", "b"),
        request("c"),
        request("d", model="other"),
        request("e", options=WITH_ATTENTIONS),
        request("f", "g"),
        request("h"),
        request("i", options=WITH_ATTENTIONS),
    ]
    assert joined(several, 4) == [0, 1, 5]
    assert joined(several, 64) == [0, 1, 4, 5]
    assert joined(several[2:], 64) == [0]
    assert joined(several[3:], 64) == [0]


def test_what_a_request_takes_is_told_by_both_texts_and_its_options() -> None:
    pair = TraceRequest("m", ("ab", "c"), ("def", None), PLAIN)
    assert pair.lengths == [15, 11]
    large = (WITH_ATTENTIONS, TraceOptions(mask_logits=True))  # whose sizes grow quickly
    assert [replace(pair, options=options).can_be_joined for options in (PLAIN, *large)] == [True, False, False]


def test_a_long_text_has_a_pass_of_its_own() -> None:
    long, short = request("the cat sat on the mat. " * 40), [request("a dog ran"), request("the red hat")]
    assert joined([*short, long], 64) == [0, 1]
    assert joined([long, *short], 64) == [0]
    assert joined([long, short[0], long], 64) == [0, 2]


def test_a_part_of_a_trace_equals_a_pass_of_its_own(backend: Backend) -> None:
    texts = [*TEXTS[:2], " ".join(TEXTS), TEXTS[2]]
    whole = backend.run(texts)
    for start, stop in ((0, 2), (1, 3), (3, 4)):
        part, own = part_of_trace(whole, start, stop), backend.run(texts[start:stop])
        assert part.sentences == own.sentences
        for name in ("input_ids", "attention_mask", "token_type_ids", "special_mask"):
            np.testing.assert_array_equal(getattr(part, name), getattr(own, name))
        is_token = own.attention_mask.astype(bool)
        np.testing.assert_allclose(part.hidden_states[:, is_token], own.hidden_states[:, is_token], atol=1e-5)
        np.testing.assert_allclose(part.pooler_output, own.pooler_output, atol=1e-5)
        assert part.embedding_parts is not None
        assert part.hidden_states.base is None or part.hidden_states.base.nbytes == part.hidden_states.nbytes
    with pytest.raises(ValueError, match="not divided"):
        part_of_trace(backend.run(texts, options=WITH_ATTENTIONS), 0, 1)


@pytest.fixture
def server(backend: Backend) -> ModelServer:
    started = ModelServer([])
    started.backends = {"tiny": backend}
    return started


Answers = list[Trace | UserError | BaseException]


def test_requests_during_a_pass_share_the_next_one(
    server: ModelServer, thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end, run = threading.Event(), threading.Event(), server.backends["tiny"].run

    passes: list[list[str]] = []

    def slow(texts: list[str], *arguments: Any) -> Trace:
        passes.append(texts)
        begun.set()
        assert may_end.wait(30)
        return run(texts, *arguments)

    monkeypatch.setattr(server.backends["tiny"], "run", slow)

    async def ask() -> Answers:
        first = asyncio.create_task(server.trace(request(TEXTS[0])))
        assert await asyncio.to_thread(begun.wait, 30)
        given_up = asyncio.create_task(server.trace(request("a dog")))
        others = [asyncio.create_task(server.trace(each)) for each in (request(TEXTS[1]), request(TEXTS[2], TEXTS[0]))]
        alone = asyncio.create_task(server.trace(request(TEXTS[1], options=WITH_ATTENTIONS)))
        await asyncio.sleep(0)
        given_up.cancel()
        may_end.set()
        return await asyncio.gather(first, *others, alone)

    answers = [answer for answer in thread.submit(asyncio.run, ask()).result() if isinstance(answer, Trace)]
    assert passes == [[TEXTS[0]], [TEXTS[1], TEXTS[2], TEXTS[0]], [TEXTS[1]]]  # none for the one who gave up
    assert server.trace_passes() == 3
    assert [[sentence.text for sentence in answer.sentences] for answer in answers] == [
        *([TEXTS[0]], [TEXTS[1]], [TEXTS[2], TEXTS[0]], [TEXTS[1]])
    ]
    for answer in answers:
        own = run([sentence.text for sentence in answer.sentences])
        is_token = own.attention_mask.astype(bool)
        np.testing.assert_allclose(answer.hidden_states[:, is_token], own.hidden_states[:, is_token], atol=1e-5)
    assert answers[-1].attentions is not None


def test_a_text_at_fault_spoils_no_others_and_a_defect_reaches_who_asked(
    server: ModelServer, thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(*requests: TraceRequest) -> Answers:
        return await asyncio.gather(*map(server.trace, requests), return_exceptions=True)

    answer, refused = thread.submit(asyncio.run, ask(request(TEXTS[0]), request(" "))).result()
    assert isinstance(answer, Trace)
    assert isinstance(refused, InputError)
    assert "empty" in refused.problem

    class Panic(BaseException):
        """As a library's that is written in Rust."""

    def fails(*_: Any) -> Trace:
        raise Panic("a defect")

    with monkeypatch.context() as broken:
        broken.setattr(server.backends["tiny"], "run", fails)
        answers = thread.submit(asyncio.run, ask(request(TEXTS[0]), request(TEXTS[1]))).result()
        assert [type(answer) for answer in answers] == [WorkFailed, WorkFailed]
        assert "a defect" in str(answers[0])
    unreadable = replace(request(TEXTS[0]), texts=None)  # from other code than ours
    wrong, answer = thread.submit(asyncio.run, ask(unreadable, request(TEXTS[0]))).result()
    assert isinstance(wrong, TypeError)
    assert isinstance(answer, Trace)


def test_traces_do_not_wait_for_pieces_of_corpora(
    server: ModelServer, thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    monkeypatch.setattr(server.backends["tiny"], "embed_with_report", lambda *_: may_end.wait(30))

    options = server.backends["tiny"].embed_options()

    async def ask() -> Trace | UserError:
        pieces = [asyncio.create_task(server.vectors("tiny", TEXTS, options)) for _ in range(100)]
        await asyncio.sleep(0)
        trace = await server.trace(request(TEXTS[0]))
        assert not any(piece.done() for piece in pieces)
        may_end.set()
        await asyncio.gather(*pieces)
        return trace

    assert isinstance(thread.submit(asyncio.run, ask()).result(), Trace)


def test_a_port_behind_a_firewall_leaves_ray(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(direct, "ANSWER_SECONDS", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = direct.Port(f"127.0.0.1:{closed.getsockname()[1]}", "secret")
        assert Served("ray://127.0.0.1:1")._direct(port) is None
    assert "go through Ray, which is slower" in caplog.text
    assert Served("ray://127.0.0.1:1")._direct(None) is None


def test_a_dashboard_takes_traces_from_the_server_and_computes_what_it_does_not_give(
    backend: Backend, other: Backend
) -> None:
    there = Counted(other)
    backend.compute_elsewhere(there)
    passes = backend.forward_passes
    trace = backend.trace(TEXTS[:2])
    assert backend.forward_passes == passes
    np.testing.assert_array_equal(trace.hidden_states, other.run(TEXTS[:2]).hidden_states)
    there.answers = False
    np.testing.assert_array_equal(backend.trace(TEXTS[1:3]).hidden_states, other.run(TEXTS[1:3]).hidden_states)
    assert backend.forward_passes > passes


def test_a_server_with_other_weights_of_a_model_is_not_asked(backend: Backend) -> None:
    def asked(*_: Any, **__: Any) -> None:
        raise AssertionError("other weights were asked")

    for revision in ("of other weights", None):
        passes = PassesOfModel(SimpleNamespace(revision=lambda key, own=revision: own, ask=asked), backend)  # type: ignore[arg-type]
        assert not passes.is_there
        assert passes.trace(TEXTS, None, PLAIN) is passes.embed(TEXTS, backend.embed_options()) is None
    known = {backend.spec.key: backend.revision}
    assert PassesOfModel(SimpleNamespace(revision=known.get), backend).is_there  # type: ignore[arg-type]


def test_vectors_of_a_corpus_come_in_pieces_and_stop_between_them(
    backend: Backend, other: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "TEXTS_PER_PIECE", 2)
    there = Counted(other)
    backend.compute_elsewhere(there)
    texts, seen = TEXTS[:3], []
    vectors = backend.embed(texts, [0, 1], progress=lambda done, total: seen.append((done, total)))
    assert_close(vectors, other.embed(texts, [0, 1]))
    assert (there.embedded, seen) == ([2, 1], [(2, 3), (3, 3)])
    there.answers = False
    np.testing.assert_allclose(backend.embed(texts, [0, 1]), vectors, atol=1e-5)
    there.answers = True
    with pytest.raises(Stopped):
        backend.embed(texts, [0, 1], is_stopped=lambda: len(there.embedded) > 4)
    there.is_there = False  # another model, or no connection
    before = len(there.embedded)
    backend.embed(texts, [0, 1])
    assert len(there.embedded) == before


def test_a_server_that_does_not_answer_costs_nobody_a_wait(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"ray://127.0.0.1:{unused.getsockname()[1]}"
    served = Served(address)
    backend.compute_elsewhere(served.of(backend))
    assert backend.trace(TEXTS[:1]).n_layers == backend.facts.layers
    assert not served.wait(30)
    assert "does not answer" in caplog.text
    assert served.connection() is None  # and it does not connect again at once
    assert served._connecting is None


class FakeHandle:
    """A handle whose answers never come; `asked` has what each waited for at most."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.trace = self

    def remote(self, request: object) -> FakeHandle:
        return self

    def result(self, timeout_s: float) -> None:
        self.asked.append(timeout_s)
        raise TimeoutError("no answer")


def test_a_server_that_hangs_is_asked_once_and_its_connection_is_closed_beside_the_pages(backend: Backend) -> None:
    served, handle = Served("ray://127.0.0.1:1"), FakeHandle()
    closing, may_close = threading.Event(), threading.Event()

    def close() -> None:
        closing.set()
        may_close.wait(30)

    old = ExitStack()
    old.callback(close)
    first = serving.Connection(handle, None, {backend.spec.key: backend.revision}, old)  # type: ignore[arg-type]
    served._connection = first
    backend.compute_elsewhere(served.of(backend))
    assert backend.trace(TEXTS[:1]).n_layers == backend.facts.layers  # computed here
    assert handle.asked == [serving.TRACE_SECONDS]
    assert closing.wait(10)
    assert served.connection() is None  # while the old one is still being closed
    backend.trace(TEXTS[1:2])
    assert len(handle.asked) == 1
    newer = serving.Connection(FakeHandle(), None, {}, ExitStack())  # type: ignore[arg-type]
    served._connection = newer
    served._lose(first)  # a request of the old connection fails late
    assert served.connection() is newer
    may_close.set()


def test_a_connection_whose_thread_cannot_start_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    served, started = Served("ray://127.0.0.1:1"), 0

    def no_thread(_: threading.Thread) -> None:
        nonlocal started
        started += 1
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    assert served.connection() is None
    assert not served.wait(1)  # nothing to wait for
    assert started == 1
    monkeypatch.setattr(serving, "RETRY_SECONDS", 0.0)
    assert served.connection() is None
    assert started == 2
    closed: list[bool] = []
    old = ExitStack()
    old.callback(closed.append, True)
    served._connection = connection = serving.Connection(FakeHandle(), None, {}, old)  # type: ignore[arg-type]
    served._lose(connection)
    assert closed == [True]


def test_a_cluster_that_does_not_answer_keeps_no_server_from_its_end() -> None:
    asked: list[str] = []
    never = threading.Event()

    def silent() -> bool:
        asked.append("silent")
        return never.wait(60)

    def answers(answer: bool) -> Callable[[], bool]:
        return lambda: asked.append("answers") or answer  # type: ignore[func-returns-value]

    for has_ours, delete in ((silent, answers(True)), (answers(True), silent)):
        with pytest.raises(
            InputError, match="has not answered for 0 seconds: the application bert-internals may still be"
        ):
            serving._remove(has_ours, delete, seconds=0.2)
    assert asked == ["silent", "answers", "silent"]
    serving._remove(answers(False), silent)  # another server's is left alone
    serving._remove(answers(True), answers(True))
    assert asked[3:] == ["answers"] * 3

    looks = serving._Looks(silent)
    assert [looks(), looks()] == [True, True]
    assert asked[6:] == ["silent"]  # one look at a time
    never.set()


def test_a_look_tells_what_the_last_answer_was() -> None:
    answers: list[bool | Exception] = [True, False, RuntimeError("the cluster is gone")]

    def look() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    looks, seen = serving._Looks(look), []
    for _ in range(3):
        seen.append(looks())
        assert looks._answer is not None
        looks._answer.exception(30)
    assert seen == [True, True, False]
    with pytest.raises(RuntimeError, match="gone"):
        looks()


# `serve` without Ray: the server is there until it is asked to stop. A look at it is a callback that loses exceptions, as Ray's
# are, and its end waits for passes that never end.
COMMAND = """
import sys, time, types
from contextlib import contextmanager

def say(word):
    print(word, flush=True)

def is_there():
    try:
        say("looks")
        time.sleep(1)
    except BaseException:
        say("lost")
    return True

@contextmanager
def serving(models, address, gpus):
    try:
        yield is_there
    finally:
        say("ends")
        time.sleep(1_000)

sys.modules["components.distributed.serving"] = types.SimpleNamespace(serving=serving)
from components.command_line.program import main
sys.exit(main(["serve", "--models", "tiny"]))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.rare)])
def test_the_command_ends_when_it_is_asked_to_and_at_once_when_it_is_asked_again(how: signal.Signals) -> None:
    """Started as by a script that goes on meanwhile: what runs in its background ignores SIGINT until it says otherwise."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which the new process inherits
    try:
        process = subprocess.Popen([sys.executable, "-c", COMMAND], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "looks\n"
            process.send_signal(how)
            said = next(line for line in islice(process.stdout, 20) if line != "looks\n")
            assert said == "ends\n"
            process.send_signal(how)
            assert process.wait(120) == 128 + how
        finally:
            process.kill()


@pytest.fixture(scope="module")
def cluster(no_other_cluster: None, tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        with model_server(tmp_path_factory.mktemp("r"), str(folder)) as started:
            yield started


@pytest.mark.rare
@pytest.mark.timeout(900)
def test_two_dashboards_share_a_real_server_until_it_ends(
    cluster: Cluster, folder: Path, thread: ThreadPoolExecutor
) -> None:
    thread.submit(check_that_two_dashboards_share, cluster, folder).result()


def check_that_two_dashboards_share(cluster: Cluster, folder: Path) -> None:
    dashboards, own = [Backend.load(str(folder)) for _ in range(2)], Backend.load(str(folder))
    served = Served(cluster.address)
    for backend in dashboards:
        backend.compute_elsewhere(served.of(backend))
    wait_until_connected(served)
    assert served.revision(str(folder)) == own.revision
    at_first = [backend.forward_passes for backend in dashboards]

    texts = [" ".join(["the cat sat"] * (1 + number % 4)) + " on" * (number % 7) for number in range(24)]
    with ThreadPoolExecutor(12) as people:
        traces = list(people.map(lambda number: dashboards[number % 2].trace([texts[number]]), range(len(texts))))
    for text, trace in zip(texts, traces, strict=True):
        np.testing.assert_allclose(trace.hidden_states, own.run([text]).hidden_states, atol=1e-5)
    connection = served.connection()
    assert connection is not None
    assert connection.direct is not None
    by_ray = replace(connection, direct=None)  # as where the server's port cannot be reached
    request = TraceRequest(str(folder), tuple(TEXTS), None, PLAIN)
    np.testing.assert_array_equal(
        by_ray.ask("trace", (request,), 60).hidden_states, connection.ask("trace", (request,), 60).hidden_states
    )
    assert 1 <= served.ask("trace_passes", seconds=60) <= len(texts) + 2

    with_attentions = dashboards[0].trace(TEXTS, attentions=True)
    assert_close(with_attentions.attentions, own.run(TEXTS, options=WITH_ATTENTIONS).attentions)
    vectors = dashboards[1].embed(texts, [0, 1, 2], ["mean", "cls"])
    np.testing.assert_allclose(vectors, own.embed(texts, [0, 1, 2], ["mean", "cls"]), atol=1e-5)
    with pytest.raises(InputError, match="tokens"):
        dashboards[0].trace(TEXTS, max_length=10**6)
    assert [backend.forward_passes for backend in dashboards] == at_first  # nothing was computed in the dashboards

    cluster.server.send_signal(signal.SIGINT)
    assert cluster.server.wait(180) == 130
    after = dashboards[0].trace(["a dog ran"])
    assert dashboards[0].forward_passes == at_first[0] + 1
    np.testing.assert_array_equal(after.hidden_states, own.run(["a dog ran"]).hidden_states)
