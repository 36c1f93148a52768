"""Queries with their right texts, pasted on Start: they become the corpus, and the failed ones are shown."""

from __future__ import annotations

import csv
import io
import json

import pytest

from components.errors import InputError
from components.retrieval.corpora import corpus as reading
from dashboard import caching
from dashboard.corpora import current
from dashboard.declared import table
from dashboard.views.home import examples, own_search
from tests.support.pages import Open, at_rest, texts

ROWS = """my parcel is broken > How to report a damaged delivery
cancel my plan\tEnding a subscription

where is it → Tracking, "step by step"
"""


def test_pasted_rows_become_a_table() -> None:
    read = list(csv.reader(io.StringIO(own_search.as_table(ROWS).decode())))
    assert read == [
        ["query", "text"],
        ["my parcel is broken", "How to report a damaged delivery"],
        ["cancel my plan", "Ending a subscription"],
        ["where is it", 'Tracking, "step by step"'],
    ]


def test_a_tab_comes_before_other_signs_and_an_arrow_is_one_sign() -> None:
    typed = "age > 60 discount\tSenior fares\ncancel -> Ending\nmove --> Address\nleave => Exit\nstay → Hotel"
    rows = list(csv.reader(io.StringIO(own_search.as_table(typed).decode())))[1:]
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
        ("a > b", "There is one row."),
        ("", "There are no rows."),
    ],
)
def test_what_is_no_table_is_said(typed: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        own_search.as_table(typed)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("query,text\na b,c d\n", ("text", "query")),
        ("compressed,sentence,topic\na b,c d,x y\n", ("sentence", "compressed")),
        ("question,answer\nWho is it?,It is him\n", ("", "")),
        ("query,answer\nWho is it?,It is him\n", ("answer", "query")),
        ("id,text\n1,c d\n", ("text", "")),
    ],
)
def test_which_column_is_which(content: str, expected: tuple[str, str]) -> None:
    assert own_search.guessed(reading.columns_of(content.encode(), "table.csv")) == expected


def test_pasted_rows_lead_to_the_failed_queries(open_page: Open) -> None:
    app = open_page("home")
    app.text_area(key="start_rows").set_value(ROWS)
    app = at_rest(app.button(key="start_rows_use").click().run())
    assert not app.exception
    assert [title.value for title in app.title] == [table.VIEWS[own_search.VIEW].question]
    key = app.session_state["corpus"]
    corpus = caching.corpora().find(key)
    assert corpus is not None
    assert corpus.texts == ("How to report a damaged delivery", "Ending a subscription", 'Tracking, "step by step"')
    assert app.session_state["query_column"] == "query"
    source = current.source_of(key)  # it can be read again, also after a restart
    assert source is not None
    assert source.read(lambda: False).texts == corpus.texts


def test_what_cannot_be_read_is_said_on_start(open_page: Open) -> None:
    app = open_page("home")
    app.text_area(key="start_rows").set_value("one row without the sign")
    app.button(key="start_rows_use").click().run()
    assert not app.exception
    assert "Row 1 is no query with a text" in app.error[0].value
    assert "corpus" not in app.session_state or not app.session_state["corpus"]
    assert "My search is wrong" in texts(app)


def test_a_dropped_table_leads_to_them_at_once_where_its_columns_say_it(open_page: Open) -> None:
    app = open_page("home")
    content = (
        b"query,text\nmy parcel is broken,How to report a damaged delivery\ncancel my plan,Ending a subscription\n"
    )
    app.file_uploader(key="start_file").set_value(("mine.csv", content, "text/csv"))
    app = at_rest(app.run())
    assert not app.exception
    assert [title.value for title in app.title] == [table.VIEWS[own_search.VIEW].question]
    corpus = caching.corpora().find(app.session_state["corpus"])
    assert corpus is not None
    assert (corpus.name, app.session_state["query_column"]) == ("mine.csv", "query")


def test_a_table_whose_columns_say_nothing_is_asked_about(open_page: Open) -> None:
    app = open_page("home")
    content = b"number,question,answer\n1,Who came in?,It was him\n2,Who left then?,It was her\n"
    app.file_uploader(key="start_file").set_value(("mine.csv", content, "text/csv"))
    app = at_rest(app.run())
    assert [title.value for title in app.title] == ["See what BERT makes of your words"]
    app.selectbox(key="start_text").set_value("answer")
    app.selectbox(key="start_query").set_value("question")
    app = at_rest(app.button(key="start_file_use").click().run())
    assert app.session_state["query_column"] == "question"
    corpus = caching.corpora().find(app.session_state["corpus"])
    assert corpus is not None
    assert corpus.texts == ("It was him", "It was her")


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


def test_a_table_with_one_column_of_text_is_refused(open_page: Open) -> None:
    app = open_page("home")
    app.file_uploader(key="start_file").set_value(("mine.csv", b"id,text\n1,one text\n2,another\n", "text/csv"))
    app = at_rest(app.run())
    assert "has 1 column with text" in app.error[0].value
