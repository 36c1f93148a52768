"""Records kept for all sessions: bounded by bytes, the least recently used removed first, each computed once.

A record is anything with a size in bytes (`nbytes`, which must not change): a Trace, or the record of what happens
inside the blocks. All kinds share one limit, so that the operator's number is the total that the process keeps.
Thirty people who open the same example at once cost one forward pass.
"""

from __future__ import annotations

import os
from typing import Any

from components.errors import InputError
from components.jobs import Cache

DEFAULT_BYTES = 1 << 30  # 1 GiB
BYTES_VARIABLE = "BERT_INTERNALS_TRACE_BYTES"
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_bytes(text: str) -> int:
    """Bytes from "1073741824", "512M", "2 GiB". Raises InputError for any other text, or for less than one byte."""
    compact = text.strip().upper().removesuffix("IB").removesuffix("B").strip()
    number, unit = (compact[:-1], compact[-1]) if compact and compact[-1].isalpha() else (compact, "")
    try:
        value = int(float(number) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        value = 0
    if value < 1:
        raise InputError(
            f"{text!r} is not a size in bytes.",
            "A number of bytes was expected, or a number with K, M or G.",
            f"Set {BYTES_VARIABLE} to a size such as 512M or 2G.",
        )
    return value


def configured_bytes() -> int:
    """The store's limit: BERT_INTERNALS_TRACE_BYTES if it is set, else 1 GiB."""
    text = os.environ.get(BYTES_VARIABLE)
    return parse_bytes(text) if text else DEFAULT_BYTES


class TraceStore(Cache[Any]):
    """A cache of records. Each key belongs to one kind of record; this is not checked."""

    def __init__(self, max_bytes: int | None = None) -> None:
        super().__init__(configured_bytes() if max_bytes is None else max_bytes, lambda record: record.nbytes)
