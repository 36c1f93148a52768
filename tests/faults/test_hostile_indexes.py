"""Indexes, graphs, Parquet and compressed files that were made to do harm, drawn by kind (tests/support/hostile_indexes.py).

Whatever a case is: the command ends with status 0 or 2 and a line, takes neither 2 GB nor 30 seconds of a processor, and
neither shows nor changes a byte of a file outside its folder. `make test` draws a case of each kind that is quickly made,
`make fuzz` a thousand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.support.hostile_indexes import KINDS, MEMORY, SECONDS, Outcome
from tests.support.places import ROOT

# Of the others the files alone take seconds to make.
QUICK = (
    "index",
    "graph",
    "parquet_bytes",
    "parquet_footer",
    "parquet_nested",
    "gz_damaged",
    "corpus",
    "judged",
    "other",
    "unfinished",
    "run",
)
# usearch is given each graph whose checksum fits, as before graphs had a MAC.
UNGUARDED = """
import sys
from components.retrieval.engines import graph
graph._is_ours = lambda described: True
from tests.support import hostile_indexes
sys.exit(hostile_indexes.main(sys.argv[1:]))
"""


def outcomes(*arguments: str, code: str | None = None) -> list[Outcome]:
    program = ["-m", "tests.support.hostile_indexes"] if code is None else ["-c", code]
    done = subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return [Outcome(**json.loads(line)) for line in done.stdout.splitlines()]


def faults(found: list[Outcome]) -> list[str]:
    return [f"{each.kind} {each.seed}: {each.fault} ({each.said})" for each in found if each.fault]


def test_a_case_of_each_kind_is_read_or_refused() -> None:
    kinds = [name for name in KINDS if name.startswith(QUICK)]
    found = outcomes("--count", str(len(kinds)), "--seed", "7", "--kinds", *QUICK)
    assert faults(found) == []
    assert [each.kind for each in found] == kinds
    assert {0, 2} == {each.status for each in found}


@pytest.mark.fuzz
@pytest.mark.timeout(7_200)
def test_a_thousand_cases_are_read_or_refused() -> None:
    count = int(os.environ.get("FUZZ_HOSTILE", "1000"))
    found = outcomes("--count", str(count), "--seed", "20261125")
    assert faults(found) == []
    assert len(found) == count
    assert len(Counter(each.kind for each in found)) == min(count, len(KINDS))


@pytest.mark.rare
def test_these_graphs_end_a_process_that_trusts_their_checksum() -> None:
    """So that the tests above are about something."""
    found = outcomes("--count", "60", "--kinds", "graph_bytes", "graph_header", "graph_links", code=UNGUARDED)
    assert any(each.status < 0 for each in found)
    assert faults(found)


def test_what_counts_as_a_fault() -> None:
    good = {
        "kind": "k",
        "seed": 1,
        "status": 2,
        "seconds": 1.0,
        "memory": 1,
        "shown": False,
        "changed": False,
        "said": "No.",
    }
    assert Outcome(**good).fault == Outcome(**good | {"status": 0, "said": ""}).fault == ""
    for bad in (
        {"status": -11},
        {"status": 1},
        {"status": 99},
        {"said": "\n"},
        {"said": "There is too little memory. Choose fewer layers."},
        {"shown": True},
        {"changed": True},
        {"memory": MEMORY + 1},
        {"seconds": SECONDS + 1},
    ):
        assert Outcome(**good | bad).fault, bad
