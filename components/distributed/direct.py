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
from dataclasses import dataclass
from typing import Any

METHOD = "/bert-internals/ask"
SECRET = "secret"
# Results have any size, and no proxy of the environment is asked for a machine of one's own network.
OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.so_reuseport", 0),  # the port is this server's alone
]
ANSWER_SECONDS = 5.0  # for the first answer of the port; without one, all goes Ray's way


@dataclass(frozen=True)
class Port:
    """Where the server listens, and the secret that a call must have."""

    address: str  # host:port
    secret: str


async def opened(host: str, methods: Mapping[str, Callable[..., Awaitable[Any]]]) -> Port | None:
    """Answer calls of the methods at an unused port of this address, until this process ends.

    None where Ray encrypts what it sends, or the port cannot be opened.
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

    server = grpc.aio.server(options=OPTIONS)
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

        self._channel = grpc.insecure_channel(port.address, options=OPTIONS)
        try:
            grpc.channel_ready_future(self._channel).result(timeout=ANSWER_SECONDS)
        except grpc.FutureTimeoutError as problem:
            self._channel.close()
            raise TimeoutError(f"{port.address} does not answer") from problem
        self._ask = self._channel.unary_unary(METHOD)
        self._metadata = ((SECRET, port.secret),)

    def ask(self, name: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        """What a method of the server gives. Raises grpc.RpcError where it does not, or not within so many seconds."""
        request = pickle.dumps((name, arguments), protocol=pickle.HIGHEST_PROTOCOL)
        return pickle.loads(self._ask(request, timeout=seconds, metadata=self._metadata))

    def close(self) -> None:
        """End the connection; calls that wait for an answer fail."""
        self._channel.close()
