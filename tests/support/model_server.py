"""A Ray cluster with a model server on this machine, as an operator starts both."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from components.distributed.serving import Served
from tests.support import interrupts
from tests.support.places import ROOT

# Ray reads its token once in a process, and other tests may have come first. On Linux it replaces 127.0.0.1 by the address in
# the network, unless it is told what it assumes on other systems.
ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "180",  # for a client's process to start; 30 by itself
}
SECONDS = 300  # until a process that does not become ready fails a test: a busy machine takes long


class Cluster(NamedTuple):
    address: str  # what dashboards are told
    server: subprocess.Popen[str]


@contextmanager
def model_server(home: Path, models: str) -> Iterator[Cluster]:
    """Start both, and end both in the end; `models` are those of `serve --models`.

    `home` has a short path: Ray's sockets lie in it.
    """
    port, client_port = unused_port(), unused_port()
    ports = f"--port={port} --ray-client-server-port={client_port} --min-worker-port=0 --max-worker-port=0"
    environment = {**os.environ, **ENVIRONMENT}
    head = started_head(home, ports.split(), environment)
    server = None
    try:
        server = subprocess.Popen(
            [sys.executable, "-m", "components", "serve", "--address", f"127.0.0.1:{port}", "--models", models],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=(home / "server.txt").open("w"),
            env=environment,
            text=True,
            preexec_fn=interrupts.TAKEN,
        )
        assert is_ready(server, "Serving ", home / "server.txt"), (home / "server.txt").read_text()
        yield Cluster(f"ray://127.0.0.1:{client_port}", server)
    finally:
        if server is not None:
            server.kill()
            server.wait()
        end_head(head)


def started_head(home: Path, ports: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Ray's first node, ready. Ray gives up where that takes more than 30 seconds: then it is started again."""
    for number in range(3):
        log = home / f"head{number}.txt"
        head = start_head(home, log, ports, environment)
        try:
            if is_ready(head, "Ray runtime started", log):
                return head
        except BaseException:
            end_head(head)
            raise
        end_head(head)
    raise AssertionError(log.read_text())


def end_head(head: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(head.pid, signal.SIGKILL)
    head.wait()


def start_head(home: Path, log: Path, ports: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *ports),
            *(
                "--node-ip-address=127.0.0.1",
                "--num-cpus=2",
                "--object-store-memory=100000000",
                "--include-dashboard=false",
                f"--temp-dir={home}",
            ),
        ],
        cwd=ROOT,
        stdout=log.open("w"),
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )


def wait_until_connected(served: Served) -> None:
    """Ray gives a client up whose process does not start within half a minute, as on a busy machine: then it is tried again."""
    end = time.monotonic() + SECONDS
    while not served.wait(180):
        assert time.monotonic() < end, "no connection to the model server"
        time.sleep(1)


def unused_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def is_ready(process: subprocess.Popen[Any], text: str, log: Path) -> bool:
    """Whether a process writes this into its log before it ends."""
    end = time.monotonic() + SECONDS
    while text not in log.read_text():
        if process.poll() is not None:
            return text in log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.2)
    return True
