"""What is said of a model before and after training: sentences made of the numbers that the figure shows.

Three models are compared where there are three: the trained one, the one that its training began with, and the untouched one,
which is the model as published. A gain over a model that was damaged on purpose says nothing about the untouched one, so that
a sentence always says where the trained model stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

import numpy as np

from components.numbers import counted, difference, number, percent, signed
from components.training.before_after import CorrelationChange, MeasureChange
from components.training.held_out import DECIDING, is_better
from components.training.history import VALIDATION_LOSS
from dashboard.views.training.choice import MEASURES

if TYPE_CHECKING:
    from components.arrays import Float64, Int64
    from components.training.history import History

UNDAMAGED, PUBLISHED = "undamaged", "as published"  # the third model, by what came between it and the training
SAME_AS_BEFORE = "Before training, it is the model as published."


@dataclass(frozen=True)
class ModelDifference:
    """One measure of two models, from the first to the second, and whether the difference is more than chance."""

    first: float
    second: float
    is_clear: bool
    test: str  # what the judgement rests on: "p = 0.03"

    @property
    def judgement(self) -> str:
        return f"{'more than chance' if self.is_clear else 'may be chance'}, {self.test}"


@dataclass(frozen=True)
class MeasureName:
    """How a measure is written."""

    name: str
    kind: Literal["share", "correlation"]

    def shown(self, value: float) -> str:
        return f"{100 * value:.1f} %" if self.kind == "share" else number(value)

    def distance(self, later: float, earlier: float, unit: bool = True) -> str:
        """How far apart two values are that are shown, without a sign."""
        scale, digits, word = (100, 1, " points") if self.kind == "share" else (1, 3, "")
        size = abs(difference(scale * later, scale * earlier, digits))
        text = number(size, digits) if size or later == earlier else f"less than {10**-digits:g}"
        return text + word * unit


def of_retrieval(change: MeasureChange) -> ModelDifference:
    p_value = change.p_text if change.p_text.startswith("<") else f"= {change.p_text}"
    return ModelDifference(change.base.value, change.tuned.value, change.is_significant, f"p {p_value}")


def of_correlation(change: CorrelationChange) -> ModelDifference:
    low, high = signed(change.difference.low), signed(change.difference.high)
    return ModelDifference(change.base.value, change.tuned.value, change.is_clear, f"95 % interval {low} to {high}")


def trained(measure: MeasureName, change: ModelDifference, before: str) -> str:
    """What training changed; `before` is what the model is called that it began with."""
    moved = change.second - change.first
    verb = "gained" if moved > 0 else "lost"
    said = (
        f"training {verb} {measure.distance(change.second, change.first)} ({change.judgement})"
        if moved
        else "training changed nothing"
    )
    return f"{measure.name}: {measure.shown(change.first)} {before}, **{measure.shown(change.second)}** after: {said}."


def beside_untouched(measure: MeasureName, before: float, change: ModelDifference, untouched: str) -> str:
    """Where the trained model stands: `change` goes from the untouched model to it, `before` is what training began with."""
    whole, after = change.first, change.second
    model = "the undamaged model" if untouched == UNDAMAGED else "the model as published"
    distance = after - whole
    if distance:
        side = "above" if distance > 0 else "below"
        stands = f"the trained model is {measure.distance(after, whole)} {side} it ({change.judgement})"
    else:
        stands = "the trained model has as much"
    opening = f"{model.capitalize()} has **{measure.shown(whole)}**"
    if untouched != UNDAMAGED:
        return f"{opening}: {stands}."
    return f"{opening}: {_won_back(measure, before, after, whole)}, and {stands}."


def _won_back(measure: MeasureName, before: float, after: float, whole: float) -> str:
    """How much of what the damage took came back."""
    taken = measure.distance(whole, before)
    if whole <= before:
        return "the damage took nothing of it"
    if after <= before:
        return f"of the {taken} that the damage took, training won back none"
    if after < whole:
        return f"training won back {measure.distance(after, before, unit=False)} of the {taken} that the damage took"
    return f"training won back all of the {taken} that the damage took"


FEW_ROWS = 200  # held out: of fewer, a few points of a share may be chance
FLAT = 0.005  # a change of a loss that two decimals do not show


def watched(past: History, undamaged: Mapping[str, float], kept: int | None = None, held_out: int | None = None) -> str:
    """Whether a run learns, and which step is best: by one measure on held-out rows, or by the loss there without one.

    `kept` is the step whose weights a run kept that has ended; without it the run goes on, and has a best step so far.
    `held_out` is the number of rows that are measured, where it is known.
    """
    steps, losses = past.validation
    finite = np.isfinite(losses)
    steps, losses = steps[finite], losses[finite]
    if len(losses) < 2:
        return "**Nothing is measured on held-out rows yet** but what the model was before." if len(losses) else ""
    # A correlation is not known where all pairs had one score.
    known = {
        name: (at[np.isfinite(values)], values[np.isfinite(values)]) for name, (at, values) in past.measures.items()
    }
    name = next((name for name in DECIDING if name in known and np.any(known[name][0] > 0)), None)
    at, values = (steps, losses) if name is None else known[name]
    by_loss = dict(zip(steps.tolist(), losses.tolist(), strict=True))
    sign = 1.0 if name else -1.0  # a loss is best where it is lowest
    if kept is not None and kept not in at:  # there was nothing to measure it by: all pairs had one score
        return f"**Kept: step {kept:,}.** {_course(steps, losses)}"

    def measured(place: int) -> dict[str, float | None]:
        value = {} if name is None else {name: float(values[place])}
        return {VALIDATION_LOSS: by_loss.get(int(at[place])), **value}

    def better(one: int, other: int) -> int:
        return other if is_better(measured(other), measured(one)) else one

    # Before training there was no step.
    places = np.flatnonzero(at > 0 if kept is None else at == kept).tolist()
    best = reduce(better, places)

    def shown(value: float) -> str:
        return percent(value) if name and name != "spearman" else number(value, 2)

    step, measure = int(at[best]), MEASURES[name] if name else "loss"
    since, first, value = int(at[-1]) - step, float(values[0]), float(values[best])
    which = f"step {step:,} {'is the best so far' if kept is None else 'is kept'}"
    if not since:
        which = which.replace(" is ", ", the last, is ", 1)
    on = f" on {held_out:,} held-out rows" if held_out else " on held-out rows"
    if at[0]:  # not known what the model was before
        said = f"**{measure} {shown(value)}{on}; {which}.**"
    else:
        before = shown(first) if shown(first).startswith("less") else shown(first).removesuffix(" %")
        gained = sign * (value - first) * (shown(value) != shown(first))  # as a person reads it
        verb = "improved" if kept is None else "learnt"
        verb = verb if gained > 0 else "became worse" if gained < 0 else "did not improve"
        said = f"**It {verb}: {measure} {before} → {shown(value)}{on}; {which}.**"
    if name is not None and name in undamaged:
        said += f" Undamaged: {shown(undamaged[name])}."
    course = _course(steps, losses)
    if not since:
        return f"{said} {course}"
    few = name and held_out and held_out < FEW_ROWS
    later = f"The {counted(since, 'later step')} had no {'better' if name else 'lower'} {measure}"
    course = f"{measure} decides, not the loss: {course[:1].lower()}{course[1:]}" if name else course
    return f"{said} {later}{', but these rows are few' if few else ''}. {course}"


def _course(steps: Int64, losses: Float64) -> str:
    """How the loss on held-out rows went, [measured], and whether it still falls: over the longest distance of two measures."""
    first, last, lowest = float(losses[0]), float(losses[-1]), int(np.argmin(losses))
    said = f"The held-out loss {_moved(first, last)}"
    earlier = int(np.flatnonzero(steps <= steps[-1] - np.diff(steps).max())[-1])
    since, fallen = counted(int(steps[-1] - steps[earlier]), "step"), float(losses[earlier]) - last
    if last - float(losses[lowest]) > FLAT:
        return f"{said}, and is above its lowest, {number(float(losses[lowest]), 2)} at step {steps[lowest]:,}."
    if fallen > FLAT:
        return f"{said}, and was still falling ({number(fallen, 2)} in the last {since})."
    return f"{said}, and hardly changed in the last {since}."


def _moved(first: float, last: float) -> str:
    if abs(last - first) <= FLAT:
        return f"stayed at {number(last, 2)}"
    return f"{'fell' if last < first else 'rose'} from {number(first, 2)} to {number(last, 2)}"


def won_back(
    name: str, change: ModelDifference, beside: ModelDifference | None, broken: int, untouched: str = UNDAMAGED
) -> str:
    """What training did to a share of queries, 0..1, in one sentence.

    `beside` goes from the third model to the trained one, if there is a third: undamaged, or as `untouched` says. `broken` is
    the number of queries whose answer came first only before.
    """
    before, after = (round(100 * value, 1) for value in (change.first, change.second))
    shares = f"{number(before, 1)} → {number(after, 1)} %"
    lost = f"{counted(broken, 'query', 'queries')} found before {'is' if broken == 1 else 'are'} lost"
    chance = "" if change.is_clear or after == before else " (may be chance)"
    whole = None if beside is None else round(100 * beside.first, 1)
    stands = ""
    if whole is not None and whole != after:
        side, model = (
            ("above", "below")[whole > after],
            "undamaged model" if untouched == UNDAMAGED else "model as published",
        )
        stands = f", {number(abs(difference(whole, after)), 1)} points {side} the {model}"
        stands += "" if beside is None or beside.is_clear else " (may be chance)"
    if beside is None or whole is None or whole <= before or untouched != UNDAMAGED:
        verb = "raised" if after > before else "lowered" if after < before else "did not change"
        return f"**Training {verb} {name}: {shares}**{chance}{stands}; {lost}."
    if after <= before:
        said = f"Training won back nothing of what the damage took: {shares}"
    elif whole <= after:
        said = f"Training won back all that the damage took: {shares}"
    else:
        won = percent((change.second - change.first) / (beside.first - change.first))
        said = f"Training won back {won} of what the damage took: {shares}"
    return f"**{said}**{chance}{stands}; {lost}."
