"""Every path of every model on a real device: the numbers of the CPU, and the same refusals (`make test-gpu`)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.gpu.comparison import compare
from tests.gpu.models import every_model, families

# A real device adds in another order, and with kernels of its own.
LOOSER = {"cpu": 1, "cuda": 100, "mps": 100}


def _devices() -> list[str]:
    """Those of this machine, of two GPUs also the second one while the first is current; "cuda" where there is none."""
    if torch.backends.mps.is_available():
        return ["mps"]
    return ["cuda", "cuda:1"] if torch.cuda.device_count() > 1 else ["cuda"]


@pytest.mark.gpu
@pytest.mark.parametrize("device", _devices())
@pytest.mark.parametrize("model", every_model(), ids=lambda model: model.name)
def test_every_path_on_a_device(tmp_path: Path, model: object, device: str) -> None:
    counts, wrong = compare([model], device, tmp_path, LOOSER[torch.device(device).type])
    assert not wrong
    assert counts.total()


def test_the_same_paths_on_the_cpu_again(tmp_path: Path) -> None:
    counts, wrong = compare([next(families())], "cpu", tmp_path)
    assert not wrong
    assert counts["equal"] > 60
