"""The results of one path on the CPU and on another device, compared number by number."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from pathlib import Path as File
from typing import Any

import numpy as np
import torch
from scipy import sparse

from components.errors import UserError
from components.model.backend import Backend
from components.model.store import TraceStore
from tests.gpu.models import Model
from tests.gpu.paths import Path

STORE = 64 << 20
REFUSALS = (UserError, ValueError, IndexError)
EQUAL, REFUSED, EXPLAINED = "equal", "refused", "explained"
AS_FAR = 1.5  # a device may be so many times as far from the exact numbers as the CPU


def on(device: str, model: File | str) -> Backend:
    return Backend.load(str(model), store=TraceStore(STORE), device_name=device)


def difference(left: Any, right: Any) -> float:
    """The largest difference of two results' numbers, relative to the largest number of each array; all else must be equal.

    An error counts as a result: its kind and its words.
    """
    if isinstance(left, Exception):
        assert (type(left), str(left)) == (type(right), str(right))
        return 0.0
    if isinstance(left, torch.Tensor):
        left, right = left.detach().cpu().numpy(), right.detach().cpu().numpy()
    if sparse.issparse(left):
        left, right = left.toarray(), right.toarray()
    if isinstance(left, np.ndarray | np.generic):
        return _difference_of_arrays(np.asarray(left), np.asarray(right))
    if dataclasses.is_dataclass(left):
        assert type(left) is type(right)
        names = [field.name for field in dataclasses.fields(left) if field.name not in ("head", "projection")]
        return max((difference(getattr(left, name), getattr(right, name)) for name in names), default=0.0)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        return max((difference(left[key], right[key]) for key in left), default=0.0)
    if isinstance(left, list | tuple):
        assert len(left) == len(right)
        return max((difference(one, other) for one, other in zip(left, right, strict=True)), default=0.0)
    if isinstance(left, float):
        assert np.isnan(left) == np.isnan(right)
        return 0.0 if np.isnan(left) else abs(left - right)
    assert left == right
    return 0.0


def _difference_of_arrays(left: np.ndarray, right: np.ndarray) -> float:
    assert (left.shape, left.dtype) == (right.shape, right.dtype)
    if left.dtype.kind != "f":
        assert (left == right).all()
        return 0.0
    assert (np.isnan(left) == np.isnan(right)).all()
    assert (left[np.isinf(left)] == right[np.isinf(left)]).all()
    both = np.isfinite(left)
    assert (both == np.isfinite(right)).all()
    scale = max(1.0, float(np.abs(left[both]).max(initial=0.0)))
    return float(np.abs(left[both].astype(np.float64) - right[both]).max(initial=0.0)) / scale


def outcome(path: Path, model: Backend) -> object:
    """What a path gives, computed anew; an error that is meant for people counts as a result, every other one is raised."""
    model.store.clear()
    try:
        return path.run(model)
    except REFUSALS as problem:
        problem.__traceback__ = None  # whose frames hold tensors
        return problem


def compared(path: Path, cpu: Backend, other: Backend, looser: float = 1.0) -> tuple[str, float]:
    """EQUAL, REFUSED or EXPLAINED, and the largest difference. Raises AssertionError.

    Explained is a difference in half precision where the device is no further from the exact numbers than the CPU is.
    """
    expected = outcome(path, cpu)
    found = outcome(path, other)
    assert type(expected) is type(found), f"{_said(expected)} on the CPU, {_said(found)} on {other.device}"
    measured = difference(expected, found)
    if isinstance(expected, Exception):
        return REFUSED, measured
    if measured <= path.tolerance * looser:
        return EQUAL, measured
    assert path.in_float32 is not None, f"they differ by {measured:.1e}"
    exact = path.in_float32(cpu)
    of_cpu, of_other = difference(exact, expected), difference(exact, found)
    assert of_other <= of_cpu * AS_FAR, f"the device is {of_other:.1e} from the exact numbers, the CPU {of_cpu:.1e}"
    return EXPLAINED, measured


def _said(result: object) -> str:
    return f"{type(result).__name__}: {result}" if isinstance(result, Exception) else "a result"


def compare(models: Iterable[Model], device: str, folder: File, looser: float = 1.0) -> tuple[Counter[str], list[str]]:
    """How many paths are equal, refused on both, and what was wrong: all models, the CPU against a device.

    Each model is saved below `folder`.
    """
    counts: Counter[str] = Counter()
    wrong = []
    for number, model in enumerate(models):
        place = folder / str(number)
        place.mkdir()
        saved = model.save(place)
        cpu, other = on("cpu", saved), on(device, saved)
        for path in model.paths(cpu):
            name = f"{model.name}: {path.name}"
            try:
                counts[compared(path, cpu, other, looser)[0]] += 1
            except Exception as problem:  # noqa: BLE001 - all are told at the end
                wrong.append(f"{name}: {type(problem).__name__}: {problem}")
    return counts, wrong
