"""Maps of many sessions: made in the background, layer by layer, once for everybody who asks for the same.

A drawing (one set of tokens, one set of options) keeps its common start and the map and trust of each layer that was
asked for. A layer that is there is never made again, whoever moves a slider.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from components.analysis.map_trust import MapTrust, map_trust
from components.analysis.projection import MapCancelled, MapOptions, layer_map, start_map
from components.analysis.token_set import TokenSet
from components.model.trace import read_only

Float32 = NDArray[np.float32]
KEPT = 16
log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class LayerMap:
    """One map: float32 [token, dims], read-only, centred, with a root mean square radius of 1."""

    points: Float32
    trust: MapTrust


@dataclass(eq=False)
class Drawing:
    """The maps of one set of tokens under one set of options. Read it from any thread."""

    count: int  # tokens
    options: MapOptions
    start: Float32 | None = None
    maps: dict[int, LayerMap] = field(default_factory=dict)
    joint: dict[tuple[int, int], LayerMap] = field(default_factory=dict)  # first layer's tokens, then the second's
    waiting: list[int | tuple[int, int]] = field(default_factory=list)
    placed: int = 0  # tokens of the map being made
    error: Exception | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    idle: threading.Event = field(default_factory=threading.Event)  # nothing waits and nothing is under way

    @property
    def cancelled(self) -> bool:
        return isinstance(self.error, MapCancelled)

    def has(self, wanted: Sequence[int | tuple[int, int]]) -> bool:
        """Whether these layers' maps (or joint maps of two) are there."""
        return all(item in (self.maps if isinstance(item, int) else self.joint) for item in wanted)

    @property
    def fraction(self) -> float:
        """How much of what was asked for is done, 0..1."""
        done, left = len(self.maps) + len(self.joint), len(self.waiting)
        return (done + self.placed / max(1, self.count)) / max(1, done + left) if left else 1.0


class MapShelf:
    """Makes maps on request and keeps the last ones."""

    def __init__(self, capacity: int = KEPT) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[tuple[str, ...], MapOptions], Drawing] = OrderedDict()

    def request(self, tokens: TokenSet, options: MapOptions, wanted: Sequence[int | tuple[int, int]]) -> Drawing:
        """The drawing with what it has; what is missing of `wanted` is started, in this order.

        `wanted` names layers, or pairs of layers for joint maps. After an error or a cancel nothing is started until
        `forget` was called.
        """
        key = (tokens.key, options)
        with self._lock:
            drawing = self._kept.get(key)
            if drawing is None:
                drawing = self._kept[key] = Drawing(len(tokens), options)
                drawing.idle.set()
                idle = [at for at, one in self._kept.items() if one.idle.is_set() and one is not drawing]
                for old in idle[: max(0, len(self._kept) - self._capacity)]:
                    del self._kept[old]
            self._kept.move_to_end(key)
            missing = [item for item in wanted if not drawing.has([item]) and item not in drawing.waiting]
            if missing and drawing.error is None:
                drawing.waiting += missing
                if drawing.idle.is_set():
                    drawing.idle.clear()
                    threading.Thread(target=self._work, args=(drawing, tokens), name="map", daemon=True).start()
        return drawing

    def forget(self, drawing: Drawing) -> None:
        """Let a failed or cancelled drawing go on with the next request; what it has stays."""
        with self._lock:
            drawing.error = None
            drawing.cancel.clear()

    def _work(self, drawing: Drawing, tokens: TokenSet) -> None:
        while True:
            with self._lock:
                if drawing.error is not None:
                    drawing.waiting.clear()
                if not drawing.waiting:
                    drawing.idle.set()
                    return
                item = drawing.waiting[0]
            try:
                self._make(drawing, tokens, item)
            except MapCancelled as stopped:
                drawing.error = stopped.with_traceback(None)
            except Exception as problem:
                log.warning("a map of %d tokens failed", len(tokens), exc_info=problem)
                drawing.error = problem.with_traceback(None)
                problem.__cause__ = problem.__context__ = None
            with self._lock:
                drawing.placed = 0
                drawing.waiting = [other for other in drawing.waiting if other != item]

    def _make(self, drawing: Drawing, tokens: TokenSet, item: int | tuple[int, int]) -> None:
        options, cancelled = drawing.options, drawing.cancel.is_set

        def progress(done: int, total: int) -> None:
            drawing.placed = done * drawing.count // total

        if isinstance(item, tuple):
            both = np.concatenate([np.asarray(tokens.at(layer), np.float32) for layer in item])
            points = layer_map(both, options, None, cancelled, progress)
            trust = map_trust(both, points, options.metric, seed=options.seed)
            drawing.joint[item] = LayerMap(read_only(points), trust)
            return
        if drawing.start is None:
            drawing.start = read_only(start_map(tokens.vectors, options, cancelled))
        vectors = np.asarray(tokens.at(item), np.float32)
        points = layer_map(vectors, options, drawing.start, cancelled, progress)
        trust = map_trust(vectors, points, options.metric, seed=options.seed)
        drawing.maps[item] = LayerMap(read_only(points), trust)
