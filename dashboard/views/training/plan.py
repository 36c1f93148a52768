"""What is to be trained, on which data and at what cost: the row of controls with the button that starts it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import streamlit as st

from components.errors import UserError
from components.training import data as training_data
from components.training import runs
from components.training.negatives import row_counts
from components.training.objectives import OBJECTIVES, check_objectives
from components.training.settings import (
    POOLINGS,
    PRESETS,
    NegativesKind,
    PoolingName,
    Preset,
    TrainingSettings,
    steps,
)
from components.words.unicode_words import deletable
from dashboard import access, caching, settings, state
from dashboard.jobs import training
from dashboard.ui import controls, figures, messages, page_header
from dashboard.ui.wording import POOLING_NAMES, counted, duration
from dashboard.views.training import row_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from components.model.backend import Backend
    from components.training.data import Split, TrainingData
    from components.training.run_folder import RunFolder

NEGATIVES_NAMES = {
    "none": "None",
    "random": "Random",
    "bm25": "Similar, by BM25",
    "model": "Similar, by the model itself",
}
OWN_DATA = "own"
STORIES = {  # a preset and what a person wants of it; the others stand under "Options"
    "not": "Teach it “not”",
    "repair": "Repair a damaged model",
    "quick": "Fine-tune it as it is",
    "collapse": "Watch it collapse",
    OWN_DATA: "Use your own data",
}
WEIGHTS_NAMES = {"adapter": "Low-rank adapters", "all": "All weights"}
OVERRIDES = (  # settings that a preset decides until a person does
    *("training_data", "objective", "second_objective", "negatives", "trained_weights", "training_pooling"),
    *("learning_rate", "epochs", "batch_size", "warm_up", "training_length", "margin", "most_rows", "held_out"),
    *("damage", "training_seed"),
)
VISIBLE_ROWS = (
    ":material/visibility: **Everybody on this server can see the rows** of a run, from its start until it is deleted."
)
START_SECONDS = 20.0  # of a process: libraries, model, first evaluation
# Products of weights with tokens in training, per second, on two cores; only until a run of this machine is known.
PRODUCTS_PER_SECOND = 1.2e10


@dataclass(frozen=True, eq=False)
class Plan:
    """What the next run would be."""

    preset: Preset
    settings: TrainingSettings
    data: TrainingData
    split: Split
    rows_of_each: tuple[int, ...]  # that each objective learns from
    source: str  # of the data, a key of row_source.NAMES

    @property
    def steps(self) -> int:
        """Optimiser steps of the run."""
        return steps(self.settings, *self.rows_of_each)


@contextmanager
def beside(backend: Backend) -> Iterator[Plan | None]:
    """Draw the row of stories and at the right the plan, and draw the rest at the left: what would be trained.

    None where the data is missing, which is explained at the left.
    """
    preset = PRESETS[state.get("training_preset")]
    _stories(preset)
    left, right = st.columns([12, 5], gap="large")
    with right.container(key="training_plan"):
        figures.markup("<h3>The plan</h3>", "plan_title")
        source = controls.pick("training_data", "Data", row_source.NAMES, default=_source_of(preset))
        objective_slot, facts_slot, start_slot = st.empty(), st.container(), st.empty()
        with controls.options():
            _preset()
            options_box = st.container()
    with left:
        rows = row_source.read(source)
        if rows is None:
            with start_slot:
                _start_button(None)
            yield None
            return
        page_header.measures(row_source.name_of(rows), counted(len(rows), "row"))
        with objective_slot:
            objective = _objective(preset, rows)
        with options_box:
            chosen = _chosen(backend, preset, source, objective, rows)
        plan = _planned(preset, chosen, rows, source)
        with facts_slot:
            _facts(backend, plan, is_included=source in training_data.DEMO)
        with start_slot:
            _start_button(plan)
        yield plan


def _stories(preset: Preset) -> None:
    """What people want of a training, in a row: a preset each, and the last one their own data."""
    is_own = state.get("training_data") == "file"
    shown = OWN_DATA if is_own else preset.key

    def choose(story: str) -> None:
        state.put("training_preset", "quick" if story == OWN_DATA else story)
        _restore()
        if story == OWN_DATA:
            state.put("training_data", "file")

    controls.ready_row("What the model learns", STORIES, shown, choose, key="w_training_story")


def _preset() -> None:
    names = {key: preset.name for key, preset in PRESETS.items()}
    controls.pick("training_preset", "Preset", names, after_change=_restore)


def _restore() -> None:
    """Let the chosen preset decide everything again."""
    for name in OVERRIDES:
        state.put(name, None)


def _source_of(preset: Preset) -> str:
    return preset.settings.data if preset.settings.data in row_source.NAMES else "demo:pairs"


def _objective(preset: Preset, rows: TrainingData) -> str:
    offered = {key: item.name for key, item in OBJECTIVES.items() if rows.kind in item.takes}
    wanted = preset.settings.objectives[0]
    suited = [key for key in offered if OBJECTIVES[key].takes[0] == rows.kind]
    # Scored and labelled rows could be learned from as pairs too, which leaves out what people said of them.
    fits = wanted in offered and (wanted in suited or rows.kind in {"pairs", "triplets"})
    default = wanted if fits else (suited or list(offered))[0]
    return controls.pick(
        "objective", "Objective", offered, default=default, describe=lambda key: f"“{OBJECTIVES[key].name}”"
    )


def _chosen(backend: Backend, preset: Preset, source: str, objective: str, rows: TrainingData) -> TrainingSettings:
    """The preset's settings with what a person changed, out of the controls under "Options"."""
    base = preset.settings
    is_preset_objective = objective == base.objectives[0]
    kind = OBJECTIVES[objective].models
    others = {
        key: item.name
        for key, item in OBJECTIVES.items()
        if item.models == kind and key != objective and rows.kind in item.takes
    }
    second = base.objectives[1] if is_preset_objective and len(base.objectives) > 1 else "none"
    left, right = st.columns(2)
    with left:
        second = controls.pick(
            "second_objective",
            "Second objective, in turn",
            {"none": "None", **others},
            default=second if second in others else "none",
        )
        weights = controls.pick(
            "trained_weights",
            "Trained weights",
            WEIGHTS_NAMES,
            "Low-rank adapters add two small matrices to each weight and train only these: quicker, smaller, and harder to "
            "spoil (Hu et al. 2021).",
            default="adapter" if base.adapter and "tsdae" not in (objective, second) else "all",
        )
        rate = controls.pick(
            "learning_rate",
            "Learning rate",
            {text: text for text in settings.LEARNING_RATES},
            default=_rate_text(base, weights),
        )
        epochs = _number("epochs", "Epochs", 1, 200, base.epochs)
        warm_up = _number("warm_up", "Warm-up, % of the steps", 0, 100, round(100 * base.warmup_share))
        margin = _number("margin", "Margin, hundredths", 0, 200, round(100 * base.margin))
        damage = _number("damage", "Damage before training: noise, %", 0, 200, round(100 * base.damage))
        seed = _number("training_seed", "Seed", 0, 9_999, base.seed)
    with right:
        negatives = controls.pick(
            "negatives",
            "Wrong answers",
            NEGATIVES_NAMES,
            "For objectives that need wrong answers where the data has none.",
            default=base.negatives,
        )
        pooling = controls.pick(
            "training_pooling",
            "Pooling",
            {name: POOLING_NAMES[name] for name in POOLINGS},
            caching.glossary()["pooling"],
            default=base.pooling,
        )
        batch = _number("batch_size", "Batch size", 2, 256, base.batch_size)
        limit = min(512, backend.tokenization.max_length)
        length = _number("training_length", "Maximum length in tokens", 3, limit, min(base.max_length, limit))
        held_out = _number("held_out", "Held out, % of the rows", 5, 50, round(100 * base.held_out_share))
        count = len(rows)
        most = _number("most_rows", "Rows to train on, at most", 4, count, min(base.max_rows or count, count))
    objectives = (objective,) if second == "none" else (objective, second)
    check_objectives(objectives)
    return replace(
        base,
        model=backend.spec.key,
        data=source if source.startswith("demo:") else rows.name[:1_000],
        objectives=objectives,
        negatives=cast("NegativesKind", negatives),
        adapter=weights == "adapter",
        learning_rate=float(rate),
        epochs=epochs,
        warmup_share=warm_up / 100,
        warmup_steps=base.warmup_steps if state.get("warm_up") is None else None,
        margin=margin / 100,
        damage=damage / 100,
        seed=seed,
        pooling=cast("PoolingName", pooling),
        batch_size=batch,
        max_length=length,
        held_out_share=held_out / 100,
        max_rows=None if most == count else most,
    )


def _rate_text(base: TrainingSettings, weights: str) -> str:
    """The preset's learning rate, or the usual one where other weights are trained than the preset's."""
    from components.training.settings import ADAPTER_LEARNING_RATE, FULL_LEARNING_RATE

    usual = ADAPTER_LEARNING_RATE if weights == "adapter" else FULL_LEARNING_RATE
    rate = base.learning_rate if (weights == "adapter") == base.adapter else usual
    return min(settings.LEARNING_RATES, key=lambda text: abs(float(text) - rate))


def _number(setting: str, label: str, least: int, most: int, default: int) -> int:
    return int(controls.bind(setting, st.number_input, label, default=default, min_value=least, max_value=most, step=1))


def _planned(preset: Preset, chosen: TrainingSettings, rows: TrainingData, source: str) -> Plan | None:
    """The plan, with the rows split; None if nothing can be learned from them, which is explained."""

    def divide() -> tuple[Split, tuple[int, ...]]:
        split = training_data.split(rows, chosen.held_out_share, chosen.seed, chosen.max_rows)
        return split, tuple(train for train, _ in row_counts(chosen, rows, split).values())

    # Nothing but what the split and the numbers depend on: 50,000 rows take five seconds.
    key = (*split_key(chosen, rows), chosen.objectives, chosen.negatives)
    try:
        split, counts = caching.training_plans().get(key, divide)
    except UserError as problem:
        messages.explain(problem, "planning the training")
        return None
    return Plan(preset, chosen, rows, split, counts, source)


def split_key(chosen: TrainingSettings, rows: TrainingData) -> tuple[object, ...]:
    """What the split of some rows depends on."""
    return (rows.sha256, chosen.held_out_share, chosen.seed, chosen.max_rows)


def _facts(backend: Backend, plan: Plan | None, is_included: bool) -> None:
    """What the button starts, what it costs, and who can see the rows then, unless they come with the dashboard."""
    if plan is None:
        return
    seconds, is_known = cost(backend, plan)
    chosen, rows = (
        plan.settings,
        [
            ("Rows to train on", f"{len(plan.split.train):,}"),
            ("Held out", f"{len(plan.split.held_out):,}"),
            ("Steps", f"{plan.steps:,}"),
            ("Weights trained", "adapters only" if plan.settings.adapter else "all"),
        ],
    )
    if chosen.damage:
        rows.append(("Damaged first", f"{100 * chosen.damage:.0f} % noise"))
    rows.append(("Time here", f"about {duration(seconds)}{'' if is_known else ' (estimated)'}"))
    lines = "".join(f"<p><span>{name}</span><b>{value}</b></p>" for name, value in rows)
    figures.markup(f'<div class="bi-costs">{lines}</div>', "training_facts")
    if not is_included:
        st.caption(VISIBLE_ROWS)


def cost(backend: Backend, plan: Plan) -> tuple[float, bool]:
    """About how many seconds a run takes, and whether that follows from a run of this machine.

    The newest run of the same model, weights and batch that has ended tells; else it is guessed from the sizes.
    """
    chosen = plan.settings
    known = _seconds_per_step(chosen)
    if known is not None:
        return START_SECONDS + plan.steps * known, True
    facts = backend.facts
    weights = facts.layers * (4 * facts.hidden_size**2 + 2 * facts.hidden_size * facts.feed_forward_size)
    texts = min(chosen.batch_size, *plan.rows_of_each) * len(plan.data.columns)
    words = [sum(map(len, deletable(text))) for texts in plan.data.columns.values() for text in texts[:200]]
    tokens = min(chosen.max_length, 2 + 1.3 * sum(words) / max(1, len(words)))
    passes = 2.5 if chosen.adapter else 3.0  # forward once, backward once or twice
    step = texts * tokens * weights * passes / PRODUCTS_PER_SECOND
    return START_SECONDS + plan.steps * step, False


def _seconds_per_step(chosen: TrainingSettings) -> float | None:
    for run in runs.list_runs()[:12]:
        try:
            before, ended = run.settings(), run.state()
        except UserError:
            continue
        is_same = (before.model, before.adapter, before.batch_size, before.objectives, before.data) == (
            *(chosen.model, chosen.adapter, chosen.batch_size, chosen.objectives, chosen.data),
        )
        if is_same and ended.status == "done" and ended.step:
            return ended.seconds / ended.step
    return None


def _start_button(plan: Plan | None) -> None:
    """The one primary button."""
    is_allowed = access.training_allowed()
    st.button(
        "Start training",
        key="start_training",
        type="primary",
        icon=":material/play_arrow:",
        disabled=plan is None or not is_allowed,
        on_click=start,
        args=() if plan is None else (plan.settings, plan.data, plan.split, plan.steps),
    )


def start(chosen: TrainingSettings, rows: TrainingData, split: Split, steps: int) -> None:
    """Start a run, and open its view; what goes wrong is shown there."""
    try:
        run = training.start(chosen, rows, split, steps)
    except UserError as problem:
        st.session_state["_training_problem"] = problem
        return
    open_run(run)


def open_run(run: RunFolder) -> None:
    """Show a run in the view of runs."""
    state.put("training_run", run.name)
    state.put("training_step", None)
    state.open_view("training-run")


def problem() -> None:
    """Show what went wrong when a button was pressed, once, and whether training is switched off."""
    failure = st.session_state.pop("_training_problem", None)
    if failure is not None:
        messages.explain(failure, "preparing the training")
    if not access.training_allowed():
        st.info(
            "**Training is switched off on this server.** You can look at its data, objectives and earlier runs. To train, "
            f"start the dashboard on your own machine, or ask the operator to set {access.TRAINING.variable}=1.",
            icon=":material/lock:",
        )


def with_problem(draw: Callable[[Backend], None], backend: Backend) -> None:
    """Draw a view below what prevents training, if anything does."""
    problem()
    draw(backend)
