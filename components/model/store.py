"""Records kept for all sessions: bounded by bytes, the least recently used removed first, each computed once.

A record is anything with a size in bytes (`nbytes`, which must not change): a Trace, or the record of what happens
inside the blocks. All kinds share one limit, so that the operator's number is the total that the process keeps.
Thirty people who open the same example at once cost one forward pass.
"""

from __future__ import annotations

import os
from typing import Any

from components.jobs import Cache
from components.sizes import parse_bytes

DEFAULT_BYTES = 1 << 30  # 1 GiB
BYTES_VARIABLE = "BERT_INTERNALS_TRACE_BYTES"


def configured_bytes() -> int:
    """The store's limit: BERT_INTERNALS_TRACE_BYTES if it is set, else 1 GiB."""
    text = os.environ.get(BYTES_VARIABLE)
    return parse_bytes(text, BYTES_VARIABLE) if text else DEFAULT_BYTES


class TraceStore(Cache[Any]):
    """A cache of records. Each key belongs to one kind of record; this is not checked."""

    def __init__(self, max_bytes: int | None = None) -> None:
        super().__init__(configured_bytes() if max_bytes is None else max_bytes, lambda record: record.nbytes)
