"""Whether this server is ready for people: its default model is in memory, and it can begin work.

An orchestrator asks before it sends people here. Asking starts the load, as the first visit would: a server that nobody may
visit before it is ready would never become ready otherwise.

And how it ends: first all work, then Python. Threads that compute when Python ends are ended wherever they are; in the code of
torch that aborts the whole process, with "terminate called without an active exception". So work is stopped first, and waited
for. Where some does not hear the stop in time, the process ends without Python's own end.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from typing import Literal

from starlette.concurrency import run_in_threadpool

from components.model import device
from components.model.catalog import EMBEDDED_KEY, spec_of

END_SECONDS = 5.0  # for work that is under way, until it hears that it is to end
LOOK_SECONDS = 0.05
WORKING = ("jobs: ", "ScriptRunner", "UMAP")  # how the names of threads begin that may compute
log = logging.getLogger(__name__)

State = Literal["ready", "loading", "stopped", "failed", "lost"]
_was_ready = threading.Event()  # it stays ready: a model that had to make room is loaded again while its page waits


def state() -> State:
    """The state in one word; after a failure, a later question tries again."""
    # Imported here: the server answers before they are loaded.
    from dashboard import caching
    from dashboard.jobs import warm_up

    if device.lost() and not device.goes_on_with_cpu():  # until the server starts again nothing can be computed
        return "lost"
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
    return "stopped" if job.is_stopped else "failed"


async def asked() -> State:
    """The state, for a request: it is found out in another thread."""
    try:
        return await run_in_threadpool(state)
    except RuntimeError as problem:  # the system allows no more threads: nothing could be computed for anybody
        log.warning("the question whether this server is ready could not be answered", exc_info=problem)
        return "failed"


def end_work(seconds: float = END_SECONDS) -> None:
    """Stop what is under way, and wait for its end: before the server ends, and after its last page was sent.

    Training goes on: its processes outlive the server.
    """
    end = time.monotonic() + seconds
    caching = sys.modules.get("dashboard.caching")  # not there before the first page: then there is no work
    if caching is not None:
        caching.queue().close(seconds)
    while _still_at_work() and time.monotonic() < end:  # a page that is being drawn computes too
        time.sleep(LOOK_SECONDS)
    if _still_at_work():
        log.warning(
            "Stopped in the middle of work, which is done again when it is asked for: %s", ", ".join(_still_at_work())
        )
        atexit.register(_leave)


def _still_at_work() -> list[str]:
    """The names of the threads that may compute."""
    names = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    return [name for name in names if name.startswith(WORKING) and name != "jobs: training"]


def _leave() -> None:
    """End the process without Python's own end, if that could abort it."""
    if _still_at_work():
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(1)
