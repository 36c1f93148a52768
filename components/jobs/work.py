"""What work is given, what it raises, and how its progress and its input are passed on."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

ReportProgress = Callable[[int, int], None]  # done, total
IsStopped = Callable[[], bool]
Work = Callable[[ReportProgress, IsStopped], Any]
Value = TypeVar("Value")
PAUSE_SECONDS = 0.05  # how often paused work checks whether it may continue


class Stopped(Exception):
    """Somebody stopped the work. Everything it had handed out before is complete."""


class WorkFailed(Exception):
    """Work ended by something that is no Exception: a panic of a library, or an exit.

    The work ran in a thread of its own, and such an error may end nobody else's: whoever waits gets this one.
    """

    @classmethod
    def of(cls, problem: BaseException) -> Exception:
        """The problem itself if it is an Exception, else what stands for it."""
        # "Type: message", even where the message itself cannot be made.
        return problem if isinstance(problem, Exception) else cls(traceback.format_exception_only(problem)[-1].strip())


def part_of(progress: ReportProgress, before: int, total: int) -> ReportProgress:
    """Reports the progress of one part of some work as progress of the whole.

    `before` was done when the part began, and `total` is that of the whole, both in the units that the part counts.
    """
    return lambda done, _: progress(before + done, total)


class Stoppable(Sequence[Value]):
    """A sequence that raises Stopped when it is read once `is_stopped()` is true.

    It stops work inside a library that knows no stop, but reads its input item by item.
    """

    def __init__(self, items: Sequence[Value], is_stopped: IsStopped) -> None:
        self._items, self._is_stopped = items, is_stopped

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, position: int) -> Value: ...

    @overload
    def __getitem__(self, position: slice) -> Sequence[Value]: ...

    def __getitem__(self, position: int | slice) -> Value | Sequence[Value]:
        if self._is_stopped():
            raise Stopped
        return self._items[position]
