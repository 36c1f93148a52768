"""The connection without Ray: what crosses, who is refused, and what a dashboard does where there is none."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import pytest

from components.distributed import direct
from components.distributed.direct import Direct, Port
from components.errors import InputError

PIECE = np.arange(3_000_000, dtype=np.float32).reshape(3, -1)  # 12 MB, more than gRPC allows by itself


class Server:
    """Methods in an event loop of their own, as those of a deployment."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.at_once, self.both_are_here = 0, asyncio.Event()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        methods = {
            "doubled": self.doubled,
            "refused": self.refused,
            "met": self.met,
            "fails": self.fails,
            "hangs": self.hangs,
        }
        port = self.run(direct.listen("127.0.0.1", methods))
        assert port is not None
        self.port: Port = port

    def run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    async def doubled(self, array: np.ndarray) -> np.ndarray:
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


@pytest.mark.parametrize("secret", ["", "0" * 64])
def test_a_call_without_the_secret_is_refused_before_anything_of_it_is_read(server: Server, secret: str) -> None:
    with grpc.insecure_channel(server.port.address) as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(direct.METHOD)(b"no pickle at all", timeout=30, metadata=((direct.SECRET, secret),))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_defect_and_an_answer_that_does_not_come_are_errors(connection: Direct) -> None:
    with pytest.raises(ConnectionError, match=r"UNKNOWN.*a defect"):
        connection.ask("fails", (), 30)
    with pytest.raises(ConnectionError, match="DEADLINE_EXCEEDED"):
        connection.ask("hangs", (), 0.2)


def test_a_request_larger_than_any_of_ours_is_not_read(connection: Direct) -> None:
    with pytest.raises(ConnectionError, match="RESOURCE_EXHAUSTED"):
        connection.ask("doubled", (np.zeros(direct.MOST_REQUEST_BYTES, dtype=np.uint8),), 30)


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
