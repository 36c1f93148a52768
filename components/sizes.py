"""Sizes in bytes as an operator writes them in an environment variable."""

from __future__ import annotations

from components.errors import InputError

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
