"""Ctrl-C for the processes that tests start, also from a shell's background, which ignores SIGINT and hands that on."""

from __future__ import annotations

import signal
import sys


def _taken() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


TAKEN = None if sys.platform == "win32" else _taken  # for `preexec_fn`, which Windows does not have
