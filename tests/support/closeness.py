"""Numbers that were computed in float32, compared so that the same code passes on every chip."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

# A chip adds float32 numbers in the order that suits its registers, and each order rounds differently: the results of
# two orders were seen to differ by 1.07e-6 where 1e-6 was allowed. Five times that is room enough for sums of some
# hundred terms, and far less than what a wrong index, a lost term or half precision changes.
FLOAT32 = 5e-6


def assert_close(actual: Any, expected: Any, tolerance: float = FLOAT32, what: str = "") -> None:
    """Two arrays, lists or tensors of one shape are the same numbers; one expected number stands for all.

    They may differ by `tolerance` times the largest expected number, or times 1 if that is larger. What is missing or
    infinite must be so in both. A failure names `what` was compared, and the largest difference with its place.
    """
    found, wanted = _float64(actual), _float64(expected)
    prefix = f"{what}: " if what else ""
    assert wanted.ndim == 0 or found.shape == wanted.shape, f"{prefix}shape {found.shape}, expected {wanted.shape}"
    wanted = np.broadcast_to(wanted, found.shape)
    finite = np.isfinite(wanted)
    odd = ~finite | ~np.isfinite(found)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    wrong = np.argwhere(odd & ~same)
    assert not len(wrong), f"{prefix}{_at(found, wrong[0])}, expected {_at(wanted, wrong[0])}, at {_place(wrong[0])}"
    differences = np.zeros(found.shape)
    np.subtract(found, wanted, out=differences, where=~odd)
    allowed = tolerance * np.abs(wanted).max(initial=1, where=finite)
    largest = np.unravel_index(np.abs(differences).argmax(), found.shape) if found.size else ()
    assert not found.size or np.abs(differences[largest]) <= allowed, (
        f"{prefix}{_at(found, largest)}, expected {_at(wanted, largest)}, at {_place(largest)}: a difference of "
        f"{abs(differences[largest]):.3g} where {allowed:.3g} is allowed, the largest of {found.size}"
    )


def _float64(numbers: Any) -> np.ndarray:
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.detach().cpu().double().numpy()
    return np.asarray(numbers, np.float64)


def _at(numbers: np.ndarray, place: Any) -> str:
    return f"{numbers[tuple(place)]:.9g}"


def _place(place: Any) -> list[int]:
    return [int(index) for index in place]
