"""The blind comparison: no name before the vote, votes of two sessions counted together, and what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.model.catalog import EMBEDDED_KEY
from components.retrieval.search.blind_votes import is_first_left
from dashboard import caching
from dashboard.ui import messages
from tests.dashboard.conftest import Open, settled, texts

QUERY = "a storm at sea"
TITLES = ("Layer 6, Mean, cosine", "BM25")


@pytest.fixture(autouse=True)
def _no_votes() -> None:
    caching.blind_votes.clear()


def lists(app: AppTest) -> list[list[str]]:
    """The texts of the hits in each list."""
    written = [item.value for item in app.markdown if item.value.startswith("1. ")]
    return [[line.partition(". ")[2] for line in text.split("\n")] for text in written]


def hits(app: AppTest) -> list[list[str]]:
    """The same where the lists are drawn with scores."""
    found: list[list[str]] = []

    def look(element: object) -> None:
        proto = getattr(element, "proto", None)
        if getattr(proto, "component_name", "") == "bert_internals_hits":
            rows = json.loads(proto.json)["rows"]
            found.append([messages.escape("".join(part["text"] for part in row["parts"])) for row in rows])
        for child in getattr(element, "children", {}).values():
            look(child)

    look(app.main)
    return found


def opened(open_page: Open, query: str = QUERY) -> AppTest:
    return settled(open_page("search", q=query, vs="bm25", blind="1", **{"class": "7b"}))


def test_the_lists_are_those_of_the_two_rankings_and_nothing_names_them(open_page: Open) -> None:
    named = settled(open_page("search", q=QUERY, vs="bm25"))
    both = hits(named)
    assert [len(each) for each in both] == [10, 10]
    assert all(title in texts(named) for title in TITLES)
    app = opened(open_page)
    assert not app.exception
    assert lists(app) == (both if is_first_left_here(QUERY) else both[::-1])
    assert "the left list is" not in texts(app)
    said = texts(app)
    assert "Left list" in said
    assert not any(title in said for title in TITLES)
    assert "best hit scores" not in said
    assert "Mark hits" not in said


def is_first_left_here(query: str) -> bool:
    return is_first_left(" / ".join((EMBEDDED_KEY, *TITLES)), query)


def test_votes_of_two_people_are_counted_and_revealed(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "person", lambda: "ann")
    app = opened(open_page)
    assert "0 votes on 0 queries." in texts(app)
    side = "left" if is_first_left_here(QUERY) else "right"
    app.button(key=f"blind_{side}").click().run()
    assert "1 vote on 1 query." in texts(app)
    assert "Your vote is counted" in texts(app)
    monkeypatch.setattr(caching, "person", lambda: "bob")
    other = opened(open_page)
    assert "1 vote on 1 query." in texts(other)
    assert "Your vote is counted" not in texts(other)
    other.button(key="blind_alike").click().run()
    assert not any(title in texts(other) for title in TITLES)
    other.toggle(key="blind_revealed").set_value(True).run()
    assert f"{TITLES[0]} gets **75 %** of the votes" in texts(other)
    assert "do not tell the two apart" in texts(other)
    left, right = TITLES if is_first_left_here(QUERY) else TITLES[::-1]
    assert f"the left list is **{left}**, the right list **{right}**" in texts(other)
    (votes,) = caching.blind_votes().votes(next(iter(caching.blind_votes()._votes)))
    assert (votes.query, votes.first, votes.alike, votes.second) == (QUERY, 1, 1, 0)


def test_many_queries_tell_the_two_apart(open_page: Open) -> None:
    app = opened(open_page)
    app.button(key="blind_left").click().run()
    (comparison,) = caching.blind_votes()._votes
    for number in range(30):
        caching.blind_votes().give(comparison, f"query {number}", "zoe", 0.0)
    app.run()
    app.toggle(key="blind_revealed").set_value(True).run()
    assert "**BM25** is preferred" in texts(app)
    app.session_state["data_blind"] = True
    app.run()
    frame = app.dataframe[0].value
    assert frame["votes: BM25"].sum() >= 30
    np.testing.assert_array_equal(frame["both alike"], 0)


def test_no_list_is_known_by_its_length(open_page: Open) -> None:
    """BM25 finds fewer sentences: those that share a word with the query."""
    fewer = settled(open_page("search", q="volcano erupted", vs="bm25"))
    count = min(map(len, hits(fewer)))
    assert 0 < count < 10
    app = opened(open_page, "volcano erupted")
    assert [len(each) for each in lists(app)] == [count, count]
    app = opened(open_page, "zzxq qqxz")
    assert not lists(app)
    assert "cannot be compared blindly" in texts(app)


def test_without_a_second_ranking_there_is_nothing_to_compare(open_page: Open) -> None:
    app = settled(open_page("search", q=QUERY, blind="1"))
    assert TITLES[0] in texts(app)
    assert app.toggle(key="w_blind").disabled
