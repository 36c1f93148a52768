"""Training: fine-tune a model on data of one's own or the included rows, watch it learn, and see what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.views.training import before_after, data, objective, plan, run

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "data": navigation.View(
        "Data",
        "What does the model learn from?",
        "Rows to train on, and rows that are held out to measure what the model learned.",
    ),
    "objective": navigation.View(
        "Objective",
        "What is the model asked to learn?",
        "Which vectors are pulled together and which are pushed apart, and how large the steps are.",
    ),
    "run": navigation.View(
        "Run",
        "How does the model learn?",
        "The loss of each step, measures on held-out rows, and what the model makes of a few sentences.",
    ),
    "after": navigation.View(
        "Before and after",
        "What did training change?",
        "The model before and after training, on the same texts and on the same scale.",
    ),
}
DRAW = {"data": data.data, "objective": objective.objective, "run": run.run, "after": before_after.after}


def _view(backend: Backend, view: str) -> None:
    plan.problem()
    DRAW[view](backend)


navigation.show("training", VIEWS, _view, "drawing the training")
