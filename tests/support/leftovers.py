"""Ends what a run of the tests has started and left: servers, browsers, clusters, also after Ctrl-C or a kill.

Every process that a test starts inherits the run's mark in its environment. A process of its own waits until the run has ended,
in whatever way, and then ends all that still bear the mark. Run as `python -m tests.support.leftovers MARK`; it ends with its
standard input.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil

from tests.support.places import ROOT

MARK = "TESTS_OF_BERT_INTERNALS"  # name of the environment variable
SECONDS_TO_END = 3.0  # between asking a process to end and killing it


@contextmanager
def ended_with_this_process() -> Iterator[None]:
    """Marks what this process starts from now on; all that bears the mark ends with it at the latest."""
    mark = os.environ[MARK] = secrets.token_hex(8)
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    watcher = subprocess.Popen(
        [sys.executable, "-m", __name__, mark],
        cwd=ROOT,
        env=unmarked,
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is not for it
    )
    assert watcher.stdin is not None
    try:
        yield
    finally:
        del os.environ[MARK]
        watcher.stdin.close()
        watcher.wait()


def marked(mark: str) -> list[psutil.Process]:
    """The processes that bear the mark, without this one."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                found.append(process)
        except (psutil.Error, OSError):  # it has just ended, or is another person's
            continue
    return found


def end(mark: str) -> None:
    """Ask the marked processes to end, and kill those that do not."""
    left = marked(mark)
    for process in left:
        _send(process.terminate)
    _, alive = psutil.wait_procs(left, SECONDS_TO_END)
    for process in {*alive, *marked(mark)}:
        _send(process.kill)


def _send(signal: Callable[[], None]) -> None:
    with suppress(psutil.NoSuchProcess):
        signal()


if __name__ == "__main__":
    sys.stdin.buffer.read()  # until the run has ended: its end of the pipe closes with it
    end(sys.argv[1])
