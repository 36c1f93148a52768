"""What a browser remembers of a session is checked, offered to a later one, and bounded."""

from __future__ import annotations

import json
import re
import time
from types import MappingProxyType
from typing import Any

import pytest

from components.retrieval.search.relevance import Judgements
from dashboard import caching
from dashboard.corpora import current, marks, remembered, uploads
from dashboard.corpora.remembered import MOST_BYTES, SessionMemory
from dashboard.declared import table
from tests.support.pages import Open, at_rest, setting, texts

CORPUS, KEY = "a" * 64, f"mine.csv {'0' * 64}"


def test_what_is_written_is_read_back() -> None:
    memory = SessionMemory(
        {"queries": KEY, uploads.CORPUS: (KEY, None, "text"), "saved_runs": (KEY, KEY)},
        {CORPUS: Judgements().mark("volcano", 3, True).mark("volcano", 4, False)},
        {CORPUS: {"volcano": (("Layer 6", (4, 3)), ("BM25", ())), "no longer marked": (("Layer 6", (1,)),)}},
    )
    text, left_out = memory.to_text()
    assert left_out == 0
    found = SessionMemory.of_text(text)
    assert found.uploads == memory.uploads
    assert found.judgements[CORPUS].of("volcano") == {3: True, 4: False}
    assert found.rankings[CORPUS] == {"volcano": (("Layer 6", (4, 3)), ("BM25", ()))}
    assert SessionMemory().to_text() == ("", 0)


@pytest.mark.parametrize("upload", [(KEY, "cp1252", None), (KEY, None, "text", "separator=tab quotes=no header=yes")])
def test_a_corpus_of_a_chosen_dialect_or_column_is_read_back(upload: tuple[object, ...]) -> None:
    memory = SessionMemory({uploads.CORPUS: upload}, {}, {})
    assert SessionMemory.of_text(memory.to_text()[0]).uploads == memory.uploads


@pytest.mark.parametrize(
    "ranking",
    [
        "Layer 6",
        ["Layer 6"],
        ["Layer 6", 3],
        [6, [3]],
        ["x" * 1_001, [3]],
        ["x", [True]],
        ["x", [-1]],
        ["x", [*range(11)]],
    ],
)
def test_a_ranking_that_no_page_has_written_is_left_out(ranking: object) -> None:
    sent = {"marks": {CORPUS: {"q": {"3": True}}}, "rankings": {CORPUS: {"q": [["Layer 6", [3]], ranking]}}}
    found = SessionMemory.of_text(json.dumps(sent))
    assert found.judgements[CORPUS].of("q") == {3: True}
    assert found.rankings[CORPUS] == {}


def test_of_too_many_marks_the_last_stay_and_the_others_are_counted() -> None:
    judged = Judgements()
    for number in range(2_000):
        judged = Judgements(MappingProxyType({**judged.marks, f"{number:06d} " + "x" * 193: {number: True}}))
    text, left_out = SessionMemory({}, {CORPUS: judged}).to_text()
    assert len(text.encode()) <= MOST_BYTES
    kept = [query[:6] for query in SessionMemory.of_text(text).judgements[CORPUS].marks]
    assert kept == [f"{number:06d}" for number in range(left_out, 2_000)]
    assert 0 < left_out < 1_500


@pytest.mark.parametrize(
    "sent",
    [
        None,
        7,
        "",
        "[]",
        "{",
        "[" * 100_000,
        "x" * (MOST_BYTES + 1),
        json.dumps({"uploads": {"queries": "../../etc/passwd", "other": KEY, "saved_runs": KEY}}),
        json.dumps(
            {"uploads": {"queries": f"aa {'0' * 64} " * 200 + "x"}}
        ),  # tried in all ways, it would take for ever
        json.dumps({"uploads": {uploads.CORPUS: [KEY, None, "a " * 100_000]}}),
        *(json.dumps({"uploads": {uploads.CORPUS: [KEY, None, "t", text]}}) for text in ("", "quotes=7", "x=yes", 5)),
        json.dumps({"uploads": {uploads.CORPUS: [KEY, 7, "text"], "sts": [KEY], "static": {"a": 1}}, "marks": []}),
        json.dumps(
            {"marks": {"short": {"q": {"1": True}}, CORPUS: {"q": {"-1": True, "x": True, "2": "yes", "٣": True}}}}
        ),
    ],
)
def test_what_no_page_has_written_is_nothing(sent: object) -> None:
    assert not SessionMemory.of_text(sent)


def of_browser(memory: SessionMemory) -> dict[str, Any]:
    """The session of a browser that has sent what it remembers."""
    return {"browser_memory": {"found": [memory.to_text()[0]]}}


def test_what_several_sessions_have_left_is_offered_together_and_the_later_ones_count() -> None:
    first = SessionMemory(
        {"queries": KEY, "saved_runs": (KEY, f"a.json {'1' * 64}")},
        {CORPUS: Judgements().mark("q", 1, True).mark("q", 2, True), "b" * 64: Judgements().mark("other", 5, True)},
        {CORPUS: {"q": (("Layer 6", (1, 2)),)}, "b" * 64: {"other": (("BM25", (5,)),)}},
    )
    second = SessionMemory(
        {"queries": f"b.csv {'2' * 64}", "saved_runs": (f"b.json {'2' * 64}",)},
        {CORPUS: Judgements().mark("p", 3, True).mark("q", 1, False)},
        {CORPUS: {"q": (("Layer 5", (2, 1)),)}},
    )
    found = remembered.together([first.to_text()[0], "nonsense", 7, second.to_text()[0]])
    assert found.uploads["queries"] == f"b.csv {'2' * 64}"
    assert found.uploads["saved_runs"] == (KEY, f"a.json {'1' * 64}", f"b.json {'2' * 64}")
    assert found.judgements[CORPUS].of("q") == {1: False, 2: True}
    assert found.judgements[CORPUS].of("p") == {3: True}
    assert found.judgements["b" * 64].of("other") == {5: True}
    assert found.rankings == {CORPUS: {"q": (("Layer 5", (2, 1)),)}, "b" * 64: {"other": (("BM25", (5,)),)}}
    assert not remembered.together(first.to_text()[0])
    assert not remembered.together(["x" * MOST_BYTES, first.to_text()[0]])


def test_very_many_entries_take_no_time() -> None:
    """2,500 entries of one mark each took four seconds in every run, and millions of empty ones eighteen."""
    entries = [SessionMemory({}, {CORPUS: Judgements().mark(f"q{at}", at, True)}).to_text()[0] for at in range(1_000)]
    started = time.process_time()
    found = remembered.together([*[""] * 500_000, "7", *entries, *["{}"] * 100_000])
    assert time.process_time() - started < 0.5
    assert [*found.judgements[CORPUS].marks] == [f"q{at}" for at in range(1_000)]


def test_an_entry_that_was_written_is_longer_than_the_least() -> None:
    nothing = {"uploads": {}, "marks": {}, "rankings": {}, "lecture": []}
    assert len(json.dumps(nothing)) == remembered._LEAST_ENTRY
    assert len(SessionMemory(lecture=("a?#b",)).to_text()[0]) > remembered._LEAST_ENTRY


def test_what_the_browser_dropped_is_counted_and_said_once(open_page: Open) -> None:
    app = at_rest(open_page("search", v="many-queries", session=None))
    app.session_state["browser_memory"] = {"dropped": 2}
    assert "Your browser had no room for what 2 other sessions had left, the oldest" in texts(app.run())
    app.session_state["browser_memory"] = {"dropped": True}
    app.session_state["_notices"] = []  # as after some seconds
    assert "had no room" not in texts(app.run())


def test_marks_and_files_of_an_earlier_session_are_offered_and_taken(open_page: Open) -> None:
    digest = caching.kept_files().keep(b"actor wins award\nvolcano erupted\n", "somebody")
    memory = SessionMemory(
        {"queries": f"mine_.txt {digest}", "sts": KEY},
        {current.demo().content_hash: Judgements().mark("volcano erupted", 3, True)},
    )
    app = at_rest(open_page("search", v="many-queries", session=None))
    app.session_state["browser_memory"] = of_browser(memory)["browser_memory"]
    app.run()
    shown = texts(app).replace("\\", "")
    assert "Used in this browser before: marks for 1 query and the file **mine_.txt**." in shown
    assert "No longer whole on this server: **mine.csv**." in shown
    assert setting(app, "_queries") is None
    app.button(key="use_remembered").click().run()
    app = at_rest(app)
    (drawn,) = [item.proto.body for item in app.get("html") if "bi-found" in item.proto.body]
    assert re.findall('<div><b dir="auto">(.*?)</b>', drawn) == ["actor wins award", "volcano erupted"]
    assert setting(app, "_sts") is None
    assert app.session_state["_judgements"][current.demo().content_hash].of("volcano erupted") == {3: True}
    assert "Used in this browser before" not in texts(app)


def test_a_mark_of_a_sentence_that_a_corpus_lacks_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of a browser may name any number: its queries could not join the corpus, nor be downloaded."""
    corpus = current.demo()
    last = len(corpus) - 1
    text = json.dumps(
        {"marks": {corpus.content_hash: {"q": {str(last): True, "999999999": True}, "p": {str(last + 1): True}}}}
    )
    monkeypatch.setattr(remembered.st, "session_state", {})
    remembered._take(SessionMemory.of_text(text))
    assert marks.judgements(corpus).marks == {"q": {last: True}}


def test_the_precision_counts_earlier_marks_with_their_rankings_and_says_how_many_it_does_not_count(
    open_page: Open,
) -> None:
    corpus = current.demo().content_hash
    judged = Judgements().mark("volcano erupted", 3, True).mark("actor wins award", 5, True).mark("third", 6, True)
    memory = SessionMemory({}, {corpus: judged}, {corpus: {"actor wins award": (("Another ranking", (7, 5)),)}})
    app = at_rest(open_page("search", v="hits", q="volcano erupted", session=None))
    app.session_state["browser_memory"] = of_browser(memory)["browser_memory"]
    app.run()
    app.button(key="use_remembered").click().run()
    shown = texts(at_rest(app))
    assert "Precision of 2 judged queries" in shown
    assert "Not counted: 1 query with marks, whose hits were not on screen." in shown
    precision = app.table[0].value.set_index("ranking")
    assert precision.loc["Another ranking", "P@5"] == "0.20"


@pytest.mark.parametrize("view", ["many-queries", "one-input", "pieces"])
def test_marks_are_offered_only_where_they_are_used(open_page: Open, view: str) -> None:
    memory = SessionMemory({}, {current.demo().content_hash: Judgements().mark("volcano erupted", 3, True)})
    app = at_rest(open_page(table.place_of(view), v=view, session=None))
    app.session_state["browser_memory"] = of_browser(memory)["browser_memory"]
    assert "Used in this browser before" not in texts(at_rest(app.run()))


def test_what_is_forgotten_is_not_offered_again(open_page: Open) -> None:
    memory = SessionMemory({}, {current.demo().content_hash: Judgements().mark("volcano erupted", 3, True)})
    app = at_rest(open_page("search", v="hits"))
    app.session_state["browser_memory"] = of_browser(memory)["browser_memory"]
    app.run()
    app.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remembered, "together", lambda sent: pytest.fail("what is known was read again"))
        app.run()
    assert "Used in this browser before" in texts(app)
    app.button(key="forget_remembered").click().run()
    app.run()
    assert "Used in this browser before" not in texts(app)
    assert setting(app, "_judgements") is None


def test_marks_of_this_session_count_before_those_of_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    session = {"_judgements": {CORPUS: Judgements().mark("q", 1, False)}}
    monkeypatch.setattr("streamlit.session_state", session)
    remembered._take(
        SessionMemory({}, {CORPUS: Judgements().mark("q", 1, True).mark("q", 2, True).mark("other", 5, True)})
    )
    judged = session["_judgements"][CORPUS]
    assert judged.of("q") == {1: False, 2: True}
    assert judged.of("other") == {5: True}


def test_of_saved_runs_those_are_offered_that_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, Any] = {}
    monkeypatch.setattr("streamlit.session_state", session)
    digest = caching.kept_files().keep(b"a run", "somebody")
    found = SessionMemory(
        {"saved_runs": (f"here.json {digest}", f"gone.json {'1' * 64}"), "graded": f"a {digest} b {'1' * 64}"}
    )
    assert remembered._kept_of(found) == {"saved_runs": (f"here.json {digest}",)}
    assert remembered._names(found.uploads) == ["a", "b", "gone.json", "here.json"]
    remembered._take(found)
    assert session["_saved_runs"] == (f"here.json {digest}",)
    assert "_graded" not in session


STARS = ("inside?v=block#block_change", "inside?v=mask-token#mask_vectors")


def test_a_lecture_of_an_earlier_session_is_offered_on_its_page_and_taken(open_page: Open) -> None:
    memory = SessionMemory(lecture=STARS)
    assert SessionMemory.of_text(memory.to_text()[0]) == memory
    several = remembered.together(
        [SessionMemory(lecture=STARS[:1]).to_text()[0], SessionMemory(lecture=STARS[1:]).to_text()[0]]
    )
    assert several.lecture == STARS  # of both sessions: a star of the later one alone hid the lecture of before
    app = at_rest(open_page("lecture", session=None))
    app.session_state["browser_memory"] = of_browser(memory)["browser_memory"]
    assert "Used in this browser before: a lecture of 2 pictures." in texts(app.run())
    app.button(key="use_remembered").click().run()
    assert setting(app, "lecture") == STARS
    assert "Used in this browser before" not in texts(app.run())


def test_what_a_joined_lecture_has_no_room_for_is_counted(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST_PICTURES", 1)
    app = at_rest(open_page("lecture", session=None))
    app.session_state["browser_memory"] = of_browser(SessionMemory(lecture=STARS))["browser_memory"]
    app.run()
    app.button(key="use_remembered").click().run()
    assert setting(app, "lecture") == STARS[:1]
    assert [toast.value for toast in app.toast] == ["A lecture has at most 1 pictures: 1 of before left out."]


@pytest.mark.parametrize("sent", ["a", [1], ["inside"], ["inside?v=block#a b"], [STARS[0]] * 41])
def test_what_is_no_lecture_is_none(sent: object) -> None:
    assert SessionMemory.of_text(json.dumps({"lecture": sent})).lecture == ()
