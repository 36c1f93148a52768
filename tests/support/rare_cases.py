"""Cases of a test of which each run of the tests has a few; `make test-all` has all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

RARE = pytest.mark.rare


def but_a_few(cases: Iterable[Any], usual: int | Collection[Any]) -> list[Any]:
    """The cases for `parametrize`, all rare but those that are `usual`: so many, as far apart as possible, or these."""
    every = list(cases)
    if isinstance(usual, int):
        assert 0 < usual <= len(every)
        places = {number * len(every) // usual for number in range(usual)}
    else:
        assert all(case in every for case in usual), "a case that there is no more"
        places = {place for place, case in enumerate(every) if case in usual}
    return [case if place in places else _rare(case) for place, case in enumerate(every)]


def _rare(case: Any) -> Any:
    if hasattr(case, "marks"):  # of pytest.param
        return pytest.param(*case.values, marks=[*case.marks, RARE], id=case.id)
    return pytest.param(*case, marks=RARE) if isinstance(case, tuple) else pytest.param(case, marks=RARE)
