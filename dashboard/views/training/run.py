"""A training run: how it goes while it goes, what it changes step by step, and the list of all runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.charts import training as charts
from components.errors import UserError
from components.model.catalog import RUN_PREFIX
from components.shown_code.code import NoCode
from components.sizes import in_words
from components.training import runs
from components.training.history import History, Notice
from components.training.objectives import OBJECTIVES
from components.training.run_folder import RunFolder, RunState
from dashboard import access, caching, state
from dashboard.jobs import requests, training
from dashboard.jobs.requests import Awaited
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import progress
from dashboard.ui.wording import counted, duration
from dashboard.views.training import choice, findings, microscope, row_source
from dashboard.views.training import plan as plans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from components.jobs import Job
    from components.model.backend import Backend

FIGURES = {"measures": "Held-out measures", "rate": "Learning rate", "speed": "Speed"}
SHARES = {"Recall@1", "Recall@10", "accuracy"}  # measures in per cent
LIVE_SECONDS = 2.0  # between two drawings of a run at work
LISTED = 12
_CHANGED = "_more_than_the_run_changed"  # session key: a click changed what the rest of the page shows
NOTICES = {"collapse": "collapse", "overfitting": "overfitting", "diverged": "the loss diverged"}
READ = (
    "The blue line is the model on the held-out rows, the orange dot the model before training, and a dashed line the model "
    "before it was damaged. The ring and the dotted line are at the step whose weights are kept, the best there; its number "
    "stands beside the measure's name. Of the loss, a grey dot is that of one step on its training rows, and the grey line the "
    "mean of several. The held-out loss may begin lower, since it is measured without dropout, and batches with fewer rows "
    "have fewer wrong answers. Where the cosine of unrelated texts nears 1, the model has collapsed."
)
NOT_SHOWN = "How good the model is on other texts: “Before and after” measures that."
WHAT_TO_DO = {
    "collapse": "**Collapse.** At step {step} texts that have nothing to do with each other have nearly the same vector (mean "
    "cosine {value}): the model no longer tells sentences apart. More rows, a lower learning rate, fewer epochs, or an "
    "objective that pushes vectors apart can prevent it.",
    "overfitting": "**Overfitting.** By step {step} the loss on the held-out rows had risen above its lowest value while the "
    "training loss went on falling: the model learns the rows by heart. The best step is kept. Use more rows, fewer epochs, "
    "or a lower learning rate.",
    "diverged": "**The loss diverged** at step {step}: the steps are too large. Use a lower learning rate, or a longer "
    "warm-up.",
}


def run(_: Backend) -> None:
    """One run: loss, measures and the microscope; below it all runs. Before there is one, the stored example."""
    listed = runs.list_runs()
    if not listed:
        choice.say_example(listed)
    with controls.row():
        chosen = choice.run(listed) if listed else choice.EXAMPLE
        controls.pick("training_figure", "Beside the loss", FIGURES)
        with controls.options():
            controls.bind(
                "smoothing",
                st.slider,
                "Smoothing: mean of so many steps",
                min_value=1,
                max_value=200,
                help="The line is the mean of the loss over this many steps; a dot is one step's own loss.",
            )
            microscope.options(chosen)
    if not listed:
        _figures(chosen)
        return
    try:
        now = runs.state_of(chosen)
        job = training.under_way(chosen, now)
    except UserError as problem:
        messages.explain(problem, "reading the run")
        _all(listed, chosen)
        return
    row_source.name_data(chosen)
    is_live = job is not None and _is_at_work(job)
    if is_live and job is not None:
        progress.until(lambda: not requests.is_awaited(job), partial(_figures, chosen), LIVE_SECONDS)
    else:
        now = runs.state_of(chosen)
        _ended(chosen, now)
        _figures(chosen)
        _summary(chosen, now)
    microscope.draw(chosen, follows=is_live, is_over=lambda: job is None or not requests.is_awaited(job))
    if job is None or job.finished.is_set():
        _result(chosen, now)
    _all(listed, chosen)


def _is_at_work(job: Job) -> bool:
    """Whether a job goes on; draws its progress, or that it is being stopped. Its end is told by the run's state."""
    if requests.is_awaited(job) and not requests.given_time(job):
        with st.container(key="training_progress"):
            progress.draw(Awaited(caching.training_runs(), job, "training", "stop_training", "again_training", "steps"))
        return True
    if not job.finished.is_set():
        st.info("Stopping after this step. The best step so far is kept.", icon=":material/stop_circle:")
        progress.until(job.finished.is_set, lambda: None, 0.5)
    return False


def _summary(run: RunFolder, now: RunState) -> None:
    """What came of a run, in a line."""
    icon, word = choice.STATUS[now.status]
    parts = [f"{icon} **{word.capitalize()}**"]
    if now.steps:
        parts.append(f"{now.step:,} of {counted(now.steps, 'step')} in {duration(now.seconds)}")
    record = run.record() or {}
    undamaged = record.get("undamaged") or {}
    for number, (name, label, before, after) in enumerate(_changes(record)[:2]):
        whole = f" (undamaged: {_shown(undamaged[name])})" if name in undamaged else ""
        parts.append(f"{label} {_shown(before)} → **{_shown(after)}**{whole}")
        if not number and name in choice.HIGHER_IS_BETTER and after < before:
            parts.append(":orange[**worse than before training**]")
    if record.get("best_step") is not None:
        parts.append(f"kept: step {record['best_step']:,}")
    parts += [
        f":orange[**{NOTICES[notice.code]}** at step {notice.step:,}]"
        for notice in _first_of_each(caching.run_history(run).notices)
        if notice.code in NOTICES
    ]
    st.markdown(" · ".join(parts))


def _ended(run: RunFolder, now: RunState) -> None:
    """Why a run ended before its last step, and how it goes on."""
    if now.status == "failed" and now.error:
        st.error(messages.escape(now.error))
    if now.status == "interrupted":
        cause = messages.escape(now.error) if now.error else "The process of this run was ended from outside."
        st.warning(f"{cause} “Continue” goes on from its last checkpoint.")
    if now.status in {"stopped", "interrupted"}:
        st.button(
            "Continue",
            key="continue_shown",
            icon=":material/play_arrow:",
            on_click=_try,
            args=(training.resume, run),
            disabled=not access.training_allowed(),
        )


def _changes(record: dict[str, Any]) -> list[tuple[str, str, float, float]]:
    """Key, name, value before and after of each measure in a record that people know."""
    before, after = record.get("before"), record.get("after")
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    return [
        (name, label, float(before[name]), float(after[name]))
        for name, label in choice.MEASURES.items()
        if isinstance(before.get(name), int | float) and isinstance(after.get(name), int | float)
    ]


def _shown(value: float) -> str:
    return numbers.number(value)


def _figures(run: RunFolder) -> None:
    """Whether the run learns, the loss, and one other figure; drawn again while the run is at work."""
    past = caching.run_history(run)
    steps = max(run.state().steps, past.last_step, 1)
    record = run.record() or {}
    best = record["best_step"] if isinstance(record.get("best_step"), int) else None
    undamaged = {
        name: value for name, value in (record.get("undamaged") or {}).items() if isinstance(value, int | float)
    }
    said = findings.watched(past, undamaged, best, (record.get("split") or {}).get("held_out"))
    line = (
        st.container() if said else None
    )  # above both figures; without a finding, over the one that it would speak of
    above = {"message": said, "read": READ, "not_shown": NOT_SHOWN, "line_in": line, "is_shared": True}
    left, right = st.columns([5, 4], gap="large")
    with left:  # the measure that decides before the loss, which does not
        if state.get("training_figure") == "measures":
            _measures(run, past, steps, undamaged, best, above)
        else:
            {"rate": _rate, "speed": _speed}[state.get("training_figure")](run, past, steps)
    with right:
        _loss(run, past, steps, best, {} if state.get("training_figure") == "measures" else above)
    for notice in _first_of_each(past.notices):
        text = WHAT_TO_DO.get(notice.code)
        if text is not None:
            st.warning(text.format(step=notice.step, value=numbers.number(notice.value, 2)), icon=":material/warning:")


def _first_of_each(notices: tuple[Notice, ...]) -> list[Notice]:
    first: dict[str, Notice] = {}
    for notice in notices:
        first.setdefault(notice.code, notice)
    return list(first.values())


def _loss(run: RunFolder, past: History, steps: int, best: int | None, above: Mapping[str, Any]) -> None:
    losses = {OBJECTIVES[key].name if key in OBJECTIVES else key: curve for key, curve in past.losses.items()}
    figures.figure(
        charts.loss_curves(
            losses,
            past.validation,
            "Loss",
            window=state.get("smoothing"),
            steps=steps,
            marked=best,
            dark=controls.is_dark(),
        ),
        key="training_loss",
        code=choice.code_of(run),
        alt=f"Training and held-out loss over {steps} steps",
        table=lambda: _table(
            {**{f"{name} loss": curve for name, curve in losses.items()}, "held-out loss": past.validation}
        ),
        **above,
    )


def _measures(
    run: RunFolder,
    past: History,
    steps: int,
    undamaged: Mapping[str, float],
    best: int | None,
    above: Mapping[str, Any],
) -> None:
    known = {label: past.measures[name] for name, label in choice.MEASURES.items() if name in past.measures}
    curves = known | {name: curve for name, curve in past.measures.items() if name not in choice.MEASURES}
    levels = {label: float(undamaged[name]) for name, label in choice.MEASURES.items() if name in undamaged}
    titles = {choice.MEASURES["unrelated_cosine"]: "Cosine of unrelated texts"}
    figures.figure(
        charts.measure_panels(
            {titles.get(name, name): (name, curve) for name, curve in curves.items()},
            levels,
            steps=steps,
            marked=best,
            shares=SHARES,
            dark=controls.is_dark(),
        ),
        key="training_measures",
        code=choice.code_of(run),
        alt=f"{', '.join(curves) or 'No measure yet'} on held-out rows over {steps} steps",
        table=lambda: _table(curves),
        **above,
    )


def _rate(run: RunFolder, past: History, steps: int) -> None:
    curves = {"learning rate": past.learning_rate}
    figures.figure(
        charts.step_curves(curves, "Learning rate", y_title="learning rate", steps=steps, markers=False, digits=2),
        key="training_rate",
        code=choice.code_of(run),
        alt=f"The learning rate over {steps} steps",
        table=lambda: _table(curves),
        read="The learning rate at each step: how far a step goes, by the schedule that was chosen.",
        not_shown="Whether the model learns: the loss and the measures on held-out rows show that.",
    )


def _speed(run: RunFolder, past: History, steps: int) -> None:
    curves = {"sentences per second": past.sentences_per_second}
    figures.figure(
        charts.step_curves(curves, "Speed", y_title="sentences per second", steps=steps, markers=False),
        key="training_speed",
        code=NoCode(
            "There is no code for it: it is the speed of "
            f"{'the machine on which the example was' if run == choice.EXAMPLE else 'this machine while it'} trained, which no "
            "second run repeats."
        ),
        alt=f"Sentences per second over {steps} steps",
        table=lambda: _table(curves),
        read="How many sentences the model learns from in a second, at each step.",
        not_shown="Whether the model learns: the loss and the measures on held-out rows show that.",
    )


def _table(curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> pd.DataFrame:
    """Curves as a table with a row for each step that has a value."""
    series = {name: pd.Series(values, index=at_steps) for name, (at_steps, values) in curves.items()}
    return pd.DataFrame(series).rename_axis("step").reset_index()


def _result(run: RunFolder, now: RunState) -> None:
    """The model that a run ended with, for all pages and for other programs."""
    if not run.has_model:
        return
    if st.session_state.pop(_CHANGED, False):
        st.rerun()  # a click draws this view alone: the sidebar has to show the model, and the page the notice
    key = RUN_PREFIX + run.name
    with st.container(border=True):
        st.markdown(
            "**The result is in the list of models.** All pages can use it, and Search, Meaning and others can compare it "
            "with the model that it was trained from."
        )
        with st.container(horizontal=True):
            is_used = state.get("model") == key
            st.button(
                "All pages use it" if is_used else "Use it on all pages",
                key="use_trained",
                type="primary",
                icon=":material/check:",
                on_click=_use,
                args=(key,),
                disabled=is_used,
            )
            st.button(
                "Compare it with its base",
                key="compare_trained",
                icon=":material/compare_arrows:",
                on_click=_compare,
                args=(key, run),
            )
        kind = OBJECTIVES[run.settings().objectives[0]].models
        class_name = "CrossEncoder" if kind == "cross-encoder" else "SentenceTransformer"
        st.code(
            f'from sentence_transformers import {class_name}\n\nmodel = {class_name}("model")  # the folder in the download',
            language="python",
        )


def _compare(model: str, run: RunFolder) -> None:
    st.session_state[_CHANGED] = True
    try:
        state.put("model2", training.base_of(run))
    except UserError as problem:
        state.notice(f"{problem.problem} {problem.expected}")
        return
    _use(model)


def _use(model: str) -> None:
    state.put("model", model)
    st.session_state[_CHANGED] = True
    state.notice(
        "The trained model is now the model of all pages, and of the next training run. The sidebar has the others."
    )


def _all(listed: list[RunFolder], shown: RunFolder) -> None:
    """All runs, with what can be done with each."""
    figures.subheader("All runs")
    is_allowed = access.training_allowed()
    for item in listed[:LISTED]:
        _one(item, item == shown, is_allowed)
    usage = runs.usage()
    more = f" {len(listed) - LISTED} older ones are not listed." if len(listed) > LISTED else ""
    takes = "takes" if usage.runs == 1 else "take"
    st.caption(
        f"{counted(usage.runs, 'run')} {takes} {in_words(usage.nbytes)} of at most {in_words(usage.limit)}; the oldest are "
        f"removed to make room.{more} Everybody on this server can see them."
    )


def _one(item: RunFolder, is_shown: bool, is_allowed: bool) -> None:
    try:
        now, problem = runs.state_of(item), None
    except UserError as error:
        now, problem = RunState("failed", error=error.problem), error
    icon, word = choice.STATUS[now.status]
    with st.container(horizontal=True, vertical_alignment="center", border=True, key=f"row_run_{item.name}"):
        title = messages.escape(training.title_of(item))
        steps = f" · {now.step:,} of {now.steps:,} steps" if now.steps else ""
        st.markdown(f"{icon} {'**' if is_shown else ''}{title}{'**' if is_shown else ''} · {word}{steps}")
        if not is_shown and problem is None:
            st.button("Show", key=f"show_{item.name}", on_click=plans.open_run, args=(item,))
        if now.status in {"stopped", "interrupted", "failed", "waiting"} and problem is None and not _is_followed(item):
            st.button(
                "Continue",
                key=f"resume_{item.name}",
                icon=":material/play_arrow:",
                on_click=_try,
                args=(training.resume, item),
                disabled=not is_allowed,
            )
        if item.has_model:
            st.download_button(
                "Download",
                # Streamlit reads the file into memory, from where it serves all downloads; of equal files it keeps one copy.
                partial(runs.export_zip, item),
                file_name=f"{item.name}.zip",
                mime="application/zip",
                key=f"download_{item.name}",
                icon=":material/download:",
                on_click="ignore",
            )
        if now.status != "running":
            with st.popover("Delete", icon=":material/delete:", disabled=not is_allowed):
                st.markdown("Delete this run and its model? This cannot be undone.")
                st.button(
                    "Delete it", key=f"delete_{item.name}", type="primary", on_click=_try, args=(training.delete, item)
                )


def _is_followed(item: RunFolder) -> bool:
    job = caching.training_runs().find(item.name)
    return job is not None and not job.finished.is_set()


def _try(action: object, item: RunFolder) -> None:
    """Do something with a run after a click; what goes wrong is shown at the top of the view."""
    try:
        action(item)  # type: ignore[operator]
    except UserError as problem:
        st.session_state["_training_problem"] = problem
        return
    if action is training.resume:
        plans.open_run(item)
