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

from components.analysis.maps.map_trust import MapTrust, map_trust
from components.analysis.maps.projection import MapOptions, layer_map, start_map
from components.analysis.maps.token_set import TokenSet
from components.arrays import read_only
from components.jobs import Cancelled

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
        return isinstance(self.error, Cancelled)

    def has(self, wanted: Sequence[int | tuple[int, int]]) -> bool:
        """Whether these layers' maps (or joint maps of two) are there."""
        return all(item in (self.maps if isinstance(item, int) else self.joint) for item in wanted)

    @property
    def fraction(self) -> float:
        """How much of what was asked for is done, 0..1."""
        done, left = len(self.maps) + len(self.joint), len(self.waiting)
        return (done + self.placed / max(1, self.count)) / max(1, done + left) if left else 1.0


class MapShelf:
    """Makes maps on request and keeps the last ones.

    One worker makes PCA's maps, one all others, each the newest request first: whoever moves a slider waits for no
    picture that nobody looks at any more. Requests that wait too long in a long line are dropped, and made when they are
    asked for again.
    """

    def __init__(self, capacity: int = KEPT) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[tuple[str, ...], MapOptions], Drawing] = OrderedDict()
        self._lines: dict[bool, list[tuple[Drawing, TokenSet]]] = {True: [], False: []}  # is PCA: oldest first
        self._working: set[bool] = set()

    def request(self, tokens: TokenSet, options: MapOptions, wanted: Sequence[int | tuple[int, int]]) -> Drawing:
        """The drawing with what it has; what is missing of `wanted` is started, in this order.

        `wanted` names layers, or pairs of layers for joint maps. After an error or a cancel nothing is started until
        `forget` was called.
        """
        options = options.effective()
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
                self._queue(drawing, tokens)
        return drawing

    def forget(self, drawing: Drawing) -> None:
        """Let a failed or cancelled drawing go on with the next request; what it has stays."""
        with self._lock:
            drawing.error = None
            drawing.cancel.clear()

    def _queue(self, drawing: Drawing, tokens: TokenSet) -> None:
        """Put a drawing at the front of its line (the lock is held), and see that somebody works."""
        quick = drawing.options.method == "pca"
        line = self._lines[quick]
        if drawing.idle.is_set():
            drawing.idle.clear()
            drawing.cancel.clear()  # a stop that came after the last work was done stops nothing new
        line[:] = [entry for entry in line if entry[0] is not drawing]
        line.append((drawing, tokens))
        for old, _ in line[: max(0, len(line) - self._capacity)]:
            old.waiting.clear()
            old.idle.set()
        del line[: max(0, len(line) - self._capacity)]
        if quick not in self._working:
            self._working.add(quick)
            threading.Thread(target=self._work, args=(quick,), name="maps", daemon=True).start()

    def _work(self, quick: bool) -> None:
        """One map after the other, of the drawing that was asked for last, until nothing waits."""
        while True:
            with self._lock:
                line = self._lines[quick]
                if not line:
                    self._working.discard(quick)
                    return
                drawing, tokens = line[-1]
                item = drawing.waiting[0] if drawing.waiting and drawing.error is None else None
                if item is None:
                    line.pop()
                    drawing.waiting.clear()
                    drawing.idle.set()
                    continue
            try:
                self._make(drawing, tokens, item)
            except Cancelled as stopped:
                drawing.error = stopped.with_traceback(None)
            except Exception as problem:
                log.warning("a map of %d tokens failed", len(tokens), exc_info=problem)
                drawing.error = problem.with_traceback(None)
                problem.__cause__ = problem.__context__ = None
            with self._lock:
                drawing.placed = 0
                drawing.waiting = [other for other in drawing.waiting if other != item]
            del drawing, tokens  # while it waits it holds nothing

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
