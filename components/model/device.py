"""The device a model runs on, and the memory in use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from components import operator_settings
from components.errors import ModelError

if TYPE_CHECKING:
    import torch

# Where Linux keeps what a container may use: a number of bytes, or "max".
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def on_device(tensors: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Copies of a batch's tensors on the device; those that are there already, as they are.

    The program goes on while the copies are made where that is safe: from pinned memory to CUDA. Elsewhere, and from other
    memory, the device may read what has been released and written again since, with no error and wrong vectors.
    """
    if device.type == "cuda":
        return [tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors]
    return [tensor.to(device) for tensor in tensors]


@dataclass(frozen=True)
class Memory:
    """Bytes of memory: of this process, and of the accelerator if there is one."""

    process: int
    device_used: int | None
    device_total: int | None


def choose_device(name: str | None = None) -> torch.device:
    """The device to compute on: `name`, else the operator's setting `device`, else the first of cuda, mps and cpu available.

    Raises ModelError (kind "device") for a device that this machine does not have.
    """
    import torch

    chosen = (name or operator_settings.DEVICE.chosen() or "").strip().lower()
    has_mps = torch.backends.mps.is_available()
    if not chosen:
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu")
    available = ["cpu"] + ["mps"] * has_mps
    if torch.cuda.is_available():
        available += ["cuda"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if chosen not in available:
        raise ModelError(
            "device",
            f"This machine has no device {chosen!r}.",
            f"It has: {', '.join(available)}.",
            f"Set {operator_settings.DEVICE.variable} to one of these, or unset it to let the dashboard choose.",
        )
    return torch.device(chosen)


def memory(device: torch.device) -> Memory:
    """The memory in use now, and the total."""
    used = total = None
    if device.type == "cuda":
        import torch

        free, total = torch.cuda.mem_get_info(device)
        used = total - free
    process = psutil.Process().memory_info().rss
    return Memory(process, used, total)


def machine_memory() -> int:
    """Bytes of main memory that this program may use: the machine's, or less where its container has a limit."""
    total = int(psutil.virtual_memory().total)
    for path in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            total = min(total, int(path.read_text(encoding="ascii")))
    return total


def free_memory() -> int:
    """Bytes of main memory that are free for this program and what it starts."""
    own = psutil.Process().memory_info().rss
    return max(0, min(int(psutil.virtual_memory().available), machine_memory() - own))
