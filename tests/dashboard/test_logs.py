"""What errors are about never reaches the log; where they happened does."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator

import pytest

from components.errors import InputError
from dashboard import logs

SECRET = "zanzibar"


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A library's logger with a handler of its own, after the server has made its log safe."""
    make, of_threads = logging.getLogRecordFactory(), threading.excepthook
    logs.keep_texts_out()
    logger, written = logging.getLogger("some.library"), io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    for listened in (logger, logs.log):
        listened.addHandler(handler)
    yield logger, written
    for listened in (logger, logs.log):
        listened.removeHandler(handler)
    logging.setLogRecordFactory(make)
    threading.excepthook = of_threads


def fails() -> None:
    try:
        int(SECRET)
    except ValueError as problem:
        raise KeyError(SECRET) from problem


def test_a_traceback_keeps_its_places_and_types_only(log) -> None:
    logger, written = log
    try:
        fails()
    except KeyError:
        logger.exception("work failed")
    text = written.getvalue()
    assert SECRET not in text
    assert text.startswith("ERROR work failed\n")
    assert text.index("builtins.ValueError (message left out)") < text.index("builtins.KeyError (message left out)")
    assert f'File "{__file__}", line {fails.__code__.co_firstlineno + 2}, in fails' in text


def test_an_error_in_a_line_is_replaced_by_its_type(log) -> None:
    logger, written = log
    logger.warning("first %s, then %r", ValueError(SECRET), 7)
    logger.warning("%(what)s", {"what": OSError(SECRET)})
    logger.error(RuntimeError(SECRET))
    assert written.getvalue() == "WARNING first ValueError, then 7\nWARNING OSError\nERROR RuntimeError\n"


def test_errors_for_people_are_written_by_our_own_lines(log) -> None:
    logger, written = log
    logger.warning("%s", InputError("RUNS_GB is 'x'.", "It must be a number.", "Correct it."))
    assert "RUNS_GB is 'x'" in written.getvalue()


def test_what_ends_a_thread_is_logged_in_the_same_way(log) -> None:
    _, written = log
    thread = threading.Thread(target=fails)
    thread.start()
    thread.join(10)
    assert "a thread ended" in written.getvalue()
    assert "builtins.KeyError (message left out)" in written.getvalue()
    assert SECRET not in written.getvalue()


def deep(levels: int) -> None:
    if levels:
        deep(levels - 1)
    raise RecursionError(SECRET)


def test_equal_tracebacks_are_written_once_in_ten_seconds_and_the_others_counted(log, monkeypatch) -> None:
    logger, written = log
    now = 100.0
    monkeypatch.setattr(logs.time, "monotonic", lambda: now)
    for moment in (100.0, 101.0, 109.0, 111.0):
        now = moment
        try:
            deep(800)
        except RecursionError:
            logger.exception("work failed")
        try:
            fails()
        except KeyError:
            logger.exception("other work failed")
    text = written.getvalue()
    assert text.count("in deep\n") == 2 * 39  # twice, of each the first and the last places
    assert text.count("(762 places left out)") == 2
    assert text.count("builtins.RecursionError once more (traceback left out)") == 2
    assert text.count("2 more of these had their traceback left out.") == 2  # of both kinds
    assert text.count("builtins.KeyError (message left out)") == 2


def test_an_error_that_follows_from_itself_ends() -> None:
    first, second = ValueError(SECRET), KeyError(SECRET)
    first.__cause__, second.__cause__ = second, first
    assert logs.places_of(first).count("message left out") == 2
