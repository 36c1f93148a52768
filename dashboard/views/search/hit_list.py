"""A ranked list of sentences: score bars, changes of rank, marks for relevance; our fourth browser component.

A table would cut long sentences off and cannot show which words are shared; a Streamlit widget for every mark
would be two hundred widgets. Text travels as data and is set as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from dashboard.ready_made import ASSETS

Span = tuple[int, int]  # characters from, up to
SHOWN_CHARACTERS = 600


@dataclass(frozen=True)
class Hit:
    """One line of the list."""

    rank: int  # from 1
    index: int  # the sentence's number in the corpus, from 0
    text: str
    score: float
    tag: str = ""  # what else is known of the sentence
    shared: tuple[Span, ...] = ()  # words to highlight
    other_rank: int | None = None  # its rank in the ranking beside this one; 0: not among those shown there
    relevant: bool | None = None
    picked: bool = False


@cache
def _component() -> Any:
    web = ASSETS / "web"
    return st.components.v2.component(
        "bert_internals_hits",
        html='<ol class="hits"></ol>',
        css=(web / "hits.css").read_text(encoding="utf-8"),
        js=(web / "hits.js").read_text(encoding="utf-8"),
    )


def hit_list(
    hits: Sequence[Hit],
    key: str,
    *,
    on_pick: Callable[[int], None],
    on_mark: Callable[[int, bool | None], None] | None,
    pick_hint: str,
    answer: str = "",
    decimals: int = 3,
    scale: float = 1.0,
) -> None:
    """Draw the hits. `on_pick(index)` and `on_mark(index, relevant or None)` run before the next draw.

    `answer` is a CSS selector of what a click brings: it is scrolled to.
    Bars are drawn from 0 (or the lowest score below it) to the best score.
    """
    low = min([0.0, *(hit.score for hit in hits)])
    span = max([hit.score for hit in hits], default=1.0) - low or 1.0

    def picked() -> None:
        index = st.session_state[key].picked
        if index is not None:
            on_pick(int(index))

    def marked() -> None:
        mark = st.session_state[key].marked
        if mark is not None and on_mark is not None:
            on_mark(int(mark[0]), None if mark[1] < 0 else bool(mark[1]))

    _component()(
        key=key,
        data={
            "scale": scale,
            "markable": on_mark is not None,
            "pickHint": pick_hint,
            "answer": answer,
            "rows": [_row(hit, (hit.score - low) / span, decimals) for hit in hits],
        },
        on_picked_change=picked,
        on_marked_change=marked,
    )


def _row(hit: Hit, bar: float, decimals: int) -> dict[str, Any]:
    return {
        "rank": hit.rank,
        "index": hit.index,
        "parts": _parts(hit.text, hit.shared),
        "score": f"{hit.score:.{decimals}f}",
        "bar": round(bar, 4),
        "tag": " · ".join(part for part in (f"no. {hit.index}", hit.tag) if part),
        "change": _change(hit.rank, hit.other_rank),
        "relevant": None if hit.relevant is None else int(hit.relevant),
        "picked": hit.picked,
    }


def _parts(text: str, shared: Sequence[Span]) -> list[dict[str, Any]]:
    """The text cut at the words to highlight, and at the end where it is very long."""
    parts, done = [], 0
    for start, end in sorted(shared):
        if start >= SHOWN_CHARACTERS:
            break
        if start > done:
            parts.append({"text": text[done:start], "shared": False})
        if end > max(done, start):
            parts.append({"text": text[max(done, start) : end], "shared": True})
        done = max(done, end)
    if done < len(text):
        rest = text[done : max(done, SHOWN_CHARACTERS)] + (" …" if len(text) > SHOWN_CHARACTERS else "")
        parts.append({"text": rest, "shared": False})
    return parts


def _change(rank: int, other: int | None) -> dict[str, str] | None:
    if other is None:
        return None
    if other == 0:
        return {"kind": "new", "text": "only here", "hint": "Not among the hits shown beside it"}
    if other == rank:
        return {"kind": "same", "text": "=", "hint": "The same rank beside it"}
    kind, sign = ("up", "▲") if rank < other else ("down", "▼")
    return {"kind": kind, "text": f"{sign} {abs(other - rank)}", "hint": f"Rank {other} beside it"}
