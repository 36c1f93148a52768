"""A dashboard in a process of its own, as its operator starts it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.support import interrupts
from tests.support.places import ROOT


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A dashboard in a process of its own."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path


def start_server(log: Path, script: str = "dashboard/app.py", **environment: str) -> Server:
    """Start Streamlit on a free port and wait until it answers."""
    port = free_port()
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)],
            cwd=ROOT,
            stdout=file,
            stderr=subprocess.STDOUT,
            preexec_fn=interrupts.TAKEN,
            env={
                **os.environ,
                "HF_HUB_OFFLINE": "1",
                "BERT_INTERNALS_CACHE": str(log.parent / "cache"),
                **environment,
            },
        )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return Server(url, process, log)
        except OSError:
            time.sleep(0.05)
        if process.poll() is not None:
            break
    process.kill()
    raise RuntimeError(f"the server did not start:\n{log.read_text()}")


def stop_server(server: Server) -> None:
    server.process.terminate()
    try:
        server.process.wait(10)
    except subprocess.TimeoutExpired:
        server.process.kill()
