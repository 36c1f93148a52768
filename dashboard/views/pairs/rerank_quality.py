"""What MaxSim changes over all queries of a corpus and of two included collections, and what it costs: measured here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.charts.retrieval import reranking as charts
from components.charts.retrieval.reranking import LookPoint
from components.errors import UserError
from components.numbers import number
from components.retrieval.evaluation import metrics
from components.retrieval.evaluation.chance.paired import mcnemar
from components.retrieval.evaluation.pair_runs import Pairs
from components.retrieval.reranking.quality import second_look
from components.shown_code.code import NoCode
from dashboard import state
from dashboard.corpora import current
from dashboard.jobs import evaluation
from dashboard.jobs.stored import second_looks
from dashboard.ui import figures, messages
from dashboard.ui.waiting import frame
from dashboard.ui.wording import searched_texts

if TYPE_CHECKING:
    from components.model.trace import Pooling
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.reranking.quality import Reordered, SecondLook
    from dashboard.jobs.reranking import SecondStage

MOST_TEXTS = 1_000  # of a corpus that is measured without asking


@dataclass(frozen=True, eq=False)
class CollectionLook:
    """What a second look does on one collection."""

    name: str  # of its queries: "headlines"
    look: SecondLook
    is_stored: bool = False  # whether it was measured once, elsewhere

    @property
    def depth(self) -> int:
        """The most candidates that were looked at again."""
        return self.look.depths[-1]

    @property
    def change(self) -> float:
        """By how many points Recall@1 rises."""
        return self.look.first_place(self.depth) - self.look.first_place()


def measured(stage: SecondStage, layer: int, pooling: Pooling, corpus: Corpus) -> list[CollectionLook]:
    """What is known of the session's corpus, and with the demo of the included collections; progress is drawn for the rest."""
    is_demo = not state.get("corpus")
    measurements: list[CollectionLook] = []
    with_answers = _pairs_of(corpus)
    if with_answers is not None and with_answers.unsearched:
        st.caption(f"{messages.escape(with_answers.name)}: {searched_texts(with_answers)}.")
    sets = [("headlines" if is_demo else "queries", with_answers)] if with_answers is not None else []
    sets += (
        [(name, second_looks.collection(*columns)) for name, *columns in second_looks.COLLECTIONS] if is_demo else []
    )
    for name, pairs in sets:
        stored_look = second_looks.look(stage.backend, pairs, layer, pooling, stage.max_length)
        with frame.figure(f"second_look_{name}"):
            look = stored_look or _look(stage, layer, pooling, pairs, name)
            measurements.append(CollectionLook(name, look, stored_look is not None))
    return measurements


def _pairs_of(corpus: Corpus) -> Pairs | None:
    """The queries of a corpus with one right text each; None where it has none, or is large."""
    column = current.query_column(corpus)
    if column is None or len(corpus) > MOST_TEXTS:
        return None
    try:
        pairs = current.pairs(corpus, column)
    except UserError:
        return None
    return None if pairs.has_several else pairs


def _look(stage: SecondStage, layer: int, pooling: Pooling, pairs: Pairs, name: str) -> SecondLook:
    gold = second_looks.gold_of(pairs)
    return evaluation.result(
        ("second look", stage.key, layer, pooling, pairs.content_hash),
        f"MaxSim for {len(pairs):,} {name}",
        lambda report_progress, is_stopped: second_look(
            stage.backend,
            pairs.queries.texts,
            pairs.documents.texts,
            gold,
            layer,
            pooling,
            stage.max_length,
            progress=report_progress,
            is_stopped=is_stopped,
        ),
        f"second_look_{name}",
    )


def finding(sets: Sequence[CollectionLook]) -> str:
    """What MaxSim changes, for which data: one sentence; empty where nothing is measured yet."""
    if not sets:
        return ""
    first, *others = sets
    against = [other for other in others if _sign(other) != _sign(first)]
    other = max(against, key=lambda item: abs(item.change)) if against else others[0] if others else None
    named = [first] if other is None else [first, other]
    by_luck = [item for item in named if _sign(item) and is_luck(item.look, item.depth)]
    sure = {_sign(item) for item in named if item not in by_luck} - {0}
    if by_luck and not sure:  # the changes stand beside the figure, each with what it repairs and harms
        data = " or ".join(f"{len(item.look.ranks()):,} {item.name}" for item in named)
        return f"**MaxSim on the first {first.depth} makes no sure difference** for {data}."
    verdicts = {(): "changes nothing", (1,): "helps", (-1,): "harms", (-1, 1): "helps some and harms others"}
    said = f"**MaxSim on the first {first.depth} {verdicts[tuple(sorted(sure))]}**: correct answer first for {_change(first)}"
    if other is not None:
        said += f", {'but' if against else 'and'} {_change(other)}"
    if sure and by_luck:
        said += f": the change for the {by_luck[0].name} may be chance"
    return f"{said}."


def is_luck(look: Reordered, depth: int) -> bool:
    """Whether chance can explain what re-ranking so many candidates changes (McNemar's exact test)."""
    return mcnemar(look.repaired(depth), look.harmed(depth)) >= metrics.ALPHA


def _sign(item: CollectionLook) -> int:
    return (item.change > 1e-9) - (item.change < -1e-9)


def _change(item: CollectionLook) -> str:
    look = item.look
    before, after = (number(look.first_place(depth), 1) for depth in (0, item.depth))
    shares = f"{before} → {after} %" if _sign(item) else f"{after} %, as before,"
    return f"{shares} of {len(look.ranks()):,} {item.name}"


def picture(sets: Sequence[CollectionLook]) -> None:
    """Quality against time for the first collection, and what the look costs, in lines."""
    if not sets:
        return
    first = sets[0]
    look = first.look
    shown = sorted({look.enough(), first.depth})
    points = [
        LookPoint(
            "vectors" if depth == 0 else f"first {depth}",
            0.0 if depth == 0 else look.milliseconds[depth],
            look.first_place(depth),
            *look.interval(depth),
        )
        for depth in (0, *shown)
    ]
    figures.figure(
        charts.quality_and_time(points, "Quality and time"),
        key="second_look",
        code=NoCode("There is no code for it: the times are those of the machine on which they were measured."),
        alt="Share of queries whose correct answer comes first, by the time that MaxSim adds to a query",
        read="A point is a search: the share of all queries whose correct answer comes first, with its 95 % interval, and "
        "the time "
        "that comparing token vectors adds to a query. They are kept in memory, as an index of token vectors keeps them. What "
        "the included model does with the included collections was measured once, on two cores, and is stored.",
        not_shown="Other data: the lines below have other collections. Times of other machines.",
        table=lambda: _table(sets),
    )
    more = look.milliseconds[first.depth]
    machine = "once, on two cores" if first.is_stored else "on this server"
    rows = [
        (f"A query by vectors alone\nmeasured {machine}", f"{number(look.query_milliseconds, 1)} ms"),
        (
            f"MaxSim on the first {first.depth}\nwith token vectors kept, {look.token_bytes / 1000:.1f} kB a text instead of "
            f"{look.vector_bytes / 1000:.1f}",
            f"+ {number(more, 1)} ms",
        ),
    ]
    rows += [of_all(item.name, item.look, item.depth) for item in sets]
    cost_lines(rows, "rerank_costs")
    st.caption("Here MaxSim alone orders the candidates; “What helps” mixes it with the cosine.")


def of_all(name: str, look: Reordered, depth: int) -> tuple[str, str]:
    """What re-ranking so many candidates does to all queries of a collection, and whether that may be chance."""
    repaired, harmed = look.repaired(depth), look.harmed(depth)
    luck = ", may be chance" if is_luck(look, depth) else ""
    shares = " → ".join(number(look.first_place(place), 1) for place in (0, depth))
    return f"{name.capitalize()}\n{repaired} repaired, {harmed} harmed{luck}", f"{shares} %"


def cost_lines(rows: Sequence[tuple[str, str]], key: str) -> None:
    """Names with their values at the right, a line each; what follows a name in a second line stands below both."""
    lines = []
    for name, value in rows:
        first, _, below = name.partition("\n")
        lines.append(f"<p><span>{first}</span><b>{value}</b>{f'<small>{below}</small>' if below else ''}</p>")
    figures.markup(f'<div class="bi-costs">{"".join(lines)}</div>', key)


def _table(sets: Sequence[CollectionLook]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "queries": item.name,
                "candidates": depth,
                "correct answer first, %": round(item.look.first_place(depth), 2),
                "repaired": item.look.repaired(depth) if depth else 0,
                "harmed": item.look.harmed(depth) if depth else 0,
                "ms more a query": round(item.look.milliseconds[depth], 3) if depth else 0.0,
            }
            for item in sets
            for depth in (0, *item.look.depths)
        ]
    )
