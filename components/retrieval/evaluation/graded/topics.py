"""TREC's topics: queries with a title, a description and a narrative, in a format that only resembles SGML.

    <top>
    <num> Number: 301
    <title> International Organized Crime
    <desc> Description:
    Identify organizations that participate in international criminal activity ...
    <narr> Narrative:
    A relevant document must as a minimum identify the organization ...
    </top>

The end tags of fields are mostly left out, so that no parser of SGML or XML fits. This one knows five tags and looks at
lines: nothing in the file is evaluated, no entity is expanded, and nothing else is opened. Another tag at the beginning of
a line ends a field, and what follows it is left out; inside a line it is text. Limits on size apply to each line and each
topic, and those of the reader to all of them.

What it does not read: topics as `<topic number="1"><query>`, as in some later tracks.
"""

from __future__ import annotations

import re

from components.jobs import IsStopped
from components.retrieval.corpora.readers.encoding import Decoded
from components.retrieval.corpora.readers.limits import LONG_ROW, MOST_ROW_CHARACTERS, Count, Limits, never
from components.retrieval.corpora.readers.table import BadRows, Table

FIELDS = {"num": "_id", "title": "title", "desc": "description", "narr": "narrative"}  # tags and their columns
LONG_TOPIC = f"a topic of more than {MOST_ROW_CHARACTERS:,} characters"
_LOOKED_AT = 64 * 1_024  # characters in which the first topic begins
_START = re.compile(r"^[ \t]*<top>", re.IGNORECASE | re.MULTILINE)
_TAG = re.compile(r"<(/?)(top|num|title|desc|narr)>", re.IGNORECASE)
_OTHER_TAG = re.compile(r"[ \t]*</?[A-Za-z][A-Za-z0-9]{0,15}>")
_LABEL = re.compile(r"\s*(number|topic|description|narrative)\s*:", re.IGNORECASE)


def has_topics(decoded: Decoded) -> bool:
    """Whether a text holds topics: a line near its beginning starts with <top>."""
    return _START.search(next(decoded.blocks(), "")[:_LOOKED_AT]) is not None


def read_topics(decoded: Decoded, name: str, limits: Limits | None = None, is_stopped: IsStopped = never) -> Table:
    """The table of a file's topics: _id, title, description and narrative, "" where a topic has none.

    A topic has the number of its first line. Raises InputError above a limit, and Stopped.
    """
    count, topics = Count(name, limits, is_stopped), _Topics()
    number = 0
    for lines in decoded.line_blocks():
        count.add_rows(len(lines))
        for line in lines:
            number += 1
            if len(line) > MOST_ROW_CHARACTERS:
                topics.spoil(number, LONG_ROW)
            else:
                topics.add_line(number, line)
        count.add_memory(topics.counted())
    return topics.table(decoded)


class _Topics:
    """The topics read so far, and the one that is being read."""

    def __init__(self) -> None:
        self.columns: dict[str, list[str]] = {column: [] for column in FIELDS.values()}
        self.numbers: list[int] = []
        self.bad = BadRows()
        self._memory = 0  # characters of topics that nobody has counted
        self._clear(0)

    def _clear(self, start: int) -> None:
        self._start = start  # the topic's first line; 0 outside a topic
        self._parts: dict[str, list[str]] = {}
        self._field = ""  # the column that takes what comes next; "" for none
        self._size = 0
        self._problem = ""

    def add_line(self, number: int, line: str) -> None:
        position = 0
        for tag in _TAG.finditer(line):
            self._add_text(line[position : tag.start()])
            self._add_tag(number, tag[2].lower(), is_end=bool(tag[1]))
            position = tag.end()
        if not position and _OTHER_TAG.match(line):
            self._field = ""
        self._add_text(line[position:])

    def spoil(self, number: int, reason: str) -> None:
        """Mark the topic that is being read as one that cannot be used, or the line if it is in none."""
        if self._start:
            self._problem = reason
        else:
            self.bad.add(number, reason)

    def counted(self) -> int:
        """The bytes of memory of the topics since the last call, about."""
        size, self._memory = self._memory, 0
        return size

    def table(self, decoded: Decoded) -> Table:
        """All topics, the last one included."""
        self._close()
        return Table(
            dict(self.columns), self.numbers, self.bad, decoded.encoding, decoded.guessed, decoded.has_broken_bytes
        )

    def _add_tag(self, number: int, tag: str, is_end: bool) -> None:
        if tag == "top":
            self._close()
            if not is_end:
                self._clear(number)
        elif self._start:
            self._field = "" if is_end else FIELDS[tag]

    def _add_text(self, text: str) -> None:
        if not self._start or not self._field or self._problem:
            return
        self._size += len(text)
        if self._size > MOST_ROW_CHARACTERS:
            self._problem = LONG_TOPIC
            self._parts.clear()
        elif text and not text.isspace():
            self._parts.setdefault(self._field, []).append(text.strip())

    def _close(self) -> None:
        """Keep the topic that ends here, if there is one."""
        if self._start and self._problem:
            self.bad.add(self._start, self._problem)
        elif self._start:
            for column, values in self.columns.items():
                text = " ".join(self._parts.get(column, ()))
                label = _LABEL.match(text)
                text = text[label.end() :].strip() if label else text
                values.append(text)
                self._memory += text.__sizeof__()
            self.numbers.append(self._start)
        self._clear(0)
