"""How poolings, durations, sizes and counts are written for people."""

from __future__ import annotations

import re
import time
from contextlib import suppress

from components.model.catalog import RUN_START
from components.model.trace import POOLING_NAMES

__all__ = ["NUMBERS_EXPLAINED", "POOLINGS_EXPLAINED", "POOLING_NAMES", "counted", "duration", "run_name", "size"]

POOLINGS_EXPLAINED = {
    "mean": "Mean of all tokens",
    "cls": "[CLS], the first token",
    "max": "Maximum in each dimension",
    "own": "The model's own vector",
}
NUMBERS_EXPLAINED = "A number is a sentence's place in the corpus, counted from 0."


def duration(seconds: float) -> str:
    """A time in words: "12 s", "3 min", "1 h 20 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def size(count: float) -> str:
    """Bytes in words: "3 MB", "1.20 GB"."""
    return f"{max(1, round(count / 1e6)):,} MB" if count < 0.5e9 else f"{count / 1e9:.2f} GB"


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 query", "1,200 queries"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def run_name(name: str) -> str:
    """A training run's name in words: "mnrl, 22 Nov 14:02" for "mnrl-20261122-140233-ab12"; others stay as they are."""
    if name.endswith(RUN_START):
        return f"{run_name(name.removesuffix(RUN_START))}, before training"
    parts = re.fullmatch(r"(.+)-(\d{8}-\d{6})-[0-9a-f]{4}", name)
    if parts is not None:
        with suppress(ValueError):
            moment = time.strptime(parts[2], "%Y%m%d-%H%M%S")
            return f"{parts[1]}, {moment.tm_mday} {time.strftime('%b %H:%M', moment)}"
    return name
