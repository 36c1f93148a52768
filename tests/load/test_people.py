"""A hundred people on a server for one: nobody sees an error, and what a move takes grows less than their number."""

from __future__ import annotations

import statistics
import threading
from pathlib import Path

import psutil
import pytest

from tests.support.measurements import percentile_95, report
from tests.support.server import start_server, stop_server
from tests.support.visits import visits_with_own_texts

PEOPLE, MOVES, SECONDS = 100, 10, 120.0


@pytest.mark.timeout(600)
def test_a_hundred_people_with_texts_of_their_own_on_three_pages(tmp_path: Path) -> None:
    server = start_server(tmp_path / "log.txt")
    try:
        visits_with_own_texts(server, people=4, moves=3, seconds=3.0, seed=0)  # the first ones load the model
        alone = visits_with_own_texts(server, people=1, moves=30, seconds=15.0, seed=1)
        memory = psutil.Process(server.process.pid).memory_info().rss
        together = visits_with_own_texts(server, PEOPLE, MOVES, SECONDS, seed=2)
        grown = psutil.Process(server.process.pid).memory_info().rss - memory
        log = server.log.read_text(encoding="utf-8")
    finally:
        stop_server(server)
    ratio = statistics.median(together) / statistics.median(alone)
    report(
        f"{PEOPLE} people, {len(together)} moves in {SECONDS:.0f} s: median {1000 * statistics.median(together):.0f} ms, "
        f"95th percentile {1000 * percentile_95(together):.0f} ms; one person {1000 * statistics.median(alone):.0f} ms = "
        f"{ratio:.2f} x; memory grew by {grown / 2**20:.0f} MiB"
    )
    assert len(together) == PEOPLE * MOVES
    assert "Traceback" not in log
    assert threading.active_count() < PEOPLE  # of this process: every session was closed
    assert ratio <= 4
