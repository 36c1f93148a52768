"""The one core for work that takes time and for results that are kept.

A `Job` is one piece of work: its progress, how to stop it, and its outcome. A `Queue` runs jobs in the background, in
named lanes: each lane has its own workers, so that a short job never waits for a long one. `Jobs` holds the jobs of one
kind by key: everybody who requests the same thing gets the same job, and the last finished ones are kept. A `Cache`
keeps results that are computed at once, in the thread that needs them.

A new kind of work is a function `work(report_progress, is_cancelled)` given to `Jobs.request`. It calls
`report_progress(done, total)` and raises `Cancelled` once `is_cancelled()` is true.

No lock is held while code from outside runs: work, callbacks, sizes of results, files that tell whether a result is out of
date, log handlers, and the end of a result that is kept no longer. The only such code under a lock is the hash and the
comparison of keys and people, which are strings, numbers, and tuples and frozen records of these: they take no lock. The
README lists all locks of the process, in the order in which a thread may take them.
"""

from __future__ import annotations

from components.jobs.caches import Cache, CachePart
from components.jobs.job import Job, Signal
from components.jobs.kinds import FAILED_KEPT, RETRY_SECONDS, Jobs
from components.jobs.lanes import Lane, Queue
from components.jobs.presence import GRACE_SECONDS, PEOPLE_REMEMBERED, Presence
from components.jobs.states import STEPS, Action, State
from components.jobs.work import (
    PAUSE_SECONDS,
    Cancelled,
    IsCancelled,
    ReportProgress,
    Stoppable,
    Work,
    WorkFailed,
    part_of,
)

__all__ = [
    "FAILED_KEPT",
    "GRACE_SECONDS",
    "PAUSE_SECONDS",
    "PEOPLE_REMEMBERED",
    "RETRY_SECONDS",
    "STEPS",
    "Action",
    "Cache",
    "CachePart",
    "Cancelled",
    "IsCancelled",
    "Job",
    "Jobs",
    "Lane",
    "Presence",
    "Queue",
    "ReportProgress",
    "Signal",
    "State",
    "Stoppable",
    "Work",
    "WorkFailed",
    "part_of",
]
