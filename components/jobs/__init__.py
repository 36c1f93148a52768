"""The one core for work that takes time and for results that are kept.

A `Job` is one piece of work: its progress, how to stop it, and its outcome. A `Queue` runs jobs in the background, in
named lanes: each lane has its own workers, so that a short job never waits for a long one. `Jobs` holds the jobs of one
kind by key: everybody who requests the same thing gets the same job, and the last finished ones are kept. A `Cache`
keeps results that are computed at once, in the thread that needs them.

A new kind of work is a function `work(report_progress, is_stopped)` given to `Jobs.request`. It calls
`report_progress(done, total)` and raises `Stopped` once `is_stopped()` is true.

**Locks.** No code from outside runs under a lock of this folder: no work, no callback, no size, no file that tells whether a
result is out of date, no handler of the log, no end of a result that is kept no longer. The only such code is the hash and the
comparison of keys and people, which are strings, numbers, and tuples and frozen records of these: they take no lock.

These are the locks of the whole process. A thread that holds one takes only those that stand below it; from Queue on, none is
held while another is taken. Nobody waits for a job, or for what another thread computes for a `Cache`, while holding any;
locks of files are asked for under them without waiting. tests/test_locks.py holds it in a busy run.

    components/retrieval/index/cache.py         IndexCache._lock            folders of indexes that are opened or removed
    components/model/loaded.py                  LoadedModel._building_head  a head that is read
    components/model/loading.py                 BUILDING                    transformers, while it imports or builds a model
    components/model/device.py                  turns                       a pass: from placing its hooks to removing them
    components/model/embedding/packing.py       _measuring                  the trial of how fast this processor multiplies
    components/jobs/kinds.py                    Jobs._lock                  the jobs of a kind, and who waits for them
    components/jobs/job.py                      Job.changed                 the state of a job

    components/jobs/lanes.py                    Queue._lock                 the lines of the lanes
    components/jobs/caches.py                   Cache._lock                 what is kept, and what is being computed
    components/jobs/presence.py                 Presence._lock              when people were last seen
    components/kept_files.py                    KeptFiles._lock             who uses which file
    dashboard/logs.py                           _Repeated._lock             tracebacks that were written last
    components/counters.py                      Counter._lock               a number
    components/lessons/answers.py               Answers._lock               answers of classes
    components/retrieval/search/blind_votes.py  BlindVotes._lock            votes of classes
    components/training/run_folder.py           EventReader._lock           the file of a run's events, while it is read
    components/retrieval/engines/milvus.py      _opening                    a connection that is opened
    components/retrieval/engines/milvus.py      MilvusEngine._lock          a search by a shared connection
    components/distributed/serving.py           Served._lock                the connection to the model server
    components/model/files/hub.py               _probe_lock                 whether the hub answers, asked once for all
    components/model/files/slow_hub.py          _install_lock               our hooks in the hub's client
    components/model/files/sources.py           _checked_lock               files whose checksum was computed
    components/analysis/maps/numba_work.py      _start_lock                 whether the warm-up has begun
    components/analysis/maps/numba_work.py      _LOCK                       UMAP and PaCMAP
"""

from __future__ import annotations

from components.jobs.caches import Cache, CachePart
from components.jobs.job import Job, Signal
from components.jobs.kinds import FAILED_KEPT, RETRY_SECONDS, Jobs
from components.jobs.lanes import Lane, Queue
from components.jobs.presence import GRACE_SECONDS, MOST_DRAWING, PEOPLE_REMEMBERED, PageDrawing, Presence
from components.jobs.states import STEPS, Action, State
from components.jobs.work import (
    PAUSE_SECONDS,
    IsStopped,
    ReportProgress,
    Stoppable,
    Stopped,
    Work,
    WorkFailed,
    part_of,
)

__all__ = [
    "FAILED_KEPT",
    "GRACE_SECONDS",
    "MOST_DRAWING",
    "PAUSE_SECONDS",
    "PEOPLE_REMEMBERED",
    "RETRY_SECONDS",
    "STEPS",
    "Action",
    "Cache",
    "CachePart",
    "IsStopped",
    "Job",
    "Jobs",
    "Lane",
    "PageDrawing",
    "Presence",
    "Queue",
    "ReportProgress",
    "Signal",
    "State",
    "Stoppable",
    "Stopped",
    "Work",
    "WorkFailed",
    "part_of",
]
