"""Twenty thousand random tables are read exactly, or what is lost of them is counted."""

from __future__ import annotations

import pytest

from tests.support.random_tables import check


@pytest.mark.fuzz
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(4))
def test_5000_random_tables_are_read_as_they_were_written(part: int) -> None:
    check(range(10_000 + 5_000 * part, 15_000 + 5_000 * part))
