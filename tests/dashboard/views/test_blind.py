"""The blind comparison: no name before the vote, votes of two sessions counted together, and what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Checkbox

from components.model.catalog import EMBEDDED_KEY
from components.retrieval.search.blind_votes import is_first_left
from dashboard import caching
from dashboard.ui import messages
from tests.support.pages import Open, at_rest, texts

QUERY = "a storm at sea"
TITLES = ("Layer 6, Mean, cosine", "BM25")


@pytest.fixture(autouse=True)
def _no_votes() -> None:
    caching.blind_votes.clear()


def lists(app: AppTest) -> list[list[str]]:
    """The texts of the hits in each list."""
    found: list[list[str]] = []
    for box in app.checkbox:
        if box.key is not None and box.key.startswith("blind_hit_"):
            rank, _, text = box.label.partition("\\. ")
            if rank == "1":
                found.append([])
            found[-1].append(text)
    return found


def box(app: AppTest, number: int, rank: int) -> Checkbox:
    """The box of a hit: the list's number, and the hit's rank from 1."""
    return next(each for each in app.checkbox if each.key and each.key.startswith(f"blind_hit_{number}_{rank}_"))


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
    return at_rest(open_page("search", q=query, vs="bm25", blind="1", **{"class": "7b"}))


def test_the_lists_are_those_of_the_two_rankings_and_nothing_names_them(open_page: Open) -> None:
    named = at_rest(open_page("search", q=QUERY, vs="bm25"))
    both = hits(named)
    assert [len(each) for each in both] == [10, 10]
    assert all(title in texts(named) for title in TITLES)
    app = opened(open_page)
    assert not app.exception
    assert lists(app) == (both if is_first_left_here(QUERY) else both[::-1])
    assert "list A is" not in texts(app)
    said = texts(app)
    assert "List A" in said
    assert not any(title in said for title in TITLES)
    assert "best hit scores" not in said
    assert "Mark hits" not in said


def is_first_left_here(query: str) -> bool:
    return is_first_left(" / ".join((EMBEDDED_KEY, *TITLES)), query)


def test_votes_of_two_people_are_counted_and_revealed(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "person", lambda: "ann")
    app = opened(open_page)
    assert "0 votes on 0 queries;" in texts(app)
    side = "left" if is_first_left_here(QUERY) else "right"
    app.button(key=f"blind_{side}").click().run()
    assert "1 vote on 1 query;" in texts(app)
    assert "Your vote is counted" in texts(app)
    monkeypatch.setattr(caching, "person", lambda: "bob")
    other = opened(open_page)
    assert "1 vote on 1 query;" in texts(other)
    assert "Your vote is counted" not in texts(other)
    other.button(key="blind_alike").click().run()
    assert not any(title in texts(other) for title in TITLES)
    other.toggle(key="blind_revealed").set_value(True).run()
    assert f"{TITLES[0]} gets **75 %** of the votes" in texts(other)
    assert "do not tell the two apart" in texts(other)
    left, right = TITLES if is_first_left_here(QUERY) else TITLES[::-1]
    assert f"list A is **{left}**, list B **{right}**" in texts(other)
    (votes,) = caching.blind_votes().votes(next(iter(caching.blind_votes()._comparisons)))
    assert (votes.query, votes.first, votes.alike, votes.second) == (QUERY, 1, 1, 0)


def test_many_queries_tell_the_two_apart(open_page: Open) -> None:
    app = opened(open_page)
    app.button(key="blind_left").click().run()
    (comparison,) = caching.blind_votes()._comparisons
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
    fewer = at_rest(open_page("search", q="volcano erupted", vs="bm25"))
    count = min(map(len, hits(fewer)))
    assert 0 < count < 10
    app = opened(open_page, "volcano erupted")
    assert [len(each) for each in lists(app)] == [count, count]
    app = opened(open_page, "zzxq qqxz")
    assert not lists(app)
    assert "cannot be compared blindly" in texts(app)


def test_without_a_second_ranking_there_is_nothing_to_compare(open_page: Open) -> None:
    app = at_rest(open_page("search", q=QUERY, blind="1"))
    assert TITLES[0] in texts(app)
    assert app.toggle(key="w_blind").disabled


def test_ticked_hits_are_counted_for_both_lists(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "person", lambda: "ann")
    app = opened(open_page)
    left, right = lists(app)
    assert len(left) == len(right)
    in_both = next(text for text in left if text in right)
    box(app, 0, left.index(in_both) + 1).check().run()
    assert box(app, 1, right.index(in_both) + 1).value
    only_left = next(text for text in left if text not in right)
    box(app, 0, left.index(only_left) + 1).check().run()
    assert "hits ticked on 1 query." in texts(app)
    app.toggle(key="blind_revealed").set_value(True).run()
    first, second = (2, 1) if is_first_left_here(QUERY) else (1, 2)
    assert (
        f"People ticked **{100 * first / len(left):.0f} %** of the hits of {TITLES[0]} and "
        f"**{100 * second / len(left):.0f} %** of those of {TITLES[1]}"
    ) in texts(app)
    box(app, 1, right.index(in_both) + 1).uncheck().run()
    assert not box(app, 0, left.index(in_both) + 1).value
    (comparison,) = caching.blind_votes()._comparisons
    for number in range(4):
        caching.blind_votes().mark(comparison, f"query {number}", "zoe", {1}, ((1, 2), (3, 4)))
    app.run()
    assert "percentage points (95 % interval" in texts(app)


def test_two_ticks_that_arrive_at_once_both_count(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "person", lambda: "ann")
    app = opened(open_page)
    box(app, 0, 1).check()
    box(app, 0, 2).check()
    app.run()
    assert box(app, 0, 1).value
    assert box(app, 0, 2).value


def test_the_boxes_of_another_query_are_other_boxes(open_page: Open) -> None:
    """A browser sends what it last knew of a box of the same name: a tick that nobody made on the next query."""
    app = opened(open_page)
    box(app, 0, 1).check().run()
    before = {each.key for each in app.checkbox}
    app.text_input(key="w_query").set_value("election results announced").run()
    app = at_rest(app)
    after = {each.key for each in app.checkbox if each.key and each.key.startswith("blind_hit_")}
    assert after
    assert not after & before
    assert not any(each.value for each in app.checkbox if each.key in after)
    assert "hits ticked on 1 query." in texts(app)


def test_a_vote_can_be_taken_back(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "person", lambda: "ann")
    app = opened(open_page)
    app.button(key="blind_left").click().run()
    app.button(key="blind_take_back").click().run()
    assert "0 votes on 0 queries;" in texts(app)
    assert "Your vote is counted" not in texts(app)


def test_the_next_query_is_blind_again_and_a_revealed_vote_stays(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "person", lambda: "ann")
    app = opened(open_page)
    app.button(key="blind_left").click().run()
    app.toggle(key="blind_revealed").set_value(True).run()
    assert "list A is" in texts(app)
    assert app.button(key="blind_right").disabled
    assert any(f"**List {name}: {TITLES[0]}**" in texts(app) for name in "AB")
    assert "stay as they are" in texts(app)
    assert not lists(app)  # no box to tick any more
    app.text_input(key="w_query").set_value("a train").run()
    at_rest(app)
    assert not app.toggle(key="blind_revealed").value
    assert "list A is" not in texts(app)
    app.toggle(key="blind_revealed").set_value(True).run()  # what all votes say, without the sides of this query
    assert "list A is" not in texts(app)
    assert "Vote on this query to see" in texts(app)
    assert f"{TITLES[0]} gets" in texts(app)


def test_without_a_class_code_nobody_sees_what_others_asked(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "person", lambda: "ann")
    app = at_rest(open_page("search", q=QUERY, vs="bm25", blind="1"))
    app.button(key="blind_left").click().run()
    assert "1 vote on 1 query;" in texts(app)
    assert "Only your own votes count" in texts(app)
    monkeypatch.setattr(caching, "person", lambda: "bob")
    other = at_rest(open_page("search", q=QUERY, vs="bm25", blind="1"))
    assert "0 votes on 0 queries;" in texts(other)


def test_other_candidates_are_another_comparison(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "person", lambda: "ann")
    for candidates in ("10", "20"):
        app = at_rest(open_page("search", q=QUERY, vs="rerank", cand=candidates, blind="1", **{"class": "7b"}))
        assert "0 votes on 0 queries;" in texts(app)
        app.button(key="blind_left").click().run()
    assert len(caching.blind_votes()._comparisons) == 2


def test_a_change_of_settings_after_a_vote_is_said_until_there_is_a_vote_on_them(open_page: Open) -> None:
    app = opened(open_page)
    assert "a new count begins" not in texts(app)
    at_rest(app.button(key="blind_left").click().run())
    assert "a new count begins" not in texts(app)
    app.session_state["pooling"] = "max"
    at_rest(app.run())
    assert "a new count begins" in texts(app)
    assert "0 votes on 0 queries" in texts(app)
    at_rest(app.button(key="blind_left").click().run())
    assert "a new count begins" not in texts(app)


def test_beside_an_open_lesson_the_class_can_be_entered_in_both_places(open_page: Open) -> None:
    app = at_rest(open_page("search", q=QUERY, vs="bm25", blind="1", lesson="two-banks"))
    assert not app.exception
    assert not app.error
    assert len(lists(app)) == 2
    assert len([field for field in app.text_input if field.label == "Class code"]) == 2


@pytest.mark.parametrize("class_code", ["", "7b"])
def test_after_a_reload_a_vote_is_still_the_tabs_own(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, class_code: str
) -> None:
    mark = "7d444840-9dc0-41d1-b245-5ffdce74fad2"
    address = {"q": QUERY, "vs": "bm25", "blind": "1"} | ({"class": class_code} if class_code else {})
    monkeypatch.setattr(caching, "person", lambda: "first session")
    app = at_rest(open_page("search", **address))
    app.button(key="blind_left").click().run()  # before the mark is known
    app.session_state["blind_visitor"] = {"mark": mark}
    app.run()
    app.toggle(key="blind_revealed").set_value(True).run()
    monkeypatch.setattr(caching, "person", lambda: "second session")
    again = at_rest(open_page("search", **address))
    again.session_state["blind_visitor"] = {"mark": mark}
    again.run()
    assert "1 vote on 1 query;" in texts(again)
    assert again.button(key="blind_right").disabled  # the lists were seen before the reload


@pytest.mark.parametrize("class_code", ["", "7b"])
def test_boxes_stay_when_the_browsers_mark_becomes_known(open_page: Open, class_code: str) -> None:
    """A click that is on its way at that moment finds its box."""
    address = {"q": QUERY, "vs": "bm25", "blind": "1"} | ({"class": class_code} if class_code else {})
    app = at_rest(open_page("search", **address))
    clicked, other = box(app, 0, 1), box(app, 1, 5)
    app.session_state["blind_visitor"] = {"mark": "7d444840-9dc0-41d1-b245-5ffdce74fad2"}
    app.run()
    assert (box(app, 0, 1).key, box(app, 1, 5).key) == (clicked.key, other.key)
    clicked.check().run()
    assert box(app, 0, 1).value
    assert "hits ticked on 1 query." in texts(app)


def test_boxes_stay_when_the_mark_arrives_together_with_a_tick(open_page: Open) -> None:
    app = at_rest(open_page("search", q=QUERY, vs="bm25", blind="1"))
    clicked, other = box(app, 0, 1), box(app, 0, 2)
    app.session_state["blind_visitor"] = {"mark": "7d444840-9dc0-41d1-b245-5ffdce74fad2"}
    clicked.check().run()
    assert (box(app, 0, 1).key, box(app, 0, 2).key) == (clicked.key, other.key)
    assert box(app, 0, 1).value


def test_a_mark_with_other_ticks_gets_boxes_of_its_own(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = "7d444840-9dc0-41d1-b245-5ffdce74fad2"
    address = {"q": QUERY, "vs": "bm25", "blind": "1"}
    monkeypatch.setattr(caching, "person", lambda: "first session")
    app = at_rest(open_page("search", **address))
    app.session_state["blind_visitor"] = {"mark": mark}
    app.run()
    box(app, 0, 2).check().run()
    monkeypatch.setattr(caching, "person", lambda: "second session")
    again = at_rest(open_page("search", **address))
    assert not box(again, 0, 2).value
    again.session_state["blind_visitor"] = {"mark": mark}
    again.run()
    assert box(again, 0, 2).value
    assert "hits ticked on 1 query." in texts(again)
