"""How long something takes, and how a measurement is told."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any


def report(text: str) -> None:
    sys.stdout.write(f"\n    {text}\n")


def percentile_95(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


def seconds(action: Callable[[], Any]) -> float:
    gc.collect()
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
