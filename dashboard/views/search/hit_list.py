"""A browser component for a ranked list of sentences: score bars, changes of rank, marks for relevance.

A table would truncate long sentences and could not highlight shared words; one Streamlit widget per mark would mean two
hundred widgets. Text is sent as data and set as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.charts import theme
from dashboard import state
from dashboard.ui import browser

Span = tuple[int, int]  # first character, last + 1
Shade = tuple[int, int, float]  # a span, and how strongly it is shaded, above 0 to 1
SHOWN_CHARACTERS = 600
MARKS = {1: True, 0: False, -1: None}  # relevant, not relevant, taken back


@dataclass(frozen=True)
class Hit:
    """One line of the list."""

    rank: int  # from 1
    index: int  # the sentence's number in the corpus, from 0
    text: str
    score: float
    rows: int = 1  # of the corpus that have this text
    tag: str = ""  # what else is known about the sentence
    shared: tuple[Span, ...] = ()  # words that the query has too
    shades: tuple[Shade, ...] | None = None  # words that carry the score; None: not known, and shared words are marked
    query_shades: tuple[Shade, ...] = ()  # the same of the query
    own_id: str = ""  # what the corpus calls the sentence, shown in place of its rank
    other_rank: int | None = None  # its rank in the other list; 0: not among the hits shown there
    relevant: bool | None = None
    picked: bool = False
    shown_score: str = ""  # in place of the score's number
    bar: float | None = None  # its length, 0 to 1; None: without a bar
    is_close: bool = True  # whether the score is more than chance
    terms: tuple[str, ...] = ()  # of a score that is a sum, one for each ranking
    first_share: float | None = None  # the share of the first term, 0 to 1


@dataclass(frozen=True)
class Axis:
    """What stands above the bars. Places are lengths of bars, 0 to 1."""

    ends: tuple[str, str]  # what an empty and a full bar are
    middle: str = ""  # and one of half the length
    level: float | None = None  # a line through all bars: what is found by chance
    level_name: str = ""
    unrelated: float | None = None  # the end of a band: what unrelated sentences have


def hit_list(
    hits: Sequence[Hit],
    key: str,
    *,
    on_pick: Callable[[int], None],
    on_mark: Callable[[int, bool | None], None] | None,
    pick_hint: str,
    answer: str = "",
    answered: bool = False,
    axis: Axis | None = None,
    query: str = "",
    scale: float = 1.0,
) -> None:
    """Draw the hits. `on_pick(index)` and `on_mark(index, relevant or None)` are called before the next run.

    After a click, or where an address names a hit, the page scrolls to the CSS selector `answer` if it is `answered`. The
    `axis` is that of the bars. The `query` stands above the list, with the words shaded that carry the score of the hit that
    is pointed at, or else of the first.
    """
    drawn = frozenset(hit.index for hit in hits)

    def picked() -> None:
        index = browser.sent_by(key, "picked")
        if type(index) is int and index in drawn:
            on_pick(index)

    def marked() -> None:
        sent = browser.two_numbers(browser.sent_by(key, "marked"))
        if on_mark is not None and sent is not None and sent[0] in drawn and sent[1] in MARKS:
            on_mark(sent[0], MARKS[sent[1]])

    browser.hits_component()(
        key=key,
        data={
            "scale": scale,
            "markable": on_mark is not None,
            "pickHint": pick_hint,
            "answer": answer,
            "answered": answered,
            "arrival": state.arrivals(),
            "axis": None if axis is None else _axis(axis),
            "asked": bool(query) and any(hit.shades is not None for hit in hits),
            "rows": [_row(hit, query) for hit in hits],
        },
        on_picked_change=picked,
        on_marked_change=marked,
    )


def _axis(axis: Axis) -> dict[str, Any]:
    places = {"level": axis.level, "unrelated": axis.unrelated}
    return {
        "ends": axis.ends,
        "middle": axis.middle,
        "name": axis.level_name,
        **{name: None if place is None else round(min(1.0, max(0.0, place)), 4) for name, place in places.items()},
    }


def _row(hit: Hit, query: str) -> dict[str, Any]:
    shades, is_weighed = hit.shades or (), hit.shades is not None
    return {
        "rank": hit.rank,
        "id": hit.own_id,
        "index": hit.index,
        "parts": _parts(hit.text, hit.shared, shades, is_weighed),
        "asked": _parts(query, (), hit.query_shades, is_weighed) if query and is_weighed else [],
        "score": hit.shown_score or theme.number(hit.score),
        "bar": None if hit.bar is None else round(hit.bar, 4),
        "close": hit.is_close,
        "same": f"{hit.rows:,} rows" if hit.rows > 1 else "",
        "tag": " · ".join(part for part in (hit.tag, f"number {hit.index}") if part),
        "change": _change(hit.rank, hit.other_rank),
        "terms": hit.terms,
        "firstShare": None if hit.first_share is None else round(hit.first_share, 4),
        "relevant": None if hit.relevant is None else int(hit.relevant),
        "picked": hit.picked,
    }


def _parts(
    text: str, shared: Sequence[Span], shades: Sequence[Shade] = (), is_weighed: bool = False
) -> list[dict[str, Any]]:
    """The text divided at the words to mark; a very long text is truncated.

    Each part says whether it is shared with the query, and how strongly it is shaded, 0 to 1; None where that is not known.
    """
    marks: dict[Span, float] = {(start, end): strength for start, end, strength in shades}
    of_query = {*shared}
    spans = _apart(sorted({*shared, *marks} if not is_weighed else {*_without_overlap(shared, marks), *marks}))
    parts: list[dict[str, Any]] = []
    done = 0

    def add(end: int, is_shared: bool, shade: float) -> None:
        parts.append({"text": text[done:end], "shared": is_shared, "shade": round(shade, 3) if is_weighed else None})

    for start, end in spans:
        if start >= SHOWN_CHARACTERS:
            break
        if start > done:
            add(start, False, 0.0)
            done = start
        is_shared = any(first < end and start < last for first, last in of_query)
        add(end, is_shared, marks.get((start, end), 0.0))
        done = end
    if done < len(text):
        rest = text[done : max(done, SHOWN_CHARACTERS)] + (" …" if len(text) > SHOWN_CHARACTERS else "")
        parts.append({"text": rest, "shared": False, "shade": 0.0 if is_weighed else None})
    return parts


def _without_overlap(shared: Sequence[Span], marks: Mapping[Span, float]) -> list[Span]:
    """The shared words that no shaded one covers, in whole or in part."""
    return [(start, end) for start, end in shared if not any(first < end and start < last for first, last in marks)]


def _apart(spans: Sequence[Span]) -> list[Span]:
    """Spans in order, without what overlaps the one before."""
    found: list[Span] = []
    for start, end in spans:
        begin = max(start, found[-1][1]) if found else start
        if end > begin:
            found.append((begin, end))
    return found


def _change(rank: int, other: int | None) -> dict[str, str] | None:
    if other is None:
        return None
    if other == 0:
        return {"kind": "new", "text": "only here", "hint": "Not among the hits of the other list"}
    if other == rank:
        return {"kind": "same", "text": "=", "hint": "The same rank in the other list"}
    kind, sign = ("up", "▲") if rank < other else ("down", "▼")
    return {"kind": kind, "text": f"{sign} {abs(other - rank)}", "hint": f"Rank {other} in the other list"}
