"""The device a model runs on, and the memory in use."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from components import operator_settings
from components.errors import ModelError, first_line
from components.jobs.turns import Turns
from components.sizes import in_words

if TYPE_CHECKING:
    import torch

# Where Linux keeps what a container may use: a number of bytes, or "max".
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
# What a RuntimeError of torch says where memory ends, and how an accelerator's other failures begin.
_TOO_LITTLE = ("out of memory", "ALLOC_FAILED", "can't allocate memory")
_FAILED = ("CUDA error", "CUDA driver", "HIP error", "MPS backend", "cuDNN error", "CUDNN_STATUS", "CUBLAS_STATUS")
_lost: set[str] = set()  # accelerators on which this process cannot compute any more
_turns: dict[str, Turns] = {}  # by accelerator, those of all models on it


def on_device(tensors: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Copies of a batch's tensors on the device; those that are there already, as they are.

    The program goes on while the copies are made where that is safe: from pinned memory to CUDA. Elsewhere, and from other
    memory, the device may read what has been released and written again since, with no error and wrong vectors.
    """
    with failures_in_words(device):
        if rules_of(device).pins_inputs:
            return [tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors]
        return [tensor.to(device) for tensor in tensors]


def with_whole_sums(device: torch.device) -> torch.device:
    """The device, on which sums of bfloat16 products are float32 from now on, as on a CPU: CUDA may round them in between."""
    import torch

    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    return device


@dataclass(frozen=True)
class Rules:
    """All in which computing differs between kinds of devices, besides precision; no other file here asks for it.

    Embedding, tracing and scoring are one path each, whose parameters are precision and the size of a batch.
    """

    measures_batches: bool = True  # how many tokens a batch of bulk work has is measured; else it is a fixed number
    arranges_weights: bool = False  # bulk work takes weights arranged for the chip, and plain attention for short texts
    pins_inputs: bool = False  # they are copied there from pinned memory, while the program goes on
    has_float64: bool = True
    has_own_memory: bool = False  # which weights, and what bulk work adds to them, have to fit into


RULES = {
    "cpu": Rules(measures_batches=False, arranges_weights=True),
    "cuda": Rules(pins_inputs=True, has_own_memory=True),
    "mps": Rules(has_float64=False),
}


def rules_of(device: torch.device) -> Rules:
    """The rules that hold on a device."""
    return RULES.get(device.type, Rules())


def has_fast_half(device: torch.device) -> bool | None:
    """Whether a device computes in bfloat16 faster than in float32; None on a CPU, where a trial has to tell."""
    import torch

    if device.type == "cuda":
        with torch.cuda.device(device):  # the question concerns the current device
            return torch.cuda.is_bf16_supported(including_emulation=False)
    return None if device.type == "cpu" else False


def empty_cache() -> None:
    """Give memory that the allocator of an accelerator keeps for later back to it."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def name_of(device: torch.device) -> str:
    """What a person calls a device: the name of a GPU, else "cpu" or "mps"."""
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def widest(device: torch.device) -> torch.dtype:
    """The most exact numbers of a device: float64, but float32 of mps."""
    import torch

    return torch.float64 if rules_of(device).has_float64 else torch.float32


def turns_at(device: torch.device) -> Turns:
    """Whose turn it is to compute: on the CPU a model's own, on an accelerator those of all models there.

    An accelerator computes one thing after another anyway. Two passes at once would need the memory of both, and each would
    end the other by its shortage.
    """
    turns = Turns(threading.RLock())
    return turns if device.type == "cpu" else _turns.setdefault(_one_name(device), turns)


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of memory: of this process, and of the accelerator if there is one."""

    process: int
    device_used: int | None
    device_total: int | None
    device_own: int | None = None  # what of the used this process holds


def choose_device(name: str | None = None) -> torch.device:
    """The device to compute on: `name`, else the operator's setting `device`, else the first of cuda, mps and cpu available.

    Without a `name` it is the CPU where `goes_on_with_cpu`. Raises ModelError (kind "device") for a device that this machine
    does not have.
    """
    import torch

    if not name and goes_on_with_cpu():
        return torch.device("cpu")
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
            f"This machine has no device {chosen!r}{_why_none(chosen)}.",
            f"It has: {', '.join(available)}.",
            f"Set {operator_settings.DEVICE.variable} to one of these, or unset it to let the dashboard choose.",
        )
    return torch.device(chosen)


def _why_none(chosen: str) -> str:
    """Why a device of CUDA is not there, as far as torch tells."""
    import torch

    if not chosen.startswith("cuda"):
        return ""
    if torch.version.cuda is None and torch.version.hip is None:
        return ": the installed PyTorch computes on the CPU only"
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is not None:
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        left = f"{count} of this machine's GPUs" if count else "no GPU that it can use"
        return f": CUDA_VISIBLE_DEVICES is {shown[:60]!r}, which leaves PyTorch {left}"
    if not torch.cuda.is_available():
        return ": PyTorch finds no GPU that it can use (no driver, or one that is too old)"
    return ""


def failure(problem: BaseException, device: torch.device | None = None, doing: str = "for this") -> ModelError | None:
    """What a failure of an accelerator means to people; None for every other one.

    Of kind "memory" where it has too little, else of kind "device". `doing` completes "has too little memory …". `device`
    is where it happened, if that is known: one that computes nothing afterwards is remembered as lost.

    The tensors of the calls that failed are let go, so that the next ones find their memory free.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(problem, RuntimeError):
        return None
    said, is_short = first_line(problem), _is_short(problem)
    if not is_short and not isinstance(problem, torch.AcceleratorError) and not said.startswith(_FAILED):
        return None
    name = "The accelerator" if device is None else f"The device {device}"
    if is_short:
        traceback.clear_frames(problem.__traceback__)
        empty_cache()
        return ModelError(
            "memory",
            f"{name} has too little memory {doing}{_free(device)}.",
            "Each token of the longest text, each text of a step and each model in memory take some of it.",
            "Use shorter texts, fewer of them, or a smaller model.",
        )
    variable = operator_settings.DEVICE.variable
    is_gone = device is not None and is_lost(device)
    if is_gone and goes_on_with_cpu():
        return ModelError(
            "device",
            f"{name} has failed: {said}.",
            "From now on models run on the CPU, where they take longer.",
            "Try it again: the model is read once more.",
        )
    if is_gone:
        return ModelError(
            "device",
            f"{name} has failed: {said}.",
            "Nothing can be computed on it until the program starts again.",
            f"Start it again, with {variable}=cpu if the device fails once more.",
        )
    return ModelError(
        "device",
        f"{name} cannot compute this: {said}.",
        "The device, its driver and the installed PyTorch must fit each other.",
        f"Set {variable}=cpu to compute on the CPU, or install a PyTorch that fits.",
    )


@contextmanager
def failures_in_words(device: torch.device) -> Iterator[None]:
    """Within it, a failure of an accelerator becomes the ModelError that `failure` gives."""
    try:
        yield
    except RuntimeError as problem:
        failed = failure(problem, device)
        if failed is None:
            raise
        raise failed from problem


def _is_short(problem: BaseException) -> bool:
    """Whether memory was not enough: of the allocator, of a library of the device, or of the CPU."""
    return type(problem).__name__ == "OutOfMemoryError" or any(words in first_line(problem) for words in _TOO_LITTLE)


def _free(device: torch.device | None) -> str:
    """How much of an accelerator's memory is free, in brackets; empty where nobody can say."""
    found = None if device is None else memory(device)
    if found is None or found.device_total is None or found.device_used is None:
        return ""
    free = max(0, found.device_total - found.device_used)
    of_all = f"{in_words(free, binary=True)} of {in_words(found.device_total, binary=True)} are free"
    return f" ({of_all}; this program holds {in_words(found.device_own or 0, binary=True)})"


def is_lost(device: torch.device) -> bool:
    """Whether an accelerator computes nothing any more, not even one number; found out by trying, after it failed."""
    import torch

    name = _one_name(device)
    if name not in _lost and device.type != "cpu":
        try:
            if float(torch.ones(1, device=device).add(1).sum()) != 2:
                _lost.add(name)
        except RuntimeError as problem:
            if not _is_short(problem):
                _lost.add(name)
    return name in _lost


def _one_name(device: torch.device) -> str:
    """The one name of a device that has two: "cuda" alone is the first one."""
    return f"cuda:{device.index or 0}" if device.type == "cuda" else device.type


def goes_on_with_cpu() -> bool:
    """Whether an accelerator has failed, and the operator has allowed that models run on the CPU from then on."""
    return bool(_lost) and operator_settings.CPU_AFTER_FAILURE.value()


def lost() -> tuple[str, ...]:
    """The accelerators that failed in this process and compute nothing any more."""
    return tuple(sorted(_lost))


def memory(device: torch.device) -> MemoryUse:
    """The memory in use now, and the total."""
    used = total = own = None
    if device.type == "cuda" and _one_name(device) not in _lost:
        import torch

        with suppress(RuntimeError):  # of a device that has just failed the question fails too
            free, total = torch.cuda.mem_get_info(device)
            used, own = total - free, torch.cuda.memory_reserved(device)
    process = psutil.Process().memory_info().rss
    return MemoryUse(process, used, total, own)


@cache
def free_at_start(device: torch.device) -> int | None:
    """Bytes that were free on an accelerator when this was first asked; None for one without a memory of its own."""
    found = memory(device)
    return None if found.device_total is None or found.device_used is None else found.device_total - found.device_used


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
