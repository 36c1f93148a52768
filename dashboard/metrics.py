"""The operator's figures in the text format of Prometheus: sessions, passes, the queue, memory, caches and disk.

https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4). Nothing here names a person, a text or a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import psutil
from streamlit import runtime
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY

from components.counters import forward_passes
from components.model import device
from dashboard import caching

PREFIX = "bert_internals_"


@dataclass(frozen=True)
class Sample:
    """One number, with the labels that tell it from the others of its metric."""

    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Metric:
    """One figure: its name without our prefix, what it means, and its numbers."""

    name: str
    kind: Literal["gauge", "counter"]
    meaning: str
    samples: Sequence[Sample]


def written() -> str:
    """All figures as Prometheus reads them."""
    return exposition(collected())


def collected() -> tuple[Metric, ...]:
    """The figures now. It reads the sizes of the indexes' files: call it outside the event loop."""
    lanes = caching.queue().counts()
    models = [job.result for job in caching.models().jobs.finished() if job.error is None]
    accelerators = {str(model.device): model.device for model in models if model.device.type == "cuda"}
    memory = {name: device.memory(of_model) for name, of_model in accelerators.items()}
    caches = {"traces": caching.traces(), "parsed_files": caching.parsed()}
    indexes, index_bytes = caching.indexes().usage()
    return (
        Metric("sessions", "gauge", "Sessions connected now.", _one(_sessions())),
        Metric("forward_passes_total", "counter", "Forward passes since the start.", _one(forward_passes.value)),
        Metric("jobs_waiting", "gauge", "Jobs that wait, by lane.", _each("lane", {k: v[1] for k, v in lanes.items()})),
        Metric("jobs_running", "gauge", "Jobs at work, by lane.", _each("lane", {k: v[0] for k, v in lanes.items()})),
        Metric("models_loaded", "gauge", "Models in memory.", _one(len(models))),
        Metric("memory_bytes", "gauge", "Memory of the server's process.", _one(psutil.Process().memory_info().rss)),
        Metric(
            "device_memory_bytes",
            "gauge",
            "Memory in use on the accelerator, that of other programs included.",
            _each("device", {name: used.device_used or 0 for name, used in memory.items()}),
        ),
        Metric(
            "devices_lost",
            "gauge",
            "Accelerators that compute nothing until a new start.",
            _one(len(device.lost())),
        ),
        Metric("cache_bytes", "gauge", "Results in memory.", _each("cache", {k: v.used for k, v in caches.items()})),
        Metric(
            "cache_limit_bytes",
            "gauge",
            "The most memory that these results may take.",
            _each("cache", {k: v.limit for k, v in caches.items()}),
        ),
        Metric("indexes", "gauge", "Embedded corpora on disk.", _one(indexes)),
        Metric("index_bytes", "gauge", "Disk space of the embedded corpora.", _one(index_bytes)),
        Metric("index_limit_bytes", "gauge", "The most disk space of these.", _one(caching.indexes().limit)),
    )


def exposition(metrics: Sequence[Metric]) -> str:
    """Metrics as Prometheus' text format; one without a sample is left out."""
    lines = []
    for metric in metrics:
        if metric.samples:
            lines.append(f"# HELP {PREFIX}{metric.name} {_escaped(metric.meaning)}")
            lines.append(f"# TYPE {PREFIX}{metric.name} {metric.kind}")
        for sample in metric.samples:
            labels = ",".join(f'{name}="{_escaped(value, quotes=True)}"' for name, value in sample.labels.items())
            number = f"{sample.value:d}" if isinstance(sample.value, int) else repr(float(sample.value))
            lines.append(f"{PREFIX}{metric.name}{f'{{{labels}}}' if labels else ''} {number}")
    return "".join(f"{line}\n" for line in lines)


def _sessions() -> int:
    """The sessions that are connected now; 0 outside a server."""
    if not runtime.exists():
        return 0
    of_streamlit = runtime.get_instance().stats_mgr.get_stats([ACTIVE_SESSIONS_FAMILY])
    return sum(int(getattr(stat, "value", 0)) for stat in of_streamlit.get(ACTIVE_SESSIONS_FAMILY, ()))


def _one(value: float) -> tuple[Sample, ...]:
    return (Sample(value, {}),)


def _each(label: str, values: Mapping[str, float]) -> tuple[Sample, ...]:
    return tuple(Sample(value, {label: name}) for name, value in values.items())


def _escaped(text: str, *, quotes: bool = False) -> str:
    escaped = text.replace("\\", r"\\").replace("\n", r"\n")
    return escaped.replace('"', r"\"") if quotes else escaped
