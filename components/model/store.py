"""Records kept for all sessions: bounded by bytes, the least recently used removed first, each computed once.

A record is anything with a size in bytes (`nbytes`, which must not change): a Trace, or the record of what happens
inside the blocks. All kinds share one limit, so that the operator's number is the total that the process keeps.
Thirty people who open the same example at once cost one forward pass.
"""

from __future__ import annotations

from typing import Any

from components import operator_settings
from components.jobs import Cache

DEFAULT_BYTES = operator_settings.TRACE_BYTES.default or 0


def configured_bytes() -> int:
    """The store's limit, the operator's setting `trace_bytes`. Raises InputError for an invalid one."""
    return operator_settings.TRACE_BYTES.value()


class TraceStore(Cache[Any]):
    """A cache of records. Each key belongs to one kind of record; this is not checked."""

    def __init__(self, max_bytes: int | None = None) -> None:
        super().__init__(configured_bytes() if max_bytes is None else max_bytes, lambda record: record.nbytes)
