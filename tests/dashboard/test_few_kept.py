"""The last few things are kept, those in use the longest."""

from __future__ import annotations

from dashboard.few_kept import KEPT, FewKept


def test_as_many_as_there_is_room_for():
    kept: FewKept[int] = FewKept(capacity=2)
    for number in range(4):
        kept.put(str(number), number)
    assert [kept.get(str(number)) for number in range(4)] == [None, None, 2, 3]


def test_what_was_looked_at_stays_longer():
    kept: FewKept[int] = FewKept(capacity=2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (1, None, 3)


def test_putting_again_replaces_and_renews():
    kept: FewKept[int] = FewKept(capacity=2)
    for key, item in (("a", 1), ("b", 2), ("a", 9), ("c", 3)):
        kept.put(key, item)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (9, None, 3)


def test_what_is_not_there_takes_no_room():
    kept: FewKept[int] = FewKept(capacity=1)
    kept.put("a", 1)
    assert kept.get("b") is None
    assert kept.get("a") == 1


def test_six_are_kept_unless_told_otherwise():
    kept: FewKept[int] = FewKept()
    for number in range(KEPT + 1):
        kept.put(str(number), number)
    assert [kept.get(str(number)) is None for number in range(KEPT + 1)] == [True] + [False] * KEPT
    assert KEPT == 6
