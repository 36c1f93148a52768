"""A model before and after training: measures, sentences, layers, heads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.arrays import Float64
from components.charts import curves, theme
from components.charts import training as charts
from components.charts.retrieval import evaluation as evaluation_charts
from components.errors import InputError, UserError
from components.model.catalog import RUN_PREFIX, spec_of
from components.numbers import as_read, difference
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.evaluation import pair_runs, sts
from components.retrieval.evaluation.metrics import Interval
from components.shown_code import commands
from components.shown_code.arrays import Input
from components.shown_code.attention import heads_changed
from components.shown_code.code import Command
from components.shown_code.cosines import layers_changed
from components.training import before_after, runs
from components.training.history import history
from components.training.run_folder import RunFolder, WatchVectors
from dashboard import caching, navigation, state
from dashboard.corpora import current
from dashboard.jobs import evaluation, requests, training
from dashboard.jobs.requests import NotReady
from dashboard.ready_made import ASSETS
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import frame, progress
from dashboard.ui.wording import counted
from dashboard.views.training import choice, failures, findings, microscope, row_source
from dashboard.views.training.ranks import Models, Ranks, options, ranks_of, read_length, stored_ranks, vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.sts import ScoredPairs
    from components.training.data import TrainingData
    from components.training.settings import TrainingSettings

PARTS = {
    "measures": "Measures",
    "failures": "Known failures",
    "sentences": "Sentences",
    "words": "Words",
    "layers": "Layers",
    "heads": "Heads",
}
DATA = {
    "news": "Demo news",
    "scored": "Demo scored pairs",
    "held-out": "Held-out rows",
}
QUERIES_SHOWN = 6
SCORED_FILE = "assets/sts_pairs.jsonl"  # as a command in the folder of this project reads it
LISTS = {"repaired": "Repaired", "lost": "Still lost", "harmed": "Harmed"}
LIST_SAYS = {
    "repaired": "Right answer first only after training",
    "lost": "Right answer first neither before nor after training",
    "harmed": "Right answer first only before training",
}
UNDER_WAY = {"waiting", "running"}  # states of a run
CHOSEN_ON_THEM = (
    "How good the model is on rows that had no part in training: the step that is kept is the best one on these very rows, so "
    "they show it a little too good, and the interval and the test do not know that. The demo's data had no part in it. "
)


@dataclass(frozen=True, eq=False)
class Cosines:
    """Cosines of scored pairs, float64 [pair]."""

    base: Float64
    tuned: Float64
    untouched: Float64 | None = None


def after(_: Backend) -> None:
    """One run's model beside the one that it was trained from."""
    listed = runs.list_runs()
    if not any(run.has_model or choice.status_of(run) in UNDER_WAY for run in listed):
        _example(listed)
        return
    with controls.row():
        # The newest one with a result, unless a person chose another.
        run = choice.run(sorted(listed, key=lambda run: not run.has_model))
        is_of_negation = _is_of_negation(run)
        part = controls.pick("after_part", "Compare", PARTS, default="failures" if is_of_negation else "measures")
        source_slot = st.empty()
    row_source.name_data(run)
    if not run.has_model:
        _no_model(run)
        return
    _which_step(run)
    if part == "measures":
        _measures(source_slot, run)
    else:
        {"failures": _failures, "sentences": _sentences, "words": _words, "layers": _layers, "heads": _heads}[part](run)


def _example(listed: list[RunFolder]) -> None:
    """What the stored example run changed, before there is a model that was trained here."""
    run, settings = choice.EXAMPLE, choice.EXAMPLE.settings()
    choice.say_example(listed)
    pairs = pair_runs.pairs_of_corpus(current.demo())
    # Of the last layer, by the model's own pooling, as the command measures where it is not told otherwise.
    length = ("--max-length", str(settings.max_length))
    of_models = [
        ("evaluate", "--model", model, *length, "--json", "-", "--", current.DEMO_FILE)
        for model in choice.EXAMPLE_MODELS
    ]
    _ranked(run, stored_ranks(), settings, pairs, "news", (choice.again(run), *of_models))


def _is_of_negation(run: RunFolder) -> bool:
    """Whether a run learnt “not”, which the known failures measure; not where its files are damaged."""
    try:
        return run.settings().data == "demo:not"
    except UserError:
        return False


def _no_model(run: RunFolder) -> None:
    """Say why there is nothing to compare yet."""
    is_under_way = choice.status_of(run) in UNDER_WAY
    st.info(
        "**This run is under way.** Once it has ended, or was stopped, this view shows what it changed."
        if is_under_way
        else "**This run ended before it had a model.** “Watch” can continue it.",
        icon=":material/hourglass_empty:" if is_under_way else ":material/info:",
    )
    st.button("Show the run", key="go_to_run", on_click=state.open_view, args=("training-run",))


def _which_step(run: RunFolder) -> None:
    """Say which step is compared where that is not what people expect: the run collapsed, and an earlier step is kept."""
    record = run.record() or {}
    collapsed = [notice.step for notice in caching.run_history(run).notices if notice.code == "collapse"]
    if collapsed and record.get("best_step", 0) < collapsed[0]:
        st.info(
            f"**This run collapsed at step {collapsed[0]:,}, and what is compared here is step {record['best_step']:,}:** the "
            "best one on the held-out rows is kept. “Watch” shows the collapse: move the slider to its last step.",
            icon=":material/info:",
        )


def _models(run: RunFolder, with_untouched: bool = False) -> Models:
    """The models to compare. Raises NotReady while they are loaded, or if one cannot be; why is drawn."""
    keys = {"base": training.base_of(run), "tuned": RUN_PREFIX + run.name}
    untouched = _untouched(run) if with_untouched else None
    if untouched is not None:
        keys["untouched"] = untouched
    loader, loaded = caching.models(), []
    for name, key in keys.items():
        with frame.figure(f"load_{name}_model"):
            loaded.append(
                requests.result_of(
                    loader.jobs,
                    loader.request(spec_of(key), caching.person()),
                    doing="loading a model",
                    stop_key=f"stop_{name}_model",
                    again_key=f"again_{name}_model",
                    unit=progress.BYTES,
                )
            )
    if len(loaded) < len(keys):
        raise NotReady
    return Models(*loaded)


def _untouched(run: RunFolder) -> str | None:
    """The key of the published model, where it is a third one; why it is missing is drawn where it cannot be had."""
    try:
        return training.untouched_of(run)
    except InputError as problem:
        st.info(
            f"**The model as published is not shown here.** {messages.escape(problem.problem)} Whether training made this "
            "model better or worse than that one cannot be told from the two below.",
            icon=":material/info:",
        )
        return None


def _measures(slot: st.delta_generator.DeltaGenerator, run: RunFolder) -> None:
    """Retrieval or agreement with people, before and after, with paired intervals and tests."""
    settings = run.settings()
    data, split = caching.run_data(run)
    is_retrieval = data.kind in {"pairs", "triplets"}
    offered = {key: name for key, name in DATA.items() if key != "held-out" or is_retrieval or data.kind == "scored"}
    with slot:
        source = controls.pick("after_data", "Measured on", offered, default="news" if is_retrieval else "scored")
    models = _models(run, with_untouched=True)
    if models.tuned.is_cross_encoder:
        _recorded(run, True)
        return
    held_out = data.take(split.held_out)
    with frame.figure("measured_again") as figure:
        if source == "scored" or (source == "held-out" and data.kind == "scored"):
            scored = _demo_scored() if source == "scored" else _held_out_scored(held_out)
            _agreement(run, models, settings, scored, source)
        else:
            pairs = pair_runs.pairs_of_corpus(current.demo()) if source == "news" else _held_out_pairs(held_out)
            if not pairs.can_be_measured:
                st.info(
                    f"**The held-out rows have {pairs.why_not_measured}:** each query would find one, so nothing can be "
                    "measured."
                )
                return
            _retrieval(run, models, settings, pairs, source)
    if figure.not_ready is not None:
        _recorded(run, False)


def _held_out_scored(rows: TrainingData) -> ScoredPairs:
    assert rows.labels is not None
    return sts.ScoredPairs(rows.columns["sentence1"], rows.columns["sentence2"], tuple(map(float, rows.labels)))


def _held_out_pairs(rows: TrainingData) -> Pairs:
    return pair_runs.pairs_of_rows(rows.name, rows.columns["positive"], rows.columns["anchor"])


def _demo_scored() -> ScoredPairs:
    return sts.scored_pairs(read_corpus(ASSETS / "sts_pairs.jsonl", "sts_pairs.jsonl", "sentence1", limits=None))


def _key(kind: str, run: RunFolder, models: Models, content: str) -> tuple[object, ...]:
    """Names a comparison; a run that was resumed has another result."""
    return (kind, run.name, (run.record() or {}).get("model_sha256", run.state().step), len(models.all), content)


def _retrieval(run: RunFolder, models: Models, settings: TrainingSettings, pairs: Pairs, source: str) -> None:
    found = evaluation.result(
        _key("before and after ranks", run, models, pairs.content_hash),
        f"Searching {counted(len(pairs), 'query', 'queries')} before and after training",
        partial(ranks_of, models, settings, pairs),
        "after_ranks",
    )
    _ranked(run, found, settings, pairs, source, _measured(models, settings, source))


def _ranked(
    run: RunFolder,
    ranks: Ranks,
    settings: TrainingSettings,
    pairs: Pairs,
    source: str,
    measured: Iterable[tuple[str, ...]],
) -> None:
    """Bars, single queries and measures; `measured` are the commands that print the ranks' measures."""
    changes = before_after.retrieval_changes(ranks.base, ranks.tuned)
    beside = None if ranks.untouched is None else before_after.retrieval_changes(ranks.untouched, ranks.tuned)
    line = st.container()
    left, right = st.columns([5, 4], gap="large")
    with left:
        _bars(
            run,
            (changes[0].name, changes[0].base, changes[0].tuned, None if beside is None else beside[0].base),
            f"{len(pairs):,} queries, {_where(source)}",
            settings,
            Command(before_after.retrieval_changes, *measured),
            findings.won_back(
                changes[0].name,
                findings.of_retrieval(changes[0]),
                None if beside is None else findings.of_retrieval(beside[0]),
                int(np.count_nonzero(_listed(ranks, "harmed"))),
                _untouched_name(settings),
            ),
            line,
        )
    _what_is_compared(source)
    with right:
        _queries(run, pairs, ranks, source, _untouched_name(settings))
    rows = pd.DataFrame([_row(*both, settings) for both in zip(changes, beside or [None] * 3, strict=True)])
    with st.container(key="changed_measures"):  # a column for each measure: a phone has room for no more
        figures.plain_table(rows.set_index("measure").T.rename_axis("measure", axis=0).reset_index())


def _measured(models: Models, settings: TrainingSettings, source: str) -> Iterator[tuple[str, ...]]:
    """The commands that measure the models on included data; none for rows of the run, and for a model without a name."""
    files = {"news": ("evaluate", current.DEMO_FILE), "scored": ("sts", SCORED_FILE)}
    for backend in models.all:
        if source in files and backend.spec.source != "folder":
            command, file = files[source]
            cell = [backend.facts.layers], [backend.own_pooling]
            yield commands.measured(command, (file,), backend, *cell, read_length(backend, settings))


def _moves(moved: before_after.QueryChanges) -> str:
    return f"{counted(moved.better, 'query', 'queries')} moved up, {moved.worse:,} down, {moved.unchanged:,} stayed."


def _agreement(run: RunFolder, models: Models, settings: TrainingSettings, pairs: ScoredPairs, source: str) -> None:
    def compare(report_progress: ReportProgress, is_stopped: IsStopped) -> Cosines:
        sides = (tuple(pairs.first), tuple(pairs.second))
        return Cosines(*failures.cosines_of(models.all, partial(vectors, settings), sides, report_progress, is_stopped))

    cosines = evaluation.result(
        _key("before and after cosines", run, models, pairs.content_hash),
        f"Comparing {counted(len(pairs.first), 'pair')} before and after training",
        compare,
        "after_cosines",
    )
    change = before_after.spearman_change(cosines.base, cosines.tuned, pairs.scores)
    beside = None
    if cosines.untouched is not None:
        beside = before_after.spearman_change(cosines.untouched, cosines.tuned, pairs.scores)
    is_ordered = not any(np.isnan(item.difference.value) for item in (change, beside) if item is not None)
    _bars(
        run,
        ("Spearman", change.base, change.tuned, None if beside is None else beside.base),
        f"{len(pairs.first):,} scored pairs, {_where(source)}",
        settings,
        Command(before_after.spearman_change, *_measured(models, settings, source)),
        _finding(
            findings.MeasureName("Spearman", "correlation"),
            findings.of_correlation(change),
            None if beside is None else findings.of_correlation(beside),
            settings,
        )
        if is_ordered
        else "One of the models gives all pairs the same cosine, or none: there is no order to compare.",
    )
    if not is_ordered:
        return
    _largest(pairs, cosines)
    _what_is_compared(source)


def _failures(run: RunFolder) -> None:
    """How often each model puts the same meaning above a sentence that differs in one thing."""
    settings = run.settings()
    models = _models(run, with_untouched=True)
    if models.tuned.is_cross_encoder:
        st.info("A cross-encoder gives no vectors, so that there are no cosines of pairs to compare.")
        return

    failures.draw(
        models.all,
        partial(vectors, settings),
        lambda kind, content: _key(kind, run, models, content),
        {"before": _before(settings), "untouched": _untouched_name(settings)},
        partial(options, settings),
    )


def _largest(pairs: ScoredPairs, cosines: Cosines) -> None:
    """The pairs whose cosine changed most."""
    order = np.argsort(-np.abs(cosines.tuned - cosines.base), kind="stable")[:QUERIES_SHOWN]
    figures.note("**Pairs whose cosine changed most**")
    figures.plain_table(
        pd.DataFrame(
            [
                {
                    "people": as_read(pairs.scores[row]),
                    "before": theme.number(cosines.base[row]),
                    "after": theme.number(cosines.tuned[row]),
                    "first": pairs.first[row],
                    "second": pairs.second[row],
                }
                for row in order
            ]
        )
    )


def _where(source: str) -> str:
    return {"news": "demo news", "scored": "demo pairs", "held-out": "held-out rows"}[source]


def _finding(
    measure: findings.MeasureName,
    change: findings.ModelDifference,
    beside: findings.ModelDifference | None,
    settings: TrainingSettings,
) -> str:
    """What training changed, and where the trained model stands beside the untouched one."""
    said = [findings.trained(measure, change, _before(settings))]
    if beside is not None:
        said.append(findings.beside_untouched(measure, change.first, beside, _untouched_name(settings)))
    elif _is_published(settings):
        said.append(findings.SAME_AS_BEFORE)
    return " ".join(said)


def _row(
    change: before_after.MeasureChange, beside: before_after.MeasureChange | None, settings: TrainingSettings
) -> dict[str, str]:
    """A measure in the table; after minus untouched too, where that is a third model."""
    measure, name = findings.MeasureName(change.name, "share"), _untouched_name(settings)
    row = {"measure": change.name}
    if beside is not None:  # first, as among the bars
        row[name] = measure.shown(beside.base.value)
    row["before"], row["after"] = measure.shown(change.base.value), measure.shown(change.tuned.value)
    row["after minus before (95 % interval)"] = _difference(change)
    if beside is not None:
        row[f"after minus {name}"] = _difference(beside)
    return row


def _difference(change: before_after.MeasureChange) -> str:
    low, high = (theme.signed(100 * end, 1) for end in (change.difference.low, change.difference.high))
    moved = difference(100 * change.tuned.value, 100 * change.base.value)
    return f"{theme.signed(moved, 1)} ({low} to {high}), {'' if change.is_significant else 'not '}significant"


def _is_published(settings: TrainingSettings) -> bool:
    """Whether a run started from a model as it was published."""
    return not settings.damage and not settings.model.startswith(RUN_PREFIX)


def _before(settings: TrainingSettings) -> str:
    """What the model before training is called."""
    return "before (damaged)" if settings.damage else "before (as published)" if _is_published(settings) else "before"


def _untouched_name(settings: TrainingSettings) -> str:
    """What the third model is called: undamaged only where nothing but the damage lies between it and the start."""
    return findings.PUBLISHED if settings.model.startswith(RUN_PREFIX) else findings.UNDAMAGED


def _bars(
    run: RunFolder,
    measure: tuple[str, Interval, Interval, Interval | None],
    title: str,
    settings: TrainingSettings,
    code: Command,
    message: str,
    line: st.delta_generator.DeltaGenerator | None = None,
) -> None:
    """Draw a measure of the models as bars, each with its interval, and what they say; the finding stands in `line`.

    The measure is its name, and its interval before training, after it and of the untouched model.
    """
    name, base, tuned, untouched = measure
    factor, digits = (1.0, 3) if name == "Spearman" else (100.0, 1)
    record = run.record() or {}
    rows = record["split"]["train"] if run == choice.EXAMPLE else len(caching.run_data(run)[1].train)
    steps, kept = record.get("steps", run.state().step), record.get("best_step")
    which = f"kept: step {kept:,} of {steps:,}" if kept not in (None, steps) else counted(steps, "step")
    trained = f"{counted(rows, 'row')}, {which}"
    sides = {} if untouched is None else {_untouched_name(settings): (untouched, "as published")}
    sides |= {
        _before(settings): (base, "with noise in its weights" if settings.damage else ""),
        "after": (tuned, trained),
    }
    if _untouched_name(settings) == findings.PUBLISHED and untouched is not None:
        sides[findings.PUBLISHED] = (untouched, "")
    values = {side: factor * np.array([item.value, item.low, item.high]) for side, (item, _) in sides.items()}
    figures.figure(
        charts.model_bars(
            [(side, sides[side][1], (float(of[0]), float(of[1]), float(of[2]))) for side, of in values.items()],
            title,
            x_title="Recall@1: right answer first (%)" if factor > 1 else f"{name} with the scores that people gave",
            unit=" %" if factor > 1 else "",
            top=factor,
            digits=digits,
            dark=controls.is_dark(),
        ),
        key="after_measures",
        code=code,
        alt=f"{name} before and after training"
        + ("" if untouched is None else f", and of the model {_untouched_name(settings)}")
        + ", with 95 % intervals",
        message=message,
        line_in=line,
        table=lambda: pd.DataFrame(
            {
                "measure": [name],
                **{
                    f"{when}{end}": [round(float(ends[column]), 4)]
                    for when, ends in values.items()
                    for column, end in enumerate(("", ", low", ", high"))
                },
            }
        ),
    )


def _what_is_compared(source: str) -> None:
    figures.reading(
        "Both models embed the same texts: last layer, each with its own pooling. Lines on the bars are 95 % "
        "intervals; the difference is compared query by query (or pair by pair), so that it can be clear where the "
        "intervals overlap." + (" The demo news are never trained on." if source == "news" else ""),
        (CHOSEN_ON_THEM if source == "held-out" else "")
        + "Whether the gain holds for other kinds of text. A model that was published for sentence vectors often has little "
        "to gain from a few hundred rows, and may lose elsewhere.",
    )


def _listed(ranks: Ranks, which: str) -> NDArray[np.bool_]:
    """Which queries are in a list, bool [query]."""
    first, now = ranks.base == 1, ranks.tuned == 1
    return {"repaired": ~first & now, "lost": ~first & ~now, "harmed": first & ~now}[which]


def _queries(run: RunFolder, pairs: Pairs, ranks: Ranks, source: str, untouched: str) -> None:
    """The queries that training repaired, that are still lost, or that it harmed; each opens in Search, with both models."""
    counts = {which: int(np.count_nonzero(_listed(ranks, which))) for which in LISTS}
    which = controls.choice(
        "after_queries", "Queries", {key: f"{name} {counts[key]}" for key, name in LISTS.items()}, show_label=False
    )
    rows = np.flatnonzero(_listed(ranks, which))
    change = ranks.base[rows] - ranks.tuned[rows]
    rows = rows[np.argsort(-change if which == "repaired" else change, kind="stable")][:QUERIES_SHOWN]
    figures.note(f"**{LIST_SAYS[which]}**")
    can_open = source == "news" and run.has_model  # the example has none
    moves = _moves(before_after.query_changes(ranks.base, ranks.tuned, 1))
    st.caption(f"{'Rank of the right answer in each model.' if len(rows) else 'None.'} {moves}")
    for row in rows.tolist():
        text = pairs.queries.texts[row]
        own = [] if ranks.untouched is None else [f"{untouched} {ranks.untouched[row]:,}"]
        own += [f"before {ranks.base[row]:,}", f"**after {ranks.tuned[row]:,}**"]
        with st.container(horizontal=True, vertical_alignment="center", key=f"after_query_{row}"):
            st.markdown(f"{messages.escape(text)}  \n{' · '.join(own)}", width="stretch")
            if can_open and st.button(
                "Open in Search",
                key=f"search_{row}",
                icon=":material/search:",
                type="tertiary",
            ):
                _open_in_search(run, text)


def _open_in_search(run: RunFolder, query: str) -> None:
    """Show a query's hits by the trained model, compared with those of the one before."""
    current.choose(None)
    navigation.go_to(
        "hits",
        query=query,
        model=RUN_PREFIX + run.name,
        model2=training.base_of(run),
        compare_with="model",
        layer=None,
        layer2=None,
        pooling=None,
        pooling2=None,
    )


def _recorded(run: RunFolder, is_cross_encoder: bool) -> None:
    """The measures that the run took of itself: while others are computed, and for a cross-encoder."""
    record = run.record() or {}
    before, now = record.get("before") or {}, record.get("after") or {}
    keys = [name for name in before if isinstance(now.get(name), int | float)]
    # On one axis only what should rise; losses have another scale, and should fall.
    keys = [name for name in keys if name in choice.HIGHER_IS_BETTER] or keys
    if not keys:
        st.info("This run recorded no measures.")
        return
    names = [choice.MEASURES.get(key, key) for key in keys]
    settings, sides = run.settings(), {"before": before, "after": now}
    undamaged = record.get("undamaged") or {}
    if all(isinstance(undamaged.get(key), int | float) for key in keys):
        sides["undamaged"] = undamaged
    values = {name: np.array([[float(side[key])] for key in keys]) for name, side in sides.items()}
    figures.figure(
        charts.before_after_bars(
            names,
            values["before"],
            values["after"],
            "During the run, on its held-out rows",
            quantity="measure",
            before_name=_before(settings),
            untouched=values.get("undamaged"),
            untouched_name="undamaged",
            dark=controls.is_dark(),
        ),
        key="after_recorded",
        code=Command(history, choice.again(run)),
        alt=f"{', '.join(names)} before and after training" + (", and undamaged" if "undamaged" in sides else ""),
        table=lambda: pd.DataFrame({"measure": names, **{name: side[:, 0] for name, side in values.items()}}),
    )
    if is_cross_encoder:
        st.caption("A cross-encoder reads two texts together and gives a score: it has no vectors to search with.")


def _watched(run: RunFolder) -> tuple[WatchVectors, WatchVectors]:
    """The watch sentences before training, and at the recorded step nearest to the one that was kept.

    Raises NotReady, which says why, where there are none.
    """
    steps = run.watch_steps()
    if len(steps) < 2:
        raise frame.Instead(lambda: st.info("This run recorded no watch sentences."))
    kept = (run.record() or {}).get("best_step")
    last = min(steps[1:], key=lambda step: abs(step - kept)) if isinstance(kept, int) else steps[-1]
    try:
        return run.watch_at(steps[0], last)
    except UserError as problem:
        raise frame.Instead(partial(messages.explain, problem, "reading the watch sentences")) from problem


def _sentences(run: RunFolder) -> None:
    """The similarity matrices of the watch sentences on one scale, with means within and between groups."""
    before, now = _watched(run)
    sentences = run.settings().watch
    groups = microscope.groups_of(sentences)
    change = before_after.similarity_change(before.sentences[-1], now.sentences[-1], groups or (None,) * len(sentences))
    microscope.matrices(run, change, sentences, (before, now), len(before.sentences) - 1, "after_matrix")
    if groups is not None:
        figures.plain_table(
            pd.DataFrame(
                [
                    {
                        "mean cosine": name,
                        "before": theme.number(base),
                        "after": theme.number(tuned),
                        "change": theme.signed(round(tuned, 3) - round(base, 3)),  # of what stands beside it
                    }
                    for name, base, tuned in (
                        ("within a topic", change.base_means.within, change.tuned_means.within),
                        ("between topics", change.base_means.between, change.tuned_means.between),
                        ("gap", change.base_means.gap(), change.tuned_means.gap()),
                    )
                ]
            )
        )
    figures.reading(
        "Both matrices have one colour scale. A larger gap means that sentences of one topic (money, river, bench) stand "
        "out more clearly from the others.",
        "How good the model is: these are the watch sentences of the run, chosen for looking.",
    )


def _words(run: RunFolder) -> None:
    """The tokens of the watch sentences as a map before and after training, and a word's curves over the layers."""
    before, now = _watched(run)
    microscope.token_maps(run, before, now, "after_map")
    microscope.word_figures(run, before, now, "after_curves")
    figures.reading(
        microscope.MAPS_READ
        + " Below, each curve is the mean cosine of a word in sentences of two topics, in each layer.",
        microscope.MAPS_DO_NOT_SHOW,
    )


def _layers(run: RunFolder) -> None:
    """How much each layer's token vectors changed."""
    before, now = _watched(run)
    try:
        change = before_after.layer_change(before.tokens, now.tokens)
    except InputError as problem:
        messages.explain(problem, "comparing the layers")
        return
    most = change.most_moved
    moved = (
        f"**Layer {most[0]}** changed most in which tokens are similar (1 − CKA: {theme.number(1 - change.cka[most[0]])})."
        if most
        else ""
    )
    figures.figure(
        curves.layer_curves(
            np.array([1 - change.cka, 1 - change.cosine]),
            ("which tokens are similar (1 − CKA)", "each token's direction (1 − cosine)"),
            "How much each layer changed",
            y_title="change (0: none)",
            mark_extremes=False,
        ),
        key="after_layers",
        code=layers_changed(run.name, [before.step, now.step], before.tokens.shape),
        alt=f"1 minus CKA and 1 minus mean cosine of {change.tokens} tokens before and after training, by layer",
        message=f"{moved} Compared on {counted(change.tokens, 'token')} of the watch sentences.",
        read="0 means that training changed nothing in this layer. The first curve asks whether the same tokens are still "
        "similar to each other, by centred kernel alignment (CKA, Kornblith et al. 2019), which is 1 if all vectors only turn "
        "together. The second asks how far each token's vector turned.",
        not_shown="What changed for other texts. With few tokens CKA is high by chance: with the tokens matched at random it "
        f"is {theme.number(float(np.nanmean(change.chance)), 2)} on average.",
        table=lambda: pd.DataFrame(
            {
                "layer": range(len(change.cka)),
                "CKA": change.cka.round(5),
                "mean cosine": change.cosine.round(5),
                "CKA by chance": change.chance.round(5),
            }
        ),
    )


def _heads(run: RunFolder) -> None:
    """How much of its attention each head moved to other tokens."""
    sentences = run.settings().watch
    if not sentences:
        st.info("This run recorded no watch sentences.")
        return
    models = _models(run)
    before, now = (backend.trace(sentences, attentions=True) for backend in (models.base, models.tuned))
    assert before.attentions is not None
    assert now.attentions is not None
    change = before_after.head_change(before.attentions, now.attentions, before.attention_mask.astype(bool))
    block, head, share = change.top(1)[0]
    blocks, heads = change.share.shape
    figures.figure(
        evaluation_charts.measure_grid(
            100 * change.share,
            [str(number) for number in range(blocks)],
            [str(number) for number in range(heads)],
            "Attention that moved (%)",
            unit="moved (%)",
            row_title="block",
            column_title="head",
            starred=(block, head),
            digits=0,  # so that the numbers can be read on a phone
        ),
        key="after_heads",
        code=heads_changed(*(Input(backend, sentences) for backend in (models.base, models.tuned))),
        alt=f"Share of attention that moved, for {blocks} blocks and {heads} heads",
        message=f"**Block {block}, head {head}** ★ changed most: {100 * share:.1f} % of its attention went to other tokens.",
        read="Each cell is a head: half the sum of the absolute differences of its attention before and after, averaged over "
        "all tokens of the watch sentences. 0: nothing moved; 100: all attention went to other tokens.",
        not_shown="Whether the change matters for the vectors: a head can move its attention between tokens with nearly the "
        "same content. The page Inside shows any head of either model.",
        table=lambda: (
            pd.DataFrame((100 * change.share).round(3), columns=[f"head {number}" for number in range(heads)])
            .rename_axis("block")
            .reset_index()
        ),
    )
