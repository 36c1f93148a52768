"""A Ray cluster with a model server on this machine, as an operator starts both."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from components.distributed.serving import Served
from tests.places import ROOT

# Ray reads its token once in a process, and other tests may have come first. On Linux it replaces 127.0.0.1 by the address in
# the network, unless it is told what it assumes on other systems.
ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


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
    head = subprocess.Popen(
        [
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *ports.split()),
            *(
                "--node-ip-address=127.0.0.1",
                "--num-cpus=2",
                "--object-store-memory=100000000",
                "--include-dashboard=false",
                f"--temp-dir={home}",
            ),
        ],
        cwd=ROOT,
        stdout=(home / "head.txt").open("w"),
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    server = None
    try:
        wait_for(head, "Ray runtime started", home / "head.txt")
        server = subprocess.Popen(
            [sys.executable, "-m", "components", "serve", "--address", f"127.0.0.1:{port}", "--models", models],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=(home / "server.txt").open("w"),
            env=environment,
            text=True,
        )
        wait_for(server, "Serving ", home / "server.txt")
        yield Cluster(f"ray://127.0.0.1:{client_port}", server)
    finally:
        if server is not None:
            server.kill()
            server.wait()
        os.killpg(head.pid, signal.SIGKILL)
        head.wait()


def wait_until_connected(served: Served) -> None:
    """Ray gives a client up whose process does not start within half a minute, as on a busy machine: then it is tried again."""
    end = time.monotonic() + 150
    while not served.wait(90):
        assert time.monotonic() < end, "no connection to the model server"
        time.sleep(1)


def unused_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def wait_for(process: subprocess.Popen[Any], text: str, log: Path) -> None:
    """Wait until a process has written this into its log."""
    end = time.monotonic() + 90
    while text not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.2)
