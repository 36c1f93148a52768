"""Files drawn to do harm: none ends the process that reads it, takes 2 GB or half a minute, or shows another folder's file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.folders import ASSETS
from tests.support import hostile_files

SECONDS = 30  # of CPU, which a busy machine does not change


def answers_to(cases: list[dict[str, Any]], folder: Path) -> Iterator[dict[str, Any]]:
    """What a process of its own, with a limit of memory, says to each case; another goes on where one has ended."""
    left = list(cases)
    turn = 0
    while left:
        own = folder / str(turn)
        own.mkdir()
        turn += 1
        process = subprocess.run(
            [sys.executable, "-m", "tests.support.hostile_files", str(own)],
            input="".join(json.dumps(case) + "\n" for case in left),
            capture_output=True,
            text=True,
            cwd=ASSETS.parent,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "HF_HUB_OFFLINE": "1",
                "BERT_INTERNALS_CACHE": str(own / "cache"),
            },
        )
        found = [json.loads(line) for line in process.stdout.splitlines()]
        yield from found
        left = left[len(found) :]
        if left:
            yield {**left.pop(0), "outcome": "ended", "said": process.stderr[-500:]}


def check(cases: list[dict[str, Any]], folder: Path) -> Counter[tuple[str, str]]:
    """How many cases of each kind had which outcome. Fails with the first that did harm, by its kind and seed."""
    outcomes: Counter[tuple[str, str]] = Counter()
    for answer in answers_to(cases, folder):
        assert answer["outcome"] in {"read", "refused"}, answer
        assert not answer["shows_secret"], answer
        assert answer["lines"] == 0, answer  # an error is one line
        assert answer["seconds"] < SECONDS, answer
        assert answer["bytes"] < hostile_files.MOST_BYTES, answer
        drawn = set(hostile_files.draw_files(answer["kind"], answer["seed"]))
        assert set(answer["written"]) <= drawn, answer
        outcomes[answer["kind"], answer["outcome"]] += 1
    return outcomes


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", [1, pytest.param(4, marks=pytest.mark.rare)])
def test_a_few_files_of_every_kind_do_no_harm(tmp_path: Path, seeds: int) -> None:
    cases = [{"kind": kind, "seed": seed} for kind in hostile_files.KINDS for seed in range(seeds)]
    outcomes = check(cases, tmp_path)
    assert sum(outcomes.values()) == len(cases)
    assert {outcome for _, outcome in outcomes} == {"read", "refused"}


@pytest.mark.fuzz
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", hostile_files.KINDS)
def test_hundreds_of_files_of_a_kind_do_no_harm(kind: str, tmp_path: Path) -> None:
    outcomes = check([{"kind": kind, "seed": seed} for seed in range(100, 300)], tmp_path)
    # Else every file would be refused for the same reason, and nothing of what follows be reached.
    assert outcomes[kind, "read"] > 5
    assert outcomes[kind, "refused"] > 5


def test_a_case_is_the_same_each_time_it_is_drawn() -> None:
    for kind in hostile_files.KINDS:
        first, again = (hostile_files.draw_files(kind, 7) for _ in range(2))
        assert first == again
        assert first != hostile_files.draw_files(kind, 8)
