"""Our small parts in the browser: clickable token chips, the editor of the sentences, and a page's tools.

They are Streamlit components (v2): a few lines of JavaScript from assets/web, without a build step or an iframe.
Their content is sent as data and set as text, never as markup.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any, TypeGuard

import streamlit as st

from components.charts.stand_alone.page import PagePart
from components.model.trace import Token, TokenizedSentence
from dashboard import caching
from dashboard.ready_made import ASSETS
from dashboard.sharing import report

FOLDED_FROM, FOLDED_FIRST, FOLDED_LAST = 64, 32, 16  # tokens of a long row, and those shown at its two ends
STEP_MS = 900  # between two steps of what is played
_EDITOR = "<label><span></span><textarea spellcheck='false'></textarea><small></small></label>"
# Their names stand here too: until the script has run, a screen reader would find buttons without any.
_LINK_BUTTON = (
    '<button type="button" aria-label="Copy link"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M9.5 14.5l5-5M8 '
    '11l-2.5 2.5a3.5 3.5 0 0 0 5 5L13 16M16 13l2.5-2.5a3.5 3.5 0 0 0-5-5L11 8"/></svg><span class="text"></span></button>'
)
_THEME_BUTTON = (
    '<button type="button" aria-label="Light or dark"><svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" '
    'r="8"/><path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor"/></svg></button>'
)


# CSS selectors of what pages show: figures, tables and lists. Chips are controls on most pages; these are results.
RESULTS = (
    ".stPlotlyChart, iframe, .bi-grids, .stDataFrame, .stTable, [class*=st-key-pair_], .st-key-chips_tokens, "
    ".st-key-chips_together, .stElementContainer:not([class*=st-key-chips_]) > .stBidiComponent"
)


@dataclass(frozen=True)
class ChipRow:
    """One sentence's chips, or some of them."""

    index: int  # reported after a click
    sentence: TokenizedSentence
    picked: tuple[int, ...] = ()
    number: str = ""  # before the chips; empty: its number as a sentence
    label: str = ""  # for screen readers; empty: its number as a sentence
    positions: range | None = None  # of the tokens to draw; None: all
    lost: frozenset[int] | None = (
        None  # the typed text stands above, with these of its characters marked; None: it does not
    )


@cache
def web_component(name: str, html: str, *before: str) -> Any:
    """A component of `html` with the script and the style of assets/web that have this name.

    In front of them stand those with the names `before`, in this order: parts of a long script, or what several components
    have in common.
    """
    return st.components.v2.component(
        f"bert_internals_{name}",
        html=html,
        css="".join(asset(part, "css") for part in (*before, name)) or None,
        js="".join(asset(part, "js") for part in (*before, name)),
    )


def asset(name: str, ending: str) -> str:
    """What a file of assets/web holds; nothing where there is none."""
    path = ASSETS / "web" / f"{name}.{ending}"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def hits_component() -> Any:
    """The ranked list of texts with bars."""
    return web_component("hits", '<div class="hits"><div class="above"></div><ol></ol></div>')


def reranked_component() -> Any:
    """Two lists of the same texts in two orders, with lines between them."""
    return web_component("reranked", '<div class="reranked"></div>')


def is_index(value: object, count: int) -> TypeGuard[int]:
    """Whether a value that a browser sent is a whole number 0..count-1; True and False are not."""
    return type(value) is int and 0 <= value < count


def is_one_of(value: object, names: Container[str]) -> TypeGuard[str]:
    """Whether a value that a browser sent is one of these names; a list, which cannot be looked up in a table, is none."""
    return isinstance(value, str) and value in names


def sent_by(key: str, trigger: str) -> Any:
    """What the component `key` sent with a trigger; None if it sent nothing.

    A browser can send anything over the websocket: check the value before it is used.
    """
    values = st.session_state.get(key)
    return values.get(trigger) if isinstance(values, Mapping) else None


def selected(key: str, kind: str) -> list[Any]:
    """What a person selected in a figure ("points") or a table ("rows", "cells"); nothing where something else was sent."""
    event = st.session_state.get(key)
    selection = event.get("selection") if isinstance(event, Mapping) else None
    found = selection.get(kind) if isinstance(selection, Mapping) else None
    return found if isinstance(found, list) else []


def place_of(point: object) -> tuple[int, ...]:
    """The whole numbers with which begins what a point of a figure carries; they may be out of range."""
    carried = point.get("customdata") if isinstance(point, Mapping) else None
    listed = carried if isinstance(carried, list | tuple) else [carried]
    return tuple(map(int, takewhile(lambda number: type(number) in (int, float) and number % 1 == 0, listed)))


def place_selected(key: str) -> tuple[int, ...]:
    """`place_of` of the first point that a person selected in a figure."""
    points = selected(key, "points")
    return place_of(points[0]) if points else ()


def two_numbers(sent: object) -> tuple[int, int] | None:
    """What a component sent if it is a list of two whole numbers, which may still be out of range; else None."""
    if not isinstance(sent, list | tuple) or len(sent) != 2 or any(type(number) is not int for number in sent):
        return None
    return sent[0], sent[1]


def chips(
    rows: Sequence[ChipRow],
    key: str,
    on_click: Callable[[int, int], None] | None = None,
    unknown_id: int | None = None,
    scale: float = 1.0,
    special_ids: frozenset[int] = frozenset(),
    under: Callable[[Token], Sequence[str]] = lambda token: (),
    by_text: bool = False,
    fold: bool = False,
) -> None:
    """Draw tokens as chips. After a click, `on_click(row index, position)` runs before the page is drawn again.

    `under` gives the lines of small type under each token's piece, such as its id. Tokens with `special_ids` are drawn as
    special tokens even if a person typed them (such as [MASK]). `by_text`, the two texts of a pair differ in colour. With
    `fold`, a row of more than FOLDED_FROM tokens shows its first and last ones, and a button that opens the others.
    """

    drawn = {row.index: len(row.sentence) for row in rows}

    def clicked() -> None:
        sent = two_numbers(sent_by(key, "clicked"))
        if on_click is not None and sent is not None and is_index(sent[1], drawn.get(sent[0], 0)):
            on_click(*sent)

    shown = [_row(row, unknown_id, special_ids, under, by_text) for row in rows]
    report.add(key, PagePart(chips=shown))
    web_component("chips", '<div class="rows"></div>')(
        key=key,
        data={
            "clickable": on_click is not None,
            "scale": scale,
            "fold": {"from": FOLDED_FROM, "first": FOLDED_FIRST, "last": FOLDED_LAST} if fold else None,
            "rows": shown,
        },
        on_clicked_change=clicked,
    )


def _row(
    row: ChipRow,
    unknown_id: int | None,
    special_ids: frozenset[int],
    under: Callable[[Token], Sequence[str]],
    by_text: bool,
) -> dict[str, Any]:
    words: list[dict[str, Any]] = []
    previous_word: tuple[bool, int] | None = None
    drawn = row.sentence.tokens if row.positions is None else [row.sentence.tokens[place] for place in row.positions]
    for token in drawn:
        word = None if token.word is None else (token.in_pair, token.word)
        if word is None or word != previous_word:
            tint = str(int(token.in_pair)) if by_text and word is not None else "x"
            over = None if row.lost is None else _typed(row.sentence, token, row.lost)
            words.append({"tint": tint, "tokens": [], "over": over})
        previous_word = word
        unknown, picked = token.id == unknown_id, token.position in row.picked
        special = token.special or (token.id in special_ids and not unknown)
        hint = f"id {token.id}, position {token.position}"
        if not token.special:
            hint += f", characters {token.start} to {token.end - 1}"
        hint += " (counted from 0)"
        if unknown:
            hint += ", not in the vocabulary"
        if token.special:
            hint += ", special token"
        marks = {"special": special, "unknown": unknown, "picked": picked}
        words[-1]["tokens"].append(
            {
                "piece": token.piece,
                "under": list(under(token)),
                "position": token.position,
                "hint": hint,
                "marks": [name for name, is_set in marks.items() if is_set],
                "picked": picked,
            }
        )
    return {
        "index": row.index,
        "number": row.number or row.index + 1,
        "label": row.label or f"Sentence {row.index + 1}",
        "direction": direction(row.sentence.text),
        "words": words,
    }


def _typed(sentence: TokenizedSentence, token: Token, lost: frozenset[int]) -> list[tuple[str, bool]]:
    """The word of a token as it was typed, in stretches that come back and stretches that do not; none of a special token."""
    if token.word is None:
        return []
    text, positions = sentence.word_text(token.position), sentence.word_positions(token.position)
    start = sentence.tokens[positions[0]].start
    stretches: list[tuple[str, bool]] = []
    for place, letter in enumerate(text, start):
        is_lost = not token.in_pair and place in lost
        if stretches and stretches[-1][1] == is_lost:
            stretches[-1] = (stretches[-1][0] + letter, is_lost)
        else:
            stretches.append((letter, is_lost))
    return stretches


def direction(text: str) -> str:
    """The direction in which a text is written, as HTML names it: that of its first letter."""
    first = next((kind for kind in map(unicodedata.bidirectional, text) if kind in {"L", "R", "AL"}), "L")
    return "ltr" if first == "L" else "rtl"


def editor(key: str, *, label: str, text: str, version: int, hint: str, placeholder: str, rows: int) -> None:
    """A field for several lines of text. What is typed arrives in `st.session_state[key]["edit"]["text"]`.

    `text` replaces what is in the field whenever `version` differs from the one before.
    """
    web_component("editor", _EDITOR)(
        key=key,
        data={
            "label": label,
            "text": text,
            "version": version,
            "hint": hint,
            "placeholder": placeholder,
            "height": round(18 + 26 * rows),
        },
        on_edit_change=lambda: None,
    )


def ticker(key: str, value: int, on_tick: Callable[[int], None]) -> None:
    """Call `on_tick(value)` before the next run, STEP_MS after this value was drawn. It draws nothing itself."""

    def ticked() -> None:
        sent = sent_by(key, "tick")
        if type(sent) is int and sent == value:
            on_tick(sent)

    web_component("ticker", "")(
        key=key, data={"value": value, "milliseconds": STEP_MS}, on_tick_change=ticked, height=0
    )


def scroll_lesson(key: str, step: str, is_answered: bool) -> None:
    """Scroll the lesson's panel: to its beginning when `step` changes, and to the verdict once the step is answered.

    On a phone the page is scrolled too, so that its first result stands above the panel. It draws nothing.
    """
    data = {"step": step, "answered": is_answered, "results": RESULTS}
    web_component("lesson_scroll", "")(key=key, data=data, height=0)


def know_visitor(key: str) -> bool:
    """Let the browser's tab send its mark (see caching.visitor). Returns whether it has become known in this run.

    Call it before anything of this visitor's is read. It draws nothing.
    """
    is_new = caching.know_visitor(sent_by(key, "mark"))
    web_component("visitor", "")(
        key=key, data={"known": caching.is_visitor_known()}, on_mark_change=lambda: None, height=0
    )
    return is_new


def tools(
    key: str,
    *,
    can_link: bool,
    is_dark: bool,
    screen_factor: float | None = None,
    on_screen: Callable[[], None] = lambda: None,
) -> None:
    """The buttons that copy the page's address, and that change between light and dark; terms.js marks the glossary's terms.

    Where the colours change, by the button or with the system's, the page is drawn anew: what the server draws has colours of
    its own. On a projector (`screen_factor` is not None) they send "screen", how much larger its window is, where that is
    another number.
    """
    link_hint = "Copies an address that restores the model and the settings of this page"
    if not can_link:
        link_hint = "The texts are too long for a link; save the session as a file instead"
    web_component("tools", f"<div>{_LINK_BUTTON}{_THEME_BUTTON}</div>", "terms")(
        key=key,
        data={
            "link": {"label": "Copy link", "enabled": can_link, "hint": link_hint},
            "isDark": is_dark,
            "glossary": caching.glossary(),
            "screen": screen_factor,
        },
        on_recoloured_change=lambda: None,
        on_screen_change=on_screen,
        width="content",
    )
