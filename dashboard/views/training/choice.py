"""Which run the page shows."""

from __future__ import annotations

import streamlit as st

from components.errors import UserError
from components.model.catalog import spec_of
from components.shown_code.code import Command
from components.training import runs
from components.training.history import history
from components.training.run_folder import EVENTS, RunFolder
from components.training.settings import PRESETS, command_of
from dashboard import state
from dashboard.jobs import training
from dashboard.ready_made import ASSETS
from dashboard.ui import controls
from dashboard.ui.wording import counted
from dashboard.views.training import row_source

STATUS = {
    "waiting": (":material/hourglass_empty:", "under way"),
    "running": (":material/play_circle:", "under way"),
    "done": (":material/check_circle:", "done"),
    "stopped": (":material/stop_circle:", "stopped"),
    "failed": (":material/error:", "failed"),
    "interrupted": (":material/power_off:", "interrupted"),
}
REPEATABLE = {"waiting", "running", "done"}

MEASURES = {
    "recall@1": "Recall@1",
    "recall@10": "Recall@10",
    "spearman": "Spearman",
    "accuracy": "accuracy",
    "validation_loss": "loss on held-out rows",
    "unrelated_cosine": "mean cosine of unrelated texts",
}

HIGHER_IS_BETTER = {"recall@1", "recall@10", "spearman", "accuracy"}
EXAMPLE = RunFolder(ASSETS / "training" / "example")  # see dashboard.views.training.ranks
NOT_THERE = "It was deleted, or made on another server."
EXAMPLE_MODELS = ("example/run/start", "example", "embedded")  # before, after and untouched, for commands


def say_example(listed: list[RunFolder]) -> None:
    """Say that nothing was trained here yet and what is shown instead, and lead to “Set up”; refuse a run that is not there."""
    name = state.get("training_run")
    if name and name not in {item.name for item in listed}:
        state.refuse("training_run", state.default("training_run"), f"Run “{name}” is not available here. {NOT_THERE}")
    settings, record = EXAMPLE.settings(), EXAMPLE.record() or {}
    row_source.name_data(EXAMPLE)
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="row_run_example"):
        st.markdown(
            f"**An example, “{PRESETS['repair'].name}”**, shown until you train a model.",
            width="stretch",
            help=f"{spec_of(settings.model).title} got {100 * settings.damage:.0f} % noise in its weights, then learnt "
            f"{counted(record['split']['train'], 'row')} in {counted(record['steps'], 'step')}: batch {settings.batch_size}, "
            f"learning rate {settings.learning_rate:g}, seed {settings.seed}.",
        )
        st.button("Go to Set up", key="go_to_data", type="primary", on_click=state.open_view, args=("training-data",))


def run(listed: list[RunFolder]) -> RunFolder:
    """One of the runs, the newest before a person chooses; draws the list."""
    names = {item.name: f"{training.title_of(item)} · {STATUS[status_of(item)][1]}" for item in listed}
    name = controls.pick(
        "training_run",
        "Run",
        names,
        default=listed[0].name,
        describe=lambda name: f"“{name}”",
        offers=NOT_THERE,
    )
    return next(item for item in listed if item.name == name)


def code_of(run: RunFolder) -> Command:
    """The command that trains a run again, for its curves; without it, what reads them."""
    return Command(history, again(run), file=f"{run.name}/run/{EVENTS}")


def again(run: RunFolder) -> tuple[str, ...]:
    """The arguments of the command that trains a run again.

    Empty where no command does, for a run that ended before its last step, and where its settings are damaged.
    """
    if status_of(run) not in REPEATABLE:
        return ()
    try:
        return command_of(run.settings(), run.name)
    except UserError:
        return ()


def status_of(run: RunFolder) -> str:
    """The state of a run in a word; "failed" for one whose files are damaged."""
    try:
        return runs.state_of(run).status
    except UserError:
        return "failed"
