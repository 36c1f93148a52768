"""A pretend CUDA machine: two "GPUs" made of main memory, for a PyTorch without CUDA.

For tests of code that nobody can run on a GPU. device.cpp gives the CPU build of torch what it lacks for the real device type
"cuda": an allocator, a device guard, the hooks, and for every operator a fallback that computes on the CPU. So inference mode,
autograd, torch.func, autocast, pinned memory, streams and events all run as they are; no operator is wrapped in Python.

What it finds, as a real GPU would:
- tensors of two devices in one operator, cuda:0 and cuda:1 included (a CPU tensor of no dimension, and index tensors, may mix);
- `.numpy()` of a tensor on the device; products of integers, which CUDA does not have;
- memory that ends (`set_capacity`): torch.OutOfMemoryError; memory that is not given back (`used`); how much was needed
  (`peak_of`), as the sum of tensors: a real allocator rounds each up, and kernels and libraries take their own besides;
- operators that run while no thread has the device's turn (`outside_of_turns`);
- a number out of range in a look-up: "device-side assert", and from then on every operator fails, until `heal()`;
- with `late_copies(True)`: a non-blocking copy to the CPU that is read before anybody synchronised (it arrives only then);
- with `as_mps(True)`: float64, and a non-blocking copy to the device whose source is released before it is read;
- how often the CPU waits for the device (`waits`): copies to and fro, .item(), masks.

What it cannot: speed; kernels' own rounding, TF32, bfloat16 sums; which attention kernel is taken; the order of several streams
(they run at once, in order); CUDA graphs, torch.compile, NCCL and DataParallel.

It must be imported before torch. It needs g++ (half a minute, once for each version of torch) and torch's own headers.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("device.cpp")
DEVICES = 2
CONTEXT = 500 << 20  # bytes that a real CUDA context takes at once
PLENTY = 1 << 40  # bytes of each device


def _library() -> ctypes.CDLL:
    """The library, compiled where its source or torch is new."""
    if "torch" in sys.modules:
        raise RuntimeError("tests.pretend_gpu.accelerator must be imported before torch")
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        raise RuntimeError("torch is not installed")
    torch_folder = Path(found.origin).parent
    version = (torch_folder / "version.py").read_bytes()
    # The library names the folder of torch: another environment has one of its own.
    mark = hashlib.sha256(SOURCE.read_bytes() + version + bytes(torch_folder)).hexdigest()[:16]
    built = Path(tempfile.gettempdir()) / f"pretend-cuda-{os.getuid()}-{mark}.so"
    if not built.exists():
        part = built.with_suffix(f".{os.getpid()}.so")
        include, libraries = torch_folder / "include", torch_folder / "lib"
        command = [
            "g++",
            "-std=c++20",
            "-O1",
            "-fPIC",
            "-shared",
            f"-I{include}",
            f"-I{include}/torch/csrc/api/include",
        ]
        linked = [f"-L{libraries}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{libraries}"]
        subprocess.run([*command, str(SOURCE), "-o", str(part), *linked], check=True)
        part.replace(built)
    library = ctypes.CDLL(str(built))
    library.pretend_set_capacity.argtypes = [ctypes.c_int64]
    library.pretend_outside.restype = ctypes.c_char_p
    for name in ("used", "peak", "capacity", "waits"):
        getattr(library, f"pretend_{name}").restype = ctypes.c_int64
    return library


_lib = _library()
import torch  # noqa: E402 - after the library


def used(device: int = 0) -> int:
    """Bytes of tensors on a device."""
    return int(_lib.pretend_used(device))


@contextmanager
def peak_of(device: int) -> Iterator[list[int]]:
    """Within it, the most bytes that tensors on a device take; they are the only item of the list at its end."""
    most: list[int] = []
    _lib.pretend_reset_peak(device)
    yield most
    most.append(int(_lib.pretend_peak(device)))


class WatchedLock:
    """A lock that threads may take again while they have it: whoever has it has the device's turn.

    `left` are the bytes of tensors on the device each time that a turn ended.
    """

    def __init__(self, device: int) -> None:
        self.left: list[int] = []
        self._device, self._lock, self._depth = device, threading.RLock(), 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        is_taken = self._lock.acquire(blocking, timeout)
        if is_taken:
            self._depth += 1
            _lib.pretend_turn(self._device, 1)
        return is_taken

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self.left.append(used(self._device))
        _lib.pretend_turn(self._device, 0)
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def outside_of_turns() -> Iterator[list[str]]:
    """Within it, the operators that ran on a device whose turn nobody had; they are in the list at its end."""
    found: list[str] = []
    _lib.pretend_watch(1)
    yield found
    found += _lib.pretend_outside().decode().split()
    _lib.pretend_watch(0)


def as_new() -> None:
    """The machine as it was at first: PLENTY of memory, no failure, no rule that a check has set."""
    set_capacity(PLENTY)
    _lib.pretend_options(0, 0)
    _lib.pretend_watch(0)
    heal()


def set_capacity(nbytes: int) -> None:
    """How many bytes each device has."""
    _lib.pretend_set_capacity(nbytes)


def waits() -> int:
    """How often the CPU has waited for a device."""
    return int(_lib.pretend_waits())


def heal() -> None:
    """Let operators work again after a device-side assert."""
    _lib.pretend_heal()


def late_copies(on: bool) -> None:
    """Whether non-blocking copies to the CPU arrive only at the next synchronisation."""
    _lib.pretend_options(0, int(on))


def as_mps(on: bool) -> None:
    """Whether the device has no float64, and reads the source of a non-blocking copy only later, as mps does."""
    _lib.pretend_options(int(on), 0)


def _index(device: object = None) -> int:
    given = device if isinstance(device, int) or device is None else torch.device(str(device)).index
    return int(_lib.pretend_current()) if given is None else int(given)


def _install() -> None:
    """Give torch.cuda what the CPU build leaves out; random numbers come from the CPU's generator."""
    plain_clone = torch.UntypedStorage.clone  # what copy.deepcopy of parameters calls

    def clone(self: torch.UntypedStorage) -> torch.UntypedStorage:
        if self.device.type != "cuda":
            return plain_clone(self)
        return torch.empty(0, dtype=torch.uint8, device=self.device).set_(self).clone().untyped_storage()

    given = {
        "_initialized": True,
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: DEVICES,
        # Functions of Python, since torch._dynamo puts these into sets.
        "current_device": lambda: _lib.pretend_current(),
        "set_device": lambda device: _lib.pretend_exchange(_index(device)) and None,
        "_exchange_device": lambda device: _lib.pretend_exchange(device),
        "_maybe_exchange_device": lambda device: _lib.pretend_exchange(device),
        "mem_get_info": lambda device=None: (
            _lib.pretend_capacity() - used(_index(device)) - CONTEXT,
            _lib.pretend_capacity(),
        ),
        "memory_allocated": lambda device=None: used(_index(device)),
        "memory_reserved": lambda device=None: used(_index(device)),
        "synchronize": lambda device=None: torch.accelerator.synchronize(),
        "empty_cache": lambda: None,
        "is_bf16_supported": lambda including_emulation=True: True,
        "get_device_capability": lambda device=None: (9, 0),
        "get_device_name": lambda device=None: "Pretend GPU",
    }
    randomness = {
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "get_rng_state": lambda device="cuda": torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state": lambda state, device="cuda": None,
        "set_rng_state_all": lambda states: None,
    }
    for name, value in {**given, **randomness}.items():
        setattr(torch.cuda, name, value)
    for name, value in randomness.items():
        setattr(torch.cuda.random, name, value)
    torch.UntypedStorage.clone = clone  # type: ignore[method-assign]


_install()
