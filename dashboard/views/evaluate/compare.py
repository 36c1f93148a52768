"""Methods compared: runs side by side, the significance of differences, and where each run fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts.retrieval import evaluation as charts
from components.retrieval.evaluation import metrics
from components.snippets import evaluate as snippets
from components.snippets.code import NoCode
from dashboard import caching, state
from dashboard.corpora import word_rankings
from dashboard.jobs import evaluation, second_stage, splade
from dashboard.jobs.evaluation import PairIndexes, Timing
from dashboard.jobs.second_stage import Candidates
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import before_work, frame, progress
from dashboard.ui.wording import counted
from dashboard.views.evaluate import choices, queries, run_table, similarities
from dashboard.views.evaluate.choices import RunRequest, VectorCode
from dashboard.views.evaluate.queries import Entry
from dashboard.views.evaluate.run_table import Compared

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.run_record import Run
    from dashboard.jobs.embedding import EmbedRequest

FIGURES = {
    "curves": "Recall@k",
    "precision": "Precision and recall",
    "cost": "Quality and cost",
    "similarities": "Cosine and dot product",
}
MOST_K = 100


def compare(backend: Backend) -> None:
    """The table of runs, a figure, and the queries."""
    pairs = choices.current_pairs()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="row_compare"):
        scale = controls.scale()
        measure_slot, reference_slot = st.container(width=round(170 * scale)), st.container(width=round(320 * scale))
        panel = choices.runs_panel()
        with controls.options():
            run_table.all_measures()
    request = choices.run_request(backend, len(pairs), panel)
    above = st.container()  # for the table: it needs the runs that are requested and loaded below it
    entries, indexes = _entries(request, pairs)
    with st.container(key="load_place"):
        run_table.loading()
    entries += [Entry(run, f"loaded.{run.key}", f"{run.name} (loaded)", live=False) for run in run_table.loaded()]
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
    time_note = above
    with above, frame.figure("comparison"):  # the figure needs no significance, and does not wait for it
        table, compared = _compared(runs, [entry.title for entry in entries], measure, reference, is_best)
        _message(entries, compared, measure)
        is_same_data = all(run_table.paired(run, runs[0]) for run in runs)
        run_table.show(table, measure, [entry.short for entry in entries], is_same_data)
        choices.about(pairs)
        choices.about_second_stage(request)
        time_note = st.container()
        run_table.exports(runs, table)
    code = request.code_of((entry.code, entry.short) for entry in entries if entry.live)
    of_files = run_table.files_of_loaded()
    code += [
        snippets.LoadedRun(entry.title, entry.run.name, of_files.get(entry.run.key, ""))
        for entry in entries
        if not entry.live
    ]
    kind = controls.choice("compare_figure", "Figure", FIGURES, show_label=False)
    if kind == "similarities":
        with frame.figure("similarities"):
            similarities.similarities(request, entries, pairs, indexes)
    else:
        _figure(kind, entries, measure, code)
    queries.queries(
        [entry for entry in entries if run_table.paired(entry.run, entries[comparable[0]].run)] if comparable else [],
        pairs,
        request,
        indexes,
        code,
    )
    with time_note:
        _measure_times(request, entries, pairs, indexes)


def _entries(request: RunRequest, pairs: Pairs) -> tuple[list[Entry], dict[str, PairIndexes]]:
    """The finished runs, in the chosen order, and each model's indexes."""

    def by_vectors(
        backend: Backend, indexes: PairIndexes, code: VectorCode, name: str
    ) -> tuple[Run, Candidates | None] | None:
        if (code.layer, code.pooling) not in indexes.ranks:
            return None
        stages = request.stages(code)
        if stages is None:
            return evaluation.vector_run(backend, pairs, indexes, code.layer, code.pooling), None
        both = indexes.documents, indexes.queries
        texts = pairs.documents.texts, pairs.queries.texts
        candidates = second_stage.candidates(stages, both, *texts, pairs.content_hash, f"compare {name}")
        return second_stage.pair_run(stages, pairs, indexes, candidates), candidates

    def indexes_of(embed_request: EmbedRequest, model: str) -> PairIndexes:
        found = evaluation.pair_indexes(embed_request, pairs, f"compare_{model}")
        before_work.other_layers(embed_request, pairs.documents, f"compare_{model}")
        return found

    ready, indexes = request.gather(
        lambda kind: (evaluation.word_run(word_rankings.word_ranking(request.backend, kind), pairs), None),
        lambda embed_request, code: (splade.pair_run(embed_request, pairs, f"compare_{code}"), None),
        indexes_of,
        by_vectors,
    )
    return [Entry(run, code, name, candidates=candidates) for code, name, (run, candidates) in ready], indexes


def _compared(
    runs: list[Run], names: list[str], measure: str, reference: int, is_best: bool
) -> tuple[pd.DataFrame, Compared]:
    table, compared = evaluation.result(
        (
            "comparison",
            tuple((run.key, name) for run, name in zip(runs, names, strict=True)),
            measure,
            reference,
            is_best,
        ),
        f"Comparing {counted(len(runs), 'run')}",
        lambda report_progress, is_cancelled: run_table.results(runs, measure, reference, is_best, names),
        "comparison",
        short=True,
    )
    # A time that is measured later must not cost another comparison.
    return table.assign(**run_table.costs(runs)), compared


def _measure_times(
    request: RunRequest, entries: Sequence[Entry], pairs: Pairs, indexes: Mapping[str, PairIndexes]
) -> None:
    """Have the times per query measured that are not known, and say why they are missing until then."""
    timings = {
        (timing := _timing(request, pairs, indexes, entry)).key: timing for entry in entries if entry.live
    }  # layers and poolings of one model share a time
    if evaluation.measure_times(timings.values()):
        text = "– in the table: the time per query is measured as soon as no other job runs on this server."
        progress.until(lambda: not caching.queue().under_way(), lambda: st.caption(text), 1.0)


def _timing(request: RunRequest, pairs: Pairs, indexes: Mapping[str, PairIndexes], entry: Entry) -> Timing:
    if entry.code in choices.SPLADE_CODES:
        embed_request = request.models[choices.SPLADE_CODES[entry.code]]
        return splade.timing(embed_request, pairs, f"timing_{entry.code}")
    code = choices.parsed(entry.code)
    if code is None:
        return evaluation.word_timing(word_rankings.word_ranking(request.backend, entry.code), pairs)
    stages = request.stages(code)
    if stages is not None and entry.candidates is not None:
        return second_stage.timing(stages, pairs, indexes[code.model], entry.candidates)
    return evaluation.vector_timing(request.models[code.model].backend, pairs, indexes[code.model])


def _reference(entries: Sequence[Entry], comparable: Sequence[int], measure: str) -> tuple[int, bool]:
    """The number of the run that the others are compared with, and whether it was picked as the best.

    The best one is sought among the runs on the current data, if there are any.
    """
    judge = metrics.MEASURES[measure]
    best = max(comparable or range(len(entries)), key=lambda number: float(judge(entries[number].run.ranks).mean()))
    names = {"": f"the best ({entries[best].short})", **{entry.code: entry.short for entry in entries}}
    if state.get("reference") not in names:
        state.put("reference", "")
    chosen = controls.pick("reference", "Compare all runs with", names)
    if not chosen:
        return best, True
    return [entry.code for entry in entries].index(chosen), False


def _message(entries: Sequence[Entry], compared: Compared, measure: str) -> None:
    reference = entries[compared.reference]
    value = 100 * float(metrics.MEASURES[measure](reference.run.ranks).mean())
    text = f":material/insights: **{messages.escape(reference.short)}** has {measure} {value:.1f} %. "
    unsure = " · ".join(f"**{messages.escape(entries[number].short)}**" for number in compared.unsure)
    significant = len(compared.p_values) - len(compared.unsure)
    if unsure:
        text += f"It is not significantly different from {unsure}. "
    if significant:
        many = f"The differences to {significant} other runs are"
        text += "The difference to one other run is" if significant == 1 else many
        text += f" statistically significant (p < {metrics.ALPHA:g}). "
    other_data = len(entries) - 1 - len(compared.p_values)
    if other_data:
        text += f"{other_data} run{'' if other_data == 1 else 's'} on other data cannot be compared with it."
    st.markdown(text)


def _figure(kind: str, entries: Sequence[Entry], measure: str, code: Sequence[snippets.AnyRun]) -> None:
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
            code=snippets.compared(choices.code_of_pairs(), code, most, "curves"),
            alt=f"Recall at k from 1 to {most} of {len(runs)} runs",
            read="The share of queries with a correct answer among the first k sentences. A run whose curve lies above "
            "another one at every k is better for every number of hits.",
            not_shown="Whether a small gap is statistically significant: the table says so.",
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
            code=snippets.compared(choices.code_of_pairs(), code, most, "precision"),
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
        charts.Cost(name, 100 * float(judge(run.ranks).mean()), run.milliseconds, run.index_bytes / 1e6)
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
