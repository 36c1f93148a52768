"""Maps made in the background, layer by layer, once for all who request the same.

A drawing contains everything a page requests at once: maps of some layers, for one set of tokens and one set of
options. Each map is its own job, so that the map of a layer is never made twice, and the newest request comes first.
PCA's maps have their own lane, so that they never wait for a slower map.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.maps.map_trust import MapTrust, map_trust
from components.analysis.maps.projection import MapOptions, layer_map, start_map
from components.analysis.maps.token_set import TokenSet
from components.arrays import Float32, read_only
from components.jobs import Cache, IsStopped, Job, Jobs, Queue, ReportProgress, Stopped

MapLayers = int | tuple[int, int]  # a layer, or two for a joint map
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
class MapDrawing:
    """The maps that were requested at once, each a job. Any thread may read it."""

    jobs: Mapping[MapLayers, Job]

    @property
    def maps(self) -> dict[MapLayers, LayerMap]:
        """The maps that are finished."""
        return {layers: job.result for layers, job in self.jobs.items() if job.result is not None}

    @property
    def is_complete(self) -> bool:
        return all(job.result is not None for job in self.jobs.values())

    @property
    def is_at_work(self) -> bool:
        """Whether more maps will follow, and none has failed."""
        return not self.is_complete and all(job.error is None for job in self.jobs.values())

    @property
    def error(self) -> BaseException | None:
        """The error of a map that could not be made; a stop is not an error."""
        problems = [job.error for job in self.jobs.values() if not job.is_stopped]
        return next((problem for problem in problems if problem is not None), None)

    @property
    def fraction(self) -> float:
        """The share that is done, 0..1."""
        shares = [1.0 if job.result is not None else job.fraction or 0.0 for job in self.jobs.values()]
        return sum(shares) / len(shares) if shares else 1.0

    def is_stopped_for(self, person: Hashable) -> bool:
        return any(job.is_stopped_for(person) for job in self.jobs.values())

    def wait(self, seconds: float) -> bool:
        """Whether all maps are finished within this time; an error or a stop ends the wait."""
        until = time.monotonic() + seconds
        for job in self.jobs.values():
            job.finished.wait(max(0.0, until - time.monotonic()))
            if job.result is None:
                return False
        return True


class MapMaker:
    """Makes maps on request and keeps the last ones."""

    def __init__(self, queue: Queue, keep: int = KEPT_MAPS) -> None:
        """The queue must have the lanes "maps" and "quick maps"."""
        self.jobs = Jobs(queue, "maps", keep=keep, keep_bytes=KEPT_BYTES)
        self._starts: Cache[Float32] = Cache(KEPT_STARTS)

    def request(
        self, tokens: TokenSet, options: MapOptions, layers: Sequence[MapLayers], person: Hashable = None
    ) -> MapDrawing:
        """The drawing of these maps; maps not yet made come before all that others requested earlier."""
        options = options.effective()
        jobs = {}
        for map_layers in dict.fromkeys(reversed(layers)):  # the last one put is made first
            jobs[map_layers] = job = self._request(tokens, options, map_layers, person)
            if job.started is None:
                self.jobs.queue.put_first(job)
        return MapDrawing({map_layers: jobs[map_layers] for map_layers in layers})

    def stop(self, drawing: MapDrawing, person: Hashable = None) -> None:
        """Take a person off a drawing; maps for which nobody waits are not made."""
        for job in drawing.jobs.values():
            self.jobs.stop(job, person)

    def forget(self, drawing: MapDrawing, person: Hashable = None) -> None:
        """Let the next request continue a failed or stopped drawing; finished maps stay."""
        for job in drawing.jobs.values():
            self.jobs.forget(job, person)

    def _request(self, tokens: TokenSet, options: MapOptions, layers: MapLayers, person: Hashable) -> Job:
        def work(report_progress: ReportProgress, is_stopped: IsStopped) -> LayerMap:
            if isinstance(layers, tuple):
                vectors = np.concatenate([np.asarray(tokens.at(layer), np.float32) for layer in layers])
                start = None
            else:
                vectors = np.asarray(tokens.at(layers), np.float32)
                start = self._starts.get(
                    (tokens.key, options), lambda: read_only(start_map(tokens.vectors, options, is_stopped))
                )
            if is_stopped():
                raise Stopped
            points = layer_map(vectors, options, start, is_stopped, report_progress)
            return LayerMap(read_only(points), map_trust(vectors, points, options.metric, seed=options.seed))

        layer_names = f"layers {layers[0]} and {layers[1]}" if isinstance(layers, tuple) else f"layer {layers}"
        return self.jobs.request(
            (tokens.key, options, layers),
            f"Map of {len(tokens):,} tokens at {layer_names}",
            work,
            person=person,
            lane="quick maps" if options.method == "pca" else "maps",
            total=len(tokens),
        )
