"""Methods compared: runs side by side with their differences, for whom each is better, and where each run fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts.retrieval import evaluation as charts
from components.numbers import number
from components.retrieval.evaluation import metrics
from components.shown_code.code import Command, NoCode
from dashboard import caching, state
from dashboard.corpora import current, word_rankings
from dashboard.jobs import evaluation, second_stage, splade
from dashboard.jobs.evaluation import PairIndexes, Timing
from dashboard.jobs.runs import fusion
from dashboard.jobs.second_stage import Candidates
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import before_work, frame, progress
from dashboard.ui.wording import among, counted
from dashboard.views.evaluate import choices, queries, run_table, similarities
from dashboard.views.evaluate.choices import RunRequest
from dashboard.views.evaluate.fusion import weights
from dashboard.views.evaluate.queries import RunEntry
from dashboard.views.evaluate.rows import runs as run_rows
from dashboard.views.evaluate.rows.runs import RunRow
from dashboard.views.evaluate.run_table import RunComparison

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.run_record import Run
    from components.retrieval.rankings.run_code import RunCode
    from dashboard.jobs.embedding import EmbedRequest

FIGURES = {
    "curves": "Recall@k",
    "precision": "Precision and recall",
    "cost": "Quality and cost",
    "similarities": "Cosine and dot product",
    "weights": "Words and vectors",
}
MOST_K = 100
_RUNS = "_compare_runs"  # session key: the chosen runs that the headline has taken note of
_LATE = "_compare_late_times"  # session key: the times that came while the figures were drawn, for which they are drawn again


def compare(backend: Backend) -> None:
    """The table of runs, a figure, and the queries."""
    pairs = choices.current_pairs()
    with controls.row():
        scale = controls.scale()
        measure_slot, reference_slot, other_slot = (
            st.container(width=round(width * scale), key=f"compare_{name}")
            for name, width in (("measure", 150), ("reference", 250), ("other", 300))
        )
        panel = choices.runs_panel()
        with controls.options():
            run_table.all_measures()
    request = choices.run_request(backend, len(pairs), panel)
    above = st.container()  # for the table: it needs the runs that are requested and loaded below it
    entries, indexes = _entries(request, pairs)
    with st.container(key="load_place"):
        run_table.loading()
    entries += [RunEntry(run, f"{run.name} (loaded)") for run in run_table.loaded()]
    if not entries:
        if not request.codes:
            st.info(choices.NO_RUN, icon=":material/add:")
        return
    comparable = [number for number, entry in enumerate(entries) if entry.run.data.content_hash == pairs.content_hash]
    with measure_slot:
        measure = choices.measure()
    with reference_slot:
        reference, is_best = _reference(entries, comparable, measure)
    runs = [entry.run for entry in entries]
    time_note, opened = above, [reference]
    measured = request.commands(choices.file_of_pairs(), (entry.code for entry in entries if entry.code is not None))
    commands = iter(measured)
    without = [entry.short for entry in entries if entry.code is None or not next(commands)]
    with above, frame.figure("comparison"):  # the figure needs no significance, and does not wait for it
        table, compared, differences = _compared(runs, [entry.title for entry in entries], measure, reference, is_best)
        rows = _rows(entries, differences, compared, measure)
        is_same_data = all(run_table.paired(run, runs[0]) for run in runs)
        with other_slot:
            other = _other(entries, rows, compared, reference, request.codes)
        opened = [reference] if other is None else [other, reference]
        _show_rows(entries, rows, measure, reference, other, pairs, compared, measured, without)
        choices.about(pairs)
        choices.about_second_stage(request)
        with st.expander("All runs as a table: costs, measures, files", icon=":material/table:", key="runs_as_table"):
            run_table.show(table, measure, [entry.short for entry in entries], is_same_data)
            time_note = st.container()
            run_table.exports(runs, table)
            current.say_regression_test(choices.file_of_pairs())
    kind = controls.choice("compare_figure", "Figure", FIGURES, show_label=False)
    if kind in ("similarities", "weights"):
        with frame.figure(kind):
            if kind == "weights":
                weights.weights(request, entries, pairs, indexes, measure)
            else:
                similarities.similarities(request, entries, pairs, indexes)
    else:
        _figure(kind, in_colours(entries, opened), measure, measured, without)
    queries.queries(
        [entry for entry in entries if run_table.paired(entry.run, entries[comparable[0]].run)] if comparable else [],
        pairs,
        request,
        indexes,
        measured,
    )
    with time_note, frame.figure("times"):  # candidates may have to be found once more
        _measure_times(request, entries, pairs, indexes)


def in_colours(entries: Sequence[RunEntry], opened: Sequence[int]) -> list[RunEntry]:
    """The runs with those `opened` for whom they find more first: curves take their colours in turn, as the squares do."""
    return [
        *(entries[number] for number in opened),
        *(run for number, run in enumerate(entries) if number not in opened),
    ]


def _entries(request: RunRequest, pairs: Pairs) -> tuple[list[RunEntry], dict[str, PairIndexes]]:
    """The finished runs, in the chosen order, and each model's indexes."""

    searched = choices.search_texts(pairs)

    def outcome_of(code: RunCode, sides: Mapping[str, PairIndexes]) -> tuple[Run, Candidates | None] | None:
        where = f"compare_{code}"
        if code.parts:
            singles = [outcome[0] for part in code.parts if (outcome := outcome_of(part, sides)) is not None]
            if len(singles) < len(code.parts):
                return None
            parts = request.parts(code, {model: each.both for model, each in sides.items()}, searched, where)
            (ranks,) = fusion.fused_ranks(pairs, parts, [code.fusion], request.names[str(code)], where)
            return fusion.record(code, singles, ranks), None
        if code.words:
            return evaluation.word_run(word_rankings.word_ranking(request.backend, code.words), pairs), None
        if code.is_splade:
            return splade.pair_run(request.models[code.model], pairs, where), None
        of_model, stages = sides[code.model], request.stages(code)
        if code.cell not in of_model.ranks:
            return None
        if stages is None:
            return evaluation.vector_run(request.models[code.model].backend, pairs, of_model, *code.cell), None
        candidates = second_stage.candidates(stages, of_model.both, searched, where)
        return second_stage.pair_run(stages, pairs, of_model, candidates), candidates

    def indexes_of(embed_request: EmbedRequest, model: str) -> PairIndexes:
        found = evaluation.pair_indexes(embed_request, pairs, f"compare_{model}")
        before_work.other_layers(embed_request, pairs.documents, f"compare_{model}")
        return found

    ready, indexes = request.gather(outcome_of, indexes_of)
    ready = choices.that_find(ready, lambda outcome: outcome[0].ranks)
    return [RunEntry(run, name, code, candidates) for code, name, (run, candidates) in ready], indexes


def _compared(
    runs: list[Run], names: list[str], measure: str, reference: int, is_best: bool
) -> tuple[pd.DataFrame, RunComparison, list[tuple[metrics.Interval, metrics.Interval | None]]]:
    """The table, the tests, and each run's mean and difference with their intervals. Raises NotReady."""

    def compare_all(
        report_progress: ReportProgress, is_stopped: IsStopped
    ) -> tuple[pd.DataFrame, RunComparison, list[tuple[metrics.Interval, metrics.Interval | None]]]:
        judged = [metrics.MEASURES[measure](run.ranks) for run in runs]
        are_paired = [run_table.paired(run, runs[reference]) for run in runs]
        return *run_table.results(runs, measure, reference, is_best, names), run_rows.measured(
            judged, reference, are_paired
        )

    table, compared, differences = evaluation.result(
        (
            "comparison",
            tuple((run.key, name) for run, name in zip(runs, names, strict=True)),
            measure,
            reference,
            is_best,
        ),
        f"Comparing {counted(len(runs), 'run')}",
        compare_all,
        "comparison",
        short=True,
    )
    # A time that is measured later must not cost another comparison.
    return table.assign(**run_table.costs(runs)), compared, differences


def _rows(
    entries: Sequence[RunEntry],
    differences: Sequence[tuple[metrics.Interval, metrics.Interval | None]],
    compared: RunComparison,
    measure: str,
) -> list[RunRow]:
    """The runs as rows, in per cent."""

    def per_cent(of: metrics.Interval) -> metrics.Interval:
        return metrics.Interval(100 * of.value, 100 * of.low, 100 * of.high)

    return [
        RunRow(
            entry.short,
            per_cent(value),
            tuple(100 * float(metrics.MEASURES[name](entry.run.ranks).mean()) for name in run_rows.BESIDE),
            None if difference is None else per_cent(difference),
            is_clear=compared.p_values.get(place, 1.0) < metrics.ALPHA,
            is_reference=place == compared.reference,
            comparisons=compared.comparisons,
            among=len(compared.p_values) + 1 if compared.comparisons > len(compared.p_values) else 0,
        )
        for place, (entry, (value, difference)) in enumerate(zip(entries, differences, strict=True))
    ]


def _other(
    entries: Sequence[RunEntry],
    rows: Sequence[RunRow],
    compared: RunComparison,
    reference: int,
    codes: Sequence[RunCode],
) -> int | None:
    """The run whose queries are shown beside those of the reference: chosen by a person, just added to the chosen `codes`, or
    the most telling one."""
    comparable = [reference, *compared.p_values]
    better = sorted(
        (number for number, row in enumerate(rows) if row.is_clear and row.difference and row.difference.value > 0),
        key=lambda number: -rows[number].value.value,
    )
    ranks = [metrics.first_ranks(entry.run.ranks) for entry in entries]
    by_words = [None if entry.code is None or entry.code.parts else bool(entry.code.words) for entry in entries]
    telling = run_rows.most_telling(ranks, reference, comparable, better, int(state.get("right_at")), by_words)
    if telling is None:
        return None
    names = {"": f"{entries[telling].short} (suggested)"}
    names |= {entries[number].key: entries[number].short for number in comparable if number != reference}
    chosen, before = [*map(str, codes)], st.session_state.get(_RUNS)
    if before is None or not (before <= {*chosen} or before >= {*chosen}):  # the first ones, or others altogether
        st.session_state[_RUNS] = {*chosen}
    else:  # one that is not measured yet is new once it is
        here = {entry.key for entry in entries}
        new = [code for code in chosen if code in here and code not in before]
        if new and new[-1] in names:
            state.put("other_run", new[-1])
        st.session_state[_RUNS] = before & {*chosen} | {*new}
    if state.get("other_run") not in names:
        state.put("other_run", "")
    picked = controls.pick("other_run", "Query by query against", names)
    return telling if not picked else [entry.key for entry in entries].index(picked)


def _show_rows(
    entries: Sequence[RunEntry],
    rows: Sequence[RunRow],
    measure: str,
    reference: int,
    other: int | None,
    pairs: Pairs,
    compared: RunComparison,
    measured: Sequence[tuple[str, ...]],
    without: Sequence[str],
) -> None:
    """The finding, the rows of all runs, and one square for each query of two of them."""
    k = int(state.get("right_at"))
    elsewhere = len(entries) - 1 - len(compared.p_values)
    found, ranks = None, [metrics.first_ranks(entry.run.ranks) for entry in entries]
    if other is None:
        value = number(rows[reference].value.value, 1)
        message = f"**{messages.escape(rows[reference].name)}** has {measure} {value} %."
    else:
        found = run_rows.for_whom(ranks[other], ranks[reference], k)
        is_told = run_rows.best_of(rows).is_reference
        message = run_rows.finding(rows[other], rows[reference], measure, found, k, is_told)
        message = f"{run_rows.leading(rows, measure)} {message}"
    if elsewhere:
        message += f" {elsewhere} run{'' if elsewhere == 1 else 's'} on other data cannot be compared with it."
    figures.above(
        f"{message} {among(pairs)}".rstrip(),
        key="compare_rows",
        table=lambda: _rows_table(rows, measure),
        code=Command(metrics.interval, *measured, prints=_but(choices.NO_INTERVALS, without)),
        title="Runs compared",
        read=f"**{measure}**: {choices.MEANINGS[measure]}. Pale bars are 95 % intervals: where a value may lie for other "
        "queries. At the right, each run minus the one that all are compared with, query by query; it can be clear though "
        "the intervals at the left overlap. Bold and coloured: more than chance, among all runs that are compared (Holm). "
        "Grey and “unsure”: chance can explain it. Where the best run is the one compared with, it was picked among them, so "
        "that every pair of runs counts as a comparison; choose it yourself, and only the differences shown count.\n\n"
        "Below, a square is a query: who has a correct answer first.",
        not_shown="Whether another text would be an equally good answer, and how the runs do on other kinds of queries.",
        place=".bi-runs",
    )
    figures.markup(run_rows.drawn(rows, measure, rows[reference].name), key="run_rows")
    is_here = entries[reference].run.data.content_hash == pairs.content_hash
    if found is not None and other is not None and is_here:
        names = rows[other].name, rows[reference].name
        figures.markup(
            run_rows.squares(found, *names, pairs.queries.texts, ranks[other], ranks[reference], k), key="for_whom"
        )


def _rows_table(rows: Sequence[RunRow], measure: str) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "run": row.name,
                measure: round(row.value.value, 3),
                "low": round(row.value.low, 3),
                "high": round(row.value.high, 3),
                **dict(zip((f"{name} (%)" for name in run_rows.BESIDE), np.round(row.beside, 3), strict=True)),
                "difference": np.nan if row.difference is None else round(row.difference.value, 3),
                "difference, low": np.nan if row.difference is None else round(row.difference.low, 3),
                "difference, high": np.nan if row.difference is None else round(row.difference.high, 3),
                "more than chance": row.is_clear,
            }
            for row in rows
        ]
    )


def _measure_times(
    request: RunRequest, entries: Sequence[RunEntry], pairs: Pairs, indexes: Mapping[str, PairIndexes]
) -> None:
    """Have the times per query measured that are not known, and say why they are missing until then."""
    found = [
        (entry.run.milliseconds, timing)
        for entry in entries
        for code in (() if entry.code is None else entry.code.each)
        for timing in _timing(request, pairs, indexes, code, entry.candidates)
    ]
    timings = {timing.key: timing for _, timing in found}
    # Layers and poolings of one model share a time, and a fused run takes as long as its parts.
    if evaluation.measure_times(timings.values()):
        text = "– in the table: the time per query is measured as soon as no other job runs on this server."
        progress.until(lambda: not caching.queue().under_way(), lambda: st.caption(text), 1.0)
        return
    late = [timing.key for drawn, timing in found if drawn is None and (timing.known() or (None,))[0] is not None]
    if late and late != st.session_state.get(_LATE):
        st.session_state[_LATE] = late  # once: the figures were drawn before these times came
        st.rerun()


def _timing(
    request: RunRequest, pairs: Pairs, indexes: Mapping[str, PairIndexes], code: RunCode, candidates: Candidates | None
) -> list[Timing]:
    """How the time per query of a run that is not fused is measured; nothing while that is not known."""
    if code.words:
        return [evaluation.word_timing(word_rankings.word_ranking(request.backend, code.words), pairs)]
    if code.is_splade:
        return [splade.timing(request.models[code.model], pairs, f"timing_{code}")]
    of_model, stages = indexes[code.model], request.stages(code)
    if stages is None:
        return [evaluation.vector_timing(request.models[code.model].backend, pairs, of_model)]
    found = candidates or second_stage.candidates(stages, of_model.both, choices.search_texts(pairs), f"timing_{code}")
    return [second_stage.timing(stages, pairs, of_model, found)]


def _reference(entries: Sequence[RunEntry], comparable: Sequence[int], measure: str) -> tuple[int, bool]:
    """The number of the run that the others are compared with, and whether it was picked as the best.

    The best one is sought among the runs on the current data, if there are any.
    """
    judge = metrics.MEASURES[measure]
    best = max(comparable or range(len(entries)), key=lambda number: float(judge(entries[number].run.ranks).mean()))
    names = {"": f"the best ({entries[best].short})", **{entry.key: entry.short for entry in entries}}
    if state.get("reference") not in names:
        state.put("reference", "")
    chosen = controls.pick("reference", "Compare all runs with", names)
    if not chosen:
        return best, True
    return [entry.key for entry in entries].index(chosen), False


def _but(prints: str, without: Sequence[str]) -> str:
    """What commands print, and the runs that none of them measures."""
    named = " and ".join(f"“{' '.join(name.split())}”" for name in without)
    return f"{prints}; no command measures {named}" if without else prints


def _figure(
    kind: str,
    entries: Sequence[RunEntry],
    measure: str,
    measured: Sequence[tuple[str, ...]],
    without: Sequence[str],
) -> None:
    runs, names = [entry.run for entry in entries], [entry.short for entry in entries]
    most = min(MOST_K, min(run.data.documents for run in runs))
    ks = range(1, most + 1)
    recalls = [metrics.recall_curve(run.ranks, most) for run in runs]
    if kind == "curves":
        figures.figure(
            charts.curves_over(
                [charts.Curve(name, 100 * curve) for name, curve in zip(names, recalls, strict=True)],
                ks,
                "Recall@k of every run",
                x_title="k",
                y_title="Recall@k (%)",
                logarithmic=True,
            ),
            key="compare_curves",
            code=Command(metrics.recall_curve, *measured, prints=_but(choices.AT_CUTOFFS, without)),
            alt=f"Recall at k from 1 to {most} of {len(runs)} runs",
            read="The share of queries with a correct answer among the first k sentences. A run whose curve lies above "
            "another one at every k is better for every number of hits.",
            not_shown="Whether a small gap is more than chance: the rows above say so.",
            table=lambda: pd.DataFrame({"k": ks, **_columns(names, [100 * curve for curve in recalls])}),
        )
    elif kind == "precision":
        precisions = [metrics.precision_curve(run.ranks, most) for run in runs]
        is_single = all(isinstance(run.ranks, np.ndarray) for run in runs)
        figures.figure(
            charts.precision_recall(
                [
                    (name, 100 * recall, 100 * precision)
                    for name, recall, precision in zip(names, recalls, precisions, strict=True)
                ],
                "Precision against recall, k = 1, 2, 3 …",
            ),
            key="compare_precision",
            code=Command(
                metrics.precision_curve,
                *measured,
                prints=_but(f"the recall of {choices.AT_CUTOFFS}, not the precision", without),
            ),
            alt=f"Precision against recall of {len(runs)} runs, a point for each k up to {most}",
            read="Each point is one k. As more hits are shown, more queries are answered (to the right), and a smaller share "
            "of the hits is correct (down). The first point of each line is k = 1.",
            not_shown="Anything beyond the recall curve: with one correct answer per query, precision at k is Recall@k / k."
            if is_single
            else "How many of its correct answers a query finds: to the right is the share of queries with one of them.",
            table=lambda: pd.DataFrame({"k": ks, **_columns(names, [100 * curve for curve in precisions])}),
        )
    else:
        _cost(runs, names, measure)


def _cost(runs: Sequence[Run], names: Sequence[str], measure: str) -> None:
    judge = metrics.MEASURES[measure]
    costs = [
        charts.RunCost(name, 100 * float(judge(run.ranks).mean()), run.milliseconds, run.index_bytes / 1e6)
        for name, run in zip(names, runs, strict=True)
        if run.milliseconds is not None and run.index_bytes is not None
    ]
    if not costs:
        st.info("No time per query is known yet: it is measured as soon as no other job runs on this server.")
        return
    figures.figure(
        charts.quality_and_cost(costs, f"{measure} against the time per query", measure),
        key="compare_cost",
        code=NoCode("There is no code for it: these are times that this machine took when they were measured."),
        alt=f"{measure} of {len(costs)} runs against milliseconds per query; areas show the size of the index",
        read="Higher is better, further left is faster, and a larger point means a larger index. Time is the median of some "
        "queries, one at a time: to embed the query, compare it with every sentence, and find the first ten. Re-ranked runs "
        "add the time to score their candidates.",
        not_shown="The time in a batch or on another machine. Every layer is timed with the whole model here; loaded runs have "
        "the times of the machine that made them.",
        table=lambda: pd.DataFrame([vars(cost) for cost in costs]),
    )


def _columns(names: Sequence[str], curves: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    return {
        f"{number}  {name}": curve.round(3)
        for number, (name, curve) in enumerate(zip(names, curves, strict=True), start=1)
    }
