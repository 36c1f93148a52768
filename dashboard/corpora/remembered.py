"""What a browser remembers of a session, and a later session is offered: marks of hits, which files were uploaded, a lecture.

A session ends some time after its browser has gone, as a phone's does that sleeps. Each session has an entry of its own in
its browser (assets/web/memory.js), so that tabs do not write over each other; what closed ones have left is offered
together. The files themselves are kept on the server (see uploads.py); the browser keeps their keys, which name them by
their content, and the marks. Whatever comes from a browser is checked: it gives no more than a person who has the files can
reach. With the marks of a query it keeps the rankings in which they stood, of which the precision is computed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import streamlit as st

from components import packing
from components.numbers import enumerated
from components.retrieval.corpora.readers.separated_rows import DialectChoice
from components.retrieval.search.relevance import Judgements
from dashboard import caching, state
from dashboard.corpora import marks, uploads, usage
from dashboard.settings import MOST_PICTURES, parse_lecture, untitled
from dashboard.sharing import lecture
from dashboard.ui import browser, messages
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

MOST_BYTES = 256 << 10  # of UTF-8 in the browser's storage, of all sessions together
MOST_KEYS = 100  # of one kind of upload
_RUNS = "saved_runs"  # the kind of which a session holds several uploads
_COMPONENT = "browser_memory"
_ANSWERED = "_memory_answered"  # session key: whether what an earlier session left was taken, refused, or is of no use
_LEFT_OUT = "_memory_left_out"  # session key: of how many queries the marks were left out the last time
_DROPPED = "_memory_dropped"  # session key: how many sessions' entries the browser has dropped the last time
_FOUND = "_memory_found"  # session key: what the browser sent last of earlier sessions, and what was read of it
_LEAST_ENTRY = 59  # characters of the entry of a session without anything, which is not kept
_MOST_KEY = 5_000  # characters of a key: of some twenty files
_MOST_COLUMN = 1_000  # characters of a column's name
_MOST_TITLE = 1_000  # characters of a ranking's title, which can hold the names of a model and of a file
_MOST_ROWS = 1_000_000_000  # of a corpus


@dataclass(frozen=True)
class SessionMemory:
    """What is remembered of a session."""

    uploads: Mapping[str, Any] = field(default_factory=dict)  # by kind: what the session holds of it
    judgements: Mapping[str, Judgements] = field(default_factory=dict)  # by the hash of the corpus
    rankings: Mapping[str, Mapping[str, marks.Shown]] = field(default_factory=dict)  # by that hash and the query
    lecture: tuple[str, ...] = ()  # its pictures in their order, as dashboard.sharing.lecture notes them

    def __bool__(self) -> bool:
        return bool(self.uploads or self.lecture) or any(one.marks for one in self.judgements.values())

    def to_text(self) -> tuple[str, int]:
        """As the browser keeps it, at most MOST_BYTES; and of how many queries, the oldest, the marks had no room."""
        if not self:
            return "", 0
        queries = [
            (corpus, query, {str(index): value for index, value in own.items()})
            for corpus, one in self.judgements.items()
            for query, own in one.marks.items()
        ]
        total = len(queries)
        while True:
            found: dict[str, dict[str, Any]] = {}
            for corpus, query, own in queries:
                found.setdefault(corpus, {})[query] = own
            shown = {
                corpus: {query: self.rankings[corpus][query] for query in own if query in self.rankings[corpus]}
                for corpus, own in found.items()
                if corpus in self.rankings
            }
            kept = {"uploads": self.uploads, "marks": found, "rankings": shown, "lecture": self.lecture}
            text = json.dumps(kept, ensure_ascii=False)
            size = len(text.encode(errors="replace"))
            if size <= MOST_BYTES or not queries:
                return text if size <= MOST_BYTES else "", total - len(queries)
            queries = queries[max(1, len(queries) * (size - MOST_BYTES) // size) :]

    @classmethod
    def of_text(cls, text: object) -> SessionMemory:
        """What a browser sent; parts that no page has written are left out."""
        if not isinstance(text, str) or len(text.encode(errors="replace")) > MOST_BYTES:
            return cls()
        try:
            found = packing.valid(json.loads(text))
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(found, dict):
            return cls()
        kinds, shown = _objects(found.get("uploads")), _objects(found.get("rankings"))
        judgements = {
            corpus: judged
            for corpus, queries in _objects(found.get("marks")).items()
            if re.fullmatch(r"[0-9a-f]{64}", corpus) and (judged := _judged(queries)).marks
        }
        return cls(
            {kind: value for kind in uploads.KINDS if (value := _upload(kind, kinds.get(kind))) is not None},
            judgements,
            {corpus: _ranked(shown.get(corpus), judged) for corpus, judged in judgements.items()},
            _pictures(found.get("lecture")),
        )


def together(sent: object) -> SessionMemory:
    """What a browser sent of several sessions, the oldest first: of what two of them have, the later one's counts."""
    listed = sent if isinstance(sent, list) else []
    texts = [text for text in listed if isinstance(text, str) and len(text) > _LEAST_ENTRY]
    if sum(len(text.encode(errors="replace")) for text in texts) > MOST_BYTES:
        return SessionMemory()
    held: dict[str, Any] = {}
    judged: dict[str, dict[str, dict[int, bool]]] = {}
    rankings: dict[str, dict[str, marks.Shown]] = {}
    pictures: dict[str, str] = {}
    for memory in map(SessionMemory.of_text, texts):
        for entry in memory.lecture:
            pictures.pop(untitled(entry), None)
            pictures[untitled(entry)] = entry
        runs = dict.fromkeys((*held.get(_RUNS, ()), *memory.uploads.get(_RUNS, ())))
        held |= memory.uploads
        if runs:
            held[_RUNS] = tuple(runs)[-MOST_KEYS:]
        for corpus, later in memory.judgements.items():
            queries = judged.setdefault(corpus, {})
            for query, own in later.marks.items():  # the queries marked last at the end
                queries[query] = queries.pop(query, {})
                queries[query].update(own)
            rankings.setdefault(corpus, {}).update(memory.rankings[corpus])
    return SessionMemory(
        held, {corpus: _read_only(queries) for corpus, queries in judged.items()}, rankings, tuple(pictures.values())
    )


def _read_only(queries: Mapping[str, Mapping[int, bool]]) -> Judgements:
    return Judgements(MappingProxyType({query: MappingProxyType(own) for query, own in queries.items()}))


def _together_once(sent: object) -> SessionMemory:
    """`together`, kept for the session until something else is sent."""
    kept = st.session_state.get(_FOUND)
    if kept is None or kept[0] != sent:
        st.session_state[_FOUND] = kept = (sent, together(sent))
    found: SessionMemory = kept[1]
    return found


def of_session() -> SessionMemory:
    """What is to be remembered of this session now."""
    chosen = {kind: st.session_state.get(f"_{kind}") for kind in uploads.KINDS}
    held = {kind: value for kind, value in chosen.items() if value}
    return SessionMemory(held, marks.of_session(), marks.rankings_of_session(), state.peek("lecture"))


def draw(page: str, slot: DeltaGenerator) -> None:
    """Let the browser remember this session, and offer what it remembers of earlier ones, in `slot`.

    Call it once the view is drawn: only what this view uses is a reason for the offer. `page` is the one that is drawn.
    """
    sent = None if st.session_state.get(_ANSWERED) else browser.sent_by(_COMPONENT, "found")
    found = _without_own(_together_once(sent))
    if sent is not None and not found:
        st.session_state[_ANSWERED] = True  # nothing of use
    text, left_out = of_session().to_text()
    if left_out and not st.session_state.get(_LEFT_OUT):
        state.notice(
            f"Your browser has room for the marks of your last queries only: those of {counted(left_out, 'query', 'queries')} "
            "last as long as this session.",
            page,
        )
    st.session_state[_LEFT_OUT] = left_out
    dropped = browser.sent_by(_COMPONENT, "dropped")
    if type(dropped) is int and dropped != st.session_state.get(_DROPPED, 0):
        st.session_state[_DROPPED] = dropped
        state.notice(
            f"Your browser had no room for what {counted(dropped, 'other session')} had left, the oldest: marks and the names "
            "of files there are no longer offered.",
            page,
        )
    browser.web_component("memory", "")(
        key=_COMPONENT,
        data={
            "session": caching.person(),
            "answered": bool(st.session_state.get(_ANSWERED)),
            "has": sent is not None,
            "text": text,
            "most": MOST_BYTES,
        },
        on_found_change=lambda: None,
        on_dropped_change=lambda: None,
        height=0,
    )
    st.session_state[lecture.WAITING] = bool(found.lecture)
    kept = {*found.uploads, *((usage.MARKS,) if found.judgements else ()), *((usage.LECTURE,) if found.lecture else ())}
    if kept & usage.noted():
        with slot:
            _offer(found)


def _without_own(found: SessionMemory) -> SessionMemory:
    """What earlier sessions have left, without a lecture that is in this one already, as after a reload of its page."""
    known = set(map(untitled, state.peek("lecture")))
    return replace(found, lecture=() if known.issuperset(map(untitled, found.lecture)) else found.lecture)


def _offer(found: SessionMemory) -> None:
    """A row that says what earlier sessions have left, to take or to forget."""
    here = _kept_of(found)
    names = _names(here)
    lost = [name for name in _names(found.uploads) if name not in names]
    count = sum(len(one.marks) for one in found.judgements.values())
    parts = [f"marks for {counted(count, 'query', 'queries')}"] if count else []
    if names:
        parts.append(_listed("the file" if len(names) == 1 else "the files", names))
    if found.lecture:
        parts.append(f"a lecture of {counted(len(found.lecture), 'picture')}")
    said = (
        f"Used in this browser before: {enumerated(parts)}."
        if parts
        else "Nothing used in this browser before is left here."
    )
    if lost:
        said += f" No longer whole on this server: {_listed('', lost).strip()}."
    with st.container(key="remembered", horizontal=True, vertical_alignment="center", gap="xsmall", width="content"):
        st.markdown(said, width="content")
        if parts:
            st.button("Use again", key="use_remembered", type="primary", on_click=_take, args=(found,))
        st.button("Forget" if parts else "Close", key="forget_remembered", on_click=_forget)


def _kept_of(found: SessionMemory) -> dict[str, Any]:
    """The uploads that can be used again: those of which this server keeps every file; of saved runs each by itself."""
    here: dict[str, Any] = {}
    for kind, value in found.uploads.items():
        if kind == _RUNS:
            value = tuple(key for key in value if uploads.are_kept(key))
        elif not uploads.are_kept(_key_in(value)):
            continue
        if value:
            here[kind] = value
    return here


def _key_in(value: Any) -> str:
    """The key in what a session holds of a kind of one upload: it, or the first of several things."""
    return str(value[0] if isinstance(value, tuple) else value)


def _names(held: Mapping[str, Any]) -> list[str]:
    """The names of the files in what a session holds, by kind."""
    keys = [key for kind, value in held.items() for key in (value if kind == _RUNS else (_key_in(value),))]
    return sorted({name for key in keys for name in uploads.names_of(key)})


def _listed(before: str, names: list[str]) -> str:
    shown = ", ".join(f"**{messages.escape(name)}**" for name in names[:4])
    return f"{before} {shown}" + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _take(found: SessionMemory) -> None:
    """Give this session what an earlier one has left; what this one has already stays."""
    for kind, value in _kept_of(found).items():
        if not st.session_state.get(f"_{kind}"):
            st.session_state[f"_{kind}"] = value
    marks.add(found.judgements, found.rankings)
    if found.lecture:
        own = state.peek("lecture")
        known = set(map(untitled, own))
        pictures = (*own, *(entry for entry in found.lecture if untitled(entry) not in known))
        state.put("lecture", pictures[:MOST_PICTURES])
        if (left := len(pictures) - MOST_PICTURES) > 0:
            st.toast(f"A lecture has at most {MOST_PICTURES} pictures: {left} of before left out.")
    st.session_state[_ANSWERED] = True


def _forget() -> None:
    st.session_state[_ANSWERED] = True


def _upload(kind: str, value: object) -> Any:
    """What a session may hold of a kind of upload; None for anything else."""
    if kind == uploads.CORPUS:
        if not isinstance(value, list) or len(value) not in (3, 4) or not _is_key(value[0]):
            return None
        encoding, column, *dialect = value[1:]
        is_encoding = encoding is None or (isinstance(encoding, str) and len(encoding) <= 40)
        is_column = column is None or (isinstance(column, str) and len(column) <= _MOST_COLUMN)
        return tuple(value) if is_encoding and is_column and all(map(_is_dialect, dialect)) else None
    if kind == _RUNS:
        keys = value if isinstance(value, list) else []
        return tuple(keys) if 0 < len(keys) <= MOST_KEYS and all(map(_is_key, keys)) else None
    return value if _is_key(value) else None


def _is_dialect(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(DialectChoice.of_text(value[:_MOST_COLUMN]))
    except ValueError:
        return False


def _pictures(value: object) -> tuple[str, ...]:
    """The pictures of a lecture; none where one of them is no figure of a view."""
    if not isinstance(value, list) or not all(isinstance(picture, str) for picture in value):
        return ()
    try:
        return parse_lecture(value)
    except ValueError:
        return ()


def _is_key(value: object) -> bool:
    if not isinstance(value, str) or len(value) > _MOST_KEY:
        return False
    files = uploads.stored(value)
    return bool(files) and value == " ".join(f"{file.name} {file.digest}" for file in files)


def _judged(queries: object) -> Judgements:
    found: dict[str, Mapping[int, bool]] = {}
    for query, own in _objects(queries).items():
        values = {
            int(index): value
            for index, value in _objects(own).items()
            if re.fullmatch(r"\d{1,9}", index, re.ASCII) and isinstance(value, bool)
        }
        if values:
            found[query] = values
    return _read_only(found)


def _ranked(queries: object, judged: Judgements) -> dict[str, marks.Shown]:
    """The rankings of judged queries."""
    found: dict[str, marks.Shown] = {}
    for query, rankings in _objects(queries).items():
        listed = rankings if isinstance(rankings, list) and query in judged.marks else []
        if 0 < len(listed) <= marks.MOST_SHOWN and all(map(_is_ranking, listed)):
            found[query] = tuple((title, tuple(rows)) for title, rows in listed)
    return found


def _is_ranking(value: object) -> bool:
    """Whether it is the title of a ranking and the rows of its first hits."""
    if not isinstance(value, list) or len(value) != 2:
        return False
    title, rows = value
    if not isinstance(title, str) or len(title) > _MOST_TITLE or not isinstance(rows, list):
        return False
    return len(rows) <= marks.FIRST_HITS and all(type(row) is int and 0 <= row < _MOST_ROWS for row in rows)


def _objects(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
