"""A server whose runs of pages pause when a test asks for it, as on a machine that has much to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SWITCH = "slow"  # a file: while it exists, runs pause
# Imported by Python at its start: every run of a page pauses before and after Streamlit decides which page it draws. Of two
# runs that begin together, the second overtakes the first, which then decides the page for both.
PAUSES = f"""
import os, threading, time

switch = os.path.join(os.path.dirname(__file__), "{SWITCH}")

def slow_down():
    from streamlit.runtime.pages_manager import PagesManager
    decide = PagesManager.set_script_intent
    started = [0.0]
    def paused(self, *arguments):
        if not os.path.exists(switch):
            return decide(self, *arguments)
        before, started[0] = started[0], time.monotonic()
        time.sleep(0.1 if started[0] - before < 0.2 else 0.3)
        decide(self, *arguments)
        time.sleep(0.3)
    PagesManager.set_script_intent = paused

def wait():
    import sys
    while "streamlit.web.server.server" not in sys.modules:
        time.sleep(0.05)
    time.sleep(0.5)
    slow_down()

threading.Thread(target=wait, daemon=True).start()
"""


def can_be_slow(folder: Path) -> dict[str, str]:
    """What the environment of a server needs whose runs are to pause when `slow_runs(folder)` says so."""
    (folder / "sitecustomize.py").write_text(PAUSES, encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


@contextmanager
def slow_runs(folder: Path) -> Iterator[None]:
    """Every run of a page begins with a pause until the block ends."""
    (folder / SWITCH).touch()
    try:
        yield
    finally:
        (folder / SWITCH).unlink()
