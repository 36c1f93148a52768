"""What the events of a run say, as arrays over its steps: for figures, and for whoever reads a run in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.arrays import Float64, Int64, read_only
from components.training.run_folder import Event, EventReader, RunFolder

Curve = tuple[Int64, Float64]  # steps and the values at them, [point] each
VALIDATION_LOSS = "validation_loss"
_NOT_MEASURES = {"event", "step", "seconds", VALIDATION_LOSS}


@dataclass(frozen=True)
class Notice:
    """Something that a run noticed at a step: "collapse", "overfitting" or "diverged", and the value that shows it."""

    step: int
    code: str
    value: float


@dataclass(frozen=True, eq=False)
class History:
    """The curves of a run. A value that was not finite is NaN."""

    losses: Mapping[str, Curve]  # training loss of each step, by objective
    validation: Curve  # loss on the held-out rows; step 0 is before training
    measures: Mapping[str, Curve]  # on the held-out rows, by name
    learning_rate: Curve
    sentences_per_second: Curve
    notices: tuple[Notice, ...]

    @property
    def last_step(self) -> int:
        """The last step with a loss; 0 before the first."""
        return max((int(steps[-1]) for steps, _ in self.losses.values() if len(steps)), default=0)


class HistoryReader:
    """Reads the curves of a run again and again: only new events are read, and without any the curves stay. Thread-safe."""

    def __init__(self, run: RunFolder) -> None:
        self._events = EventReader(run)
        self._last: tuple[tuple[Event, ...], History] = (), history(())

    def read(self) -> History:
        """The curves so far."""
        events, (known, past) = self._events.read(), self._last
        if events is not known:
            past = history(events)
            self._last = events, past
        return past


def history(events: Sequence[Mapping[str, Any]]) -> History:
    """The curves in the events of a run (`RunFolder.events`). Of two values for one step the later one counts."""
    losses = [event for event in events if event["event"] == "loss"]
    evaluations = [event for event in events if event["event"] == "evaluation"]
    objectives = dict.fromkeys(str(event.get("objective") or "") for event in losses)
    names = dict.fromkeys(name for event in evaluations for name in event if name not in _NOT_MEASURES)
    return History(
        {
            name: _curve([event for event in losses if str(event.get("objective") or "") == name], "loss")
            for name in objectives
        },
        _curve(evaluations, VALIDATION_LOSS),
        {name: _curve(evaluations, name) for name in names if len(_curve(evaluations, name)[0])},
        _curve(losses, "learning_rate"),
        _curve(losses, "sentences_per_second"),
        tuple(
            Notice(event["step"], str(event.get("code", "")), _number(event.get("value")))
            for event in events
            if event["event"] == "notice"
        ),
    )


def _curve(events: Sequence[Mapping[str, Any]], name: str) -> Curve:
    values = {event["step"]: _number(event[name]) for event in events if _is_number(event.get(name, ""))}
    steps = sorted(values)
    return read_only(np.array(steps, np.int64)), read_only(np.array([values[step] for step in steps], np.float64))


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _number(value: object) -> float:
    """A number of an event; what was not finite was written as null."""
    return float(value) if isinstance(value, int | float) else math.nan
