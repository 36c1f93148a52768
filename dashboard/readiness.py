"""Whether this server is ready for people: its default model is in memory, and it can begin work.

An orchestrator asks before it sends people here. Asking starts the load, as the first visit would: a server that nobody may
visit before it is ready would never become ready otherwise.
"""

from __future__ import annotations

import threading
from typing import Literal

from components.model.catalog import EMBEDDED_KEY, spec_of

State = Literal["ready", "loading", "stopped", "failed"]
_was_ready = threading.Event()  # it stays ready: a model that had to make room is loaded again while its page waits


def state() -> State:
    """The state in one word; after a failure, a later question tries again."""
    # Imported here: the server answers before they are loaded.
    from dashboard import caching
    from dashboard.jobs import warm_up

    if not caching.queue().can_start_threads():
        return "failed"
    if _was_ready.is_set():
        return "ready"
    warm_up.follow_models()
    job = caching.models().request(spec_of(EMBEDDED_KEY))
    if not job.finished.is_set():
        return "loading"
    if job.error is None:
        _was_ready.set()
        return "ready"
    return "stopped" if job.is_cancelled else "failed"
