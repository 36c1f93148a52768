"""What is said of a model before and after training: sentences made of the numbers that the figure shows.

Three models are compared where there are three: the trained one, the one that its training began with, and the untouched one,
which is the model as published. A gain over a model that was damaged on purpose says nothing about the untouched one, so that
a sentence always says where the trained model stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from components.numbers import number, signed
from components.training.before_after import CorrelationChange, MeasureChange

UNDAMAGED, PUBLISHED = "undamaged", "as published"  # the third model, by what came between it and the training
SAME_AS_BEFORE = "Before training, it is the model as published."


@dataclass(frozen=True)
class Change:
    """One measure of two models, from the first to the second, and whether the difference is more than chance."""

    first: float
    second: float
    is_clear: bool
    test: str  # what the judgement rests on: "p = 0.03"

    @property
    def judgement(self) -> str:
        return f"{'statistically significant' if self.is_clear else 'not significantly different'}, {self.test}"


@dataclass(frozen=True)
class Measure:
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


def of_retrieval(change: MeasureChange) -> Change:
    p_value = change.p_text if change.p_text.startswith("<") else f"= {change.p_text}"
    return Change(change.base.value, change.tuned.value, change.is_significant, f"p {p_value}")


def of_correlation(change: CorrelationChange) -> Change:
    low, high = signed(change.difference.low), signed(change.difference.high)
    return Change(change.base.value, change.tuned.value, change.is_clear, f"95 % interval {low} to {high}")


def trained(measure: Measure, change: Change, before: str) -> str:
    """What training changed; `before` is what the model is called that it began with."""
    moved = change.second - change.first
    verb = "gained" if moved > 0 else "lost"
    said = f"training {verb} {measure.distance(moved)} ({change.judgement})" if moved else "training changed nothing"
    return f"{measure.name}: {measure.shown(change.first)} {before}, **{measure.shown(change.second)}** after: {said}."


def beside_untouched(measure: Measure, before: float, change: Change, untouched: str) -> str:
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


def _won_back(measure: Measure, taken: float, gained: float) -> str:
    """How much of what the damage took came back."""
    if taken <= 0:
        return "the damage took nothing of it"
    if gained <= 0:
        return f"of the {measure.distance(taken)} that the damage took, training won back none"
    if gained < taken:
        return f"training won back {measure.distance(gained, unit=False)} of the {measure.distance(taken)} that the damage took"
    return f"training won back all of the {measure.distance(taken)} that the damage took"
