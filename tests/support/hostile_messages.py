"""What a browser of somebody who means harm sends for the widgets of a page, drawn from a seed: values of the right kind that
no page would send, for figures, tables, components and fields.

Values of another kind than the widget's are those of `tests/faults/test_server.py`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.support.places import ROOT
from tests.support.session import Session

NUMBERS = (0, -1, 1, 2, 3, 7, 99, -(10**9), 2**31, 2**53 + 1, 2**63 - 1, 0.5, -0.0, 1e308, float("nan"), float("-inf"))
PLACES = (-1, 0, 1, 2, 3, 5, 6, 7, 11, 12, 99, 10**6, 2**63 - 1, True)
TEXTS = (
    *("", " ", "\0", "\u202e", "0-1", "9-9", "-", "end", "a" * 20_000, "<img src=x onerror=alert(1)>", "1", "NaN"),
    *("javascript:alert(1)", "__class__", "../../etc/passwd", "words", "negation", "a\n" * 5_000, "0f" * 16),
    *("meaning?v=word-senses#senses_map", "inside?v=none#x", "?#", "[x](javascript:alert(1))"),
)
HALF = "\ud800"  # of a character: JSON can hold it, and a message's text cannot


@cache
def events() -> tuple[str, ...]:
    """The names of what all components can report: a message may name those of others, too."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "dashboard").rglob("*.py")]
    return tuple(sorted({name for text in texts for name in re.findall(r"\bon_([a-z]+)_change\b", text)}))


class Values:
    """Draws values."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def any(self, depth: int = 3) -> Any:
        """Anything that JSON can hold, mostly small."""
        kind = self.chance.randrange(7 if depth else 4)
        if kind < 2:
            return self.chance.choice(NUMBERS)
        if kind == 2:
            return self.chance.choice((*TEXTS, HALF))
        if kind == 3:
            return self.chance.choice((None, True, False, [], {}))
        if kind < 6:
            return [self.any(depth - 1) for _ in range(self.chance.randrange(4))]
        return {self.chance.choice(TEXTS): self.any(depth - 1) for _ in range(self.chance.randrange(3))}

    def value(self) -> Any:
        """Half of them could pass for a place: a whole number, or a few of them."""
        if self.chance.random() < 0.5:
            return self.any()
        count = self.chance.choice((0, 1, 1, 2, 2, 3, 5))
        return [self.chance.choice(PLACES) for _ in range(count)] if count else self.chance.choice(PLACES)

    def selection(self) -> Any:
        """What a figure or a table says was selected in it."""
        if self.chance.random() < 0.1:
            return self.any()
        points = [self._point() for _ in range(self.chance.randrange(1, 4))]
        parts = {"points": points, "rows": [self.value()], "columns": [self.value()], "cells": [[self.value()] * 2]}
        for name in list(parts):
            if (drawn := self.chance.random()) < 0.15:
                del parts[name]
            elif drawn < 0.3:
                parts[name] = self.any()
        return {"selection": parts}

    def _point(self) -> Any:
        if self.chance.random() < 0.15:
            return self.any()
        return {key: self.value() for key in ("customdata", "x", "y", "point_index") if self.chance.random() < 0.9}

    def event(self) -> Any:
        """What a component reports."""
        return (
            {"event": self.chance.choice(events()), "value": self.value()}
            if self.chance.random() < 0.95
            else self.any()
        )


def sent_for(session: Session, seed: int) -> tuple[WidgetState, ...]:
    """Values for each widget that a session's last run drew."""
    values = Values(seed)
    return tuple(state for element in session.elements for state in _states(element, values))


def _states(element: object, values: Values) -> Iterator[WidgetState]:
    widget, kind, chance = str(getattr(element, "id", "")), type(element).__name__, values.chance
    state = WidgetState(id=widget)
    if not widget:
        return
    if kind in {"PlotlyChart", "Dataframe"}:
        state.string_value = json.dumps(values.selection())
    elif kind == "BidiComponent":
        state.json_value = json.dumps({name: values.value() for name in chance.sample(events(), 12)})
        reported = json.dumps([values.event() for _ in range(12)])
        yield WidgetState(id=f"$$STREAMLIT_INTERNAL_KEY_{widget}__events", json_trigger_value=reported)
    elif kind == "Button" and chance.random() < 0.1:
        state.trigger_value = True
    elif kind == "Checkbox":
        state.bool_value = chance.random() < 0.5
    elif kind == "Slider":
        state.double_array_value.data.extend(float(chance.choice(NUMBERS)) for _ in range(chance.randrange(4)))
    elif kind == "NumberInput":
        state.double_value = float(chance.choice(NUMBERS))
    elif kind in {"ButtonGroup", "MultiSelect"}:
        state.string_array_value.data.extend(chance.choice(TEXTS) for _ in range(chance.randrange(4)))
    elif kind in {"Selectbox", "Radio", "TextInput", "TextArea"}:
        state.string_value = chance.choice(TEXTS)
    elif kind == "Pagination":
        state.int_value = chance.choice((-(2**53), -1, 0, 2, 10**9, 2**53 - 1))
    elif kind == "FileUploader":
        file = state.file_uploader_state_value.uploaded_file_info.add()
        file.file_id, file.name, file.size = chance.choice(("", "raw0", "../x")), "../<b>.csv", 2**31
    else:
        return
    yield state


def errors(session: Session) -> list[str]:
    """The errors of the program that the last run drew: none may be there, whatever was sent."""
    drawn = [(type(element).__name__, element) for element in session.elements]
    found = [f"{element.type}: {element.message}" for kind, element in drawn if kind == "Exception"]  # type: ignore[attr-defined]
    alerts = [str(element.body) for kind, element in drawn if kind == "Alert"]  # type: ignore[attr-defined]
    return found + [text for text in alerts if "Something went wrong" in text]
