"""How large the tensors of a safetensors file are, read from its header before anything is allocated.

A header is JSON: the shape of each tensor, and where its numbers stand in the file. A shape with a 0 in it takes no byte of the
file, whatever its other numbers are, and a layer that is built with these allocates gigabytes.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from components.errors import ModelError

WEIGHTS = "model.safetensors"
MOST_HEADER_BYTES = 8 << 20  # published ones have some ten kB


def _header(path: Path) -> tuple[int, Any]:
    """The length of a safetensors file's header, and the header; None for a file that is none or whose header is too long."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if os.fstat(file.fileno()).st_size <= 8:
                return 0, None  # there is nothing behind the length of its header
            return size, json.loads(file.read(size)) if size <= MOST_HEADER_BYTES else None
    except (OSError, ValueError, RecursionError):
        return 0, None


def check_header(path: Path, shown: str) -> int:
    """The number of all numbers in a safetensors file; 0 for a file that is none, which the library then says.

    Raises ModelError, about the file as it is `shown` to people, for a header that is too long or has impossible shapes.
    """
    size, header = _header(path)
    if size > MOST_HEADER_BYTES:
        raise ModelError(
            "unsupported",
            f"{shown} announces a header of {size:,} bytes.",
            f"The header of a safetensors file may have at most {MOST_HEADER_BYTES:,} bytes.",
            "Download or save the model again, or pick another one.",
        )
    entries = header.values() if isinstance(header, dict) else ()
    shapes = [entry["shape"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("shape"), list)]
    shapes = [shape for shape in shapes if all(type(length) is int and length >= 0 for length in shape)]
    numbers = sum(map(math.prod, shapes))
    longest = max((length for shape in shapes for length in shape), default=0)
    if longest > max(numbers, 1):
        raise ModelError(
            "damaged",
            f"{shown} has a tensor of {longest:,} rows or columns, and {numbers:,} numbers in all.",
            "No side of a tensor can be longer than the file has numbers.",
            "Download or save the model again, or pick another one.",
        )
    return numbers


def half_precision(path: Path) -> str:
    """ "float16" or "bfloat16" for a safetensors file with more such numbers than others; "" otherwise, and for none."""
    _, header = _header(path)
    counts: dict[str, int] = {}
    for entry in header.values() if isinstance(header, dict) else ():
        if isinstance(entry, dict) and isinstance(entry.get("data_offsets"), list) and len(entry["data_offsets"]) == 2:
            begin, end = entry["data_offsets"]
            kind = str(entry.get("dtype"))
            counts[kind] = counts.get(kind, 0) + (end - begin if type(begin) is type(end) is int else 0)
    most = max(counts, key=counts.__getitem__, default="")
    return {"F16": "float16", "BF16": "bfloat16"}.get(most, "")


def check_agreement(needed: int, found: int, most_bytes: int, name: str) -> None:
    """Raise ModelError where a configuration asks for far more weights than the files have, or the machine has memory for.

    `needed` counts the numbers of the model that the configuration describes, `found` those in the files. Parts that were
    not published, such as a pooler, may be missing.
    """
    if needed > 2 * found + 1_000_000:
        raise ModelError(
            "damaged",
            f"config.json of {name} describes {needed:,} weights, and its files have {found:,}.",
            "The sizes in config.json must be those of the weights: others would be filled with random numbers.",
            "Download or save the model again, or pick another one.",
        )
    if 4 * needed > most_bytes:
        raise ModelError(
            "unsupported",
            f"{name} has {needed:,} weights, which take {4 * needed:,} bytes.",
            f"This machine has memory for {most_bytes:,} bytes.",
            "Pick a smaller model, or a larger machine.",
        )
