"""Votes on two unnamed rankings: counted once for each person, and an estimate over queries."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from scipy.stats import binomtest

from components.retrieval.search import blind_votes
from components.retrieval.search.blind_votes import (
    ALIKE,
    FIRST,
    SECOND,
    Alone,
    BlindVotes,
    QueryVotes,
    is_first_left,
    marked_difference,
    preference,
)


def test_each_person_counts_once_for_a_query_with_the_last_vote():
    votes = BlindVotes()
    for person, value in (("ann", FIRST), ("bob", SECOND), ("ann", ALIKE), ("eve", FIRST)):
        votes.give("a/b", "dogs", person, value)
    votes.give("a/b", "cats", "ann", SECOND)
    votes.give("a/c", "dogs", "ann", SECOND)
    assert votes.votes("a/b") == (QueryVotes("dogs", 1, 1, 1), QueryVotes("cats", 0, 0, 1))
    assert votes.of_person("a/b", "dogs", "ann") == ALIKE
    assert votes.of_person("a/b", "dogs", "zoe") is None
    assert votes.votes("nothing") == ()
    with pytest.raises(ValueError, match="no vote"):
        votes.give("a/b", "dogs", "ann", 0.3)


def test_what_a_session_gave_is_moved_to_its_mark_and_counts_once():
    votes, lists = BlindVotes(), ((1, 2), (3, 4))
    votes.give("a/b", "dogs", "mark", FIRST)  # before a reload
    votes.give("a/b", "dogs", "session", SECOND)  # after it, before the mark was known
    votes.mark("a/b", "dogs", "session", {1}, lists)
    votes.give("a/b", "dogs", "bob", ALIKE)
    alone, others = (Alone("session"), "a/b"), (Alone("bob"), "a/b")
    votes.give((Alone("mark"), "a/b"), "cats", "mark", FIRST)
    votes.give(alone, "cats", "session", SECOND)
    votes.give(alone, "dogs", "session", ALIKE)
    votes.give(others, "dogs", "bob", FIRST)
    votes.move("session", "mark")
    assert votes.votes("a/b") == (QueryVotes("dogs", 0, 1, 1, markers=1, good_first=0.5, good_second=0.0),)
    assert votes.marked_by("a/b", "dogs", "mark") == {1}
    assert votes.of_person("a/b", "dogs", "session") is None
    assert votes.votes((Alone("mark"), "a/b")) == (QueryVotes("cats", 0, 0, 1), QueryVotes("dogs", 0, 1, 0))
    assert votes.votes(alone) == ()
    assert votes.votes(others) == (QueryVotes("dogs", 1, 0, 0),)


def test_a_vote_given_before_the_lists_were_seen_stays():
    votes = BlindVotes()
    votes.reveal("a/b", "dogs", "mark")
    votes.give("a/b", "dogs", "bob", ALIKE)
    votes.reveal("a/b", "dogs", "mark")
    assert not votes.is_revealed("a/b", "dogs", "mark")  # nobody sees the lists before their vote
    votes.take_back("a/b", "dogs", "bob")
    for comparison in ("a/b", (Alone("mark"), "a/b")):
        votes.give(comparison, "dogs", "mark", FIRST)
        votes.reveal(comparison, "dogs", "mark")
    votes.give("a/b", "dogs", "session", SECOND)
    votes.give((Alone("session"), "a/b"), "dogs", "session", SECOND)
    votes.move("session", "mark")
    for comparison in ("a/b", (Alone("mark"), "a/b")):
        assert votes.is_revealed(comparison, "dogs", "mark")
        assert votes.votes(comparison) == (QueryVotes("dogs", 1, 0, 0),)


def test_votes_of_many_people_at_once_are_all_counted():
    votes = BlindVotes()
    with ThreadPoolExecutor(8) as people:
        list(people.map(lambda number: votes.give("a/b", f"query {number % 5}", number, FIRST), range(200)))
    assert [each.first for each in votes.votes("a/b")] == [40] * 5


def test_the_store_is_bounded(monkeypatch):
    monkeypatch.setattr(blind_votes, "MOST_QUERIES", 2)
    monkeypatch.setattr(blind_votes, "MOST_PEOPLE", 3)
    now = [0.0]
    votes = BlindVotes(clock=lambda: now[0])
    for query in range(4):
        for person in range(5):
            votes.give("a/b", str(query), person, FIRST)
            votes.mark("a/b", str(query), person, {1}, ((1,), (2,)))
    assert votes.votes("a/b") == (QueryVotes("0", 3, 0, 0, 3, 1.0, 0.0), QueryVotes("1", 3, 0, 0, 3, 1.0, 0.0))
    now[0] = blind_votes.HOURS_KEPT * 3600 + 1
    assert votes.votes("a/b") == ()


def test_each_vote_keeps_a_comparison_for_the_whole_time_again():
    now, hours = [0.0], blind_votes.HOURS_KEPT * 3600
    votes = BlindVotes(clock=lambda: now[0])
    votes.give("a/b", "dogs", "ann", FIRST)
    now[0] = hours - 1
    votes.give("a/b", "cats", "bob", SECOND)
    now[0] = 2 * hours - 2
    assert [each.query for each in votes.votes("a/b")] == ["dogs", "cats"]
    now[0] = 2 * hours
    assert votes.votes("a/b") == ()


def test_the_estimate_is_over_queries():
    """Ten people on one query are one query: its value is 1/2, whatever their number."""
    votes = [QueryVotes("dogs", 4, 2, 4), QueryVotes("cats", 0, 1, 0), QueryVotes("ships", 1, 0, 0)]
    found = preference(votes)
    assert found.value == pytest.approx(2 / 3)
    expected = binomtest(2, 3).proportion_ci(method="wilson")
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert preference([QueryVotes("dogs", 3, 1, 1)]).value == pytest.approx(0.7)
    with pytest.raises(ValueError, match="no query"):
        preference([])


def test_marked_hits_are_a_share_of_each_list():
    votes, lists = BlindVotes(), ((10, 11, 12, 13), (12, 13, 14, 15))
    votes.mark("a/b", "dogs", "ann", {10, 12, 99}, lists)  # 99 stands in neither
    votes.mark("a/b", "dogs", "bob", {15}, lists)
    votes.mark("a/b", "dogs", "eve", {15}, lists)
    votes.mark("a/b", "dogs", "eve", set(), lists)  # taken back
    votes.mark("a/b", "cats", "ann", {14}, lists)
    assert votes.marked_by("a/b", "dogs", "ann") == {10, 12}
    assert votes.marked_by("a/b", "dogs", "eve") == frozenset()
    assert votes.votes("a/b") == (
        QueryVotes("dogs", markers=2, good_first=0.25, good_second=0.25),
        QueryVotes("cats", markers=1, good_first=0.0, good_second=0.25),
    )
    found = marked_difference(votes.votes("a/b"))
    assert found.value == pytest.approx(-0.125)
    assert (found.low, found.high) == (-0.25, 0.0)
    with pytest.raises(ValueError, match="no query"):
        marked_difference([QueryVotes("ships", 1, 0, 0)])


def test_a_vote_that_is_taken_back_leaves_no_query():
    votes = BlindVotes()
    votes.give("a/b", "dogs", "ann", FIRST)
    votes.take_back("a/b", "dogs", "ann")
    votes.take_back("a/b", "never asked", "ann")
    assert votes.votes("a/b") == ()


def test_the_sides_are_drawn_by_lot_and_the_same_for_all():
    sides = [is_first_left("a / b", f"query {number}") for number in range(400)]
    assert sides == [is_first_left("a / b", f"query {number}") for number in range(400)]
    assert 150 < sum(sides) < 250
    assert sides != [is_first_left("b / a", f"query {number}") for number in range(400)]
    assert isinstance(is_first_left("a", "\ud800"), bool)
