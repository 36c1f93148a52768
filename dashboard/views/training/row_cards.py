"""The first rows that a model learns from as cards, with ties that say what is pulled together and what is pushed apart."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from components.numbers import counted
from components.training.negatives import BINARY_NAMES
from dashboard.ui import figures

if TYPE_CHECKING:
    import pandas as pd

    from components.training.settings import TrainingSettings

# What the texts of the included rows are, by their columns here.
NAMES = {
    "demo:pairs": {"query": "headline", "correct answer": "sentence"},
    "demo:nli": {"first text": "premise", "second text": "hypothesis"},
    "demo:not": {"query": "sentence", "correct answer": "paraphrase", "wrong answer": "opposite"},
}
PLURALS = {"query": "queries"}
SHOWN = 5  # rows; of those with a wrong answer each takes two cards
SHOWN_WITH_WRONG = 3
TEXTS = ("sentence", "query", "correct answer", "wrong answer", "first text", "second text")
IN_BATCH = {"mnrl", "simcse"}  # objectives for which the other rows of a batch are the wrong answers
Kind = Literal["pulled", "pushed", "told"]
PULLED: Kind = "pulled"
PUSHED: Kind = "pushed"
TOLD: Kind = "told"
_APART, _TOGETHER = BINARY_NAMES
_HALF = 50  # of a row's 100 units
_DRAWN: tuple[tuple[Kind, str, float, str], ...] = (
    ("pulled", "#2B7BBA", 3, ""),
    ("pushed", "#C97F00", 1.6, ' stroke-dasharray="5 3"'),
    ("told", "#858B95", 1.5, ""),
)
_STROKES: dict[Kind, str] = {
    kind: f'stroke="{colour}" stroke-width="{width}" vector-effect="non-scaling-stroke"{dash}'
    for kind, colour, width, dash in _DRAWN
}


@dataclass(frozen=True)
class Tie:
    """A line from a text at the left to one at the right; places are numbers of cards from the top."""

    left: int
    right: int
    kind: Kind


def ties(table: pd.DataFrame, objective: str) -> tuple[Tie, ...]:
    """What an objective does to the texts of some rows: all partners, and of the first row what it is pushed away from.

    `table` has a column for each text of a row, and perhaps one of labels or scores, which are told and not pulled.
    """
    texts = [name for name in table.columns if name in TEXTS]
    rows = range(len(table))
    if len(texts) == 1:
        return ()
    if len(texts) == 3:
        own = [Tie(row, 2 * row, PULLED) for row in rows] + [Tie(row, 2 * row + 1, PUSHED) for row in rows]
        others = [Tie(0, place, PUSHED) for place in range(2, 2 * len(table))] if objective in IN_BATCH else []
        return (*own, *others)
    if "label" in table.columns:
        kinds: dict[object, Kind] = {_TOGETHER: PULLED, _APART: PUSHED}
        return tuple(Tie(row, row, kinds.get(label, TOLD)) for row, label in zip(rows, table["label"], strict=True))
    if "score" in table.columns:
        return tuple(Tie(row, row, TOLD) for row in rows)
    others = [Tie(0, row, PUSHED) for row in rows[1:]] if objective in IN_BATCH else []
    return (*(Tie(row, row, PULLED) for row in rows), *others)


def named(source: str, column: str) -> str:
    """What a column of texts holds: "headline"; its own name where the rows are not included ones."""
    return NAMES.get(source, {}).get(column, column)


def among(settings: TrainingSettings, rows: int, wrong: int) -> int:
    """How many texts are shown at once with a query: those of a batch, `wrong` answers of each row of its own included."""
    return min(settings.batch_size, rows) * (1 + wrong)


def finding(settings: TrainingSettings, table: pd.DataFrame, rows: int, held_out: int, cut: int, texts: int) -> str:
    """What is learned from how many `rows`, how many are held out, and how many of all `texts` are cut off."""
    objective = settings.objectives[0]
    wrong = sum(str(name).startswith("wrong answer") for name in table.columns)
    at_once = among(settings, rows, wrong)
    of_rows = f" ({at_once // (1 + wrong)} rows at a time)" if wrong else ""
    first, second, *_ = (*[named(settings.data, name) for name in table.columns if name in TEXTS], "")
    left, right = PLURALS.get(first, f"{first}s"), second
    what = {
        "mnrl": f"For each of {rows:,} {left} the model learns to pick its {right} out of {at_once} texts{of_rows}",
        "triplet": f"Each of {rows:,} {left} learns to be nearer to its {right} than to a wrong text",
        "contrastive": f"In {rows:,} rows, partners are pulled together and other texts pushed apart",
        "online-contrastive": f"In {rows:,} rows, partners are pulled together and other texts pushed apart",
        "cosine": f"The cosine of {counted(rows, 'pair')} learns to equal the score that people gave",
        "softmax": f"A classifier learns to name the label of {counted(rows, 'pair')} from their vectors",
        "simcse": f"For each of {counted(rows, 'sentence')} the model learns to pick its second encoding out of {at_once}",
        "tsdae": f"Each of {counted(rows, 'sentence')} is written again from the vector of a few of its words",
        "relevance": f"A cross-encoder learns whether the two texts belong together from {counted(rows, 'row')}",
        "regression": f"A cross-encoder learns the score that people gave to {counted(rows, 'pair')}",
    }[objective]
    if cut:
        verb = "is" if cut == 1 else "are"
        end = f"{cut:,} of {texts:,} texts {verb} cut off at {settings.max_length} tokens."
    else:
        end = f"none of the {texts:,} texts is cut off."
    return f"**{what}.** {counted(held_out, 'row')} {'is' if held_out == 1 else 'are'} held out; {end}"


def draw(table: pd.DataFrame, objective: str, source: str, found: str = "") -> None:
    """Draw the rows: at the left the first text, at the right its partner, and a wrong answer where there is one.

    `found` says how wrong answers were found that the rows themselves have not.
    """
    names = [name for name in table.columns if name in TEXTS]
    told = next((name for name in ("label", "score") if name in table.columns), None)
    first, *others = names
    shown = table.head(SHOWN_WITH_WRONG if len(others) == 2 else SHOWN)
    drawn = ties(shown, objective)
    # A phone has no room for the ties with the texts of other rows where each row has three.
    afar = tuple(tie for tie in drawn if len(others) == 2 and tie.right // 2 != tie.left)
    own = tuple(tie for tie in drawn if tie not in afar)
    right = " and ".join(named(source, name) for name in others) + (f" (wrong ones: {found})" if found else "")
    heads = f"<b>{html.escape(named(source, first))}</b><i></i><b>{html.escape(right)}</b>"
    cards = []
    for row, values in enumerate(shown.to_dict("records"), start=1):
        cards.append(_card(values[first], f"grid-row: {row}; grid-column: 1", "from"))
        for place, name in enumerate(others):
            wrong = " wrong" if name == "wrong answer" else ""
            cards.append(
                _card(
                    values[name], f"grid-row: {row}; grid-column: 3", f"to{wrong} at{place if len(others) > 1 else ''}"
                )
            )
        if told is not None and others:
            cards.append(
                f'<span class="told" style="grid-row: {row}; grid-column: 2">{html.escape(str(values[told]))}</span>'
            )
    wrong_name = named(source, "wrong answer") if len(others) == 2 else ""
    figures.markup(
        f'<div class="bi-rows">{_legend(drawn, objective, wrong_name)}<div class="heads">{heads}</div>'
        f'<div class="cards{" double" if len(others) == 2 else ""}{"" if others else " single"}">'
        f"{_lines(own, len(shown), max(1, len(others)))}{_lines(afar, len(shown), max(1, len(others)), ' afar')}"
        f"{''.join(cards)}</div></div>",
        "training_cards",
    )


def _card(text: object, style: str, kind: str) -> str:
    shown = html.escape(str(text))
    return f'<p class="{kind}" style="{style}" title="{shown}"><span>{shown}</span></p>'


def _legend(drawn: tuple[Tie, ...], objective: str, wrong: str = "") -> str:
    """What the lines are; `wrong`: what the row's own wrong answer is called, which each row is drawn with."""
    kinds = {tie.kind for tie in drawn}
    parts = []
    if PULLED in kinds:
        parts.append('<span class="pulled">pulled together</span>')
    if PUSHED in kinds:
        of_first = " (all are drawn for the first row only)" if objective in IN_BATCH else ""
        if of_first and wrong:
            on_phone = f" (from its own {wrong} and all texts of other rows)"
            hidden = 'class="narrow" style="display: none"'  # by itself: a saved report has no style sheet of ours
            of_first = f'<em class="wide">{of_first}</em><em {hidden}>{on_phone}</em>'
        parts.append(f'<span class="pushed">pushed apart{of_first}</span>')
    return f'<p class="key"><b>The first rows</b>{"".join(parts)}</p>'


def _lines(drawn: tuple[Tie, ...], rows: int, cards: int, kind: str = "") -> str:
    """The ties as one drawing over all rows, 100 units high each; it is stretched to the rows' height.

    A background, since what the browser shows of a page's own HTML may hold no drawing.
    """
    if not drawn:
        return ""
    paths = []
    for tie in sorted(drawn, key=lambda tie: tie.kind == PULLED):  # what is pulled together lies on top
        start, end = 100 * tie.left + _HALF, (100 * tie.right + _HALF) / cards
        paths.append(f'<path d="M0 {start} C50 {start} 50 {end:g} 100 {end:g}" {_STROKES[tie.kind]}/>')
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 {100 * rows}" preserveAspectRatio="none">'
        f'<g fill="none">{"".join(paths)}</g></svg>'
    )
    return (
        f'<div class="ties{kind}" style="grid-row: 1 / span {rows}; grid-column: 2; '
        f"background-image: url('data:image/svg+xml,{quote(drawing)}')\"></div>"
    )
