"""What failed queries share, as a figure: the shares of each trait among failed and found queries, with texts and code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from components.charts.retrieval import diagnosis as charts
from components.numbers import counted
from components.retrieval.corpora.corpus import PAIR_COLUMN
from components.retrieval.failures import traits
from components.shown_code.code import Command
from components.shown_code.commands import measured
from dashboard.corpora import current

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.failures.traits import TraitShare

TITLE = "What failed queries share"


@dataclass(frozen=True)
class Told:
    """The figure, and the arguments of `figures.figure` and `figures.above` that say what it shows."""

    chart: go.Figure
    texts: dict[str, Any]


def held(shares: Sequence[TraitShare]) -> list[TraitShare]:
    """The traits that some query has."""
    return [share for share in shares if share.failed or share.found]


def label(trait: str) -> str:
    """What a trait is called in a list: which words it compares, where another view compares others (evaluated-data)."""
    other = {"no shared word": "No word in any form", "hub as rival": "Rival found often"}
    return other.get(trait, f"{trait[:1].upper()}{trait[1:]}")


def column() -> str:
    """The column with the queries."""
    return current.query_column(current.in_use()) or PAIR_COLUMN


def command(backend: Backend, cell: tuple[int, Pooling], max_length: int | None) -> tuple[str, ...]:
    """The command that prints the shares at a layer and pooling."""
    file = current.file_of_pairs(current.in_use())
    return measured("diagnose", file, backend, [cell[0]], [cell[1]], max_length, "--remedies", "none")


def told(
    backend: Backend,
    shares: Sequence[TraitShare],
    cell: tuple[int, Pooling],
    max_length: int | None,
    of_all: bool = True,
) -> Told:
    """The shares at a layer and pooling; `of_all`: of all queries, for which alone a command prints them."""
    shown = held(shares)
    chart = charts.trait_shares(
        [
            charts.TraitBar(
                label(share.name),
                100 * share.share_of_failed,
                100 * share.share_of_found,
                None if share.difference is None else (100 * share.difference.low, 100 * share.difference.high),
                share.is_named,
            )
            for share in shown
        ],
        TITLE,
    )

    def table() -> pd.DataFrame:
        return pd.DataFrame(
            [
                {
                    "trait": share.name,
                    "failed": share.failed,
                    "of failed": share.failures,
                    "found": share.found,
                    "of found": share.successes,
                    "named": share.is_named,
                }
                for share in shown
            ]
        )

    return Told(
        chart,
        {
            "alt": f"The shares of {len(shown)} traits among failed and among found queries",
            "message": traits.in_words(shares) if of_all else _of_a_part(shares),
            "read": "A filled dot is the share of failed queries that have the trait, an open one that of found queries. Where "
            f"{traits.LEAST} fail and {traits.LEAST} are found, a line joins the two, and the bar is the 95 % interval of "
            "their difference (Newcombe), laid from the open dot. Bold: more often among failed queries by more than chance "
            "(Fisher’s exact test, Holm’s correction over the traits that some queries have and others lack).",
            "not_shown": "That a trait makes a query fail. The rules: "
            + " ".join(f"{share.name}: {traits.TRAITS[share.name]}" for share in shown),
            "table": table,
            "code": Command(traits.compared, *([command(backend, cell, max_length)] if of_all else [])),
        },
    )


def _of_a_part(shares: Sequence[TraitShare]) -> str:
    """What failed queries share among those of one value of a column: the file may have enough of others."""
    failures, successes = shares[0].failures, shares[0].successes
    if not failures or min(failures, successes) >= traits.LEAST:
        return traits.in_words(shares)
    queries, fail = counted(failures + successes, "query", "queries"), "fails" if failures == 1 else "fail"
    return f"{failures:,} of {queries} of this part {fail}. {traits.most_different(shares)}"
