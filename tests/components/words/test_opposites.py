"""Opposites: each leads back, and keeps its capital letter."""

from __future__ import annotations

import pytest

from components.words.opposites import _OPPOSITES, opposite_of


def test_each_opposite_leads_back() -> None:
    assert all(_OPPOSITES[other] == word for word, other in _OPPOSITES.items())
    assert len(_OPPOSITES) > 80


@pytest.mark.parametrize(
    ("word", "other"), [("big", "small"), ("Small", "Big"), ("OLD", "Young"), ("suitcase", None), ("", None)]
)
def test_an_opposite(word: str, other: str | None) -> None:
    assert opposite_of(word) == other
