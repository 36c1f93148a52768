"""Where a model runs, and how much memory there is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from components.errors import ModelError

if TYPE_CHECKING:
    import torch

DEVICE_VARIABLE = "BERT_INTERNALS_DEVICE"


@dataclass(frozen=True)
class Memory:
    """Bytes of memory: this process's, the machine's, and the accelerator's where there is one."""

    process: int
    machine_total: int
    device_used: int | None
    device_total: int | None


def choose_device(name: str | None = None) -> torch.device:
    """The device to compute on: `name`, else BERT_INTERNALS_DEVICE, else cuda, mps, cpu in this order.

    Raises ModelError (problem "device") when a device is asked for that this machine does not have.
    """
    import torch

    wanted = (name or os.environ.get(DEVICE_VARIABLE, "")).strip().lower()
    has_mps = torch.backends.mps.is_available()
    if not wanted:
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu")
    available = ["cpu"] + ["mps"] * has_mps
    if torch.cuda.is_available():
        available += ["cuda"] + [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if wanted not in available:
        raise ModelError(
            "device",
            f"The device {wanted!r} was asked for.",
            f"This machine has: {', '.join(available)}.",
            f"Set {DEVICE_VARIABLE} to one of these, or unset it to choose automatically.",
        )
    return torch.device(wanted)


def memory(device: torch.device) -> Memory:
    """Memory in use and in all, now."""
    used = total = None
    if device.type == "cuda":
        import torch

        free, total = torch.cuda.mem_get_info(device)
        used = total - free
    process = psutil.Process().memory_info().rss
    return Memory(process, psutil.virtual_memory().total, used, total)
