"""Two small browser components: clickable token chips, and the button that copies the link.

Both are Streamlit components (v2): a few lines of JavaScript from assets/web, without a build step or an iframe.
Their content is sent as data and set as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from components.model.trace import TokenizedSentence
from dashboard.ready_made import ASSETS

TINTS = 6


@dataclass(frozen=True)
class ChipRow:
    """One sentence's chips."""

    index: int  # reported after a click
    sentence: TokenizedSentence
    picked: tuple[int, ...] = ()


def _web(name: str) -> str:
    return (ASSETS / "web" / name).read_text(encoding="utf-8")


@cache
def _components() -> dict[str, Any]:
    chips = st.components.v2.component(
        "bert_internals_chips", html='<div class="rows"></div>', css=_web("chips.css"), js=_web("chips.js")
    )
    copy_link = st.components.v2.component(
        "bert_internals_copy_link",
        html='<button type="button"><span></span></button>',
        css=_web("copy.css"),
        js=_web("copy.js"),
    )
    return {"chips": chips, "copy_link": copy_link}


def chips(
    rows: Sequence[ChipRow],
    key: str,
    on_click: Callable[[int, int], None] | None = None,
    unknown_id: int | None = None,
    scale: float = 1.0,
    special_ids: frozenset[int] = frozenset(),
) -> None:
    """Draw tokens as chips. After a click, `on_click(row index, position)` runs before the page is drawn again.

    Tokens with `special_ids` are drawn as special tokens even if a person typed them (such as [MASK]).
    """

    def clicked() -> None:
        index, position = st.session_state[key].clicked
        if on_click is not None:
            on_click(int(index), int(position))

    _components()["chips"](
        key=key,
        data={
            "clickable": on_click is not None,
            "scale": scale,
            "rows": [_row(row, unknown_id, special_ids) for row in rows],
        },
        on_clicked_change=clicked,
    )


def _row(row: ChipRow, unknown_id: int | None, special_ids: frozenset[int]) -> dict[str, Any]:
    words: list[dict[str, Any]] = []
    previous_word: tuple[bool, int] | None = None
    for token in row.sentence.tokens:
        word = None if token.word is None else (token.in_pair, token.word)
        if word is None or word != previous_word:
            tint = "x" if word is None else str(sum(item["tint"] != "x" for item in words) % TINTS)
            words.append({"tint": tint, "tokens": []})
        previous_word = word
        unknown, picked = token.id == unknown_id, token.position in row.picked
        special = token.special or (token.id in special_ids and not unknown)
        hint = f"position {token.position}, id {token.id}"
        if unknown:
            hint += ", not in the vocabulary"
        hint += ", special token" if token.special else f", characters {token.start + 1}–{token.end}"
        marks = {"special": special, "unknown": unknown, "picked": picked}
        words[-1]["tokens"].append(
            {
                "piece": token.piece,
                "position": token.position,
                "hint": hint,
                "marks": [name for name, is_set in marks.items() if is_set],
                "picked": picked,
            }
        )
    return {"index": row.index, "number": row.index + 1, "words": words}


def copy_link(key: str, enabled: bool) -> None:
    """A button that copies the page's address; disabled if the sentences are too long for an address."""
    hint = "Copies an address that restores the model and the settings of this page"
    if not enabled:
        hint = "The sentences are too long for a link; download them instead"
    _components()["copy_link"](key=key, data={"label": "Copy link", "enabled": enabled, "hint": hint})
