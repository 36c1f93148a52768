"""What a browser remembers of a session, and a later session is offered: marks of hits, and which files were uploaded.

A session ends some time after its browser has gone, as a phone's does that sleeps. The files themselves are kept on the
server (see uploads.py); the browser keeps their keys, which name them by their content, and the marks. Whatever comes from
a browser is checked: it gives no more than a person who has the files can reach.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import streamlit as st

from components import packing
from components.retrieval.search.relevance import Judgements
from dashboard import caching, state
from dashboard.corpora import marks, uploads
from dashboard.ui import browser, messages
from dashboard.ui.wording import counted

MOST_BYTES = 256 << 10  # of UTF-8 in the browser's storage
MOST_KEYS = 100  # of one kind of upload
_COMPONENT = "browser_memory"
_ANSWERED = "_memory_answered"  # session key: whether what an earlier session left was taken, refused, or is of no use
_LEFT_OUT = "_memory_left_out"  # session key: of how many queries the marks were left out the last time
_KEY = re.compile(r"(?:.{1,150} [0-9a-f]{64} ?){1,20}", re.DOTALL)


@dataclass(frozen=True)
class Memory:
    """What is remembered of a session."""

    uploads: Mapping[str, Any] = field(default_factory=dict)  # by kind: what the session holds of it
    judgements: Mapping[str, Judgements] = field(default_factory=dict)  # by the hash of the corpus

    def __bool__(self) -> bool:
        return bool(self.uploads) or any(one.marks for one in self.judgements.values())

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
            text = json.dumps({"uploads": self.uploads, "marks": found}, ensure_ascii=False)
            size = len(text.encode(errors="replace"))
            if size <= MOST_BYTES or not queries:
                return text if size <= MOST_BYTES else "", total - len(queries)
            queries = queries[max(1, len(queries) * (size - MOST_BYTES) // size) :]

    @classmethod
    def of_text(cls, text: object) -> Memory:
        """What a browser sent; parts that no page has written are left out."""
        if not isinstance(text, str) or len(text.encode(errors="replace")) > MOST_BYTES:
            return cls()
        try:
            found = packing.valid(json.loads(text))
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(found, dict):
            return cls()
        kinds = _objects(found.get("uploads"))
        return cls(
            {kind: value for kind in uploads.KINDS if (value := _upload(kind, kinds.get(kind))) is not None},
            {
                corpus: judged
                for corpus, queries in _objects(found.get("marks")).items()
                if re.fullmatch(r"[0-9a-f]{64}", corpus) and (judged := _judged(queries)).marks
            },
        )


def of_session() -> Memory:
    """What is to be remembered of this session now."""
    chosen = {kind: st.session_state.get(f"_{kind}") for kind in uploads.KINDS}
    return Memory({kind: value for kind, value in chosen.items() if value}, marks.of_session())


def draw() -> None:
    """Let the browser remember this session, and offer what it remembers of an earlier one."""
    sent = None if st.session_state.get(_ANSWERED) else browser.sent_by(_COMPONENT, "found")
    found = Memory.of_text(sent)
    if sent is not None and not found:
        st.session_state[_ANSWERED] = True  # nothing of use
    text, left_out = of_session().to_text()
    if left_out and not st.session_state.get(_LEFT_OUT):
        state.notice(
            f"Your browser has room for the marks of your last queries only: those of {counted(left_out, 'query', 'queries')} "
            "last as long as this session."
        )
    st.session_state[_LEFT_OUT] = left_out
    browser.web_component("memory", "")(
        key=_COMPONENT,
        data={
            "session": caching.person(),
            "answered": bool(st.session_state.get(_ANSWERED)),
            "text": text,
        },
        on_found_change=lambda: None,
        height=0,
    )
    if found:
        _offer(found)


def _offer(found: Memory) -> None:
    """A box over the page's foot: what an earlier session has left, to take or to forget."""
    here = {kind: names for kind, names in _files(found).items() if names}
    lost = sorted({name for names in _files(found, are_kept=False).values() for name in names})
    count = sum(len(one.marks) for one in found.judgements.values())
    parts = [f"marks for {counted(count, 'query', 'queries')}"] if count else []
    names = sorted({name for of_kind in here.values() for name in of_kind})
    if names:
        parts.append(_listed("the file" if len(names) == 1 else "the files", names))
    said = f"From your last visit: {' and '.join(parts)}." if parts else "From your last visit nothing is left here."
    if lost:
        said += f" No longer on this server: {_listed('', lost).strip()}."
    with st.container(key="remembered"):
        st.markdown(said)
        with st.container(horizontal=True):
            if parts:
                st.button("Use again", key="use_remembered", type="primary", on_click=_take, args=(found,))
            st.button("Forget" if parts else "Close", key="forget_remembered", on_click=_forget)


def _files(found: Memory, *, are_kept: bool = True) -> dict[str, list[str]]:
    """The names of the files of each kind that are still kept on this server, or of those that are not."""
    files = caching.kept_files()
    return {
        kind: [
            file.name
            for key in _keys(value)
            for file in uploads.stored(key)
            if files.use(file.digest, caching.person()) == are_kept
        ]
        for kind, value in found.uploads.items()
    }


def _listed(before: str, names: list[str]) -> str:
    shown = ", ".join(f"**{messages.escape(name)}**" for name in names[:4])
    return f"{before} {shown}" + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _take(found: Memory) -> None:
    """Give this session what an earlier one has left; what this one has already stays."""
    lost = _files(found, are_kept=False)
    for kind, value in found.uploads.items():
        if not lost[kind] and not st.session_state.get(f"_{kind}"):
            st.session_state[f"_{kind}"] = value
    marks.add(found.judgements)
    st.session_state[_ANSWERED] = True


def _forget() -> None:
    st.session_state[_ANSWERED] = True


def _keys(value: Any) -> list[str]:
    """The keys of uploads in what a session holds of a kind."""
    parts = value if isinstance(value, tuple) else (value,)
    return [part for part in parts if isinstance(part, str) and uploads.stored(part)]


def _upload(kind: str, value: object) -> Any:
    """What a session may hold of a kind of upload; None for anything else."""
    if kind == uploads.CORPUS:
        if not isinstance(value, list) or len(value) != 3 or not _is_key(value[0]):
            return None
        key, encoding, column = value
        is_encoding = encoding is None or (isinstance(encoding, str) and len(encoding) <= 40)
        return (key, encoding, column) if is_encoding and isinstance(column, str) else None
    if kind == "saved_runs":
        keys = value if isinstance(value, list) else []
        return tuple(keys) if 0 < len(keys) <= MOST_KEYS and all(map(_is_key, keys)) else None
    return value if _is_key(value) else None


def _is_key(value: object) -> bool:
    return isinstance(value, str) and bool(_KEY.fullmatch(value))


def _judged(queries: object) -> Judgements:
    found: dict[str, Mapping[int, bool]] = {}
    for query, own in _objects(queries).items():
        values = {
            int(index): value
            for index, value in _objects(own).items()
            if re.fullmatch(r"\d{1,9}", index, re.ASCII) and isinstance(value, bool)
        }
        if values:
            found[query] = MappingProxyType(values)
    return Judgements(MappingProxyType(found))


def _objects(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
