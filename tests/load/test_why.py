"""What long explanations cost those who use other pages at the same time."""

from __future__ import annotations

import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.support.measurements import percentile_95, report
from tests.support.server import Server, start_server, stop_server
from tests.support.session import opened
from tests.support.visits import WORDS, plain_visits

VISITORS = 8  # of plain pages
PEOPLE = 16  # who ask for explanations
VISITS = 12
PAUSE = 1.0  # seconds, at most


def explain(server: Server, number: int, is_over: threading.Event) -> int:
    """One person: other sentences at every move; each explanation is waited for and then looked at."""
    words, moves = random.Random(1_000 + number), 0
    with opened(server.url) as session:
        while not is_over.is_set():
            first = " ".join(words.choices(WORDS, k=12))
            second = " ".join(words.choices(WORDS, k=12))
            view = (("view", "split"), ("by", "words")) if moves % 2 else (("view", "experiments"),)
            address = urlencode([("s", first), ("s", second), *view])
            session.run("why", address, seconds=300)
            session.wait_for_result("why", address, seconds=300)
            moves += 1
            time.sleep(words.uniform(0, PAUSE))
    return moves


@pytest.mark.timeout(900)
def test_sixteen_people_on_why_do_not_slow_plain_pages_beyond_three_times(tmp_path: Path) -> None:
    """The idle server is measured before and after, since later rounds find more in the caches; the quicker one counts."""
    server = start_server(tmp_path / "log.txt")
    is_over = threading.Event()
    try:
        plain_visits(server, VISITORS, VISITS, PAUSE)  # the first ones load the model
        idle = plain_visits(server, VISITORS, VISITS, PAUSE)
        with ThreadPoolExecutor(PEOPLE) as people:
            moves = [people.submit(explain, server, number, is_over) for number in range(PEOPLE)]
            try:
                time.sleep(5)
                beside = plain_visits(server, VISITORS, VISITS, PAUSE)
            finally:
                is_over.set()
            made = sum(move.result() for move in moves)
        idle_after = plain_visits(server, VISITORS, VISITS, PAUSE)
    finally:
        stop_server(server)
    assert made >= PEOPLE
    medians = min(statistics.median(idle), statistics.median(idle_after)), statistics.median(beside)
    ratio = medians[1] / medians[0]
    report(
        f"plain pages: median {1000 * medians[0]:.0f} ms, beside {PEOPLE} people on Why {1000 * medians[1]:.0f} ms = "
        f"{ratio:.2f} x (95th percentile {1000 * percentile_95(beside):.0f} ms, {made} moves on Why)"
    )
    assert ratio <= 3
