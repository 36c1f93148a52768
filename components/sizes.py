"""Sizes in bytes: as an operator writes them, as messages and pages say them, and of what is kept in memory."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from types import FunctionType, ModuleType
from typing import Any

from components.errors import InputError

_PLAIN = {str, bytes, int, float, bool, type(None)}
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_bytes(text: str, variable: str) -> int:
    """Bytes from "1073741824", "512M", "2 GiB", the value of an environment variable.

    Raises InputError, which names the variable, for any other text, or for less than one byte.
    """
    compact = text.strip().upper().removesuffix("IB").removesuffix("B").strip()
    number, unit = (compact[:-1], compact[-1]) if compact and compact[-1].isalpha() else (compact, "")
    try:
        value = int(float(number) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        value = 0
    if value < 1:
        raise InputError(
            f"{text[:40]!r} is not a size in bytes.",
            "A size is a number of bytes, or a number with K, M or G.",
            f"Set {variable} to a size such as 512M or 2G.",
        )
    return value


def in_words(count: float, binary: bool = False, about: bool = False) -> str:
    """A size for people, in the unit that leaves it three digits: "0 bytes", "999 bytes", "1.50 kB", "12.3 MB", "1.02 GB".

    Only 0 is shown as 0. A unit is a thousand of the one before, as disks are sold; with `binary` 1,024 of it ("12.3 MiB"), for
    memory and limits. With `about` a size that is known to whole megabytes has no decimals below a gigabyte ("91 MB").
    """
    if count < 999.5:
        return f"{count:.0f} {'byte' if round(count) == 1 else 'bytes'}"
    step, units = (1_024, ("KiB", "MiB", "GiB", "TiB")) if binary else (1_000, ("kB", "MB", "GB", "TB"))
    power = 1
    while count / step**power >= 999.5 and power < len(units):
        power += 1
    size, unit = count / step**power, units[power - 1]
    digits = 0 if about and power < 3 else 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{size:,.{digits}f} {unit}"


def memory_of(value: object) -> int:
    """Bytes of memory that a value takes with all that it holds, about: arrays, texts, collections and records.

    What is held twice counts once, but texts and numbers within one collection count each time: the result is rather
    too high than too low.
    """
    total, seen, waiting = 0, set[int](), [value]
    while waiting:
        item: Any = waiting.pop()
        if id(item) in seen or isinstance(item, type | ModuleType | FunctionType):
            continue
        seen.add(id(item))
        if hasattr(item, "__array_interface__"):
            is_mapped = getattr(item, "_mmap", None) is not None  # from a file: no memory of its own
            total += 0 if is_mapped else int(item.nbytes)
            continue
        total += sys.getsizeof(item, 0)
        if isinstance(item, Mapping):
            total += _memory_in(tuple(item.keys()), waiting) + _memory_in(tuple(item.values()), waiting)
        elif isinstance(item, tuple | list | set | frozenset):
            total += _memory_in(item, waiting)
        elif not isinstance(item, str | bytes | bytearray | memoryview):
            waiting.extend(getattr(item, "__dict__", {}).values())
            slots = getattr(type(item), "__slots__", ())
            waiting.extend(getattr(item, name, None) for name in ((slots,) if isinstance(slots, str) else slots))
    return total


def _memory_in(items: Collection[object], waiting: list[Any]) -> int:
    """The bytes of the plain items of a collection; where it has others, all of them are left `waiting`."""
    if set(map(type, items)) <= _PLAIN:
        return sum(map(sys.getsizeof, items))
    waiting.extend(items)
    return 0
