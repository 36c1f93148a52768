"""Which layer and pooling may be the best: the finding above the lines, and the rows beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from components.charts import theme
from components.numbers import number
from dashboard.ui.wording import POOLING_NAMES

if TYPE_CHECKING:
    from components.model.trace import Pooling
    from components.retrieval.evaluation.chance.best import BestOf

MOST_ROWS = 8
_SHAPES = ("50%", "1px", "1px; rotate: 45deg", "4px")  # corners of the marks, as the lines' points


@dataclass(frozen=True, eq=False)
class ComparedCells:
    """Every layer with every pooling, measured and compared with the best."""

    cells: Sequence[tuple[int, Pooling]]  # layer and pooling
    low: np.ndarray  # of the 95 % intervals in per cent, [candidate]
    high: np.ndarray
    found: BestOf
    published: tuple[int, Pooling] | None = None  # the model's own layer and pooling

    def name(self, place: int) -> str:
        layer, pooling = self.cells[place]
        return f"Layer {layer}, {POOLING_NAMES[pooling]}"

    @property
    def order(self) -> np.ndarray:
        """The candidates from the best to the worst; equal ones as they come."""
        return np.argsort(-self.found.means, kind="stable")


def finding(of: ComparedCells, measure: str, levels: Sequence[tuple[str, float]] = ()) -> str:
    """Which candidate is first, and whether that may be luck. `levels` are names and per cent of methods without vectors."""
    found, best = of.found, int(of.order[0])
    value = 100 * float(found.means[best])
    name = f"**{of.name(best)}**"
    if value == 0:
        return f"No layer and pooling finds anything: {measure} is 0 % everywhere."
    if len(of.cells) == 1:
        text = f"**{of.name(best)}** has {measure} **{number(value, 1)} %**."
        return text + _beaten(value, levels)
    first_together = int(np.count_nonzero(found.means >= found.means[best] - 1e-12)) - 1
    others = int(np.count_nonzero(found.may_be_best)) - 1
    if of.cells[best] == of.published:
        name += " (as published)"
    text = f"{name} has the best {measure}, **{number(value, 1)} %**"
    if first_together:
        text = f"{name} and {_more(first_together)} share the best {measure}, **{number(value, 1)} %**"
    text += f": it would still win in {round(100 * float(found.first[best]))} of 100 random samples of the queries. "
    text += f"With all {len(of.cells)} compared at once, "
    if others == first_together:
        text += "no other may be as good." if not others else "no further one may be as good."
    else:
        text += f"{'only ' * (others == 1)}{others} other{'' if others == 1 else 's'} may be as good."
    return text + _beaten(value, levels)


def _more(count: int) -> str:
    return "another one" if count == 1 else f"{count} others"


def _beaten(value: float, levels: Sequence[tuple[str, float]]) -> str:
    """The method without vectors that does better than every candidate, if there is one."""
    above = [(of_level, name) for name, of_level in levels if of_level > value]
    if not above:
        return ""
    of_level, name = max(above)
    return f" **{name}** finds more by words alone: {number(of_level, 1)} %."


def rows(of: ComparedCells, measure: str, queries: int, colours: Sequence[str]) -> str:
    """HTML: the best candidates on an axis of their own with intervals, and what choosing the best costs.

    `colours` are of the candidates' poolings in the order of the lines, by number of the pooling.
    """
    found = of.found
    shown = [int(place) for place in of.order[:MOST_ROWS]]
    low = float(min(of.low[place] for place in shown))
    high = float(max(of.high[place] for place in shown))
    low, high = max(0.0, 5 * np.floor(low / 5)), min(100.0, 5 * np.ceil(high / 5))
    poolings = list(dict.fromkeys(pooling for _, pooling in of.cells))
    lines = []
    for place in shown:
        layer, pooling = of.cells[place]
        column = poolings.index(pooling)
        colour = colours[column % len(colours)]
        begin, end = _at(of.low[place], low, high), _at(of.high[place], low, high)
        value = 100 * float(found.means[place])
        is_open = bool(found.may_be_best[place])
        said = f"{round(100 * float(found.first[place]))}" if is_open else "clearly worse"
        lines.append(
            f'<tr class="{"may" if is_open else "behind"}"><th scope="row"><i style="background:{colour};border-radius:'
            f'{_SHAPES[column % len(_SHAPES)]}"></i>layer {layer}, {escape(POOLING_NAMES[pooling])}</th>'
            f'<td class="axis"><div><u style="left:{begin}%;width:{round(end - begin, 2)}%;background:{colour}"></u>'
            f'<b style="left:{_at(value, low, high)}%;background:{colour}"></b></div></td>'
            f"<td>{number(value, 1)}</td><td>{said}</td></tr>"
        )
    behind = int(np.count_nonzero(~found.may_be_best))
    all_of = len(of.cells)
    note = (
        f"Pale bars: 95 % intervals. {behind} of {all_of} are clearly worse: by more than chance"
        if behind
        else f"Pale bars: 95 % intervals. Any of the {all_of} may be the best"
    )
    return (
        '<div class="bi-candidates"><h3>Which may be the best?</h3><table><thead><tr><th scope="col">vector</th>'
        f'<th scope="col"><div class="ends"><span>{number(low, 0)}</span><span>{escape(measure)}</span>'
        f'<span>{number(high, 0)} %</span></div></th><th></th><th scope="col">wins, in<br>100 samples</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table><p>{note}</p>{_cost(found, queries)}</div>"
    )


def _cost(found: BestOf, queries: int) -> str:
    """What choosing the best costs: the two halves of the queries."""
    if queries < 2:
        return ""
    ends = [round(100 * value, 1) for value in (found.chosen_half, found.other_half)]
    gain = ends[0] - ends[1]  # of the two numbers that are shown, so that it is what a reader finds too
    points = number(abs(gain), 1)
    title = (
        "On other queries the best does as well"
        if points == "0.0"
        else f"On other queries the best loses {points} points"
        if gain > 0
        else f"On other queries the best gains {points} points"
    )
    lines = "".join(
        f'<tr><th scope="row">{name}</th><td>{number(value, 1)} %</td></tr>'
        for name, value in zip(("the half it won on", "the other half"), ends, strict=True)
    )
    return (
        f'<h3 class="cost">{title}</h3><table>{lines}</table>'
        f"<p>mean of 1,000 random halves of {queries:,} queries: chosen on one, measured on both</p>"
    )


def _at(value: float, low: float, high: float) -> float:
    """Where a value stands on an axis, in per cent of its length."""
    return round(100 * (float(value) - low) / (high - low), 2) if high > low else 50.0


def colours(poolings: int) -> list[str]:
    """The lines' colours."""
    return [str(theme.line_style(column)["color"]) for column in range(poolings)]
