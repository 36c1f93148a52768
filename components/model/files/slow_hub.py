"""A hub that sends too little is given up: less than 1 KB per second for a minute, or a question without a whole answer.

The timeouts of the hub's client are for each piece that arrives and begin again with each byte: a hub that sends one byte
per second would hold its caller for days. So a thread watches the requests of a call and shuts their connection down. The
client then fails in its own way, which `limited` replaces by TooSlow.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

STALL_SECONDS = 60.0
LEAST_BYTES_PER_SECOND = 1 << 10  # on average over STALL_SECONDS; each request has that time to begin
CHECK_SECONDS = 1.0
_watched = threading.local()
_install_lock = threading.Lock()
_is_installed = False


class TooSlow(Exception):
    """The hub sent too little for too long."""


@contextmanager
def limited(total_seconds: float | None = None) -> Iterator[None]:
    """Within it, requests of the hub's client by this thread raise TooSlow.

    They do if the hub sends too little, or altogether takes longer than `total_seconds`.
    """
    _install()
    watch = _watched.watch = _CallWatch(total_seconds)
    try:
        yield
    except Exception as problem:
        if watch.reason:
            raise TooSlow(watch.reason) from problem
        raise
    finally:
        _watched.watch = None
        watch.ended.set()


class _CallWatch:
    """The requests of a call, one after the other. The thread of the call writes, and that of the watch reads."""

    def __init__(self, total_seconds: float | None) -> None:
        self.ended = threading.Event()
        self.reason = ""  # why the hub was given up
        self._total_seconds = total_seconds
        self._under_way: tuple[int, Any] = (0, None)  # the number of the request, and its answer once it begins
        self._connection: Any = None  # of the last request
        threading.Thread(target=self._run, name="hub watch", daemon=True).start()

    def request_begins(self, request: Any) -> None:
        if self.reason:  # the client tries again after a connection that broke
            raise TooSlow(self.reason)
        request.extensions["trace"] = self._take_connection
        self._under_way = (self._under_way[0] + 1, None)

    def answer_begins(self, response: Any) -> None:
        self._connection = response.extensions.get("network_stream", self._connection)
        self._under_way = (self._under_way[0], response)

    def _take_connection(self, event: str, details: dict[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._connection = details["return_value"]

    def _run(self) -> None:
        began = since = time.monotonic()
        number, received_before = 0, 0
        while not self.ended.wait(CHECK_SECONDS):
            now = time.monotonic()
            current, response = self._under_way
            if current != number:
                number, received_before, since = current, 0, now
            if self._total_seconds is not None and now - began > self._total_seconds:
                self._give_up(f"its answer took more than {self._total_seconds:,.0f} seconds")
            elif number == 0 or (response is not None and response.is_closed):
                since = now  # the client does something else
            else:
                received = 0 if response is None else response.num_bytes_downloaded
                if received - received_before >= LEAST_BYTES_PER_SECOND * STALL_SECONDS:
                    received_before, since = received, now
                elif now - since > STALL_SECONDS:
                    self._give_up(
                        f"it sent less than {LEAST_BYTES_PER_SECOND / 1024:,.0f} KB per second for "
                        f"{STALL_SECONDS:,.0f} seconds"
                    )

    def _give_up(self, reason: str) -> None:
        self.reason = reason
        if self._connection is not None:
            with suppress(OSError):  # closed in the meantime
                self._connection.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


def _install() -> None:
    """Let every client of the hub report its requests, once for this process."""
    global _is_installed
    with _install_lock:
        if _is_installed:
            return
        from huggingface_hub import set_client_factory
        from huggingface_hub.utils._http import default_client_factory

        def client() -> Any:
            created = default_client_factory()
            created.event_hooks["request"].append(_request_begins)
            created.event_hooks["response"].append(_answer_begins)
            return created

        set_client_factory(client)
        _is_installed = True


def _request_begins(request: Any) -> None:
    watch: _CallWatch | None = getattr(_watched, "watch", None)
    if watch is not None:
        watch.request_begins(request)


def _answer_begins(response: Any) -> None:
    watch: _CallWatch | None = getattr(_watched, "watch", None)
    if watch is not None:
        watch.answer_begins(response)
