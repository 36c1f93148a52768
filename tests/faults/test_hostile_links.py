"""Links drawn to do harm: none ends the process that reads it, takes long or gigabytes, or shows a file of the server.

A dozen of each kind are read in every run of the tests, thousands by `make fuzz`, or FUZZ_LINKS=...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import hostile_links
from tests.support.hostile_links import KINDS, SECRET, draw, plant
from tests.support.places import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is watched by Linux's own numbers")
LINKS = int(os.environ.get("FUZZ_LINKS", "4000"))
PER_PROCESS = 1_000  # cases: a process keeps little, and one that ends loses few


def answers_to(cases: list[dict[str, Any]], place: Path) -> list[dict[str, Any]]:
    """What processes of their own, with limits of memory and of seconds, say to the cases."""
    found = []
    for start in range(0, len(cases), PER_PROCESS):
        batch = cases[start : start + PER_PROCESS]
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.hostile_links", str(place)],
            input="".join(json.dumps(case) + "\n" for case in batch),
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "BERT_INTERNALS_CACHE": str(place / "cache")},
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(batch), (batch[len(answers)], done.stderr[-2_000:])
        assert SECRET not in done.stderr
        found += answers
    return found


def check(cases: list[dict[str, Any]], place: Path) -> None:
    answers = answers_to(cases, place)
    assert [answer for answer in answers if answer["faults"]] == []
    assert Counter(answer["kind"] for answer in answers) == Counter(case["kind"] for case in cases)
    # Else every link would be read without a word, or every one be refused for the same reason.
    assert len({answer["said"][:60] for answer in answers}) > len(KINDS)


def test_a_dozen_links_of_each_kind_do_no_harm(tmp_path: Path) -> None:
    check([{"kind": kind, "seed": seed} for kind in KINDS for seed in range(12)], tmp_path)


@pytest.mark.fuzz
@pytest.mark.timeout(3_600)
def test_thousands_of_links_do_no_harm(tmp_path: Path) -> None:
    check([{"kind": KINDS[number % len(KINDS)], "seed": 100 + number} for number in range(LINKS)], tmp_path)


def test_a_case_is_the_same_each_time_it_is_drawn(tmp_path: Path) -> None:
    outside = plant(tmp_path)
    for kind in KINDS:
        assert draw(kind, 7, outside) == draw(kind, 7, outside)
        assert len({draw(kind, seed, outside) for seed in range(40)}) > 10


def test_what_counts_as_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = plant(tmp_path)
    healthy = {"notices": ["fine"], "written": {}, "values": "", "models": ["embedded"], "size": 10}
    for found, fault in (
        (healthy, None),
        (healthy | {"values": SECRET}, "it showed a file outside"),
        (healthy | {"notices": ["<b>"]}, "its markup is not escaped"),
        (healthy | {"models": ["/etc"]}, "a folder of a public server was taken for a model"),
        (healthy | {"size": 9_000}, "the session writes a longer address than it reads"),
    ):
        monkeypatch.setattr(hostile_links, "opened", lambda page, query, is_private, found=found: found)
        assert set(hostile_links.outcome("texts", 1, outside)["faults"]) == ({fault} - {None})
    monkeypatch.setattr(hostile_links, "opened", lambda page, query, is_private: 1 / 0)
    assert "ZeroDivisionError" in hostile_links.outcome("texts", 1, outside)["faults"][0]
