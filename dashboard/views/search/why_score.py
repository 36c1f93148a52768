"""The score of a hit as a sum over words: what adds most in a sentence, both texts with their words marked, and bars."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import bars
from components.charts.theme import number, signed
from components.retrieval.search.score_split import ScorePart
from dashboard.ui import figures, messages

if TYPE_CHECKING:
    from components.retrieval.search.score_split import ScoreSplit
    from components.shown_code.code import AnyCode, NoCode

MOST_ROWS = 14  # of a text in the figure; the last sums up all others
LEAST_SCALE = 0.15  # of the score: of smaller parts none is marked as if it were much
FAINTEST = 0.2  # of the strongest mark: what is weaker is not marked
MOST_SAID = 400  # characters of the finding: all of it stands above the marked texts
SHOWN = 0.0005  # a term of no word is named from here on: three decimals are shown
TITLE = "What each word adds to the score"
NOT_A_CAUSE = (
    "Causes: without a word, all other tokens would have other vectors. Above layer 0, each token's vector has something of "
    "all other tokens in it, and special tokens have content only from them."
)


def draw(split: ScoreSplit, unit: str, code: AnyCode | NoCode) -> None:
    """Draw a score, named by its `unit`, as the sum of its words."""
    above = st.container(key="why_finding")
    scale = max(
        [abs(part.value) for part in (*split.query, *split.hit) if part.spans] + [LEAST_SCALE * abs(split.score), 1e-12]
    )
    for name, text, parts in zip(("Query", "Hit"), split.texts, (split.query, split.hit), strict=True):
        figures.markup(_marked(name, text, parts, scale), f"why_marked_{name.lower()}")
    rows, rests = _rows(split)
    figures.figure(
        bars.word_bars(
            [part.text for _, part in rows],
            np.array([part.value for _, part in rows]),
            [side for side, _ in rows],
            TITLE,
            f"part of the {unit}",
            rests=rests,
            by_sign=True,
        ),
        key="why_split",
        code=code,
        message=finding(split, unit),
        most_above=MOST_SAID,
        line_in=above,
        alt=f"Bars of what the words of query and hit add to the {unit} of {number(split.score)}",
        read=_read(split, unit),
        not_shown=NOT_A_CAUSE
        if not split.is_of_shared_words
        else "Meaning: another word for the same thing adds nothing.",
        table=lambda: _table(split, unit),
    )


def finding(split: ScoreSplit, unit: str) -> str:
    """What adds most to a score, in a sentence; special tokens and a prompt are among the candidates."""
    score = f"the {unit} **{number(split.score)}**"
    if split.is_of_shared_words:
        return f"Of {score}, {_strongest(split.query, '')}.{_terms(split)}"
    return f"Of {score}, {_strongest(split.query, 'the query')}; {_strongest(split.hit, 'the hit')}.{_terms(split)}"


def _strongest(parts: Sequence[ScorePart], of: str) -> str:
    """The word of a text that adds most, what adds more than any word, and what takes more away."""
    none = ScorePart("", "word", (), 0.0)
    best = max([none, *(part for part in parts if part.kind == "word")], key=lambda part: part.value)
    strongest = max([none, *(part for part in parts if part.kind != "word")], key=lambda part: part.value)
    lowest = min([none, *parts], key=lambda part: part.value)
    of_text = f" of {of}" if of else ""
    of_word = f", {_name(best)} {number(best.value)}" if best.value else ""
    if strongest.value > best.value:
        said = f"{_name(strongest)}{of_text} {_verb(strongest)} more than any word ({number(strongest.value)}{of_word})"
    elif best.value:
        said = f"{_name(best)}{of_text} adds most ({number(best.value)})"
    else:
        said = f"no word{of_text} adds anything"
    if -lowest.value > best.value:
        said += (
            f", and {_name(lowest)} {'take' if _verb(lowest) == 'add' else 'takes'} more away ({number(lowest.value)})"
        )
    return said


def _name(part: ScorePart) -> str:
    """A part as a sentence names it: a word in quotation marks, "[CLS] and [SEP]"."""
    if part.kind == "special":
        return messages.escape(" and ".join(part.text.rsplit(" ", 1)))
    return messages.escape(part.text) if part.kind == "prompt" else f"“{messages.escape(part.text[:40])}”"


def _verb(part: ScorePart) -> str:
    return "add" if part.kind == "special" and " " in part.text else "adds"


def _terms(split: ScoreSplit) -> str:
    """What belongs to no word, where it can be seen in the numbers."""
    shown = [f"{messages.escape(term.name)} {signed(term.value)}" for term in split.terms if abs(term.value) >= SHOWN]
    return f" Of no word: {', '.join(shown)}." if shown else ""


def _read(split: ScoreSplit, unit: str) -> str:
    rest = " with what belongs to no word" if any(abs(term.value) >= SHOWN for term in split.terms) else ""
    if split.is_of_shared_words:
        return f"Each bar is what a word of both texts adds. All bars{rest} sum to the {unit}."
    return (
        f"The {unit} is a sum over all pairs of a part of the query and one of the hit. A bar is a word's share: its pairs "
        f"with all of the other text. The bars of the query{rest} sum to the {unit}, and so do those of the hit. Orange "
        "raises it, blue lowers it; the marks in the texts have the same colours."
    )


def _marked(name: str, text: str, parts: Sequence[ScorePart], scale: float) -> str:
    """A text with its words marked by what they add, as HTML."""
    strengths = {span: part.value / scale for part in parts for span in part.spans}
    pieces, end = [], 0
    for (start, stop), strength in sorted(strengths.items()):
        if start < end or abs(strength) < FAINTEST:
            continue
        colour = "230, 159, 0" if strength > 0 else "0, 114, 178"
        pieces.append(html.escape(text[end:start]))
        pieces.append(
            f'<span style="background: rgba({colour}, {0.7 * min(1.0, abs(strength)):.2f}); border-radius: 3px; '
            f'padding: 0 2px">{html.escape(text[start:stop])}</span>'
        )
        end = stop
    pieces.append(html.escape(text[end:]))
    return (
        '<p style="font-size: 1.05rem; line-height: 1.6; margin: 0">'
        f'<span style="opacity: 0.72; font-size: 0.85rem">{name}</span> {"".join(pieces)}</p>'
    )


def _rows(split: ScoreSplit) -> tuple[list[tuple[str, ScorePart]], list[int]]:
    """The bars by text in the order of the words, few enough to read, and the numbers of those that sum up many words."""
    rows: list[tuple[str, ScorePart]] = []
    rests: list[int] = []
    sides = (
        [("Words of both", split.query)] if split.is_of_shared_words else [("Query", split.query), ("Hit", split.hit)]
    )
    for name, parts in sides:
        kept = list(parts)
        if len(parts) > MOST_ROWS:
            strongest = sorted(range(len(parts)), key=lambda row: -abs(parts[row].value))[: MOST_ROWS - 1]
            kept = [part for row, part in enumerate(parts) if row in strongest]
            left = [part.value for row, part in enumerate(parts) if row not in strongest]
            rests.append(len(rows) + len(kept))
            kept.append(ScorePart(f"{len(left)} others", "rest", (), sum(left)))
        rows += [(name, part) for part in kept]
    rows += [
        ("No word", ScorePart(term.name, "rest", (), term.value)) for term in split.terms if abs(term.value) >= SHOWN
    ]
    return rows, rests


def _table(split: ScoreSplit, unit: str) -> pd.DataFrame:
    parts = [("query", part) for part in split.query] + [("hit", part) for part in split.hit]
    rows: list[tuple[str, str, str, float]] = [(of, part.text, part.kind, part.value) for of, part in parts]
    rows += [("both", term.name, "of no word", term.value) for term in split.terms]
    return pd.DataFrame(rows, columns=["text", "word", "kind", f"adds to the {unit}"])
