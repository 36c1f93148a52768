"""What libraries write is read exactly, or what is lost of it is counted; a dialect that nobody can know is said to be a guess."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import random_tables


def check(seeds: range) -> Counter[str]:
    """Fail where a table is read wrongly in silence, or fewer than 95 % of those that read back are read exactly."""
    every, of_own, wrong = random_tables.tried(seeds)
    assert not wrong, f"seeds read wrongly: {wrong[:10]} of {every}"
    assert of_own["exact"] >= 0.95 * of_own.total(), of_own
    assert of_own.total() > 0.9 * len(seeds)  # the tables are such as readers can read
    return every


def test_300_random_tables_are_read_as_they_were_written() -> None:
    every = check(range(300))
    assert every["exact"] > 280


@pytest.mark.rare
def test_2000_random_tables_are_read_as_they_were_written() -> None:
    check(range(1_000, 3_000))
