"""Runs as rows on one axis, each with its difference to one of them; and for which queries two of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from components.arrays import Int64
from components.numbers import difference, number, signed
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.chance import paired
from components.retrieval.evaluation.metrics import Float64, Interval
from components.retrieval.evaluation.ranks import NOT_FOUND
from dashboard.ui import messages
from dashboard.ui.wording import counted, shortened

FEW, MOST_SQUARES, MOST_LISTED = 200, 1_500, 5  # few queries have larger squares
MOST_NAME = 14  # characters of a run's name above its ranks
BESIDE = ("Recall@5", "Recall@10", "MRR")  # measures that stand beside the chosen one


@dataclass(frozen=True)
class RunRow:
    """One run in the rows, in per cent."""

    name: str
    value: Interval
    beside: tuple[float, ...]  # the measures of BESIDE
    difference: Interval | None  # to the run that all are compared with; None for itself and on other data
    is_clear: bool = False  # whether the difference is more than chance, among all runs (Holm)
    is_reference: bool = False
    comparisons: int = 1  # for which the verdict is corrected
    among: int = 0  # of so many runs the one that all are compared with was taken as the best; 0: a person chose it

    @property
    def unsure(self) -> str:
        """Why the difference is not clear: where its own interval is on one side of 0, the correction decides."""
        own = self.difference
        if own is None or own.low <= 0 <= own.high or self.comparisons == 1:
            return "unsure"
        if self.among:
            return f"unsure after correcting for all {self.comparisons} pairs of the {self.among} runs"
        return f"unsure after correcting for {self.comparisons} comparisons"


def measured(
    values: Sequence[Float64], reference: int, are_paired: Sequence[bool]
) -> list[tuple[Interval, Interval | None]]:
    """Each run's mean with its interval, and its difference to the reference with a paired interval, both 0..1.

    `values` [run][query]. Differences of shares have Tango's interval, of other measures that of a bootstrap.
    """
    found: list[tuple[Interval, Interval | None]] = []
    own = values[reference]
    for run, of_run in enumerate(values):
        difference = None
        if run != reference and are_paired[run]:
            is_share = bool(np.isin(of_run, (0.0, 1.0)).all() and np.isin(own, (0.0, 1.0)).all())
            difference = (
                paired.difference(int((of_run > own).sum()), int((of_run < own).sum()), len(own))
                if is_share
                else metrics.difference_interval(of_run - own)
            )
        found.append((metrics.interval(of_run), difference))
    return found


@dataclass(frozen=True, eq=False)
class ForWhom:
    """Which queries two runs answer: numbers of queries, the hardest for the one that misses them first."""

    both: Int64
    only_run: Int64
    only_reference: Int64
    neither: Int64

    @property
    def missed(self) -> int:
        """How many queries the reference misses."""
        return len(self.only_run) + len(self.neither)


def for_whom(of_run: Int64, of_reference: Int64, k: int) -> ForWhom:
    """Which queries have a correct answer among the first `k` hits of two runs, by their ranks [query]."""
    run, reference = of_run <= k, of_reference <= k

    def ordered(mask: np.ndarray, by: Int64) -> Int64:
        rows = np.flatnonzero(mask)
        return rows[np.argsort(-by[rows], kind="stable")]

    return ForWhom(
        np.flatnonzero(run & reference),
        ordered(run & ~reference, of_reference),
        ordered(~run & reference, of_run),
        ordered(~run & ~reference, np.minimum(of_run, of_reference)),
    )


def most_telling(
    ranks: Sequence[Int64],
    reference: int,
    comparable: Sequence[int],
    better: Sequence[int],
    k: int,
    by_words: Sequence[bool | None],
) -> int | None:
    """The run that is opened first beside the reference; None where there is no other.

    The first of those that are surely better, else the one with most queries on both sides: among searches by words where the
    reference is by vectors, and the other way round, if there are any. `by_words` [run]: None for one that is neither alone.
    """
    others = [run for run in comparable if run != reference]
    if not others:
        return None
    if better:
        return better[0]
    if by_words[reference] is not None:
        others = [run for run in others if by_words[run] is not None and by_words[run] != by_words[reference]] or others

    def sides(run: int) -> tuple[int, int]:
        found = for_whom(ranks[run], ranks[reference], k)
        one, other = len(found.only_run), len(found.only_reference)
        return min(one, other), one + other

    return max(others, key=sides)


def leading(rows: Sequence[RunRow], measure: str) -> str:
    """Which run is the best, than how many of the others it is surely better, where all are compared with it, and which are
    as good."""
    best = best_of(rows)
    value = number(best.value.value, 1)
    said = f"**{messages.escape(best.name)}** has the best {measure}, {value} %"
    equal = [row for row in _comparable(rows) if row is not best and number(row.value.value, 1) == value]
    as_much = (
        f"; {f'**{messages.escape(equal[0].name)}** has' if len(equal) == 1 else f'{len(equal)} others have'} as much"
    )
    as_much *= bool(equal)
    others = [row for row in rows if row.difference is not None]
    if not best.is_reference or len(others) == len(equal):
        return f"{said}{as_much}."
    clear, count = sum(row.is_clear for row in others), len(others)
    if not clear:
        return f"{said}, but no other is clearly worse{as_much}."
    if count == 1:
        return f"{said}, clearly more than the other."
    return (
        f"{said}, clearly more than {f'all {count}' if clear == count else f'{clear} of the {count}'} others{as_much}."
    )


def best_of(rows: Sequence[RunRow]) -> RunRow:
    """The run with the largest value as it is shown, of those that can be compared; of equal ones the one compared with."""
    return max(_comparable(rows), key=lambda row: (round(row.value.value, 1), row.is_reference))


def _comparable(rows: Sequence[RunRow]) -> list[RunRow]:
    return [row for row in rows if row.is_reference or row.difference is not None]


def finding(run: RunRow, reference: RunRow, measure: str, found: ForWhom, k: int, is_best_told: bool = False) -> str:
    """Whether a run is better than the reference, and for how many queries; `is_best_told`: that this one is the best was."""
    one, other = (f"**{messages.escape(row.name)}**" for row in (run, reference))
    gained, lost = len(found.only_run), len(found.only_reference)
    where = "" if k == 1 else f" among the first {k}"
    if not gained and not lost:
        return f"{one} and {other} answer the same queries{where}: {counted(len(found.both), 'query', 'queries')}."
    answers = f"it finds {gained:,} of the {found.missed:,} queries that {other} misses{where}, and loses {lost:,}."
    value = 0.0 if run.difference is None else run.difference.value
    if run.is_clear and value < 0 and is_best_told:
        return f"{one} {answers.removeprefix('it ')}"
    if run.is_clear and value:
        return f"{one} is {'better' if value > 0 else 'worse'} than {other} beyond chance, by {measure}: {answers}"
    if run.unsure != "unsure":
        points = difference(run.value.value, reference.value.value)
        apart = f"{number(abs(points), 1)} points {'higher' if value > 0 else 'lower'}"
        return f"{one} is {apart} than {other} by {measure}; {run.unsure}: {answers}"
    return f"{one} may be as good as {other}, by {measure}: {answers}"


def drawn(rows: Sequence[RunRow], measure: str, reference: str) -> str:
    """HTML: the rows, the best first."""
    order = sorted(rows, key=lambda row: -row.value.value)
    base = next((row.value.value for row in rows if row.is_reference), None)
    ends = [end for row in rows for end in (row.value.low, row.value.high)]
    low, high = max(0.0, 10 * np.floor(min(ends) / 10)), min(100.0, 10 * np.ceil(max(ends) / 10))
    apart = [end for row in rows if row.difference for end in (row.difference.low, row.difference.high)]
    below, above = min([*apart, -1.0]), max([*apart, 1.0])
    zero = _at(0, below, above)
    lines = []
    for row in order:
        mark = "<small>(reference)</small>" if row.is_reference else ""
        axis = _axis(row.value, low, high, "open" if row.is_reference else "full")
        if row.difference is None:
            apart_axis, said = "", "" if row.is_reference else "other data"
        else:
            kind = "unsure" if not row.is_clear else "better" if row.difference.value > 0 else "worse"
            apart_axis = f'<s style="left:{zero}%"></s>{_axis(row.difference, below, above, kind)}'
            value = signed(row.difference.value if base is None else difference(row.value.value, base), 1)
            said = f"<strong>{value}</strong>" if row.is_clear else f"{value} <small>{row.unsure}</small>"
        beside = "".join(f'<td class="beside">{number(value, 1)}</td>' for value in row.beside)
        lines.append(
            f'<tr><th scope="row">{escape(row.name)} {mark}</th><td class="axis"><div>{axis}</div></td>'
            f'<td class="value">{number(row.value.value, 1)} %</td>{beside}'
            f'<td class="axis"><div>{apart_axis}</div></td><td class="value">{said}</td></tr>'
        )
    heads = "".join(f'<th scope="col" class="beside">{name}</th>' for name in BESIDE)
    return (
        f'<table class="bi-runs"><thead><tr><th scope="col">run</th><th scope="col"><div class="ends"><span>'
        f"{number(low, 0)}</span><span>{escape(measure)}</span><span>{number(high, 0)} %</span></div></th><th></th>{heads}"
        f'<th scope="col"><div class="ends"><span>{signed(below, 0)}</span><span>minus {escape(reference)}</span>'
        f'<span>{signed(above, 0)}</span></div></th><th scope="col">points</th></tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _axis(value: Interval, low: float, high: float, kind: str) -> str:
    begin, end = _at(value.low, low, high), _at(value.high, low, high)
    return (
        f'<u class="{kind}" style="left:{begin}%;width:{round(end - begin, 2)}%"></u>'
        f'<b class="{kind}" style="left:{_at(value.value, low, high)}%"></b>'
    )


def _at(value: float, low: float, high: float) -> float:
    """Where a value stands on an axis, in per cent of its length."""
    return round(100 * (value - low) / (high - low), 2) if high > low else 50.0


def squares(
    found: ForWhom, run: str, reference: str, queries: Sequence[str], of_run: Int64, of_reference: Int64, k: int
) -> str:
    """HTML: one square for each query, and three lists of queries with their two ranks."""
    counts = {
        "both": len(found.both),
        "run": len(found.only_run),
        "reference": len(found.only_reference),
        "neither": len(found.neither),
    }
    total = sum(counts.values())
    each = -(-total // MOST_SQUARES)  # queries of a square
    drawn_squares = "".join(f'<i class="{kind}"></i>' * -(-count // each) for kind, count in counts.items())
    first = "have it first" if k == 1 else f"have it among the first {k}"
    many = "" if each == 1 else f" · a square is up to {each:,} queries"
    said = ", ".join(
        f"{name}: {count}"
        for name, count in zip(("both", f"only {run}", f"only {reference}", "neither"), counts.values(), strict=True)
    )
    lists = "".join(
        _list(
            kind,
            title,
            rows,
            queries,
            of_run,
            of_reference,
            _short_names(run, reference),
        )
        for kind, title, rows in (
            ("run", f"Only {run}", found.only_run),
            ("reference", f"Only {reference}", found.only_reference),
            ("neither", "Neither", found.neither),
        )
    )
    return (
        f'<div class="bi-whom"><header><h3>Query by query: {escape(run)} and {escape(reference)}</h3>'
        f'<span><i class="both"></i> both {first}: {counts["both"]:,} of {total:,}{many}</span></header>'
        f'<div class="squares{" few" if total <= FEW else ""}" role="img" aria-label="{escape(said)}">{drawn_squares}</div>'
        f'<div class="lists">{lists}</div></div>'
    )


def _short_names(*names: str) -> str:
    """Two runs' names above their ranks: what stands before a comma, where that tells them apart."""
    begins = [name.partition(",")[0] for name in names]
    return " · ".join(shortened(name, MOST_NAME) for name in (begins if begins[0] != begins[1] else names))


def _list(
    kind: str, title: str, rows: Int64, queries: Sequence[str], of_run: Int64, of_reference: Int64, names: str
) -> str:
    lines = "".join(
        f"<li><span>{escape(queries[row])}</span><span>{_rank(of_run[row])} · {_rank(of_reference[row])}</span></li>"
        for row in rows[:MOST_LISTED]
    )
    more = f"<p>and {len(rows) - MOST_LISTED:,} more, in the table below</p>" if len(rows) > MOST_LISTED else ""
    lost = " (–: not found)" * bool(NOT_FOUND in [*of_run[rows[:MOST_LISTED]], *of_reference[rows[:MOST_LISTED]]])
    ranks = f"<small>rank: {escape(names)}{lost}</small>" if len(rows) else ""
    return (
        f'<section><h4><span><i class="{kind}"></i> {escape(title)}: {len(rows):,}</span>{ranks}</h4>'
        f"<ol>{lines}</ol>{more}</section>"
    )


def _rank(rank: np.int64) -> str:
    return "–" if rank == NOT_FOUND else f"{int(rank):,}"
