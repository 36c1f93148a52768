"""The objective of training: what the model is asked for, as a picture, two sentences and a formula, and at what rate."""

from __future__ import annotations

import json
import shlex
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import objective_pictures
from components.charts import training as charts
from components.charts.retrieval import evaluation as evaluation_charts
from components.shown_code.code import Code, Command, NoCode
from components.training import negatives
from components.training.grid import run_grid
from components.training.objectives import OBJECTIVES, Objective, legend
from components.training.settings import learning_rates, scheduled_rates, warmup_steps
from dashboard.ready_made import ASSETS
from dashboard.ui import figures, messages
from dashboard.ui.wording import POOLING_NAMES, counted
from dashboard.views.training import plan as plans
from dashboard.views.training import row_cards

if TYPE_CHECKING:
    from components.arrays import Float32, Float64
    from components.model.backend import Backend
    from dashboard.views.training.plan import Plan

SHOWN_AS = {"sigma": "σ"}  # symbols that are not written as they are called


def objective(backend: Backend) -> None:
    """The picture of a run's objective and the schedule of its learning rate, beside the plan."""
    with plans.beside(backend) as plan:
        if plan is None:
            return
        _asked(plan)
    if "softmax" in plan.settings.objectives:
        _ablation()
    for key in plan.settings.objectives[1:]:
        st.markdown("**In turn with**")
        other_left, other_right = st.columns(2, gap="large")
        with other_left:
            _picture(OBJECTIVES[key], OBJECTIVES[key].idea)
        with other_right:
            _words(OBJECTIVES[key])


def _asked(plan: Plan) -> None:
    """The first objective, and what the preset says of it."""
    first = OBJECTIVES[plan.settings.objectives[0]]
    settings = plan.settings
    if first.key == "mnrl":
        query, answer, wrong = (
            row_cards.named(settings.data, name) for name in ("query", "correct answer", "wrong answer")
        )
        own = negatives.wrong_of_each(settings, plan.data)
        among = row_cards.among(settings, plan.rows_of_each[0], own)
        message = in_batch(query, answer, wrong if own else "", among)
        _picture(first, message, wrong if own else "", query, answer.removeprefix("correct "))
    else:
        _picture(first, first.idea)
    st.markdown(f"**{messages.escape(plan.preset.name)}.** {messages.escape(plan.preset.idea)}")
    with st.expander("The formula", icon=":material/function:"):
        _words(first)
    with st.expander("How large each step is", icon=":material/show_chart:"):
        _schedule(plan)
    if plan.preset.settings.model not in {plan.settings.model, "embedded"}:
        st.caption(
            f"This recipe was published with {messages.escape(plan.preset.settings.model)}. The run starts from the model of "
            "the sidebar."
        )
    if plan.preset.published_rows:
        st.caption(
            f"The published run had {plan.preset.published_rows:,} rows; this one has {len(plan.split.train):,}."
        )


@cache
def _measured() -> dict[str, Any]:
    """What `train --grid` wrote for the included model and data."""
    return dict(json.loads((ASSETS / "training" / "ablation.json").read_text(encoding="utf-8")))


def _ablation() -> None:
    """Which pooling, and which inputs of the classifier, gave the best vectors on the included data."""
    measured = _measured()
    rows = measured["grid"]
    poolings = list(dict.fromkeys(row["pooling"] for row in rows))
    combinations = list(dict.fromkeys(row["combination"] for row in rows))
    shape = (len(poolings), len(combinations))
    values = 100 * np.array([row["spearman"] for row in rows]).reshape(shape)
    before = 100 * np.array([row["before"] for row in rows]).reshape(shape)[:, 0]
    spread = 100 * max(row["spread"] for row in rows)
    best = np.unravel_index(int(np.argmax(values)), shape)
    figures.figure(
        evaluation_charts.measure_grid(
            values,
            [POOLING_NAMES[name] for name in poolings],
            combinations,
            "Spearman × 100 after training, by pooling and inputs",
            unit="Spearman × 100",
            row_title="pooling",
            column_title="inputs of the classifier",
            starred=(int(best[0]), int(best[1])),
        ),
        key="ablation",
        code=Command(run_grid, tuple(shlex.split(measured["command"]))),
        alt=f"Spearman's correlation after training for {len(poolings)} poolings and {len(combinations)} inputs",
        message="**Before training:** "
        + ", ".join(f"{POOLING_NAMES[name]} {value:.1f}" for name, value in zip(poolings, before, strict=True))
        + f". The same cell differs by up to {spread:.1f} (standard deviation) between seeds.",
        read="Measured with this dashboard on the included rows. "
        f"Each cell is the mean of {len(measured['seeds'])} runs of `{measured['command']}`, measured on "
        f"{measured['pairs']} scored pairs. Reimers and Gurevych (2019) found mean pooling and (u, v, |u-v|) best on 1 million "
        f"pairs, starting from BERT. Here ★ is {POOLING_NAMES[poolings[best[0]]]} with ({combinations[best[1]]}).",
        not_shown="The order on more data: differences no larger than those between seeds mean nothing, and the model that "
        "training starts from was published with mean pooling.",
        table=lambda: pd.DataFrame(rows).drop(columns="by_seed"),
    )


def in_batch(query: str, answer: str, wrong: str, among: int) -> str:
    """What multiple negatives ranking asks for, with the names of the rows' texts and how many are shown at once."""
    own = f" (its own {wrong} among them)" if wrong else ""
    return (
        f"Each {query} must find its own {answer} among the {among} texts shown at once. The other {among - 1} are wrong "
        f"answers{own}, so that more rows at a time make the task harder."
    )


def _picture(item: Objective, message: str, *names: str) -> None:
    """`names` are those of a row's own wrong answer, "" for none, of its query and of its answer."""
    figures.figure(
        objective_pictures.objective_picture(item.key, item.name, *names),
        key=f"objective_{item.key}",
        code=NoCode("There is no code for it: it is a drawing of an idea, and shows no measured numbers."),
        alt=f"{item.name}. {item.drawing}",
        message=message,
        read=item.drawing,
        not_shown="Numbers: distances in the drawing are none of this model's. Watch shows those of a run.",
        table=lambda: pd.DataFrame([{"objective": item.name, "formula": item.formula, "source": item.source}]),
    )


def _words(item: Objective) -> None:
    st.latex(item.formula)
    meanings = "; ".join(f"{SHOWN_AS.get(symbol, symbol)}: {meaning}" for symbol, meaning in legend(item).items())
    st.caption(f"{meanings}. Source: {messages.escape(item.source)}.")


def rate_in_words(rates: Float32 | Float64) -> str:
    """What a learning rate does from the first step to the last, [step]: it need not rise, nor fall."""
    peak, last = float(rates.max()), float(rates[-1])
    warm = int(np.argmax(rates))
    if np.ptp(rates) == 0:
        return f"It is {peak:g} at every step."
    begin = f"It rises for {counted(warm, 'step')} (warm-up) to {peak:g}" if warm else f"It begins at {peak:g}"
    if last == peak:
        return f"{begin} and stays there."
    return f"{begin}, then falls to {'zero' if last == 0 else f'{last:g}'} after the last step."


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
        most_above=figures.MOST_ABOVE_HALF,
        code=Code(
            "# No model is needed: the rate of a step depends on the settings alone.\nimport numpy as np",
            (scheduled_rates,),
            (
                f"is_linear = {settings.schedule == 'linear'}",
                f"values = scheduled_rates({settings.learning_rate}, {steps}, {warm}, is_linear)",
                "print(values)  # [step], the last after the last step",
            ),
        ),
        alt=f"The learning rate over {steps} steps. {rate_in_words(rates)}",
        message=rate_in_words(rates),
        read="How far each step moves the weights; the dotted line ends the warm-up.",
        not_shown="Whether the rate suits the data: only a run, under Watch, shows it.",
        table=lambda: pd.DataFrame({"step": np.arange(steps + 1), "learning rate": rates}),
    )
