"""What is said of a model before and after training: sentences made of the numbers that the figure shows.

Three models are compared where there are three: the trained one, the one that its training began with, and the untouched one,
which is the model as published. A gain over a model that was damaged on purpose says nothing about the untouched one, so that
a sentence always says where the trained model stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from components.numbers import counted, number, percent, signed
from components.training.before_after import CorrelationChange, MeasureChange

if TYPE_CHECKING:
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

    def distance(self, difference: float, unit: bool = True) -> str:
        """How far apart two values are, without a sign."""
        size, digits, word = (100 * abs(difference), 1, " points") if self.kind == "share" else (abs(difference), 3, "")
        least = 10**-digits
        text = number(size, digits) if size >= least / 2 or not size else f"less than {least:g}"
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
    said = f"training {verb} {measure.distance(moved)} ({change.judgement})" if moved else "training changed nothing"
    return f"{measure.name}: {measure.shown(change.first)} {before}, **{measure.shown(change.second)}** after: {said}."


def beside_untouched(measure: MeasureName, before: float, change: ModelDifference, untouched: str) -> str:
    """Where the trained model stands: `change` goes from the untouched model to it, `before` is what training began with."""
    whole, after = change.first, change.second
    model = "the undamaged model" if untouched == UNDAMAGED else "the model as published"
    distance = after - whole
    if distance:
        side = "above" if distance > 0 else "below"
        stands = f"the trained model is {measure.distance(distance)} {side} it ({change.judgement})"
    else:
        stands = "the trained model has as much"
    opening = f"{model.capitalize()} has **{measure.shown(whole)}**"
    if untouched != UNDAMAGED:
        return f"{opening}: {stands}."
    return f"{opening}: {_won_back(measure, whole - before, after - before)}, and {stands}."


def _won_back(measure: MeasureName, taken: float, gained: float) -> str:
    """How much of what the damage took came back."""
    if taken <= 0:
        return "the damage took nothing of it"
    if gained <= 0:
        return f"of the {measure.distance(taken)} that the damage took, training won back none"
    if gained < taken:
        return f"training won back {measure.distance(gained, unit=False)} of the {measure.distance(taken)} that the damage took"
    return f"training won back all of the {measure.distance(taken)} that the damage took"


FLAT = 0.005  # a change of a loss that two decimals do not show
SHARES = {
    "recall@1": "the share of right texts in first place",
    "accuracy": "accuracy",
    "spearman": "Spearman",
}  # what is said of a run, the first it has


def watched(past: History, undamaged: Mapping[str, float]) -> str:
    """Whether a run learns, from its measures on held-out rows: the loss, whether it still falls, and one measure."""
    steps, losses = past.validation
    finite = np.isfinite(losses)
    steps, losses = steps[finite], losses[finite]
    if len(losses) < 2:
        return "**Nothing is measured on held-out rows yet** but what the model was before." if len(losses) else ""
    first, last, before = float(losses[0]), float(losses[-1]), float(losses[-2])
    said = f"**Held-out loss {_moved(first, last)}**"
    lowest, fallen = int(np.argmin(losses)), before - last
    since = counted(int(steps[-1] - steps[-2]), "step")
    if last - float(losses[lowest]) > FLAT:
        said += f", and is above its lowest, {number(float(losses[lowest]), 2)} at step {steps[lowest]:,}"
    elif fallen > FLAT:
        said += f", and was still falling ({number(fallen, 2)} in the last {since})"
    else:
        said += f", and hardly changed in the last {since}"
    name = next((name for name in SHARES if name in past.measures and len(past.measures[name][0]) > 1), None)
    if name is None:
        return f"{said}."
    values = past.measures[name][1]
    is_share = name != "spearman"

    def shown(value: float) -> str:
        return percent(value) if is_share else number(value, 2)

    start, end = shown(float(values[0])), shown(float(values[-1]))
    verb = "rose" if values[-1] > values[0] else "fell"
    change = f"stayed at {end}" if start == end else f"{verb} from {start} to {end}"
    said += f"; {SHARES[name]} {change}"
    return f"{said}, the undamaged model has {shown(undamaged[name])}." if name in undamaged else f"{said}."


def _moved(first: float, last: float) -> str:
    if abs(last - first) <= FLAT:
        return f"stayed at {number(last, 2)}"
    return f"{'fell' if last < first else 'rose'} from {number(first, 2)} to {number(last, 2)}"


def won_back(name: str, before: float, after: float, untouched: float | None, broken: int) -> str:
    """What training did to a share of queries, 0..1, in one sentence: `untouched` is that of the undamaged model, if it is a
    third one; `broken` is the number of queries whose answer came first only before.
    """
    shares = f"{number(100 * before, 1)} → {number(100 * after, 1)} %"
    lost = f"{counted(broken, 'query', 'queries')} found before {'is' if broken == 1 else 'are'} lost"
    if untouched is None or untouched <= before:
        verb = "raised" if after > before else "lowered" if after < before else "did not change"
        return f"**Training {verb} {name}: {shares}**; {lost}."
    taken, gained, missing = untouched - before, after - before, untouched - after
    if gained <= 0:
        said = f"Training won back nothing of what the damage took: {shares}"
    elif missing <= 0:
        said = f"Training won back all that the damage took: {shares}"
    else:
        said = f"Training won back {percent(gained / taken)} of what the damage took: {shares}"
    stands = f", {number(100 * missing, 1)} points below the undamaged model" if missing > 0 else ""
    return f"**{said}**{stands}; {lost}."
