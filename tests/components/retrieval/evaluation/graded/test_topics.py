"""TREC's topics: which text belongs to which field, what nobody expands, and the limits on size."""

from __future__ import annotations

import gzip

import pytest

from components.errors import InputError
from components.jobs import Stopped
from components.retrieval.corpora.readers.encoding import decode
from components.retrieval.corpora.readers.limits import MOST_ROW_CHARACTERS, Limits
from components.retrieval.evaluation.graded.files import QUERY_FIELDS, read_entries
from components.retrieval.evaluation.graded.topics import LONG_TOPIC, has_topics, read_topics

# Hand-made in the forms of several years: without and with end tags, with labels, further tags, and a leading zero.
TOPICS = """
<top>

<num> Number: 007
<title> Topic:  cats  at night

<desc> Description:
What do cats do
after dark?

<narr> Narrative:
A relevant document says what a cat < 5 years old does, in <b>bold</b> or not.

</top>

<top>
<head> Tipster Topic Description
<num> Number: 8b
<dom> Domain: Animals
<title> dogs</title>
<smry> Summary:
Not a field that is read.
<narr>All dogs: short ones too.</narr>
more
</top>
"""


def topics_of(text: str, **options) -> dict[str, list[str]]:
    table = read_topics(decode(text.encode(), "topics"), "topics", **options)
    assert len(table.numbers) == len(table.columns["_id"])
    return {name: list(column) for name, column in table.columns.items()}


def test_every_field_has_its_text_without_its_label() -> None:
    assert topics_of(TOPICS) == {
        "_id": ["007", "8b"],
        "title": ["cats  at night", "dogs"],
        "description": ["What do cats do after dark?", ""],
        "narrative": [
            "A relevant document says what a cat < 5 years old does, in <b>bold</b> or not.",
            "All dogs: short ones too.",
        ],
    }
    table = read_topics(decode(TOPICS.encode(), "topics"), "topics")
    assert list(table.numbers) == [2, 16]  # the lines of <top>


def test_tags_in_capitals_and_on_one_line_and_a_missing_end() -> None:
    text = "<TOP><NUM>1</NUM><TITLE>one</TITLE></TOP>\n<top><num>2<title>two <desc>a two\n<top>\n<num> 3 <title> three"
    assert topics_of(text) == {
        "_id": ["1", "2", "3"],
        "title": ["one", "two", "three"],
        "description": ["", "a two", ""],
        "narrative": ["", "", ""],
    }


def test_a_label_is_dropped_only_at_the_beginning() -> None:
    assert topics_of("<top>\n<num> 1\n<title> the topic: cats\n</top>")["title"] == ["the topic: cats"]


def test_nothing_is_expanded_and_nothing_is_opened(tmp_path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    text = (
        f'<?xml version="1.0"?>\n<!DOCTYPE top [<!ENTITY own SYSTEM "file://{secret}"><!ENTITY a "aaaa">]>\n'
        "<top>\n<num> 1\n<title> &own; &a;&a; &lt;script&gt; {0} $(id)\n</top>\n"
    )
    assert topics_of(text)["title"] == ["&own; &a;&a; &lt;script&gt; {0} $(id)"]


def test_a_topic_or_line_above_the_limit_is_left_out_and_the_next_is_read() -> None:
    line = "word " * 1_000
    long_topic = f"<top>\n<num> 1\n<narr>\n{(line + chr(10)) * 300}</top>\n"
    long_line = f"<top>\n<num> 2\n<narr> {'x' * (MOST_ROW_CHARACTERS + 1)}\n</top>\n"
    text = long_topic + long_line + "<top>\n<num> 3\n<title> kept\n</top>\n"
    table = read_topics(decode(text.encode(), "topics"), "topics")
    assert table.columns["_id"] == ["3"]
    assert table.bad.reasons[LONG_TOPIC] == 1
    assert len(table.bad) == 2


def test_limits_and_stopping() -> None:
    text = "<top>\n<num> 1\n<title> a cat\n</top>\n" * 2_000
    decoded = decode(text.encode(), "topics")
    with pytest.raises(InputError, match="rows"):
        read_topics(decoded, "topics", Limits(1_000, 1 << 20))
    with pytest.raises(InputError, match="memory"):
        read_topics(decoded, "topics", Limits(1_000_000, 20_000))
    with pytest.raises(Stopped):
        read_topics(decoded, "topics", is_stopped=lambda: True)


def test_topics_are_recognised_by_their_content() -> None:
    assert has_topics(decode(TOPICS.encode(), "x"))
    assert has_topics(decode(b"<xml>\n  <TOP>\n<num> 1", "x"))
    for text in (b"", b"q1\tthe tag <top> of TREC\n", b"top\n", b"x" * 70_000 + b"\n<top>\n"):
        assert not has_topics(decode(text, "x"))


@pytest.mark.parametrize("name", ["topics.301-350", "topics.txt", "queries", "topics.1.gz"])
def test_entries_are_read_in_all_fields_whatever_the_ending(name: str) -> None:
    content = TOPICS.encode()
    read = read_entries(gzip.compress(content) if name.endswith(".gz") else content, name, QUERY_FIELDS)
    assert dict(read.ids) == {"007": 0, "8b": 1}
    assert list(read.fields) == ["title", "description", "narrative"]
    assert read.fields["title"] == ("cats  at night", "dogs")
    assert read.fields["description"][1] == ""


def test_a_topic_without_a_number_or_with_a_repeated_one_is_left_out() -> None:
    text = "<top>\n<title> none\n</top>\n<top>\n<num> 1\n<title> a\n</top>\n<top>\n<num> 1\n<title> b\n</top>\n"
    read = read_entries(text.encode(), "topics", QUERY_FIELDS)
    assert dict(read.ids) == {"1": 0}
    assert read.bad.reasons == {"no id": 1, "repeated id": 1}
