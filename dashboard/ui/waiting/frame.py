"""The frame of a figure: where something is not ready, what was half drawn is removed, and why is drawn in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import streamlit as st
from streamlit.cursor import LockedCursor
from streamlit.delta_generator import DeltaGenerator
from streamlit.delta_generator_singletons import context_dg_stack

from dashboard.jobs.embedding import NeedsLayers
from dashboard.jobs.requests import NeedsChoice, NotReady
from dashboard.jobs.splade import NeedsStart
from dashboard.sharing import report
from dashboard.ui import figures
from dashboard.ui.waiting import before_work, progress


@dataclass(eq=False)
class Figure:
    """What became of a figure, once it has been drawn."""

    not_ready: NotReady | None = None


class Instead(NeedsChoice):
    """A person has to choose something first: `draw` says what, in place of the figure or of the view."""

    def __init__(self, draw: Callable[[], object]) -> None:
        super().__init__()
        self.draw = draw


@contextmanager
def figure(key: str) -> Iterator[Figure]:
    """Draws what stands within it as one figure. Where that is not ready, nothing of it stays: why is drawn in its place,
    and the view goes on with what comes next.

    Whatever else is raised passes through. Controls stand outside, so that they stay while their figure is not ready.
    """
    place = st.container(key=f"figure_{key}")
    content = place.container()
    before = report.drawn(), figures.drawn()
    shown = Figure()
    try:
        with content:
            yield shown
    except NotReady as problem:
        shown.not_ready = problem.with_traceback(None)  # whose frames would keep models alive, in a circle
        report.go_back(before[0])
        figures.go_back(before[1])
        _remove(content)
        with place:
            draw(problem)


def view(draw_view: Callable[[], None]) -> None:
    """Draw a view. Where something outside of any figure is not ready, why is drawn below what was drawn until then.

    What a view draws completely stays, its controls among it; of a container or form that was being filled nothing stays.
    All that a view waits for shares one bar with one Stop.
    """
    outside = len(context_dg_stack.get())
    with progress.one_bar():
        try:
            draw_view()
        except NotReady as problem:
            half_drawn = problem.within[outside:]
            if half_drawn:
                _remove(half_drawn[0])
            draw(problem)


def draw(problem: NotReady) -> None:
    """Say why something is not ready: its progress with Stop, its end with the button that starts it again, or a choice."""
    if isinstance(problem, Instead):
        problem.draw()
    elif isinstance(problem, NeedsLayers):
        before_work.layers(problem.request, problem.corpus, problem.where)
    elif isinstance(problem, NeedsStart):
        before_work.start_of_splade(problem)
    elif problem.awaited is not None:
        progress.draw(problem.awaited)


def _remove(container: DeltaGenerator) -> None:
    """Remove a container with all that was drawn in it.

    An empty element takes its place. It is sent after what the container holds, which Streamlit would otherwise keep: of a
    new container of the same kind, a browser keeps what the one before it held.
    """
    if not container._block_delta_path:  # without a session, as in a notebook, nothing is drawn
        return
    root, *path = container._block_delta_path
    progress.leave(container)
    cursor = LockedCursor(root_container=root, parent_path=tuple(path[:-1]), index=path[-1])
    DeltaGenerator(root_container=root, cursor=cursor, parent=container._parent).empty()
