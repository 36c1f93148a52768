"""How a command ends on SIGTERM, by which services, containers and schedulers stop a program: as on Ctrl-C.

Python itself ends at once, and leaves temporary folders behind.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

TERMINATED = 128 + signal.SIGTERM  # the exit status, as shells give it


class Terminated(KeyboardInterrupt):
    """SIGTERM came. Whatever ends its work on Ctrl-C ends it on this too."""


def terminate(*_: Any) -> NoReturn:
    """The handler of SIGTERM. It raises each time: the first exception may be lost in a callback of a library."""
    raise Terminated


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Within it, SIGTERM raises Terminated in the main thread; the earlier handler is put back at the end."""
    if threading.current_thread() is not threading.main_thread():  # where Python allows no handlers
        yield
        return
    earlier = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)
