"""Which run the page shows."""

from __future__ import annotations

from components.errors import UserError
from components.training import runs
from components.training.run_folder import RunFolder
from dashboard.jobs import training
from dashboard.ui import controls

STATUS = {
    "waiting": (":material/hourglass_empty:", "under way"),
    "running": (":material/play_circle:", "under way"),
    "done": (":material/check_circle:", "done"),
    "stopped": (":material/stop_circle:", "stopped"),
    "failed": (":material/error:", "failed"),
    "interrupted": (":material/power_off:", "interrupted"),
}


MEASURES = {
    "recall@1": "Recall@1",
    "recall@10": "Recall@10",
    "spearman": "Spearman",
    "accuracy": "accuracy",
    "validation_loss": "loss on held-out rows",
    "unrelated_cosine": "mean cosine of unrelated texts",
}

HIGHER_IS_BETTER = {"recall@1", "recall@10", "spearman", "accuracy"}


def run(listed: list[RunFolder]) -> RunFolder:
    """One of the runs, the newest before a person chooses; draws the list."""
    names = {item.name: f"{training.title_of(item)} · {STATUS[status_of(item)][1]}" for item in listed}
    name = controls.pick(
        "training_run",
        "Run",
        names,
        default=listed[0].name,
        describe=lambda name: f"“{name}”",
        offers="It was deleted, or made on another server.",
    )
    return next(item for item in listed if item.name == name)


def status_of(run: RunFolder) -> str:
    """The state of a run in a word; "failed" for one whose files are damaged."""
    try:
        return runs.state_of(run).status
    except UserError:
        return "failed"
