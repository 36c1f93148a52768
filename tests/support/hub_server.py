"""A hub on this machine: as much of the Hugging Face hub's protocol as its Python client needs to fetch a model
or a data set.

    with HubServer({"owner/name": folder}) as server:
        use_hub(monkeypatch, server.address, tmp_path / "cache")

Every switch below is off at first and may be turned at any time; each imitates one thing that goes wrong.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

BLOCK = 1 << 20  # bytes written at once


@dataclass(frozen=True)
class Refusal:
    """What the server answers instead of a repository: a status and the hub's own header for the reason."""

    status: int
    code: str | None = None


class HubServer:
    """Serves folders as repositories at `address`: "owner/name" of models, "datasets/owner/name" of data sets.

    A context manager.
    """

    def __init__(self, repositories: Mapping[str, Path]) -> None:
        self.repositories = dict(repositories)
        self.requests: list[tuple[str, str]] = []  # (method, path), in the order of arrival
        self.ranges: list[str] = []  # Range headers of the requests that carried one
        self.sent: Counter[str] = Counter()  # bytes of each file that went out
        self.refusal: Refusal | None = None  # the answer to every question about a repository
        self.break_off: dict[str, int] = {}  # file -> place after which the connection is cut, every time
        self.break_off_once: dict[str, int] = {}  # the same, for one transfer only
        self.shortened: dict[str, int] = {}  # file -> bytes it has when fetched, fewer than was announced
        self.pause = 0.0  # seconds after each block
        self.dripping: set[str] = set()  # files that go out a byte every tenth of a second; "list": the list of files
        self.silent = False  # take connections and never answer
        self.xet = False  # announce the weights as held in the hub's chunk store too, as real weights are
        self._hashes: dict[Path, str] = {}
        self._stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Go down: from now on the address refuses connections."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._server.shutdown()
            self._server.server_close()

    def commit(self, repository: str) -> str:
        """The commit that a repository stands at: 40 hexadecimal digits, of its name."""
        return hashlib.sha1(repository.encode()).hexdigest()

    def fetched(self) -> list[str]:
        """Names of the files whose content was asked for, in order."""
        return [_file_of(path) for method, path in self.requests if method == "GET" and "/resolve/" in path]

    def etag(self, path: Path) -> str:
        if path not in self._hashes:
            with path.open("rb") as file:
                self._hashes[path] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._hashes[path]

    def wait_stopped(self, seconds: float | None = None) -> bool:
        return self._stopped.wait(seconds)


def use_hub(monkeypatch: pytest.MonkeyPatch, address: str, cache: Path) -> None:
    """Point this process's hub client at `address`, with an empty cache and no memory of an earlier hub.

    The process may have been told to stay offline, and the client's user agent asks the real hub for a list of
    names; both are read once, at import, so they are set here.
    """
    from huggingface_hub import constants

    from components.model.files import hub

    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(hub, "_probes", {})


def _file_of(path: str) -> str:
    return path.split("/resolve/")[1].split("/", 1)[1]


def _handler(hub: HubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Tests read `requests` instead."""

        def _answer(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append((self.command, path))
            # No connection is kept: one that outlived the server would answer while it is "down".
            self.close_connection = True
            if hub.silent:
                hub.wait_stopped()
                return
            # A client that cancels closes its connection, which is no fault of the server's.
            with suppress(BrokenPipeError, ConnectionResetError):
                if path == "/":
                    self._send(200, {}, b"")
                elif hub.refusal is not None:
                    self._refuse(hub.refusal)
                elif path.startswith("/api/models/"):
                    self._describe(path.removeprefix("/api/models/").split("/revision/")[0])
                elif path.startswith("/api/datasets/"):  # kept under "datasets/owner/name", as its files' addresses are
                    self._describe(path.removeprefix("/api/").split("/revision/")[0])
                elif "/resolve/" in path:
                    self._file(path.split("/resolve/")[0].lstrip("/"), _file_of(path))
                else:
                    self._refuse(Refusal(404))

        def _describe(self, repository: str) -> None:
            folder = hub.repositories.get(repository)
            if folder is None:
                self._refuse(Refusal(404, "RepoNotFound"))
                return
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            description = {
                "id": repository,
                "sha": hub.commit(repository),
                "siblings": [
                    {"rfilename": path.relative_to(folder).as_posix(), "size": path.stat().st_size} for path in files
                ],
            }
            content = json.dumps(description).encode()
            if "list" in hub.dripping:
                self._start(200, {"Content-Type": "application/json", "Content-Length": str(len(content))})
                self._drip(content)
            else:
                self._send(200, {"Content-Type": "application/json"}, content)

        def _file(self, repository: str, name: str) -> None:
            folder = hub.repositories.get(repository)
            if folder is None:
                self._refuse(Refusal(404, "RepoNotFound"))
                return
            path = folder / name
            commit = {"X-Repo-Commit": hub.commit(repository)}
            if not path.is_file():
                self._refuse(Refusal(404, "EntryNotFound"), commit)
                return
            size = path.stat().st_size
            headers = {**commit, "ETag": f'"{hub.etag(path)}"', "Accept-Ranges": "bytes"}
            if hub.xet and name.endswith(".safetensors"):
                headers["X-Xet-Hash"] = hub.etag(path)
                headers["X-Xet-Refresh-Route"] = f"{hub.address}/api/models/{repository}/xet-read-token/main"
            if self.command == "HEAD":
                self._start(200, {**headers, "Content-Length": str(size)})
                return
            size = hub.shortened.get(name, size)
            asked = self.headers.get("Range")
            start = 0
            if asked is not None:
                hub.ranges.append(asked)
                start = int(asked.removeprefix("bytes=").split("-")[0])
                headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
            end = min(size, hub.break_off_once.pop(name, size), hub.break_off.get(name, size))
            self._start(200 if asked is None else 206, {**headers, "Content-Length": str(size - start)})
            self._stream(path, name, start, end)

        def _stream(self, path: Path, name: str, start: int, end: int) -> None:
            with path.open("rb") as file:
                file.seek(start)
                if name in hub.dripping:
                    self._drip(file.read(end - start))
                    return
                while start < end and not hub.wait_stopped(0):
                    block = file.read(min(BLOCK, end - start))
                    self.wfile.write(block)
                    hub.sent[name] += len(block)
                    start += len(block)
                    if hub.pause:
                        hub.wait_stopped(hub.pause)

        def _drip(self, content: bytes) -> None:
            for position in range(len(content)):
                self.wfile.write(content[position : position + 1])
                if hub.wait_stopped(0.1):
                    return

        def _refuse(self, refusal: Refusal, headers: Mapping[str, str] | None = None) -> None:
            code = {} if refusal.code is None else {"X-Error-Code": refusal.code, "X-Error-Message": refusal.code}
            self._send(refusal.status, {**(headers or {}), **code}, b"{}")

        def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self._start(status, {**headers, "Content-Length": str(len(body))})
            if self.command != "HEAD":
                self.wfile.write(body)

        def _start(self, status: int, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()

    return Handler
