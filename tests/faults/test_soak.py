"""People come and go for a long time: the server's memory stays flat, and no thread and no file is left behind."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.support.measurements import report
from tests.support.server import Server, start_server, stop_server
from tests.support.visits import visits_with_own_texts

MINUTES = float(os.environ.get("SOAK_MINUTES", "60"))
PEOPLE, MOVES, SECONDS = 6, 3, 2.0  # who come at once, what each does, and how long they stay
MOST_GROWTH = 1.1  # of memory, from the middle third of the time to the last
# Traces kept in memory: full within the first third also where people come slowly; at the default it takes 150 groups.
TRACES = "128M"
SPARE = 12  # threads or files that may come and go
# Streamlit keeps so many sessions for two minutes after they ended, for a person who comes back; each has an event loop.
KEPT_SESSIONS, FILES_OF_A_SESSION = 128, 3


@dataclass(frozen=True)
class Held:
    """What the server holds while nobody is there."""

    memory: int  # bytes
    threads: int
    files: int

    @classmethod
    def by(cls, server: Server) -> Held:
        process = psutil.Process(server.process.pid)
        return cls(process.memory_info().rss, process.num_threads(), process.num_fds())


def held_while_people_come_and_go(folder: Path, minutes: float) -> list[Held]:
    """What the server held after each group of people had left."""
    server = start_server(folder / "log.txt", BERT_INTERNALS_WARM_UP="0", BERT_INTERNALS_TRACE_BYTES=TRACES)
    try:
        visits_with_own_texts(server, people=4, moves=3, seconds=2.0, seed=0)  # the first ones load the model
        held, end = [Held.by(server)], time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            visits_with_own_texts(server, PEOPLE, MOVES, SECONDS, seed=len(held))
            held.append(Held.by(server))
        assert "Traceback" not in server.log.read_text(encoding="utf-8")
        return held
    finally:
        stop_server(server)


def check_flat(held: list[Held]) -> None:
    third = len(held) // 3
    assert third > 0
    middle, last = held[third : 2 * third], held[2 * third :]
    report(
        f"{PEOPLE * (len(held) - 1)} people in {len(held) - 1} groups, with {TRACES} of traces: memory "
        f"{held[0].memory / 2**20:.0f} MiB at first, at most {max(each.memory for each in middle) / 2**20:.0f} in the middle "
        f"third of the time and {max(each.memory for each in last) / 2**20:.0f} in the last; threads {held[0].threads}, then "
        f"{max(each.threads for each in last)}; open files {held[0].files}, then {max(each.files for each in last)}"
    )
    assert max(each.memory for each in last) <= MOST_GROWTH * max(each.memory for each in middle)
    assert min(each.threads for each in last) <= held[0].threads + SPARE
    sessions = min(KEPT_SESSIONS, PEOPLE * len(held))
    assert min(each.files for each in last) <= held[0].files + FILES_OF_A_SESSION * sessions + SPARE


@pytest.mark.soak
@pytest.mark.timeout(60 * MINUTES + 600)
def test_nothing_grows_in_an_hour(tmp_path: Path) -> None:
    check_flat(held_while_people_come_and_go(tmp_path, MINUTES))


@pytest.mark.rare
@pytest.mark.timeout(300)
def test_nothing_grows_in_half_a_minute(tmp_path: Path) -> None:
    check_flat(held_while_people_come_and_go(tmp_path, 0.5))
