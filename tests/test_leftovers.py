"""What a run of the tests has started ends with it, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.support.places import ROOT

RUN = """
import signal, subprocess, sys, time
from tests.support.leftovers import ended_with_this_process

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored

with ended_with_this_process():
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    print(left.pid, flush=True)
    if len(sys.argv) == 1:
        time.sleep(600)
"""


def run(*arguments: str) -> tuple[subprocess.Popen[str], psutil.Process]:
    """A run, and a process in a session of its own that it has started and will not end."""
    started = subprocess.Popen([sys.executable, "-c", RUN, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    return started, psutil.Process(int(started.stdout.readline()))


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.rare), signal.SIGKILL])
def test_what_a_stopped_run_has_started_ends_with_it(number: signal.Signals) -> None:
    started, left = run()
    assert left.is_running()
    started.send_signal(number)
    assert started.wait(30) != 0
    left.wait(30)


def test_what_a_finished_run_has_left_ends_with_it() -> None:
    started, left = run("finish")
    assert started.wait(30) == 0
    end = time.monotonic() + 30
    while left.is_running() and left.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.05)
