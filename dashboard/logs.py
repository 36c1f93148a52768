"""What the server's log says of errors: where they happened, and never what they were about.

The message of an error quotes what it could not read: a sentence, a file's name, a cell of somebody's corpus. Every record
of every library passes here before it is written: tracebacks keep their places and the types of the errors, and lose the
messages; an error that stands in a line is replaced by its type. Our own lines name no texts in the first place.
With the operator's setting `debug` messages are kept.
"""

from __future__ import annotations

import logging
import threading
import traceback
from typing import Any

from components.errors import UserError

log = logging.getLogger(__name__)


def keep_texts_out() -> None:
    """Let no record of this process carry the message of an error, and log what ends a thread in the same way."""
    make = logging.getLogRecordFactory()

    def record_of(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        if isinstance(record.args, tuple):
            record.args = tuple(map(_without_message, record.args))
        elif isinstance(record.args, dict):
            record.args = {name: _without_message(value) for name, value in record.args.items()}
        if isinstance(record.msg, BaseException):
            record.msg = _without_message(record.msg)
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = places_of(record.exc_info[1])  # what a formatter writes in place of the traceback
        return record

    logging.setLogRecordFactory(record_of)
    threading.excepthook = _log_end_of_thread


def places_of(problem: BaseException) -> str:
    """A traceback without messages: the places, the types, and what each error followed from."""
    parts = []
    following: BaseException | None = problem
    seen: set[int] = set()
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        frames = traceback.extract_tb(following.__traceback__)
        lines = [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n' for frame in frames]
        parts.append(f"{''.join(lines)}{type(following).__module__}.{type(following).__qualname__} (message left out)")
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return "\n\nThe next one followed from it:\n\n".join(reversed(parts))


def _without_message(value: Any) -> Any:
    """The type of an error; anything else as it is. Errors for people are written by our own lines, which know them."""
    if isinstance(value, BaseException) and not isinstance(value, UserError):
        return type(value).__qualname__
    return value


def _log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        log.error("a thread ended", exc_info=ended.exc_value)
