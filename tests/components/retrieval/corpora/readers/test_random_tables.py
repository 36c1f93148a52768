"""What libraries write is read exactly, or what is lost of it is counted; an unknowable dialect is named as a guess."""

from __future__ import annotations

import pytest

from tests.support.random_tables import check


def test_300_random_tables_are_read_as_they_were_written() -> None:
    every = check(range(300))
    assert every["exact"] > 280


@pytest.mark.rare
def test_2000_random_tables_are_read_as_they_were_written() -> None:
    check(range(1_000, 3_000))
