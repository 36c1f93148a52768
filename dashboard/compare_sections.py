"""The Evaluate page's comparison: runs side by side, how sure the differences are, and where each run fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import evaluation as charts
from components.model.trace import Int64
from components.retrieval import metrics
from components.retrieval.search import top
from dashboard import baselines, controls, evaluation_choices, evaluation_jobs, feedback, run_table, state
from dashboard.evaluation_jobs import NoResult, PairIndexes
from dashboard.run_table import Compared

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Float32
    from components.retrieval.pair_runs import Pairs
    from components.retrieval.run_record import Run

FIGURES = {"curves": "Recall@k", "precision": "Precision and recall", "cost": "Quality and cost"}
FILTERS = {"all": "All", "wrong": "All wrong", "disagree": "Disagree", "right": "All right"}
MOST_K, MOST_ROWS, SHOWN_HITS = 100, 2_000, 5


@dataclass(frozen=True, eq=False)
class Entry:
    """A run and, where this server can ask it again, its code."""

    run: Run
    code: str
    short: str  # as it is called where there is little room
    live: bool = True  # False for one that was loaded: it cannot be asked again

    @property
    def title(self) -> str:
        return self.run.name if self.live else self.short


def compare(backend: Backend) -> None:
    """The table, a figure, and the queries."""
    pairs = evaluation_choices.current_pairs()
    evaluation_choices.about(pairs)
    second = feedback.second_model()
    codes = evaluation_choices.run_codes(backend, second, len(pairs))
    entries, indexes = _entries(backend, second, pairs, codes)
    place = st.container()  # what was loaded counts at once, though its place is below the table
    with st.container(key="load_place"):
        run_table.loading()
    entries += [Entry(run, f"loaded.{run.key}", f"{run.name} (loaded)", live=False) for run in run_table.loaded()]
    if not entries:
        if not codes:
            st.info("**No run yet.** Add a layer and pooling, or a baseline.", icon=":material/add:")
        return
    here = [at for at, entry in enumerate(entries) if entry.run.data.content_hash == pairs.content_hash]
    with place:
        left, right = st.columns(2)
        with left:
            measure = evaluation_choices.measure()
        with right:
            reference, picked = _reference(entries, here, measure)
        table, compared = _compared(
            [entry.run for entry in entries], [entry.title for entry in entries], measure, reference, picked
        )
        _message(entries, compared, measure)
        run_table.show(table)
        run_table.exports([entry.run for entry in entries], table)
    _figure([entry.run for entry in entries], [entry.short for entry in entries], measure)
    _queries(
        [entry for entry in entries if run_table.paired(entry.run, entries[here[0]].run)] if here else [],
        pairs,
        backend,
        indexes,
    )


def _entries(
    backend: Backend, second: Backend | None, pairs: Pairs, codes: Sequence[str]
) -> tuple[list[Entry], dict[str, PairIndexes]]:
    """The runs that are there, in the order they were chosen; the first that is not is waited for."""
    entries: list[Entry] = []
    indexes: dict[str, PairIndexes | None] = {}  # None: not to be had in this run, and why has been drawn
    for at, code in enumerate(codes):
        wanted, name = evaluation_choices.parsed(code), evaluation_choices.name_of(code, backend, second)
        try:
            if wanted is None:
                run = evaluation_jobs.word_run(backend, pairs, code)
            else:
                model = backend if wanted.which == "m" else second
                assert model is not None  # offered only where there is one
                if wanted.which not in indexes:
                    indexes[wanted.which] = None
                    indexes[wanted.which] = evaluation_jobs.pair_indexes(model, pairs, f"compare_{wanted.which}")
                found = indexes[wanted.which]
                if found is None:
                    continue
                if wanted.layer not in found.ranks.layers or wanted.pooling not in found.ranks.poolings:
                    st.caption(f"Not embedded: {feedback.escape(name)}.")
                    continue
                run = evaluation_jobs.vector_run(model, pairs, found, wanted.layer, wanted.pooling, wanted.which)
            entries.append(Entry(run, code, name))
        except NoResult as missing:
            if missing.waiting:
                rest = [evaluation_choices.name_of(each, backend, second) for each in codes[at + 1 :]]
                if rest:
                    st.caption("Then: " + ", ".join(map(feedback.escape, rest)) + ".")
                break
    return entries, {which: found for which, found in indexes.items() if found is not None}


def _compared(
    runs: list[Run], names: list[str], measure: str, reference: int, picked: bool
) -> tuple[pd.DataFrame, Compared]:
    found: tuple[pd.DataFrame, Compared] = evaluation_jobs.result(
        (
            "comparison",
            tuple((run.key, name, run.milliseconds) for run, name in zip(runs, names, strict=True)),
            measure,
            reference,
            picked,
        ),
        f"Comparing {len(runs)} runs",
        lambda tell, cancelled: run_table.results(runs, measure, reference, picked, names),
        "comparison",
        short=True,
    )
    return found


def _reference(entries: Sequence[Entry], here: Sequence[int], measure: str) -> tuple[int, bool]:
    """The run that the others are compared with, and whether it is the best; the best of those on the current data."""
    judge = metrics.MEASURES[measure]
    best = max(here or range(len(entries)), key=lambda at: float(judge(entries[at].run.ranks).mean()))
    names = {"": f"the best ({entries[best].short})", **{entry.code: entry.short for entry in entries}}
    if state.get("reference") not in names:
        state.put("reference", "")
    chosen = controls.pick("reference", "Differences to", names)
    if not chosen:
        return best, True
    return next(at for at, entry in enumerate(entries) if entry.code == chosen), False


def _message(entries: Sequence[Entry], compared: Compared, measure: str) -> None:
    reference = entries[compared.reference]
    value = 100 * float(metrics.MEASURES[measure](reference.run.ranks).mean())
    text = f":material/insights: **{feedback.escape(reference.short)}** has {measure} {value:.1f} %. "
    unsure = " · ".join(f"**{feedback.escape(entries[at].short)}**" for at in compared.unsure)
    sure = len(compared.p_values) - len(compared.unsure)
    if unsure:
        text += f"By these queries one cannot tell it from {unsure}. "
    if sure == 1:
        text += f"The difference of one other run is larger than chance makes it (p < {metrics.ALPHA:g}). "
    elif sure:
        text += f"The differences of {sure} other runs are larger than chance makes them (p < {metrics.ALPHA:g}). "
    apart = len(entries) - 1 - len(compared.p_values)
    if apart:
        text += f"{apart} run{'' if apart == 1 else 's'} on other data cannot be compared with it."
    st.markdown(text)


def _figure(runs: Sequence[Run], names: Sequence[str], measure: str) -> None:
    kind = controls.choice("compare_figure", "Figure", FIGURES, show_label=False)
    most = min(MOST_K, min(run.data.documents for run in runs))
    ks = range(1, most + 1)
    recalls = [metrics.recall_curve(run.ranks, most) for run in runs]
    if kind == "curves":
        feedback.figure(
            charts.curves_over(
                [charts.Curve(name, 100 * curve) for name, curve in zip(names, recalls, strict=True)],
                ks,
                "Recall@k of every run",
                x_title="k",
                y_title="Recall@k (%)",
                logarithmic=True,
                scale=controls.scale(),
            ),
            key="compare_curves",
            alt=f"Recall at k from 1 to {most} of {len(runs)} runs",
            read="How many of the queries have their own sentence among the first k. A curve above another one at every k is "
            "better whatever k one needs.",
            not_shown="How sure a small gap is: see the p-values in the table.",
            table=lambda: pd.DataFrame({"k": ks, **_columns(names, [100 * curve for curve in recalls])}),
        )
    elif kind == "precision":
        precisions = [curve / np.arange(1, most + 1) for curve in recalls]
        feedback.figure(
            charts.precision_recall(
                [
                    (name, 100 * recall, 100 * precision)
                    for name, recall, precision in zip(names, recalls, precisions, strict=True)
                ],
                "Precision against recall, k = 1, 2, 3 …",
                scale=controls.scale(),
            ),
            key="compare_precision",
            alt=f"Precision against recall of {len(runs)} runs, a point for each k up to {most}",
            read="Each point is one k: the more hits are shown (to the right), the more queries are answered and the fewer of "
            "the hits are right. The first point of each line is k = 1.",
            not_shown="More than the recall curve: with one right answer a query, precision at k is Recall@k / k. “Graded "
            "relevance” has queries with several.",
            table=lambda: pd.DataFrame({"k": ks, **_columns(names, [100 * each for each in precisions])}),
        )
    else:
        _cost(runs, names, measure)


def _cost(runs: Sequence[Run], names: Sequence[str], measure: str) -> None:
    judge = metrics.MEASURES[measure]
    costs = [
        charts.Cost(name, 100 * float(judge(run.ranks).mean()), run.milliseconds, run.index_bytes / 1e6)
        for name, run in zip(names, runs, strict=True)
        if run.milliseconds is not None and run.index_bytes is not None
    ]
    if not costs:
        st.info("None of these runs says how long a query took.")
        return
    feedback.figure(
        charts.quality_and_cost(costs, f"{measure} against the time of a query", measure, controls.scale()),
        key="compare_cost",
        alt=f"{measure} of {len(costs)} runs against milliseconds a query; areas show the size of the index",
        read="Up is better, left is faster, and a larger point keeps more of the corpus. Time is the median of some queries, "
        "one at a time: embedding the query, comparing with every sentence, the first ten.",
        not_shown="Time in a batch or on another machine. Every layer takes the time of the whole model here; loaded runs "
        "carry the time of the machine that made them.",
        table=lambda: pd.DataFrame([vars(cost) for cost in costs]),
    )


def _columns(names: Sequence[str], curves: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {
        f"{at}  {name}": curve.round(3) for at, (name, curve) in enumerate(zip(names, curves, strict=True), start=1)
    }


def _queries(entries: Sequence[Entry], pairs: Pairs, backend: Backend, indexes: dict[str, PairIndexes]) -> None:
    """The queries by who answers them, and one of them opened."""
    if not entries:
        return
    st.subheader("Where the runs fail", anchor=False)
    left, right = st.columns([3, 2])
    ranks = np.stack([entry.run.ranks for entry in entries])  # [run, query]
    with right:
        k = controls.number("right_at", "Right means among the first", 1, 50, 1)
    right_ones = (ranks <= k).sum(axis=0)
    masks = {
        "all": np.ones(len(pairs), bool),
        "wrong": right_ones == 0,
        "disagree": (right_ones > 0) & (right_ones < len(entries)),
        "right": right_ones == len(entries),
    }
    with left:
        names = {key: f"{title} ({int(masks[key].sum()):,})" for key, title in FILTERS.items()}
        kind = controls.choice("query_filter", "Queries", names)
    rows = np.flatnonzero(masks[kind])
    opened = state.get("opened")
    if not len(rows):
        st.info("No query is of this kind.")
    else:
        _query_table(rows, entries, pairs, ranks)
    if opened is not None and opened < len(pairs):
        _opened(int(opened), entries, pairs, backend, indexes)
    elif len(rows):
        st.caption("The hardest first. Click the box at the left of a query to see what each run ranks first.")


def _query_table(rows: Int64, entries: Sequence[Entry], pairs: Pairs, ranks: Int64) -> None:
    # The hardest first: where the runs' ranks are worst together.
    ordered = rows[np.argsort(-np.log(ranks[:, rows]).mean(axis=0), kind="stable")]
    shown = [int(at) for at in ordered[:MOST_ROWS]]
    table = pd.DataFrame(
        {
            "number": shown,
            "query": [pairs.queries.texts[at] for at in shown],
            "right answer": [pairs.documents.texts[at] for at in shown],
            **{f"{place}  {entry.short}": ranks[place - 1, shown] for place, entry in enumerate(entries, start=1)},
        }
    )
    st.dataframe(
        table,
        hide_index=True,
        key="queries_by_rank",
        on_select=lambda: _open(shown),
        selection_mode="single-row",
        height=320,
        column_config={
            "number": st.column_config.NumberColumn(width=70),
            "query": st.column_config.TextColumn(width=260),
            "right answer": st.column_config.TextColumn(width=260),
        },
    )
    if len(rows) > MOST_ROWS:
        st.caption(f"The {MOST_ROWS:,} hardest of {len(rows):,}; the download has all.")
    feedback.data("queries_all", lambda: _all_queries(ordered, entries, pairs, ranks))


def _all_queries(rows: Int64, entries: Sequence[Entry], pairs: Pairs, ranks: Int64) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "number": rows,
            "query": [pairs.queries.texts[at] for at in rows],
            "right answer": [pairs.documents.texts[at] for at in rows],
            **{f"{place}  {entry.short}": ranks[place - 1, rows] for place, entry in enumerate(entries, start=1)},
        }
    )


def _open(shown: Sequence[int]) -> None:
    rows = st.session_state["queries_by_rank"].selection.rows
    state.put("opened", shown[rows[0]] if rows else None)


def _opened(at: int, entries: Sequence[Entry], pairs: Pairs, backend: Backend, indexes: dict[str, PairIndexes]) -> None:
    with st.container(border=True, key="opened_query"):
        left, right = st.columns([8, 1])
        left.markdown(f"**Query {at}:** {feedback.escape(pairs.queries.texts[at])}")
        right.button("Close", key="close_query", on_click=state.put, args=("opened", None))
        st.markdown(f"**Right answer:** {feedback.escape(pairs.documents.texts[at])}")
        live = [entry for entry in entries if entry.live]
        for start in range(0, len(live), 2):
            for column, entry in zip(st.columns(2), live[start : start + 2], strict=False):
                with column:
                    scores = _scores(entry, pairs, backend, indexes, at)
                    _first_hits(entry, pairs, scores, at)
        if len(live) < len(entries):
            names = ", ".join(feedback.escape(entry.run.name) for entry in entries if not entry.live)
            st.caption(f"Loaded runs have ranks only: {names}.")


def _scores(entry: Entry, pairs: Pairs, backend: Backend, indexes: dict[str, PairIndexes], at: int) -> Float32:
    wanted = evaluation_choices.parsed(entry.code)
    if wanted is None:
        ranker = baselines.word_ranker(backend, pairs.documents, entry.code)
        return ranker.scores(pairs.queries.texts[at])
    found = indexes[wanted.which]
    vector = found.queries.engine(wanted.layer, wanted.pooling).vectors[at]
    return found.documents.engine(wanted.layer, wanted.pooling).scores(vector)


def _first_hits(entry: Entry, pairs: Pairs, scores: Float32, at: int) -> None:
    rank = int(entry.run.ranks[at])
    st.markdown(f"**{feedback.escape(entry.short)}**: rank {rank:,}")
    lines = []
    hits = top(scores, SHOWN_HITS)
    for place, hit in enumerate(hits, start=1):
        text = feedback.escape(pairs.documents.texts[hit])
        lines.append(f"{place}. :green-background[{text}] ✓" if hit == at else f"{place}. {text}")
    st.markdown("\n".join(lines))
    best = float(scores.max())
    text = f"Score of the right answer {float(scores[at]):.3f}, of the first hit {best:.3f}."
    if at in hits[: max(0, rank - 1)]:
        text += " It shares its score with others; ties count against it."
    st.caption(text)
