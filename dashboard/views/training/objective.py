"""The Training page's objective: what the model is asked for, as a picture, two sentences and a formula, and at what rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import objective_pictures
from components.charts import training as charts
from components.training.objectives import OBJECTIVES, Objective
from components.training.settings import learning_rates, warmup_steps
from dashboard.ui import figures, messages
from dashboard.ui.wording import counted
from dashboard.views.training import plan as plans

if TYPE_CHECKING:
    from components.model.backend import Backend
    from dashboard.views.training.plan import Plan


def objective(backend: Backend) -> None:
    """The plan of a run, the picture of its objective, and the schedule of its learning rate."""
    plan = plans.current(backend)
    if plan is None:
        return
    left, right = st.columns(2, gap="large")
    with left:
        first = OBJECTIVES[plan.settings.objectives[0]]
        _picture(first)
        _words(first)
    with right:
        _schedule(plan)
        st.markdown(f"**{messages.escape(plan.preset.name)}.** {messages.escape(plan.preset.idea)}")
        if plan.preset.settings.model not in {plan.settings.model, "embedded"}:
            st.caption(
                f"This recipe was published with {messages.escape(plan.preset.settings.model)}. The run starts from the "
                "model of the sidebar."
            )
        if plan.preset.published_rows:
            st.caption(
                f"The published run had {plan.preset.published_rows:,} rows; this one has {len(plan.split.train):,}."
            )
    for key in plan.settings.objectives[1:]:
        st.markdown("**In turn with**")
        other_left, other_right = st.columns(2, gap="large")
        with other_left:
            _picture(OBJECTIVES[key])
        with other_right:
            _words(OBJECTIVES[key])


def _picture(item: Objective) -> None:
    figures.figure(
        objective_pictures.objective_picture(item.key, item.name),
        key=f"objective_{item.key}",
        alt=f"{item.name}. {item.drawing}",
        message=item.idea,
        message_below=True,
        table=lambda: pd.DataFrame([{"objective": item.name, "formula": item.formula, "source": item.source}]),
    )


def _words(item: Objective) -> None:
    st.latex(item.formula)
    st.caption(
        f"u and v: the vectors of a row's two texts; d: their distance; y: the label; n: the rows of a batch. "
        f"Source: {messages.escape(item.source)}."
    )


def _schedule(plan: Plan) -> None:
    steps, settings = plan.steps, plan.settings
    rates = learning_rates(settings, steps)
    warm = warmup_steps(settings, steps)
    figures.figure(
        charts.step_curves(
            {"learning rate": (np.arange(steps + 1), rates)},
            "Learning rate of each step",
            y_title="learning rate",
            steps=steps,
            marked=warm or None,
            markers=False,
            digits=2,
        ),
        key="training_schedule",
        alt=f"The learning rate over {steps} steps: it rises for {warm} steps and then falls to zero",
        message=f"It rises for {counted(warm, 'step')} (warm-up) to {settings.learning_rate:g}"
        + (", then falls to zero after the last step." if settings.schedule == "linear" else ", and stays there."),
        message_below=True,
        table=lambda: pd.DataFrame({"step": np.arange(steps + 1), "learning rate": rates}),
    )
