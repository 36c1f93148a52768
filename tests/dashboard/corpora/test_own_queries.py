"""Queries with their right texts, pasted on Start: they become the corpus, and the failed ones are shown."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from components.errors import InputError
from components.retrieval.corpora import corpus as reading
from components.retrieval.corpora.columns import list_of_turns
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.corpora.rows import roles
from components.retrieval.evaluation.pair_runs import pairs_of_corpus
from components.retrieval.failures import failed_queries
from components.retrieval.search.relevance import Judgements
from dashboard import access, caching
from dashboard.corpora import current, own_queries
from dashboard.declared import table
from dashboard.views.home import examples
from tests.support.judged_collections import BEIR, packed
from tests.support.pages import Open, at_rest, read_texts, texts

ROWS = """my parcel is broken > How to report a damaged delivery
cancel my plan\tEnding a subscription

where is it → Tracking, "step by step"
"""


def test_pasted_rows_become_a_table() -> None:
    read = list(csv.reader(io.StringIO(own_queries.as_table(ROWS).decode())))
    assert read == [
        ["query", "text"],
        ["my parcel is broken", "How to report a damaged delivery"],
        ["cancel my plan", "Ending a subscription"],
        ["where is it", 'Tracking, "step by step"'],
    ]


def test_a_corpus_that_was_made_here_is_no_file_that_a_command_reads() -> None:
    for name in (own_queries.PASTED, "my.csv with own queries.jsonl", "set with its queries.jsonl"):
        content = own_queries.as_table(ROWS) if name.endswith("csv") else b'{"text": "a b"}\n{"text": "c d"}\n'
        corpus = reading.read_corpus(content, name, "text")
        assert not current.file_of_pairs(corpus), name
        assert current.file_of(corpus) == (
            "bert-internals-corpus_lengths.csv",
            "--text-column",
            "sentence",
        )  # saved by Share
    assert current.file_of(reading.read_corpus(own_queries.as_table(ROWS), "rows.csv", "text"))[0] == "rows.csv"


def test_a_tab_comes_before_other_signs_and_an_arrow_is_one_sign() -> None:
    typed = "age > 60 discount\tSenior fares\ncancel -> Ending\nmove --> Address\nleave => Exit\nstay → Hotel"
    rows = list(csv.reader(io.StringIO(own_queries.as_table(typed).decode())))[1:]
    assert rows == [
        ["age > 60 discount", "Senior fares"],
        *(["cancel", "Ending"], ["move", "Address"], ["leave", "Exit"], ["stay", "Hotel"]),
    ]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("a > b\nage > 60 > senior", "Row 2 has several signs"),
        ("a > b\nno sign here", "Row 2 is no query with a text"),
        ("a > b\n> c", "Row 2 is no query"),
        ("a > b\nc >", "Row 2 is no query"),
        ("a > b\nno sign\nc > d > e\n> f", "Row 3 has several.*Row 2 is no query.*Row 4 is no query"),
        ("a\n" * 12, "Row 10 is no query.*And 2 more rows"),
        ("a > b", "There is one row."),
        ("", "There are no rows."),
    ],
)
def test_what_is_no_table_is_said(typed: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        own_queries.as_table(typed)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("query,text\na b,c d\n", ("text", "query")),
        ("compressed,sentence,topic\na b,c d,x y\n", ("sentence", "compressed")),
        ("question,answer\nWho is it?,It is him\n", ("answer", "question")),
        ("first,second\nWho is it?,It is him\n", ("", "")),
        ("query,answer\nWho is it?,It is him\n", ("answer", "query")),
        ("id,text\n1,c d\n", ("text", "")),
    ],
)
def test_which_column_is_which(content: str, expected: tuple[str, str]) -> None:
    assert roles.guessed_pair(reading.columns_of(content.encode(), "table.csv")) == expected


def test_rows_name_texts_of_a_corpus_and_their_queries_join_it() -> None:
    corpus = Corpus(
        "help.csv",
        ("A damaged delivery is replaced.", "A damaged delivery is refunded.", "Ending a plan.", "Ending a plan."),
        {"id": ("K-1", "K-2", "K-3", "K-3"), "query": ("", "", "", "")},
    )
    names = ["k-2", "ending  a PLAN.", "A damaged delivery is repl…", "A damaged delivery", "Ending", "K-9", ""]
    assert own_queries.rows_named(corpus, names) == [1, 2, 0, None, None, None, None]
    content, column = own_queries.with_queries(
        corpus, [("broken", 0), ("money back", 1), ("crushed", 0), ("broken", 0)]
    )
    assert column == "own query"  # the corpus has a column of that name
    joined = reading.read_corpus(content, "mine.jsonl", "text")
    assert joined.texts == (corpus.texts[0], *corpus.texts)
    assert joined.columns["own query"] == ("broken", "crushed", "money back", "", "")
    assert joined.columns["id"] == ("K-1", "K-1", "K-2", "K-3", "K-3")
    assert current.own_ids(joined) == joined.columns["id"]
    # All texts are searched, also those without a query; equal ones are one.
    searched = failed_queries.searched_corpus(joined, column)
    assert searched.pairs.documents.texts == corpus.texts[:3] == tuple(joined.texts[row] for row in searched.firsts)
    assert searched.pairs.queries.texts == ("broken", "crushed", "money back")
    assert [searched.pairs.answers_of(query) for query in range(3)] == [(0,), (0,), (1,)]
    assert [searched.queries.texts[number] for number in searched.first_queries] == list(searched.pairs.queries.texts)
    assert pairs_of_corpus(joined, column).documents.texts == corpus.texts[:2]


def test_further_queries_join_those_that_a_corpus_has_and_a_repeated_one_is_put_right() -> None:
    corpus = Corpus("help.jsonl", ("Damaged goods.", "Ending a plan.", "Lost parcels."), {"own query": ("a", "b", "")})
    name = "help with own queries.jsonl"
    asked = [("broken", 0), ("crushed", 0), ("cancel", 2)]
    content, column = own_queries.with_queries(corpus, asked)
    joined = reading.read_corpus(content, name, "text")
    assert own_queries.with_queries(joined, [*asked[:2], ("cancel", 3)]) == (
        content,
        column,
    )  # nothing new: the same corpus
    for query, row in [("cancel", 2), ("where is it", 3), ("damaged", 2), ("again", 0)]:  # one at a time
        content, column = own_queries.with_queries(joined, [(query, row)])
        joined = reading.read_corpus(content, name, "text")
    assert column == "query"
    assert joined.columns["own query"] == ("a", "a", "a", "b", "b", "")  # the file's own column
    found = zip(joined.columns["query"], joined.texts, strict=True)
    assert sorted(pair for pair in found if pair[0]) == [
        ("again", "Damaged goods."),
        ("broken", "Damaged goods."),
        ("cancel", "Ending a plan."),
        ("crushed", "Damaged goods."),
        ("damaged", "Ending a plan."),
        ("where is it", "Lost parcels."),
    ]
    with_all = Corpus("a.jsonl", ("x",), {"query": ("",), "own query": ("",), "own query 2": ("",)})
    assert own_queries.with_queries(with_all, [("y", 0)])[1] == "own query 3"


def test_pasted_ids_and_marks_join_the_corpus_on_diagnose(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus("help.csv", ("Damaged goods.", "Ending a plan.", "Lost parcels."), {"id": ("K-1", "K-2", "K-3")})
    key = current.key_of(corpus)
    caching.corpora().put(key, corpus)
    judged = Judgements().mark("cancel", 1, True).mark("cancel", 0, False)
    app = at_rest(open_page("failed-search", session={"_judgements": {corpus.content_hash: judged}}, corpus=key))
    where = f"own_queries_{key}"[:24]
    may_go_on, joined_by = threading.Event(), own_queries.with_queries
    monkeypatch.setattr(own_queries, "with_queries", lambda *given: may_go_on.wait(60) and joined_by(*given))
    app.button(key=f"{where}_marks").click().run()
    assert "Stop" in [button.label for button in app.button]  # the corpus is read by a job
    assert app.session_state["corpus"] == key
    may_go_on.set()
    app = at_rest(app)
    joined = caching.corpora().find(app.session_state["corpus"])
    assert joined is not None
    assert (joined.columns["query"], joined.columns["id"]) == (("", "cancel", ""), ("K-1", "K-2", "K-3"))
    where = f"own_queries_{app.session_state['corpus']}"[:24]
    app.session_state["_judgements"] = {joined.content_hash: judged}
    app.text_area(key=f"{where}_rows").set_value("no row").run()
    (error,) = app.error
    assert "Row 1 is no query with a text" in error.value
    assert {button.key for button in app.button} >= {f"{where}_rows_use", f"{where}_marks"}
    app.button(key=f"{where}_rows_use").click().run()
    assert len(app.error) == 1
    app.text_area(key=f"{where}_rows").set_value("where is it > K-3\nit broke > K-1\nhello > K-9").run()
    assert "3 rows, 2 with a right text of" in texts(app)
    assert "Row 3 names “K-9”, which the corpus lacks." in "".join(item.value for item in app.caption)
    app = at_rest(app.button(key=f"{where}_rows_use").click().run())
    assert not app.exception
    joined = caching.corpora().find(app.session_state["corpus"])
    assert joined is not None
    assert (joined.name, app.session_state["query_column"]) == ("help.csv with own queries.jsonl", "query")
    assert joined.columns["query"] == ("it broke", "cancel", "where is it")
    source = current.source_of(app.session_state["corpus"])  # it can be read again, also after a restart
    assert source is not None
    assert source.read(lambda: False).columns == joined.columns
    where = f"own_queries_{app.session_state['corpus']}"[:24]
    assert [area.key for area in app.text_area] == [f"{where}_rows"]
    monkeypatch.setenv(access.UPLOADS.variable, "0")
    app = at_rest(app.run())
    assert not app.text_area
    assert f"{where}_rows_use" not in [button.key for button in app.button]
    assert "This server takes no files and no rows" in "".join(item.value for item in app.caption)
    # Marks still join the corpus, which is then kept in memory only.
    app.session_state["_judgements"] = {joined.content_hash: Judgements().mark("gone", 2, True)}
    kept: list[bytes] = []
    monkeypatch.setattr(caching.kept_files(), "keep", lambda content, *_: kept.append(content))
    app = at_rest(app.run().button(key=f"{where}_marks").click().run())
    joined = caching.corpora().find(app.session_state["corpus"])
    assert joined is not None
    assert "gone" in joined.columns["query"]
    assert not kept
    assert current.source_of(app.session_state["corpus"]) is None


def test_a_table_of_queries_and_ids_joins_the_corpus_that_has_these_ids(open_page: Open) -> None:
    ids = ("K-1", "K-2", "K-3")
    corpus = Corpus("help.csv", ("Damaged goods are replaced.", "Ending a plan.", "Lost parcels."), {"id": ids})
    key = current.key_of(corpus)
    caching.corpora().put(key, corpus)
    app = at_rest(open_page("failed-search", corpus=key))
    content = b"query,id\nit is broken,K-1\nwhere is my parcel,K-3\n"
    app.file_uploader(key=f"own_queries_{key}"[:24] + "_file").set_value(("queries.csv", content, "text/csv"))
    app = at_rest(app.run())
    assert not app.exception
    assert not app.error
    joined = caching.corpora().find(app.session_state["corpus"])
    assert joined is not None
    assert (joined.texts, joined.columns["query"]) == (corpus.texts, ("it is broken", "", "where is my parcel"))
    key = app.session_state["corpus"]
    app.file_uploader(key=f"own_queries_{key}"[:24] + "_file").set_value(("queries.csv", content, "text/csv"))
    app = at_rest(app.run())
    assert app.session_state["corpus"] == key
    assert "has these queries already, in the column “query”" in "".join(item.value for item in app.caption)


def test_pasted_rows_lead_to_the_failed_queries(open_page: Open) -> None:
    app = open_page("home")
    app.text_area(key="start_rows").set_value(ROWS)
    app = at_rest(app.button(key="start_rows_use").click().run())
    assert not app.exception
    assert [title.value for title in app.title] == [table.VIEWS[own_queries.VIEW].question]
    key = app.session_state["corpus"]
    corpus = caching.corpora().find(key)
    assert corpus is not None
    assert corpus.texts == ("How to report a damaged delivery", "Ending a subscription", 'Tracking, "step by step"')
    assert app.session_state["query_column"] == "query"
    source = current.source_of(key)  # it can be read again, also after a restart
    assert source is not None
    assert source.read(lambda: False).texts == corpus.texts


def blocks(block: Any) -> Iterator[list[Any]]:
    """What each block of a page holds."""
    inside = list(getattr(block, "children", {}).values())
    yield inside
    for child in inside:
        yield from blocks(child)


def test_what_cannot_be_read_is_said_on_start(open_page: Open) -> None:
    app = open_page("home")
    app.text_area(key="start_rows").set_value("one row without the sign")
    app.button(key="start_rows_use").click().run()
    assert not app.exception
    (error,) = app.error
    assert "Row 1 is no query with a text" in error.value
    button = app.button(key="start_rows_use")
    (panel,) = [block for block in blocks(app.main) if button in block]
    assert error in panel  # it lies over the card, where the error can be read
    assert "corpus" not in app.session_state or not app.session_state["corpus"]
    assert "My search is wrong" in texts(app)


@pytest.mark.parametrize("names", [("query", "text"), ("wrote", "entry")])
def test_a_dropped_table_leads_to_them_at_once_where_its_columns_say_it(
    names: tuple[str, str], open_page: Open
) -> None:
    app = open_page("home")
    content = ",".join(names).encode() + (
        b"\nmy parcel is broken,How to report a damaged delivery and to have it sent again\n"
        b"cancel my plan,Ending a subscription before the year is over takes one click\n"
    )
    if names[0] == "wrote":
        content = content.replace(b"cancel my plan", b"cancel my caf\xe9 plan")
    app.file_uploader(key="start_file").set_value(("mine.csv", content, "text/csv"))
    app = at_rest(app.run())
    assert not app.exception
    assert ("The encoding cp1252 is a guess" in texts(app)) == (names[0] == "wrote")
    said = "Queries: column “wrote”. Texts: column “entry” (a guess: its texts are by far the longest)."
    assert (said in texts(app)) == (names[0] == "wrote")
    assert [title.value for title in app.title] == [table.VIEWS[own_queries.VIEW].question]
    corpus = caching.corpora().find(app.session_state["corpus"])
    assert corpus is not None
    assert (corpus.name, app.session_state["query_column"]) == ("mine.csv", names[0])


def test_a_table_whose_columns_say_nothing_is_asked_about(open_page: Open) -> None:
    app = open_page("home")
    content = b"number,first,second\n1,Who came in?,It was him\n2,Who left then?,It was her\n"
    app.file_uploader(key="start_file").set_value(("mine.csv", content, "text/csv"))
    app = at_rest(app.run())
    assert [title.value for title in app.title] == ["See what BERT makes of your words"]
    app.selectbox(key="start_text").set_value("second")
    app.selectbox(key="start_query").set_value("first")
    app = at_rest(app.button(key="start_file_use").click().run())
    assert app.session_state["query_column"] == "first"
    corpus = caching.corpora().find(app.session_state["corpus"])
    assert corpus is not None
    assert corpus.texts == ("It was him", "It was her")


def test_where_it_is_a_guess_how_a_table_is_written_the_card_asks_and_has_the_menus(open_page: Open) -> None:
    app = open_page("home")
    content = (
        b"How do I cancel my plan today?,Ending a subscription takes one click\n"
        b"my parcel is broken,How to report a damaged delivery\nwhere is it,Tracking step by step\n"
    )
    app.file_uploader(key="start_file").set_value(("mine.csv", content, "text/csv"))
    app = at_rest(app.run())
    assert not app.exception
    (menu,) = [box for box in app.selectbox if box.label == "The first row"]
    menu.set_value("is a row")
    app = at_rest(app.run())
    assert app.selectbox(key="start_text").options == ["column 1", "column 2"]
    app.selectbox(key="start_text").set_value("column 2")
    app = at_rest(app.button(key="start_file_use").click().run())
    corpus = caching.corpora().find(app.session_state["corpus"])
    assert corpus is not None
    assert len(corpus) == 3
    source = current.source_of(app.session_state["corpus"])
    assert source is not None
    assert source.read(lambda: False).texts == corpus.texts  # also after a restart


def test_a_packed_collection_with_graded_relevance_leads_to_its_failed_queries_with_its_ids(open_page: Open) -> None:
    app = open_page("home")
    app.file_uploader(key="start_file").set_value(("mine.zip", packed(BEIR), "application/zip"))
    app = at_rest(app.run())
    assert not app.exception
    assert [title.value for title in app.title] == [table.VIEWS[own_queries.VIEW].question]
    shown = texts(app).replace("\\", "")
    assert "Every document with a grade of 1 or more counts as a right text." in shown
    assert "Left out: 1 queries without a relevant document." in shown
    key = app.session_state["corpus"]
    corpus = caching.corpora().find(key)
    assert corpus is not None
    assert corpus.name == "mine with its queries.jsonl"
    assert (corpus.columns["query"], current.own_ids(corpus), corpus.columns["grade"]) == (
        ("volcano", "interest rates", "volcano"),
        ("d1", "d2", "d3"),
        ("2", "1", "1"),
    )
    source = current.source_of(key)  # it can be read again, also after a restart
    assert source is not None
    assert source.read(lambda: False).columns == corpus.columns


def test_documents_without_queries_are_searched_with_their_titles(open_page: Open) -> None:
    rows = [("d1", "River", "The water rose fast."), ("d2", "Bank", "It lends money to us."), ("d3", "", "No title.")]
    content = "\n".join(json.dumps({"_id": key, "title": title, "text": text}) for key, title, text in rows)
    app = open_page("home")
    app.file_uploader(key="start_file").set_value(("corpus.jsonl", content.encode(), "application/json"))
    app = at_rest(app.run())
    assert not app.exception
    assert "holds documents with titles and no queries" in "".join(item.value for item in app.caption)
    app = at_rest(app.button(key="start_documents_use").click().run())
    key = app.session_state["corpus"]
    corpus = caching.corpora().find(key)
    assert corpus is not None
    assert corpus.texts == ("River The water rose fast.", "Bank It lends money to us.", "No title.")
    assert [title.value for title in app.title] == [table.VIEWS[examples.SEARCH_VIEW].question]
    source = current.source_of(key)
    assert source is not None
    assert source.read(lambda: False).texts == corpus.texts


def test_a_collection_with_a_column_of_queries_has_titles_before_its_texts(open_page: Open) -> None:
    rows = [("d1", "River", "The water rose fast.", "why did it rise"), ("d2", "Bank", "It lends.", "who lends to us")]
    content = "\n".join(
        json.dumps({"_id": key, "title": title, "text": text, "metadata": {"query": query}})
        for key, title, text, query in rows
    )
    app = open_page("home")
    app.file_uploader(key="start_file").set_value(("corpus.jsonl", content.encode(), "application/json"))
    app = at_rest(app.run())
    assert app.session_state["query_column"] == "metadata.query"
    corpus = caching.corpora().find(app.session_state["corpus"])
    assert corpus is not None
    assert corpus.texts == ("River The water rose fast.", "Bank It lends.")


TURNS = {"messages": [{"role": "user", "content": "broken"}, {"role": "assistant", "content": "Repair it."}], "id": "1"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("mine.csv", b"id,text\n1,one text\n2,another\n", "has 1 column with text"),
        ("chat.jsonl", json.dumps(TURNS).encode(), list_of_turns("chat.jsonl", "messages").fix),
        ("mine.zip", packed({"folder/help.csv": b"query,text\na,b\n"}), "Unpack it, and choose help.csv."),
    ],
)
def test_a_table_with_one_column_of_text_is_refused(name: str, content: bytes, said: str, open_page: Open) -> None:
    app = open_page("home")
    app.file_uploader(key="start_file").set_value((name, content, ""))
    app = at_rest(app.run())
    assert said in read_texts(app)
