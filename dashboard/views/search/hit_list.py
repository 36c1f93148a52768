"""A browser component for a ranked list of sentences: score bars, changes of rank, marks for relevance.

A table would truncate long sentences and could not highlight shared words; one Streamlit widget per mark would mean two
hundred widgets. Text is sent as data and set as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from components.charts import theme
from dashboard import state
from dashboard.ui import browser

Span = tuple[int, int]  # first character, last + 1
SHOWN_CHARACTERS = 600
MARKS = {1: True, 0: False, -1: None}  # relevant, not relevant, taken back


@dataclass(frozen=True)
class Hit:
    """One line of the list."""

    rank: int  # from 1
    index: int  # the sentence's number in the corpus, from 0
    text: str
    score: float
    tag: str = ""  # what else is known about the sentence
    shared: tuple[Span, ...] = ()  # words to highlight
    other_rank: int | None = None  # its rank in the other list; 0: not among the hits shown there
    relevant: bool | None = None
    picked: bool = False
    shown_score: str = ""  # in place of the score's number
    share: float | None = None  # 0 to 1: the length of the bar, in place of the score's


def hit_list(
    hits: Sequence[Hit],
    key: str,
    *,
    on_pick: Callable[[int], None],
    on_mark: Callable[[int, bool | None], None] | None,
    pick_hint: str,
    answer: str = "",
    answered: bool = False,
    scale: float = 1.0,
) -> None:
    """Draw the hits. `on_pick(index)` and `on_mark(index, relevant or None)` are called before the next run.

    After a click, or where an address names a hit, the page scrolls to the CSS selector `answer` if it is `answered`. Bars
    reach from 0 (or a lower lowest score) to the best score; where the hits have shares, from 0 to 100 %.
    """
    low = min([0.0, *(hit.score for hit in hits)])
    score_range = max([hit.score for hit in hits], default=1.0) - low or 1.0

    drawn = frozenset(hit.index for hit in hits)

    def picked() -> None:
        index = browser.sent_by(key, "picked")
        if type(index) is int and index in drawn:
            on_pick(index)

    def marked() -> None:
        sent = browser.two_numbers(browser.sent_by(key, "marked"))
        if on_mark is not None and sent is not None and sent[0] in drawn and sent[1] in MARKS:
            on_mark(sent[0], MARKS[sent[1]])

    browser.web_component("hits", '<ol class="hits"></ol>')(
        key=key,
        data={
            "scale": scale,
            "markable": on_mark is not None,
            "pickHint": pick_hint,
            "answer": answer,
            "answered": answered,
            "arrival": state.arrivals(),
            "rows": [_row(hit, (hit.score - low) / score_range if hit.share is None else hit.share) for hit in hits],
        },
        on_picked_change=picked,
        on_marked_change=marked,
    )


def _row(hit: Hit, bar: float) -> dict[str, Any]:
    return {
        "rank": hit.rank,
        "index": hit.index,
        "parts": _parts(hit.text, hit.shared),
        "score": hit.shown_score or theme.number(hit.score),
        "bar": round(bar, 4),
        "tag": " · ".join(part for part in (f"number {hit.index}", hit.tag) if part),
        "change": _change(hit.rank, hit.other_rank),
        "relevant": None if hit.relevant is None else int(hit.relevant),
        "picked": hit.picked,
    }


def _parts(text: str, shared: Sequence[Span]) -> list[dict[str, Any]]:
    """The text divided at the words to highlight; a very long text is truncated."""
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
        return {"kind": "new", "text": "only here", "hint": "Not among the hits of the other list"}
    if other == rank:
        return {"kind": "same", "text": "=", "hint": "The same rank in the other list"}
    kind, sign = ("up", "▲") if rank < other else ("down", "▼")
    return {"kind": kind, "text": f"{sign} {abs(other - rank)}", "hint": f"Rank {other} in the other list"}
