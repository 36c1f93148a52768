"""What the server's log says of errors: where they happened, and never what they were about.

The message of an error quotes what it could not read: a sentence, a file's name, a cell of somebody's corpus. Every record
of every library passes here before it is written: tracebacks keep their places and the types of the errors, and lose the
messages; an error that stands in a line is replaced by its type. Our own lines name no texts in the first place.
With the operator's setting `debug` messages are kept.

What somebody sends again and again must not fill the disk: of equal tracebacks one is written in ten seconds, and the others
are counted.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from typing import Any

from components.errors import UserError

log = logging.getLogger(__name__)
_PAUSE = 10.0  # seconds between two equal tracebacks
_MOST_PLACES = 40  # of a traceback: the first and the last ones, as of a recursion
_MOST_KINDS = 1_000


def keep_texts_out() -> None:
    """Let no record of this process carry the message of an error, and log what ends a thread in the same way."""
    make, repeated = logging.getLogRecordFactory(), _Repeated()

    def record_of(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        if isinstance(record.args, tuple):
            record.args = tuple(map(_without_message, record.args))
        elif isinstance(record.args, dict):
            record.args = {name: _without_message(value) for name, value in record.args.items()}
        if isinstance(record.msg, BaseException):
            record.msg = _without_message(record.msg)
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = repeated.written(record.exc_info[1])  # what a formatter writes in place of the traceback
        return record

    logging.setLogRecordFactory(record_of)
    threading.excepthook = _log_end_of_thread


class _Repeated:
    """The tracebacks that were written last, and how many equal ones were not."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: dict[
            tuple[str, str, int], tuple[float, int]
        ] = {}  # by kind: when it was written, and how many since

    def written(self, problem: BaseException) -> str:
        """What the log says of an error: its traceback, or that it is one more of those that came just before."""
        place = problem.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        name = f"{type(problem).__module__}.{type(problem).__qualname__}"
        kind = (name, place.tb_frame.f_code.co_filename, place.tb_lineno) if place is not None else (name, "", 0)
        now = time.monotonic()
        with self._lock:
            since, others = self._kinds.get(kind, (float("-inf"), 0))
            if now - since < _PAUSE:
                self._kinds[kind] = since, others + 1
                return f"{name} once more (traceback left out)"
            self._kinds.pop(kind, None)
            self._kinds[kind] = now, 0
            if len(self._kinds) > _MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
        said = f"{others:,} more of these had their traceback left out.\n" if others else ""
        return said + places_of(problem)


def places_of(problem: BaseException) -> str:
    """A traceback without messages: the places, the types, and what each error followed from."""
    parts = []
    following: BaseException | None = problem
    seen: set[int] = set()
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        frames = traceback.extract_tb(following.__traceback__)
        lines = [_line(frame) for frame in frames]
        if len(lines) > _MOST_PLACES:
            left_out = f"  ({len(lines) - _MOST_PLACES:,} places left out)\n"
            lines = [*lines[: _MOST_PLACES // 2], left_out, *lines[-_MOST_PLACES // 2 :]]
        parts.append(f"{''.join(lines)}{type(following).__module__}.{type(following).__qualname__} (message left out)")
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return "\n\nThe next one followed from it:\n\n".join(reversed(parts))


def _line(frame: traceback.FrameSummary) -> str:
    return f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n'


def _without_message(value: Any) -> Any:
    """The type of an error; anything else as it is. Errors for people are written by our own lines, which know them."""
    if isinstance(value, BaseException) and not isinstance(value, UserError):
        return type(value).__qualname__
    return value


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        log.error("a thread ended", exc_info=ended.exc_value)
