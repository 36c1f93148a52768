"""A connection from a dashboard straight to the model server, by gRPC, beside Ray's own way.

Through Ray Client a request and its result pass several processes, which copy and pack each of them: some 25 milliseconds
for a pass that takes 11. Here they cross once. The server opens a port on its machine, and Ray hands the port and a secret to
whoever may use the cluster.

Both sides prove that they know the secret, for each request anew, and the secret itself never crosses:

    dashboard  HELLO, 32 random bytes                    all that somebody who has only the port learns
    server     HELLO, 32 random bytes, HMAC(secret, ...)    the proof, over both numbers and the address
    dashboard  the request in sealed pieces              only after the proof was right
    server     the answer in sealed pieces               only if all seals of the request were right

A seal is an HMAC-SHA256 over a piece, its number and whether it is the last. Its key is made of the secret and both random
numbers, another one for each direction: what was recorded is worth nothing in another call (replay), in the other direction
(reflection), or in another order. A call is one stream and so one connection: a process that takes over the port of a server
that has ended gets no request that was meant for the server. No piece is larger than PIECE_BYTES, and before the proof
neither side keeps more than one. Nothing is unpickled (messages.py).

What it does not do: encrypt. Whoever can read what crosses the network reads texts and vectors, and whoever can redirect
it can pass the calls on, but not change them. Where Ray is told to encrypt (RAY_USE_TLS), no port is opened, and all goes
Ray's way. docs/security.md says how to encrypt this way too.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import queue
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from components.distributed.messages import LAYOUT, packed, size_of, unpacked
from components.errors import first_line

METHOD = "/bert-internals/ask"
HELLO = b"BERT Internals 2" + LAYOUT  # the version of what crosses: the two sides must have the same
NONCE_BYTES = MAC_BYTES = 32
_NUMBER_BYTES = 8
PIECE_BYTES = 1 << 20
MOST_REQUEST_BYTES = 64 << 20
MOST_ANSWER_BYTES = 16 << 30  # more than the attentions of all sentences of a page at 512 tokens
MOST_CALLS = 512  # at once, those that have proved nothing included
PATIENCE_SECONDS = 20.0  # of the server, with a caller who has proved nothing
_MORE, _LAST = b"\0", b"\1"
_MESSAGE_BYTES = PIECE_BYTES + 1_024  # gRPC refuses larger ones before it reads them
SERVER_OPTIONS = [
    ("grpc.max_send_message_length", _MESSAGE_BYTES),
    ("grpc.max_receive_message_length", _MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),  # the port is this server's alone
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
]
CLIENT_OPTIONS = [
    ("grpc.max_send_message_length", _MESSAGE_BYTES),
    ("grpc.max_receive_message_length", _MESSAGE_BYTES),
    ("grpc.enable_http_proxy", 0),  # for a machine of one's own network
    # A connection that a firewall dropped while nobody asked is noticed before somebody does.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
]
ANSWER_SECONDS = 5.0  # for the first answer of the port; without one, all goes Ray's way
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Port:
    """Where the server listens, and the secret that both sides know."""

    address: str  # host:port
    secret: str = field(repr=False)


class NotProved(ConnectionError):
    """The other side does not know the secret, has another version, or what it sent was changed on the way."""


class _Proofs:
    """What the secret, the address and both random numbers of one call give: the server's proof, and the keys of the seals."""

    def __init__(self, port: Port, nonce: bytes, server_nonce: bytes) -> None:
        self._secret = port.secret.encode()
        self._call = HELLO + nonce + server_nonce + port.address.encode()

    def _made(self, label: bytes) -> bytes:
        return hmac.digest(self._secret, label + b"\0" + self._call, "sha256")

    @property
    def of_server(self) -> bytes:
        return self._made(b"server")

    @property
    def request(self) -> _Seals:
        return _Seals(self._made(b"request"))

    @property
    def answer(self) -> _Seals:
        return _Seals(self._made(b"answer"))


class _Seals:
    """The seals of one direction of one call, piece after piece."""

    def __init__(self, key: bytes) -> None:
        self._key, self._number = key, 0

    def _numbered(self, *content: bytes | memoryview) -> bytes:
        """The next piece's number and its content: what is sealed."""
        self._number += 1
        return b"".join((self._number.to_bytes(_NUMBER_BYTES, "little"), *content))

    def _seal(self, numbered: bytes) -> bytes:
        return hmac.digest(self._key, numbered, "sha256")

    def sealed(self, parts: Iterable[bytes | memoryview]) -> Iterator[bytes]:
        """A message in sealed pieces."""
        waiting: list[memoryview] = []
        room = PIECE_BYTES
        for content in parts:
            part = memoryview(content)
            while len(part) > room:  # so that this piece is not the last
                yield self._piece(_MORE, [*waiting, part[:room]])
                part, waiting, room = part[room:], [], PIECE_BYTES
            waiting.append(part)
            room -= len(part)
        yield self._piece(_LAST, waiting)

    def _piece(self, mark: bytes, content: Iterable[memoryview]) -> bytes:
        numbered = self._numbered(mark, *content)
        return b"".join((self._seal(numbered), memoryview(numbered)[_NUMBER_BYTES:]))

    def opened(self, piece: bytes) -> tuple[memoryview, bool]:
        """The content of the next piece, and whether it is the last. Raises NotProved."""
        content, mark = memoryview(piece)[MAC_BYTES:], piece[MAC_BYTES : MAC_BYTES + 1]
        if not hmac.compare_digest(piece[:MAC_BYTES], self._seal(self._numbered(content))) or mark not in (
            _MORE,
            _LAST,
        ):
            raise NotProved("a piece has no valid seal")
        return content[1:], mark == _LAST


class _Message:
    """A message that arrives in sealed pieces; it takes the memory of what has arrived."""

    def __init__(self, seals: _Seals, most: int) -> None:
        self.content = bytearray()
        self._seals, self._most = seals, most

    def add(self, piece: bytes) -> bool:
        """Add the next piece; True once the message is complete. Raises NotProved, and OverflowError above `most` bytes."""
        content, is_last = self._seals.opened(piece)
        if len(self.content) + len(content) > self._most:
            raise OverflowError
        self.content += content
        return is_last


async def listen(host: str, methods: Mapping[str, Callable[..., Awaitable[Any]]]) -> Port | None:
    """Answer calls of the methods at an unused port of this address, until this process ends.

    What a method raises must be an Exception: gRPC answers nothing to other errors. None where Ray encrypts what it sends, or
    the port cannot be opened.
    """
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return None
    import grpc

    secret = secrets.token_hex(32)

    async def answer(_: Any, context: Any) -> None:
        request, seals = await _request(context, port)
        try:
            name, arguments = unpacked(request)
            result = packed(("answer", await methods[name](*arguments)))
        except Exception as problem:
            log.error("A call of a dashboard failed.", exc_info=problem)
            result = packed(("failed", f"{type(problem).__name__}: {first_line(problem)}"))
        for piece in seals.sealed(result):
            await context.write(piece)

    class Handler(grpc.GenericRpcHandler):
        def service(self, call: Any) -> Any:
            return grpc.stream_stream_rpc_method_handler(answer) if call.method == METHOD else None

    server = grpc.aio.server(options=SERVER_OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)
    server.add_generic_rpc_handlers((Handler(),))
    try:
        number = server.add_insecure_port(f"[{host}]:0" if ":" in host else f"{host}:0")
    except RuntimeError:  # an address that this machine does not have
        return None
    port = Port(f"[{host}]:{number}" if ":" in host else f"{host}:{number}", secret)
    await server.start()
    _servers.append(server)
    return port


_servers: list[Any] = []  # they stop when they are no longer referred to


async def _request(context: Any, port: Port) -> tuple[bytearray, _Seals]:
    """The request of a call, and the seals of its answer. Ends the call of a caller who does not prove to know the secret."""
    import grpc

    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            hello = await context.read()
        if not isinstance(hello, bytes) or hello[:-NONCE_BYTES] != HELLO:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "this server speaks another version")
        nonce = secrets.token_bytes(NONCE_BYTES)
        proofs = _Proofs(port, hello[-NONCE_BYTES:], nonce)
        await context.write(HELLO + nonce + proofs.of_server)
        message = _Message(proofs.request, MOST_REQUEST_BYTES)
        is_complete = False
        while not is_complete:
            async with asyncio.timeout(PATIENCE_SECONDS):
                piece = await context.read()
            is_complete = message.add(piece if isinstance(piece, bytes) else b"")  # gRPC's mark of the end is none
    except NotProved:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the caller did not prove to know the secret")
    except OverflowError:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"more than {MOST_REQUEST_BYTES} bytes")
    except TimeoutError:
        await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "nothing came")
    return message.content, proofs.answer


class Direct:
    """A dashboard's connection to the port; threads may use it at once."""

    def __init__(self, port: Port) -> None:
        """Connect. Raises TimeoutError where the port does not answer within ANSWER_SECONDS, NotProved for a false server."""
        import grpc

        self._port = port
        self._channel = grpc.insecure_channel(port.address, options=CLIENT_OPTIONS)
        self._call = self._channel.stream_stream(METHOD)
        try:
            grpc.channel_ready_future(self._channel).result(timeout=ANSWER_SECONDS)
            with self._proved(ANSWER_SECONDS):
                pass
        except (grpc.FutureTimeoutError, ConnectionError) as problem:
            self._channel.close()
            if isinstance(problem, NotProved):
                raise
            raise TimeoutError(f"{port.address} does not answer") from problem

    def ask(self, name: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        """What a method of the server gives. Raises ConnectionError where it does not, or not within so many seconds."""
        request = packed((name, arguments))
        if size_of(request) > MOST_REQUEST_BYTES:
            raise ConnectionError(f"a request of more than {MOST_REQUEST_BYTES} bytes")
        with self._proved(seconds) as (pieces, send, proofs):
            send(proofs.request.sealed(request))
            message = _Message(proofs.answer, MOST_ANSWER_BYTES)
            try:
                while not message.add(next(pieces)):
                    pass
            except StopIteration as problem:
                raise NotProved(f"{self._port.address} broke its answer off") from problem
            except OverflowError as problem:
                raise ConnectionError(f"an answer of more than {MOST_ANSWER_BYTES} bytes") from problem
        try:
            kind, result = unpacked(message.content)
        except ValueError as problem:
            raise ConnectionError(str(problem)) from problem
        if kind == "failed":
            raise ConnectionError(str(result))
        return result

    @contextmanager
    def _proved(self, seconds: float) -> Iterator[tuple[Iterator[bytes], Callable[[Iterable[bytes]], None], _Proofs]]:
        """A call whose server has proved that it knows the secret: what comes from it, how to send, and the seals.

        Raises ConnectionError, and NotProved for a false server, which has got nothing but random bytes.
        """
        import grpc

        later: queue.SimpleQueue[Iterable[bytes]] = queue.SimpleQueue()
        nonce = secrets.token_bytes(NONCE_BYTES)

        def sent() -> Iterator[bytes]:
            yield HELLO + nonce
            yield from later.get()

        pieces = self._call(sent(), timeout=seconds)
        try:
            answer = next(pieces, b"")
            proofs = _Proofs(self._port, nonce, answer[len(HELLO) : -MAC_BYTES])
            is_whole = len(answer) == len(HELLO) + NONCE_BYTES + MAC_BYTES and answer.startswith(HELLO)
            if not (is_whole and hmac.compare_digest(answer[-MAC_BYTES:], proofs.of_server)):
                raise NotProved(f"{self._port.address} did not prove to know the secret")
            yield pieces, later.put, proofs
        except grpc.RpcError as problem:
            # Its words are not repeated: they may come from anybody.
            raise ConnectionError(f"{self._port.address} answered {problem.code().name}") from problem
        finally:
            later.put(())  # else a thread of gRPC would wait for the rest of the call for ever
            pieces.cancel()

    def close(self) -> None:
        """End the connection; calls that wait for an answer fail."""
        self._channel.close()
