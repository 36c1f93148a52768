"""Maps made in the background, layer by layer, once for everybody who asks for the same.

A drawing is what a page asks for at once: some layers' maps of one set of tokens under one set of options. Each map is a
job of its own, so that a layer that is there is never made again, whoever moves a slider, and the newest request comes
first. PCA's maps have a lane of their own: they never wait for a slower one.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from components.analysis.maps.map_trust import MapTrust, map_trust
from components.analysis.maps.projection import MapOptions, layer_map, start_map
from components.analysis.maps.token_set import TokenSet
from components.arrays import read_only
from components.jobs import Cache, Cancelled, IsCancelled, Job, Jobs, Queue, ReportProgress

Float32 = NDArray[np.float32]
Wanted = int | tuple[int, int]  # a layer, or two for a joint map
KEPT_STARTS = 16
KEPT_MAPS = 400
KEPT_BYTES = 256 << 20


@dataclass(frozen=True, eq=False)
class LayerMap:
    """One map: float32 [token, dims], read-only, centred, with a root mean square radius of 1.

    A joint map has the first layer's tokens, then the second's.
    """

    points: Float32
    trust: MapTrust

    @property
    def nbytes(self) -> int:
        return self.points.nbytes


@dataclass(frozen=True, eq=False)
class Drawing:
    """The maps that were asked for at once, each a job. Read it from any thread."""

    jobs: Mapping[Wanted, Job]

    @property
    def maps(self) -> dict[Wanted, LayerMap]:
        """Those that are there."""
        return {wanted: job.result for wanted, job in self.jobs.items() if job.result is not None}

    @property
    def is_complete(self) -> bool:
        return all(job.result is not None for job in self.jobs.values())

    @property
    def is_at_work(self) -> bool:
        """Whether more maps will come, and nothing went wrong with one."""
        return not self.is_complete and all(job.error is None for job in self.jobs.values())

    @property
    def error(self) -> BaseException | None:
        """Why a map could not be made; a stop is no error."""
        problems = [job.error for job in self.jobs.values() if not job.is_cancelled]
        return next((problem for problem in problems if problem is not None), None)

    @property
    def fraction(self) -> float:
        """How much of it is done, 0..1."""
        shares = [1.0 if job.result is not None else job.fraction or 0.0 for job in self.jobs.values()]
        return sum(shares) / len(shares) if shares else 1.0

    def is_stopped_for(self, person: Hashable) -> bool:
        return any(job.is_stopped_for(person) for job in self.jobs.values())

    def wait(self, seconds: float) -> bool:
        """Whether all maps are there within this time; an error or a stop ends the wait."""
        until = time.monotonic() + seconds
        for job in self.jobs.values():
            job.finished.wait(max(0.0, until - time.monotonic()))
            if job.result is None:
                return False
        return True


class MapMaker:
    """Makes maps on request and keeps the last ones."""

    def __init__(self, queue: Queue, keep: int = KEPT_MAPS) -> None:
        """The queue has the lanes "maps" and "quick maps"."""
        self.jobs = Jobs(queue, "maps", keep=keep, keep_bytes=KEPT_BYTES)
        self._starts: Cache[Float32] = Cache(KEPT_STARTS)

    def request(
        self, tokens: TokenSet, options: MapOptions, wanted: Sequence[Wanted], person: Hashable = None
    ) -> Drawing:
        """The drawing of these maps: what is missing of them is put before all that others asked for."""
        options = options.effective()
        jobs = {}
        for one in dict.fromkeys(reversed(wanted)):  # what is put last is made first
            jobs[one] = job = self._request(tokens, options, one, person)
            if job.started is None:
                self.jobs.queue.put_first(job)
        return Drawing({one: jobs[one] for one in wanted})

    def stop(self, drawing: Drawing, person: Hashable = None) -> None:
        """Take a person off a drawing; what nobody waits for then is not made."""
        for job in drawing.jobs.values():
            self.jobs.stop(job, person)

    def forget(self, drawing: Drawing, person: Hashable = None) -> None:
        """Let a failed or stopped drawing go on with the next request; what it has stays."""
        for job in drawing.jobs.values():
            self.jobs.forget(job, person)

    def _request(self, tokens: TokenSet, options: MapOptions, wanted: Wanted, person: Hashable) -> Job:
        def work(report_progress: ReportProgress, is_cancelled: IsCancelled) -> LayerMap:
            if isinstance(wanted, tuple):
                vectors = np.concatenate([np.asarray(tokens.at(layer), np.float32) for layer in wanted])
                start = None
            else:
                vectors = np.asarray(tokens.at(wanted), np.float32)
                start = self._starts.get(
                    (tokens.key, options), lambda: read_only(start_map(tokens.vectors, options, is_cancelled))
                )
            if is_cancelled():
                raise Cancelled
            points = layer_map(vectors, options, start, is_cancelled, report_progress)
            return LayerMap(read_only(points), map_trust(vectors, points, options.metric, seed=options.seed))

        where = f"layers {wanted[0]} and {wanted[1]}" if isinstance(wanted, tuple) else f"layer {wanted}"
        return self.jobs.request(
            (tokens.key, options, wanted),
            f"Map of {len(tokens):,} tokens at {where}",
            work,
            person=person,
            lane="quick maps" if options.method == "pca" else "maps",
            total=len(tokens),
        )
