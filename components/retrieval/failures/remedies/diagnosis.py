"""A diagnosis: what failed queries share, what each remedy repairs and harms, and the advice; as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64
from components.jobs import IsStopped, ReportProgress
from components.numbers import counted, signed
from components.retrieval.evaluation.metrics import Interval
from components.retrieval.evaluation.ranks import inverse
from components.retrieval.failures.remedies import kinds
from components.retrieval.failures.remedies.advice import Advice, advice, repaired_by_trait
from components.retrieval.failures.remedies.costs import COSTS, SearchCost
from components.retrieval.failures.remedies.folds import LEAVE, Options, RemedyRanking, measured
from components.retrieval.failures.remedies.kinds import Remedy, RemedyInput
from components.retrieval.failures.remedies.present import Failure
from components.retrieval.failures.traits import TRAITS, TraitShare, remark, twin

MOST_LISTED = 1_000  # failed queries in a report


@dataclass(frozen=True, eq=False)
class RemedyRow:
    """A remedy in the table."""

    name: str
    title: str
    needs: str
    options: Options = field(repr=False)
    result: RemedyRanking = field(repr=False)
    control: tuple[int, int]  # the medians of what its controls repaired and harmed
    draws: int  # of controls
    seconds: float
    cost: (
        SearchCost | None
    )  # of a search by the option that was chosen, else the first; None where there is nothing to try

    @property
    def chosen(self) -> str:
        """The option that each half chose, once where both chose the same."""
        return " / ".join(dict.fromkeys(name or "leave it" for name in self.result.chosen))

    @property
    def needs_with_size(self) -> str:
        """What it needs, with the size of what is kept once."""
        return self.needs + ("" if self.cost is None else self.cost.once)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The result for one set of queries."""

    now: Int64 = field(repr=False)  # [query]: the rank of the first right text
    shares: tuple[TraitShare, ...]
    rows: tuple[RemedyRow, ...]
    advice: Advice
    followed: RemedyRanking | None = field(repr=False, default=None)  # each half's advice, measured on the other half
    cost: SearchCost | None = None  # of a search as it is now
    failures: tuple[Failure, ...] = field(repr=False, default=())  # the failed queries, the worst first
    values: tuple[
        TraitShare, ...
    ] = ()  # of the file's own columns, named as components.retrieval.failures.own_columns does

    @property
    def failed(self) -> int:
        return int((self.now > 1).sum())

    @property
    def remark(self) -> str:
        """What has to be said above the shares; "" where there is nothing."""
        return remark(self.now > 1)

    def as_json(self) -> dict[str, Any]:
        """Shares from 0 to 1; Recall@1 and the interval of its change in per cent, as `evaluate` has them."""
        return {
            "n": len(self.now),
            "failed": self.failed,
            "now": {
                "recall@1": _per_cent(float((self.now == 1).mean())),
                "mrr": _per_cent(float(inverse(self.now).mean())),
                **_costs(self.cost),
            },
            "traits": [_trait(share) for share in self.shares],
            "columns": [{**_trait(share), "failed": share.failed, "found": share.found} for share in self.values],
            "remedies": [
                {
                    "name": row.name,
                    "chosen": [name or None for name in row.result.chosen],
                    "repaired": row.result.repaired,
                    "harmed": row.result.harmed,
                    "repaired_by_trait": repaired_by_trait(row.result, self.shares),
                    "recall@1": _per_cent(row.result.recall),
                    "low": _per_cent(row.result.change.low),
                    "high": _per_cent(row.result.change.high),
                    "seconds": round(row.seconds, 3),
                    **_costs(row.cost),
                    "needs": row.needs,
                    "control": {"repaired": row.control[0], "harmed": row.control[1]},
                }
                for row in self.rows
            ],
            "advice": self.advice.sentence,
            "failures": [asdict(failure) for failure in self.failures],
        }


def _trait(share: TraitShare) -> dict[str, Any]:
    interval = share.difference
    return {
        "name": share.name,
        "share_of_failed": round(share.share_of_failed, 4),
        "share_of_found": round(share.share_of_found, 4),
        "low": None if interval is None else round(interval.low, 4),
        "high": None if interval is None else round(interval.high, 4),
        "named": share.is_named,
    }


def _costs(cost: SearchCost | None) -> dict[str, float | int | None]:
    names = ("milliseconds", "bytes_per_text", "bytes_once")
    if cost is None:
        return dict.fromkeys(names)
    return dict(
        zip(names, (round(cost.milliseconds, 2), round(cost.bytes_per_text), round(cost.bytes_once)), strict=True)
    )


def _per_cent(share: float) -> float:
    return round(100 * share, 2)


def row_of(remedy: Remedy, now: Int64, first: NDArray[np.bool_], seed: int = 0) -> RemedyRow:
    """A remedy measured on both halves, with its controls."""
    result = measured(now, remedy.options, first, seed, remedy.title)
    shams = [control(remedy, now, first, seed + 1 + draw) for draw in range(remedy.draws if remedy.options else 0)]
    medians = tuple(
        int(np.median([getattr(sham, name) for sham in shams])) if shams else 0 for name in ("repaired", "harmed")
    )
    option = next((name for name in result.chosen if name != LEAVE), next(iter(remedy.options), None))
    return RemedyRow(
        remedy.name,
        remedy.title,
        remedy.needs,
        remedy.options,
        result,
        (medians[0], medians[1]),
        len(shams),
        remedy.seconds,
        None if option is None else remedy.cost(option),
    )


def control(remedy: Remedy, now: Int64, first: NDArray[np.bool_], seed: int) -> RemedyRanking:
    """One control of a remedy, through the same choice."""
    return measured(now, remedy.control(seed), first, seed, remedy.title)


def rows_of(
    names: Sequence[str],
    setting: RemedyInput,
    seed: int = 0,
    progress: Callable[[str], ReportProgress] = lambda name: lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Iterator[RemedyRow]:
    """The rows of some remedies, from the cheapest to the dearest, as they are measured. Raises Stopped."""
    for name in kinds.in_order(names):
        remedy = kinds.measure(name, setting, progress(name), is_stopped)
        yield row_of(remedy, setting.present.now, setting.first, seed)


def diagnosed(
    now: Int64,
    shares: Sequence[TraitShare],
    rows: Sequence[RemedyRow],
    queries: Sequence[str],
    first: NDArray[np.bool_],
    seed: int = 0,
    cost: SearchCost | None = None,
    failures: Sequence[Failure] = (),
    values: Sequence[TraitShare] = (),
) -> Diagnosis:
    """The diagnosis with its advice, from the measured rows in the order of their costs; `cost` is that of a search now.

    A remedy's time is then that of this search and its own part.
    """
    if cost is not None:
        rows = [
            row
            if row.cost is None
            else replace(row, cost=replace(row.cost, milliseconds=max(0.0, cost.milliseconds + row.cost.more)))
            for row in rows
        ]
    results = {row.name: row.result for row in rows}
    advised = advice(
        now,
        {row.name: row.options for row in rows},
        results,
        {row.name: row.title for row in rows},
        shares,
        queries,
        first,
        seed,
    )
    ranks = np.array(now)
    for name, others in zip(advised.halves, (~first, first), strict=True):
        if name is not None:
            ranks[others] = results[name].ranks[others]
    halves = advised.halves[0] or LEAVE, advised.halves[1] or LEAVE
    followed = RemedyRanking("the advice", ranks=ranks, now=now, chosen=halves, seed=seed) if rows else None
    return Diagnosis(now, tuple(shares), tuple(rows), advised, followed, cost, tuple(failures), tuple(values))


def as_markdown(diagnosis: Diagnosis, name: str, model: str, seed: int) -> str:
    """The diagnosis as a report in Markdown."""
    now, failed = diagnosis.now, diagnosis.failed
    found = len(now) - failed
    lines = [
        f"# Diagnosis of {_cell(name)}",
        "",
        f"**{diagnosis.advice.sentence}**",
        "",
        f"{failed:,} of {counted(len(now), 'query', 'queries')} {'fails' if failed == 1 else 'fail'} with {_cell(model)}: a "
        f"query fails if none of its right texts is first. Recall@1 is {100 * found / max(1, len(now)):.1f} %, MRR "
        f"{100 * float(inverse(now).mean()):.1f} %.",
        "",
        "## What failed queries share",
        "",
        *([diagnosis.remark, ""] if diagnosis.remark not in ("", diagnosis.advice.sentence) else []),
        "| trait | failed | found | difference, 95 % | p (Holm) |",
        "|---|---:|---:|---:|---:|",
        *(
            _trait_line(share, twin(share, diagnosis.shares))
            for share in diagnosis.shares
            if share.failed or share.found
        ),
        "",
        "Bold: more often among failed queries by more than chance. A trait is no cause. The rules:",
        "",
        *(f"- {share.name}: {TRAITS[share.name]}" for share in diagnosis.shares if share.failed or share.found),
    ]
    if diagnosis.values:
        lines += [
            "",
            "## Which values of the file’s columns failed queries have more often",
            "",
            "| column = value | failed | found | difference, 95 % | p (Holm) |",
            "|---|---:|---:|---:|---:|",
            *(_trait_line(share) for share in diagnosis.values if share.failed or share.found),
        ]
    if diagnosis.rows:
        lines += [
            "",
            "## Which remedy helps",
            "",
            "| remedy | chosen by each half | repaired | harmed | Recall@1, % | change, 95 % | MRR, % | change, 95 % | "
            "ms per query (median) | bytes per text | a sham of this kind | needs |",
            "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---|",
            f"| as it is now | | | | {100 * found / max(1, len(now)):.1f} | | {100 * float(inverse(now).mean()):.1f} | | "
            f"{_cost_cells(diagnosis.cost)} | | |",
            *(_remedy_line(row) for row in diagnosis.rows),
            "",
            "Each remedy was chosen on one half of the queries and measured on the other, and the other way round (seed "
            f"{seed}). To leave everything as it is was always one of the choices, and equal scores count against a remedy. A "
            f"sham takes its second signal from another query. {COSTS}",
        ]
        if diagnosis.followed is not None and diagnosis.followed.chosen != (LEAVE, LEAVE):
            followed = diagnosis.followed
            lines += [
                "",
                f"The advice of each half, followed on the other, repaired {followed.repaired} and harmed {followed.harmed}.",
            ]
    if diagnosis.failures:
        shown = diagnosis.failures[:MOST_LISTED]
        lines += ["", "## The failed queries", ""]
        if len(shown) < failed:
            lines += [f"The first {len(shown):,} of {failed:,}; --json has all.", ""]
        lines += ["| rank | query | right text | text that ranks first |", "|---:|---|---|---|"]
        lines += [
            f"| {each.rank:,} | {_cell(each.query)} | {_cell(each.right_text)} | {_cell(each.rival)} |"
            for each in shown
        ]
    return "\n".join(lines) + "\n"


def _trait_line(share: TraitShare, note: str = "") -> str:
    mark = "**" if share.is_named else ""
    interval = "" if share.difference is None else _points(share.difference)
    p_value = "" if share.adjusted_p is None else f"{share.adjusted_p:.3g}"
    failed, found = _share(share.failed, share.failures), _share(share.found, share.successes)
    return f"| {mark}{_cell(share.name)}{mark}{note and f' ({note})'} | {failed} | {found} | {interval} | {p_value} |"


def _remedy_line(row: RemedyRow) -> str:
    result = row.result
    mrr = result.mrr_change
    return (
        f"| {row.title} | {_cell(row.chosen)} | {result.repaired} | {result.harmed} | {100 * result.recall:.1f} | "
        f"{_points(result.change)} | {100 * result.mrr:.1f} | {_points(mrr)} | {_cost_cells(row.cost)} | "
        f"repaired {row.control[0]}, harmed {row.control[1]} | {row.needs_with_size} |"
    )


def _cost_cells(cost: SearchCost | None) -> str:
    return "|" if cost is None else f"{cost.milliseconds:.1f} | {cost.bytes_per_text:,.0f}"


def _share(count: int, of: int) -> str:
    return f"{count} of {of}" if not of else f"{count} of {of} ({100 * count / of:.0f} %)"


def _points(interval: Interval) -> str:
    return f"{signed(100 * interval.low, 1)} to {signed(100 * interval.high, 1)}"


def _cell(text: str) -> str:
    """A text for a cell of a table or a line: no sign in it makes Markdown, HTML or another cell of it."""
    escaped = "".join(f"\\{sign}" if sign in "\\`*_{}[]<>()#+!|~" else sign for sign in " ".join(text.split()))
    return escaped
