"""Graded relevance: queries with several correct answers, some more relevant than others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.charts.retrieval import evaluation as charts
from components.numbers import enumerated, number, percent
from components.retrieval.evaluation.graded import metrics as graded_metrics
from components.retrieval.evaluation.metrics import interval
from components.retrieval.evaluation.second_stage import second_relevant_ranks
from components.shown_code.code import Command
from dashboard import navigation
from dashboard.corpora import graded_sets, own_queries, word_rankings
from dashboard.jobs import evaluation, second_stage, splade
from dashboard.jobs.runs import fusion
from dashboard.jobs.second_stage import SearchTexts
from dashboard.ui import controls, figures, messages, page_header
from dashboard.ui.waiting import before_work, frame
from dashboard.ui.wording import counted
from dashboard.views.evaluate import choices, run_table
from dashboard.views.evaluate.choices import RunRequest

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.evaluation.graded.ranks import RelevantRanks
    from components.retrieval.evaluation.metrics import Interval
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.rankings.run_code import RunCode
    from components.retrieval.search.exact import ExactSearch
    from dashboard.jobs.embedding import EmbedRequest

CODES = choices.codes_of(graded_metrics.MEASURES)
MEASURE_HELP = (
    "nDCG@10: the grades of the first ten, weighted by rank, relative to the best possible order. MRR: the mean of 1 / rank of "
    "the first relevant document. P@10: the share of the first ten that is relevant. Recall@k: the share of the relevant "
    "documents that is among the first k. MAP: the mean precision at the ranks of the relevant documents. All are in per cent."
)
LEVELS = [level / 10 for level in range(11)]


def relevance(backend: Backend) -> None:
    """The measures of the runs, and precision over recall."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="row_graded"):
        measure_slot = st.container(width=round(150 * controls.scale()))
        panel = choices.runs_panel()
        with controls.options():
            source = graded_sets.choose_source()
            field_slot = st.container()
            run_table.all_measures()
    page_header.measures("No collection yet")
    graded = graded_sets.collection_of(source, field_slot)
    if graded is None:
        return
    page_header.measures(graded.name, counted(len(graded.documents), "document"))
    with measure_slot:
        measure = CODES[controls.pick("graded_measure", "Measure", CODES, MEASURE_HELP)]
    request = choices.run_request(backend, len(graded.queries), panel)
    above, waiting = st.container(), st.container()
    _about(graded)
    choices.about_second_stage(request)
    with waiting:
        ready = _runs(request, graded)
        ranks = choices.that_find(ready, lambda of_run: of_run)
    if not ranks:
        if not request.codes:
            st.info(choices.NO_RUN, icon=":material/add:")
        return
    measured = request.commands(graded_sets.folder_of(graded), (run for run, _, _ in ranks))
    with above, frame.figure("graded"):  # the figure needs no significance, and does not wait for it
        named = [(name, of_run) for _, name, of_run in ranks]
        _compared(
            graded, named, measure, len(ready) == len(request.codes), Command(graded_metrics.graded_summary, *measured)
        )
    best = max(ranks, key=lambda of: float(graded_metrics.MEASURES[measure](of[2]).mean()))[1]
    _figure([(name, of_run) for _, name, of_run in ranks], best, measured)


def _about(graded: GradedSet) -> None:
    relevant = sum(map(len, graded.grades))
    st.caption(
        f"**{messages.escape(graded.name)}**: {counted(len(graded.queries), 'query', 'queries')}, "
        f"{counted(len(graded.documents), 'document')}, {counted(relevant, 'relevant pair')} with grades up to "
        f"{max(grade for grades in graded.grades for grade in grades.values())}."
        + (f" {graded_sets.DEMO_GRADES}" if not graded.report.files else "")
        + (f" Files: {messages.escape(', '.join(graded.report.files.values()))}." if graded.report.files else "")
        + (_searched(graded) if graded.query_field else "")
        + " Other collections are under “Options”."
    )
    if graded.report.left_out:
        left_out = ", ".join(f"{count:,} {reason}" for reason, count in graded.report.left_out.items())
        st.warning(f"Left out: {messages.escape(left_out)}.")
    if graded.notes:
        st.info(
            " ".join(messages.escape(note) if note in graded.report.refusals else note for note in graded.notes),
            icon=":material/rule:",
        )
    if graded.report.files:  # the demo's queries are those of Failed queries already
        messages.guarded(lambda: own_queries.offer_graded(graded, navigation.go_to), "looking for failed queries")


def _searched(graded: GradedSet) -> str:
    """What is searched by what, in words."""
    return (
        f" Each query's {graded.query_field} is searched for in the documents' {' and '.join(graded.document_fields)}."
    )


def _compared(
    graded: GradedSet,
    ranks: Sequence[tuple[str, RelevantRanks]],
    measure: str,
    is_complete: bool,
    code: Command,
) -> None:
    """The finding, a bar with its interval for each finished run, and their table, folded. Raises NotReady meanwhile."""
    table, intervals, unsure = evaluation.result(
        ("graded table", graded.content_hash, tuple((name, _hash(outcome)) for name, outcome in ranks), measure),
        f"Comparing {counted(len(ranks), 'run')}",
        lambda report_progress, is_stopped: _table(ranks, measure),
        "graded_comparison",
        short=True,
    )
    best = table["run"][table[measure].argmax()]
    figures.figure(
        charts.ranking_bars(
            [
                charts.RankedBar(str(name), 100 * of.value, 100 * of.low, 100 * of.high, name == best)
                for name, of in zip(table["run"], intervals, strict=True)
            ],
            f"{measure} of {counted(len(ranks), 'run')}",
            measure=measure,
            dark=controls.is_dark(),
        ),
        key="graded_runs",
        code=code,
        alt=f"{measure} of {counted(len(ranks), 'run')} with 95 % intervals, the best on top",
        message=f"{finding(table, measure, unsure, is_complete)} {of_perfect(table, measure, graded)}".strip(),
        read=f"A bar is a run, the best on top. {measure}: {choices.GRADED_MEANINGS[measure]}. A thin line is the 95 % "
        "interval: where the measure may lie for other queries.",
        not_shown="Other measures: they stand under “Options”, and all of them in Share. Documents without a grade count as "
        "not relevant.",
        table=lambda: table.round(3),
    )
    config = run_table.measure_columns(choices.GRADED_MEANINGS) | {
        "run": run_table.name_column(list(table["run"])),
        run_table.DIFFERS: st.column_config.TextColumn("clearly worse than the best?", help=run_table.HOLM),
        "p to the best (Holm)": st.column_config.TextColumn(help=run_table.HOLM),
    }
    with st.expander("All runs as a table: intervals, differences", icon=":material/table:", key="graded_as_table"):
        st.dataframe(
            table.sort_values(measure, ascending=False, kind="stable"),
            hide_index=True,
            key="graded_table",
            column_config=config,
            column_order=run_table.columns_shown(table, measure),
        )
        run_table.legend(
            measure,
            "“no”: the difference to the best run may be chance. Other measures are under “Options”.",
            choices.GRADED_MEANINGS,
        )


def finding(table: pd.DataFrame, measure: str, unsure: Sequence[str], is_complete: bool) -> str:
    """Which run is the best, and which others may be as good; `table` has a line for each run."""
    row = table.iloc[int(table[measure].argmax())]
    so_far = "" if is_complete else " so far"
    of = " of a perfect order" if measure.startswith("nDCG") else ""
    said = f"**{messages.escape(str(row['run']))}** has the best {measure}{so_far}: **{row[measure]:.1f} %**{of}"
    if len(table) == 1:
        return f"{said}."
    if not unsure:
        return f"{said}, and its lead over every other run is more than chance."
    return f"{said}, but {messages.escape(enumerated(list(unsure)))} may be as good."


def of_perfect(table: pd.DataFrame, measure: str, graded: GradedSet) -> str:
    """How many of the documents that a perfect order has among the first ten the best run has there; "" for other measures."""
    if measure != "nDCG@10":
        return ""
    best = table.iloc[int(table[measure].argmax())]
    found = float(best["P@10"]) / 10
    there = float(np.mean([min(10, len(grades)) for grades in graded.grades]))
    return (
        f"Of the first ten documents of {messages.escape(str(best['run']))}, {number(found, 1)} are relevant on average; in a "
        f"perfect order {'all ten would be' if there == 10 else f'{number(there, 1)} would be'}."
    )


def _runs(request: RunRequest, graded: GradedSet) -> list[tuple[RunCode, str, RelevantRanks]]:
    """Codes, names and ranks of the finished runs."""

    searched = SearchTexts(graded.document_texts, graded.queries, graded.content_hash, graded.own)

    def ranks_of(code: RunCode, sides: Mapping[str, tuple[VectorIndex, VectorIndex]]) -> RelevantRanks | None:
        where = f"graded_{code}"
        if any(part.pooling and part.cell not in sides[part.model][0].engines for part in code.each):
            return None
        if code.parts:
            parts = request.parts(code, sides, searched, where)
            (fused,) = fusion.fused_ranks(graded, parts, [code.fusion], request.names[str(code)], where)
            return cast("RelevantRanks", fused)
        if code.words:
            ranking = word_rankings.word_ranking(request.backend, code.words)
            words = evaluation.word_ranks(ranking, graded, graded.documents, len(graded.queries))
            return cast("RelevantRanks", words[0])
        if code.is_splade:
            pieces = splade.ranks_of(request.models[code.model], graded, graded.document_texts, graded.queries, where)
            return cast("RelevantRanks", pieces[0])
        documents, queries = sides[code.model]
        first = evaluation.result(
            ("graded", documents.folder.name, queries.folder.name, graded.content_hash, *code.cell),
            f"{request.names[str(code)]}: ranking {len(graded.queries):,} queries",
            partial(_ranks_of, documents.engine(*code.cell), queries.engine(*code.cell), graded),
            where,
        )
        stages = request.stages(code)
        if stages is None:
            return first
        candidates = second_stage.candidates(stages, (documents, queries), searched, where)
        return second_relevant_ranks(first, candidates.rows, candidates.scores)

    def sides_of(embed_request: EmbedRequest, model: str) -> tuple[VectorIndex, VectorIndex]:
        where = f"graded_{model}"
        indexes = evaluation.both_indexes(embed_request, graded.document_texts, graded.query_texts, where)
        before_work.other_layers(embed_request, graded.document_texts, where)
        return indexes

    return request.gather(ranks_of, sides_of)[0]


def _ranks_of(
    documents: ExactSearch,
    queries: ExactSearch,
    graded: GradedSet,
    report_progress: ReportProgress,
    is_stopped: IsStopped,
) -> RelevantRanks:
    return graded.ranks_by_vectors(queries.vectors, documents.vectors, report_progress, is_stopped)


def _hash(outcome: RelevantRanks) -> str:
    """Names the outcome of a run on a collection."""
    return hashlib.sha256(np.ascontiguousarray(outcome.ranks).tobytes()).hexdigest()


def _table(ranks: Sequence[tuple[str, RelevantRanks]], measure: str) -> tuple[pd.DataFrame, list[Interval], list[str]]:
    """One row per run: the chosen measure with its interval and test against the best run, and all other measures.

    Also the interval of each run, and the names of the runs that are not significantly different from the best.
    """
    values = [{name: judge(outcome) for name, judge in graded_metrics.MEASURES.items()} for _, outcome in ranks]
    judged = [run_values[measure] for run_values in values]
    best = int(np.argmax([run_values.mean() for run_values in judged]))
    compared = run_table.against(judged, best, [True] * len(judged), is_best=True)
    rows = [
        run_table.measured(
            name,
            run_values,
            measure,
            {run_table.DIFFERS: "the best" if run == best else answer, "p to the best (Holm)": cell},
        )
        for run, ((name, _), run_values, answer, cell) in enumerate(
            zip(ranks, values, compared.answers, compared.cells, strict=True)
        )
    ]
    return pd.DataFrame(rows), [interval(of) for of in judged], [ranks[number][0] for number in compared.unsure]


def _figure(ranks: Sequence[tuple[str, RelevantRanks]], best: str, measured: Sequence[tuple[str, ...]]) -> None:
    """Precision over recall of each run; the `best` has its bar's colour."""
    curves = [(name, graded_metrics.interpolated_precision(outcome).mean(axis=0)) for name, outcome in ranks]
    half, whole = dict(curves)[best][[LEVELS.index(0.5), LEVELS.index(1.0)]]
    figures.figure(
        charts.curves_over(
            [charts.Curve(name, 100 * curve, is_marked=name == best) for name, curve in curves],
            LEVELS,
            "Precision by share of answers found",
            x_title="share of correct answers found (recall)",
            y_title="correct hits (precision, %)",
            y_range=(0, 102),
        ),
        key="graded_curve",
        code=Command(graded_metrics.interpolated_precision, *measured, prints='the curves as "precision_at_recall"'),
        alt=f"Interpolated precision at recall 0, 0.1 … 1 of {len(curves)} runs",
        message=f"To find half of the correct answers with **{messages.escape(best)}**, {percent(half)} of the texts that you "
        f"read are correct; to find all, {percent(whole)}.",
        read="The horizontal axis is the share of the relevant documents that you want to find. The height of a curve is the "
        "share of relevant documents among those you then read (the best precision at that recall or beyond, averaged over "
        "queries).",
        not_shown="Grades: here all relevant documents count the same; nDCG@10 uses their grades. Documents without a "
        "judgement count as not relevant. If every query has ten relevant documents, as in the demo, P@10 equals Recall@10.",
        table=lambda: pd.DataFrame({"recall": LEVELS, **{name: (100 * curve).round(3) for name, curve in curves}}),
    )
