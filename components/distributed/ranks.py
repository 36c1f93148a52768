"""Ranks of many queries' correct answers, computed in slices of the queries by several workers.

Each worker runs the code of one machine (components.retrieval.evaluation.ranks) on its slice, against all documents. They are
put into Ray's store once a machine, from which its workers read them without a copy; each worker adds a float32 copy of
length 1. A slice is a multiple of the block of queries that one machine computes together, so that the products are
the same; near ties are settled in float64 anyway. Therefore the ranks are equal, ties included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64
from components.distributed.cluster import WORKER_RESTARTS, connected, workers
from components.errors import InputError, first_line
from components.jobs import IsStopped, ReportProgress, Stopped
from components.retrieval.evaluation import ranks as one_machine

RESULT_SECONDS = 120.0  # for the ranks of a slice that is finished to come here; they have some kB
QUERIES_PER_SLICE = 4_096  # at most; fewer where that leaves no worker without any


def gold_ranks_on_ray(
    queries: NDArray[np.floating],
    documents: NDArray[np.floating],
    gold: Int64 | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
    cosine: bool = True,
    address: str | None = None,
    queries_per_slice: int | None = None,
) -> Int64:
    """As `one_machine.gold_ranks`. Raises InputError (see `cluster.connected`) and Stopped too."""
    gold = np.arange(len(queries)) if gold is None else np.asarray(gold, np.int64)
    if len(gold) != len(queries):
        raise ValueError(f"{len(queries)} numbers of documents were expected")
    ranks = np.empty(len(queries), np.int64)
    with connected(address) as ray:
        count, needs = workers(ray, on_cpus=True)  # numpy computes them
        size = queries_per_slice or _slice_size(len(queries), count)
        kept = ray.put(np.asarray(documents))
        rank = ray.remote(max_retries=WORKER_RESTARTS, **needs)(_ranks_of_slice)
        waiting = [slice(start, start + size) for start in range(0, len(queries), size)]
        running: dict[Any, slice] = {}
        done = 0
        try:
            while waiting or running:
                if is_stopped():
                    raise Stopped
                while waiting and len(running) < 2 * count:
                    rows = waiting.pop(0)
                    running[rank.remote(np.asarray(queries[rows]), kept, gold[rows], cosine)] = rows
                finished, _ = ray.wait(list(running), timeout=1.0)
                for task in finished:
                    rows = running.pop(task)
                    ranks[rows] = ray.get(task, timeout=RESULT_SECONDS)
                    done += len(ranks[rows])
                    progress(done, len(queries))
        except ray.exceptions.RayTaskError as problem:
            if isinstance(problem.cause, ValueError):  # of the input, as on one machine
                raise problem.cause from None
            raise _failed(problem) from problem
        except ray.exceptions.RayError as problem:
            raise _failed(problem) from problem
        finally:
            for task in running:
                ray.cancel(task, force=True)
    return ranks


def _slice_size(queries: int, count: int) -> int:
    """Queries of a slice: whole blocks of one machine, some for each worker."""
    block = one_machine.QUERIES_PER_BLOCK
    per_worker = -(-queries // max(1, count))
    return max(block, min(QUERIES_PER_SLICE, -(-per_worker // block) * block))


def _ranks_of_slice(queries: Any, documents: Any, gold: Int64, cosine: bool) -> Int64:
    rank: Callable[..., Int64] = one_machine.gold_ranks
    return rank(queries, documents, gold, cosine=cosine)


def _failed(problem: Exception) -> InputError:
    return InputError(
        f"The work on the cluster failed: {first_line(problem)}.",
        "Each machine needs memory for all documents' vectors three times.",
        "Check the memory of its machines, or leave out --engine ray.",
    )
