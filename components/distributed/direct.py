"""A connection from a dashboard straight to the model server, by gRPC, beside Ray's own way.

Through Ray Client a request and its result pass several processes, which copy and pack each of them: some 25 milliseconds
for a pass that takes 11. Here they cross once. The server opens a port on its machine, and Ray hands the port and a secret to
whoever may use the cluster; a call without the secret is refused. Records are pickled, as by Ray: whoever has the cluster's
token can run programs on it anyway.

What it does not do: encrypt. Where Ray is told to (RAY_USE_TLS), no port is opened, and all goes Ray's way.
"""

from __future__ import annotations

import hmac
import os
import pickle
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

METHOD = "/bert-internals/ask"
SECRET = "secret"
# Results have any size. Requests have not: the server reads the whole of one before it can see whether the secret is right.
MOST_REQUEST_BYTES = 64 << 20
SERVER_OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", MOST_REQUEST_BYTES),
    ("grpc.so_reuseport", 0),  # the port is this server's alone
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
]
CLIENT_OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),  # for a machine of one's own network
    # A connection that a firewall dropped while nobody asked is noticed before somebody does.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
]
ANSWER_SECONDS = 5.0  # for the first answer of the port; without one, all goes Ray's way


@dataclass(frozen=True)
class Port:
    """Where the server listens, and the secret that a call must have."""

    address: str  # host:port
    secret: str = field(repr=False)


async def listen(host: str, methods: Mapping[str, Callable[..., Awaitable[Any]]]) -> Port | None:
    """Answer calls of the methods at an unused port of this address, until this process ends.

    What a method raises must be an Exception: gRPC answers nothing to other errors. None where Ray encrypts what it sends, or
    the port cannot be opened.
    """
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return None
    import grpc

    secret = secrets.token_hex(32)

    async def answer(request: bytes, context: Any) -> bytes:
        given = dict(context.invocation_metadata()).get(SECRET, "")
        if not (isinstance(given, str) and hmac.compare_digest(given.encode(), secret.encode())):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the secret is missing or wrong")
        name, arguments = pickle.loads(request)
        return pickle.dumps(await methods[name](*arguments), protocol=pickle.HIGHEST_PROTOCOL)

    class Handler(grpc.GenericRpcHandler):
        def service(self, call: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer) if call.method == METHOD else None

    server = grpc.aio.server(options=SERVER_OPTIONS)
    server.add_generic_rpc_handlers((Handler(),))
    try:
        number = server.add_insecure_port(f"[{host}]:0" if ":" in host else f"{host}:0")
    except RuntimeError:  # an address that this machine does not have
        return None
    await server.start()
    _servers.append(server)
    return Port(f"[{host}]:{number}" if ":" in host else f"{host}:{number}", secret)


_servers: list[Any] = []  # they stop when they are no longer referred to


class Direct:
    """A dashboard's connection to the port; threads may use it at once."""

    def __init__(self, port: Port) -> None:
        """Connect. Raises TimeoutError where the port does not answer within ANSWER_SECONDS."""
        import grpc

        self._channel = grpc.insecure_channel(port.address, options=CLIENT_OPTIONS)
        try:
            grpc.channel_ready_future(self._channel).result(timeout=ANSWER_SECONDS)
        except grpc.FutureTimeoutError as problem:
            self._channel.close()
            raise TimeoutError(f"{port.address} does not answer") from problem
        self._ask = self._channel.unary_unary(METHOD)
        self._metadata = ((SECRET, port.secret),)

    def ask(self, name: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        """What a method of the server gives. Raises ConnectionError where it does not, or not within so many seconds."""
        import grpc

        request = pickle.dumps((name, arguments), protocol=pickle.HIGHEST_PROTOCOL)
        try:
            answer = self._ask(request, timeout=seconds, metadata=self._metadata)
        except grpc.RpcError as problem:
            raise ConnectionError(f"{problem.code().name}: {problem.details()}") from problem
        return pickle.loads(answer)

    def close(self) -> None:
        """End the connection; calls that wait for an answer fail."""
        self._channel.close()
