"""The connection without Ray: what crosses, who is refused, and what a dashboard does where there is none."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import queue
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import pytest

from components.distributed import direct
from components.distributed.direct import Direct, NotProved, Port
from components.errors import InputError

PIECE = np.arange(3_000_000, dtype=np.float32).reshape(3, -1)  # 12 MB, more than gRPC allows by itself


class Server:
    """Methods in an event loop of their own, as those of a deployment."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.calls_made = 0
        self.at_once, self.both_are_here = 0, asyncio.Event()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        methods = {
            "doubled": self.doubled,
            "refused": self.refused,
            "met": self.met,
            "fails": self.fails,
            "hangs": self.hangs,
            "calls": self.calls,
        }
        port = self.run(direct.listen("127.0.0.1", methods))
        assert port is not None
        self.port: Port = port

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    async def calls(self) -> int:
        self.calls_made += 1
        return self.calls_made

    async def doubled(self, array: np.ndarray) -> np.ndarray:
        self.calls_made += 1
        return 2 * array

    async def met(self) -> int:
        """Answers once two have asked."""
        self.at_once += 1
        if self.at_once == 2:
            self.both_are_here.set()
        await self.both_are_here.wait()
        return self.at_once

    async def refused(self) -> InputError:
        return InputError("What is wrong.", "What is expected.", "What to do.")

    async def fails(self) -> None:
        self.calls_made += 2
        raise RuntimeError("a defect")

    async def hangs(self) -> None:
        await asyncio.sleep(60)


@pytest.fixture(scope="module")
def server() -> Server:
    return Server()


@pytest.fixture
def connection(server: Server) -> Iterator[Direct]:
    opened = Direct(server.port)
    yield opened
    opened.close()


def test_large_arrays_and_errors_for_people_cross(connection: Direct) -> None:
    np.testing.assert_array_equal(connection.ask("doubled", (PIECE,), 30), 2 * PIECE)
    refused = connection.ask("refused", (), 30)
    assert isinstance(refused, InputError)
    assert (refused.problem, refused.expected, refused.fix) == ("What is wrong.", "What is expected.", "What to do.")


def test_threads_ask_at_once(connection: Direct) -> None:
    with ThreadPoolExecutor(2) as people:
        assert list(people.map(lambda _: connection.ask("met", (), 30), range(2))) == [2, 2]


def test_a_defect_and_an_answer_that_does_not_come_are_errors(connection: Direct) -> None:
    with pytest.raises(ConnectionError, match="RuntimeError: a defect"):
        connection.ask("fails", (), 30)
    with pytest.raises(ConnectionError, match="DEADLINE_EXCEEDED"):
        connection.ask("hangs", (), 0.2)
    with pytest.raises(ConnectionError, match="KeyError: 'unknown'"):
        connection.ask("unknown", (), 30)
    assert connection.ask("calls", (), 30) >= 3  # the connection still serves


# --- Whoever has the port


class Recorder(grpc.GenericRpcHandler):
    """A server on a port, which is not ours: it keeps all that comes, and answers with the messages of `replies`."""

    def __init__(self, replies: Callable[[Iterator[bytes]], Iterator[bytes]], address: str = "127.0.0.1:0") -> None:
        self.received: list[bytes] = []
        self._replies = replies
        self.server = grpc.server(
            ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)]
        )
        self.server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port(address)}"
        self.server.start()

    def service(self, call: Any) -> Any:
        def answer(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
            def kept() -> Iterator[bytes]:
                for message in requests:
                    self.received.append(message)
                    yield message

            yield from self._replies(kept())

        return grpc.stream_stream_rpc_method_handler(answer)


def test_the_secret_is_not_in_what_crosses(server: Server) -> None:
    tap = Tap(Direct(server.port))
    tap.connection.ask("doubled", (np.array([1.5], np.float32),), 30)
    crossed = b"".join(tap.sent + tap.came)
    assert len(crossed) > 200
    assert server.port.secret.encode() not in crossed
    assert bytes.fromhex(server.port.secret) not in crossed


class Tap:
    """Records the messages of a connection's last call in both directions."""

    def __init__(self, connection: Direct) -> None:
        self.connection, self.sent, self.came = connection, list[bytes](), list[bytes]()
        call = connection._call

        def tapped(messages: Iterator[bytes], timeout: float) -> Any:
            self.sent, self.came = [], []
            answers = call(self._kept(messages, self.sent), timeout=timeout)

            class Answers:
                cancel = answers.cancel

                def __next__(_) -> bytes:
                    self.came.append(next(answers))
                    return self.came[-1]

            return Answers()

        connection._call = tapped

    @staticmethod
    def _kept(messages: Iterator[bytes], into: list[bytes]) -> Iterator[bytes]:
        for message in messages:
            into.append(message)
            yield message


def false_proof(requests: Iterator[bytes]) -> Iterator[bytes]:
    next(requests)
    yield direct.HELLO + bytes(64)


def reflection(requests: Iterator[bytes]) -> Iterator[bytes]:
    hello = next(requests)
    yield hello + hello[-32:]
    yield from requests


def plain_reflection(requests: Iterator[bytes]) -> Iterator[bytes]:
    yield from requests


def truncated(requests: Iterator[bytes]) -> Iterator[bytes]:
    next(requests)
    yield direct.HELLO + bytes(20)


def nothing(requests: Iterator[bytes]) -> Iterator[bytes]:
    next(requests)
    yield from ()


def endless(requests: Iterator[bytes]) -> Iterator[bytes]:
    next(requests)
    yield bytes(64 << 20)


def other_version(requests: Iterator[bytes]) -> Iterator[bytes]:
    next(requests)
    yield b"BERT Internals 1" + bytes(len(direct.HELLO) - 16) + bytes(64)


def pickled(requests: Iterator[bytes]) -> Iterator[bytes]:
    next(requests)
    yield b"\x80\x04\x95" + bytes(len(direct.HELLO) + 61)


@pytest.mark.parametrize(
    "replies",
    [false_proof, reflection, plain_reflection, truncated, nothing, endless, other_version, pickled],
    ids=lambda replies: replies.__name__,
)
def test_a_false_server_gets_random_bytes_alone(replies: Callable[[Iterator[bytes]], Iterator[bytes]]) -> None:
    recorder = Recorder(replies)
    port = Port(recorder.address, "a secret that nobody else has")
    try:
        with pytest.raises((NotProved, TimeoutError)):
            Direct(port)
        # Also where the first handshake was another's: no text goes before the proof of its own call.
        connection = unconnected(port)
        with pytest.raises(ConnectionError):
            connection.ask("trace", ("a text that is nobody's business",), 20)
        assert [len(message) for message in recorder.received] == [len(direct.HELLO) + 32] * 2
        assert all(message.startswith(direct.HELLO) for message in recorder.received)
        assert recorder.received[0] != recorder.received[1]  # a fresh number each time
        assert port.secret.encode() not in b"".join(recorder.received)
    finally:
        recorder.server.stop(0)


def unconnected(port: Port) -> Direct:
    """A connection as it is after its first handshake."""
    connection = Direct.__new__(Direct)
    connection._port = port
    connection._channel = grpc.insecure_channel(port.address, options=direct.CLIENT_OPTIONS)
    connection._call = connection._channel.stream_stream(direct.METHOD)
    return connection


def test_what_takes_over_the_port_of_a_server_that_ended_gets_no_text() -> None:
    server = Server()
    ended = direct._servers.pop()
    tap = Tap(Direct(server.port))
    np.testing.assert_array_equal(tap.connection.ask("doubled", (np.ones(2, np.float32),), 30), [2, 2])
    proof = tap.came[0]
    server.run(ended.stop(0))

    def replayed(requests: Iterator[bytes]) -> Iterator[bytes]:
        next(requests)
        yield proof  # of the true server, for an earlier call
        yield from requests

    recorder = Recorder(replayed, server.port.address)
    assert recorder.address == server.port.address
    try:
        for _ in range(3):  # the channel notices that its connection is gone, and makes another
            with pytest.raises(ConnectionError):
                tap.connection.ask("doubled", (np.full(3, 0.125, np.float32),), 30)
        assert recorder.received
        assert {len(message) for message in recorder.received} == {len(direct.HELLO) + 32}
    finally:
        recorder.server.stop(0)


def test_a_relay_at_another_address_gets_no_text(server: Server) -> None:
    """The proof is made over the address: that of the true server does not hold for a port beside it."""

    def relayed(requests: Iterator[bytes]) -> Iterator[bytes]:
        with grpc.insecure_channel(server.port.address) as channel:
            yield from channel.stream_stream(direct.METHOD)(requests, timeout=20)

    recorder = Recorder(relayed)
    try:
        with pytest.raises(NotProved):
            Direct(Port(recorder.address, server.port.secret))
        assert {len(message) for message in recorder.received} == {len(direct.HELLO) + 32}
    finally:
        recorder.server.stop(0)


def by_hand(server: Server, messages: Callable[[bytes], Iterable[bytes]]) -> tuple[list[bytes], grpc.StatusCode | None]:
    """What the server answers to a hello and then to the messages that are made of its answer; and the status of the call."""
    later: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def sent() -> Iterator[bytes]:
        yield direct.HELLO + bytes(32)
        yield from messages(later.get())

    came: list[bytes] = []
    with grpc.insecure_channel(server.port.address, options=[("grpc.max_send_message_length", -1)]) as channel:
        try:
            for message in channel.stream_stream(direct.METHOD)(sent(), timeout=30):
                came.append(message)
                later.put(message)
        except grpc.RpcError as problem:
            return came, problem.code()
    return came, None


def seals_of(server: Server, answer: bytes) -> direct._Seals:
    return direct._Proofs(server.port, bytes(32), answer[len(direct.HELLO) : -32]).request


def test_a_false_client_gets_a_proof_that_says_nothing_and_no_answer(server: Server) -> None:
    request = direct.packed(("calls", ()))
    before = server.calls_made
    wrong = Port(server.port.address, "0" * 64)
    for messages in (
        lambda answer: direct._Proofs(wrong, bytes(32), answer[len(direct.HELLO) : -32]).request.sealed(request),
        lambda answer: [b""],
        lambda answer: [bytes(33)],
        lambda answer: [pickle.dumps(("calls", ()))],
        lambda answer: [],  # it says no more
        lambda answer: [answer[-32:] + b"\1" + b"".join(request)],  # the server's own proof
        lambda answer: [bytes(32) + b"\1" + b"".join(request)],
    ):
        came, status = by_hand(server, messages)
        assert status is grpc.StatusCode.UNAUTHENTICATED
        assert len(came) == 1
    assert server.calls_made == before
    # The same by hand with the secret: what is refused above is refused for that.
    came, status = by_hand(server, lambda answer: seals_of(server, answer).sealed(request))
    assert (len(came), status, server.calls_made) == (2, None, before + 1)


def test_a_call_that_was_recorded_is_worth_nothing_again(server: Server) -> None:
    tap = Tap(Direct(server.port))
    tap.connection.ask("calls", (), 30)
    before = server.calls_made
    with grpc.insecure_channel(server.port.address) as channel, pytest.raises(grpc.RpcError) as refused:
        list(channel.stream_stream(direct.METHOD)(iter(tap.sent), timeout=30))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert server.calls_made == before


def test_pieces_in_another_order_left_out_or_changed_are_refused(server: Server) -> None:
    array = np.arange(1 << 20, dtype=np.float32)  # five pieces
    before = server.calls_made

    def pieces(answer: bytes) -> list[bytes]:
        return list(seals_of(server, answer).sealed(direct.packed(("doubled", (array,)))))

    def changed(answer: bytes) -> list[bytes]:
        made = pieces(answer)
        made[2] = made[2][:-1] + bytes([made[2][-1] ^ 1])
        return made

    def ended_early(answer: bytes) -> list[bytes]:
        made = pieces(answer)[:3]
        made[2] = made[2][:32] + b"\1" + made[2][33:]
        return made

    for messages in (
        lambda answer: pieces(answer)[::-1],
        lambda answer: pieces(answer)[:2] + pieces(answer)[3:],
        lambda answer: pieces(answer)[:2] * 2,
        lambda answer: pieces(answer)[:3],  # breaks off
        changed,
        ended_early,
    ):
        came, status = by_hand(server, messages)
        assert (len(came), status) == (1, grpc.StatusCode.UNAUTHENTICATED)
    assert server.calls_made == before
    assert len(by_hand(server, pieces)[0]) > 4


def answers_of_a_server_with_the_secret(
    secret: str, answer: Callable[[direct._Proofs, list[bytes]], Iterable[bytes]]
) -> Recorder:
    """A server that proves to know the secret, and then answers otherwise than ours."""

    def replies(requests: Iterator[bytes]) -> Iterator[bytes]:
        proofs = direct._Proofs(Port(recorder.address, secret), next(requests)[-32:], bytes(32))
        yield direct.HELLO + bytes(32) + proofs.of_server
        pieces = [*itertools.islice(requests, 1)]
        if pieces:  # not the first handshake
            yield from answer(proofs, pieces)

    recorder = Recorder(replies)
    return recorder


@pytest.mark.parametrize(
    "answer",
    [
        lambda proofs, pieces: pieces,  # reflected
        lambda proofs, pieces: proofs.request.sealed(direct.packed(("answer", 1))),  # the other direction's seals
        lambda proofs, pieces: [],  # none
        lambda proofs, pieces: [next(proofs.answer.sealed([bytes(3 << 20)]))],  # breaks off
        lambda proofs, pieces: [*proofs.answer.sealed([bytes(3 << 20)])][1:],
        lambda proofs, pieces: proofs.answer.sealed([b"no message"]),
        lambda proofs, pieces: proofs.answer.sealed([pickle.dumps(("answer", 1))]),
        lambda proofs, pieces: [bytes(8 << 20)],
    ],
    ids=["reflected", "of_requests", "none", "breaks_off", "without_begin", "no_message", "pickle", "large_piece"],
)
def test_answers_that_are_not_the_servers_are_errors(
    answer: Callable[[direct._Proofs, list[bytes]], Iterable[bytes]],
) -> None:
    recorder = answers_of_a_server_with_the_secret("secret", answer)
    connection = Direct(Port(recorder.address, "secret"))
    try:
        with pytest.raises(ConnectionError):
            connection.ask("calls", (), 20)
    finally:
        connection.close()
        recorder.server.stop(0)


def test_an_answer_above_the_limit_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "MOST_ANSWER_BYTES", 2 << 20)
    recorder = answers_of_a_server_with_the_secret("secret", lambda proofs, _: proofs.answer.sealed([bytes(16 << 20)]))
    connection = Direct(Port(recorder.address, "secret"))
    try:
        with pytest.raises(ConnectionError, match="an answer of more than 2097152 bytes"):
            connection.ask("calls", (), 20)
    finally:
        connection.close()
        recorder.server.stop(0)


def test_callers_of_another_version_are_told(server: Server) -> None:
    for hello in (b"", b"BERT Internals 1" + bytes(40), direct.HELLO + bytes(31), direct.HELLO + bytes(33)):
        with grpc.insecure_channel(server.port.address) as channel, pytest.raises(grpc.RpcError) as refused:
            list(channel.stream_stream(direct.METHOD)(iter([hello]), timeout=30))
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_caller_who_says_nothing_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "PATIENCE_SECONDS", 0.3)
    may_end = threading.Event()

    def silent() -> Iterator[bytes]:
        may_end.wait(30)
        yield from ()

    with grpc.insecure_channel(server.port.address) as channel, pytest.raises(grpc.RpcError) as refused:
        list(channel.stream_stream(direct.METHOD)(silent(), timeout=30))
    may_end.set()
    assert refused.value.details() == "nothing came"


def test_a_request_larger_than_any_of_ours_is_not_read(connection: Direct, server: Server) -> None:
    with pytest.raises(ConnectionError, match="more than 67108864 bytes"):
        connection.ask("doubled", (np.zeros(direct.MOST_REQUEST_BYTES, dtype=np.uint8),), 30)
    large = [bytes(direct.MOST_REQUEST_BYTES + 1)]
    assert by_hand(server, lambda answer: seals_of(server, answer).sealed(large))[1] is (
        grpc.StatusCode.RESOURCE_EXHAUSTED
    )
    # One message that is larger than a piece is not even read by gRPC, before and after the hello.
    assert by_hand(server, lambda answer: [bytes(2 << 20)])[1] is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_port_that_does_not_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "ANSWER_SECONDS", 0.5)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(TimeoutError, match="does not answer"):
            Direct(Port(f"127.0.0.1:{unused.getsockname()[1]}", "secret"))


def test_no_port_is_opened_where_ray_encrypts_or_at_an_address_of_another_machine(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.run(direct.listen("198.51.100.1", {})) is None
    monkeypatch.setenv("RAY_USE_TLS", "1")
    assert server.run(direct.listen("127.0.0.1", {})) is None
