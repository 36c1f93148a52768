"""The program: its commands, and how errors become one line and an exit status.

0: done. 2: invalid input, or a file, a folder or an output that cannot be used, with one line: the problem, what was
expected, how to fix it. 1: an error of the program, with its type and message; --debug shows where it happened; and a command's
own "no", which its result says (`verify`: the vectors differ; `evaluate --against`: significantly worse). 130: stopped with
Ctrl-C, 143: with SIGTERM. Results go to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from components import VERSION, operator_settings
from components.command_line import options as shared
from components.command_line import stopping
from components.command_line.commands import (
    diagnose,
    evaluate,
    index,
    lessons,
    predict,
    reproduce,
    rerank,
    search,
    sts,
    train,
    verify,
    why,
)
from components.command_line.commands.operating import cache, check, numbers, plan, serve, settings, site
from components.command_line.outputs import check_target, file_of, not_writable
from components.errors import InputError, UserError
from components.folders import write_text
from components.model import device

COMMANDS = (
    index,
    search,
    rerank,
    evaluate,
    diagnose,
    sts,
    train,
    why,
    predict,
    reproduce,
    check,
    verify,
    lessons,
    numbers,
    site,
    cache,
    plan,
    serve,
    settings,
)
_OUTPUT_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF}  # how writing to standard output fails
MOST_CHARACTERS = 1_000  # of an error's line: messages quote what was given


class Parser(argparse.ArgumentParser):
    """argparse with errors in one line, without the usage."""

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write the help or the version. argparse's own says nothing where the output takes none, such as on a full disk."""
        (sys.stderr if file is None else file).write(message)

    def error(self, message: str) -> NoReturn:
        raise InputError(
            f"{self.prog}: {message}.",
            "The help lists all arguments.",
            f"See {self.prog} --help",
        )


def main(arguments: Sequence[str]) -> int:
    """Run a command and return the exit status; every failure ends here, in one line."""
    _prepare_output()
    try:
        with stopping.ended_by_sigterm():
            try:
                options = _parser().parse_args(arguments)
                if options.json not in (None, "-"):
                    check_target(options.json)
                result = options.run(options)
                if options.json is not None and result is not None:
                    _write_json(options.json, result)
            finally:  # here, where a full disk or a reader that has ended can still be told; also after --help
                sys.stdout.flush()
    except SystemExit:  # how argparse leaves after --help
        raise
    except BaseException as problem:  # noqa: BLE001 - every failure, a library's panic and Ctrl-C included
        if "--debug" in arguments or _debug_is_set():
            traceback.print_exc()
        return _explained(problem)
    return int(options.status)


def _debug_is_set() -> bool:
    with suppress(UserError):  # settings that cannot be read: a command that needs them says so
        return operator_settings.DEBUG.value()
    return False


def _explained(problem: BaseException) -> int:
    """Write a failure in one line, and return its exit status."""
    if isinstance(problem, BrokenPipeError):  # the reader has ended, as `| head` does: it has what it wanted
        _give_up(sys.stdout)
        return 0
    problem = device.failure(problem) or problem
    if isinstance(problem, UserError):
        status, line = 2, str(problem)
    elif isinstance(problem, KeyboardInterrupt):
        status, line = (
            stopping.TERMINATED if isinstance(problem, stopping.Terminated) else 130,
            "Stopped. An index continues where it stopped when the same command runs again, a training run with --resume.",
        )
    elif isinstance(problem, ConnectionError | TimeoutError):
        status = 2
        line = (
            f"A connection failed: {problem.strerror or problem or type(problem).__name__}. A download needs an answer of the "
            "hub. Check the network, and run the command again."
        )
    elif isinstance(problem, OSError):  # a file, a folder or an output: the system says what is wrong with it
        output = "The output" if problem.errno in _OUTPUT_ERRORS else "A file"
        name = output if problem.filename is None else str(problem.filename)
        status = 2
        line = (
            f"{name} cannot be used: {problem.strerror or problem}. This program must be allowed to read or write it. "
            "Check its name, its permissions and the free space."
        )
    elif isinstance(problem, MemoryError):
        status, line = 2, "There is too little memory. Choose fewer layers and poolings, or a smaller file."
    else:
        status = 1
        line = (
            f"This is an error in the program: {type(problem).__name__}: {problem}. "
            f"Run the command with --debug to see where it happened, and report it."
        )
    line = shared.visible(" ".join(line.split()))
    with suppress(OSError):  # nobody reads standard error
        sys.stderr.write(
            line
            if len(line) <= MOST_CHARACTERS
            else f"{line[: MOST_CHARACTERS // 2]} … {line[-MOST_CHARACTERS // 2 :]}"
        )
        sys.stderr.write("\n")
        sys.stderr.flush()
    with suppress(OSError):
        sys.stdout.flush()
        return status
    _give_up(sys.stdout)
    return status


def _prepare_output() -> None:
    """Let every text be written: where the encoding lacks a character, its code stands for it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the whole run
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _give_up(stream: Any) -> None:
    """Send what a stream still holds nowhere: Python would try to write it again when it ends, and complain."""
    with suppress(OSError, ValueError):  # in a test it is no file
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _parser() -> Parser:
    parser = Parser(prog="python -m components", description="BERT Internals without a browser.")
    parser.add_argument("--version", action="version", version=f"BERT Internals {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for module in COMMANDS:
        command = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.add_argument(
            "--json", metavar="FILE|-", help="write the result as JSON into FILE, or to standard output for -"
        )
        command.add_argument("--debug", action="store_true", help="show where an error happened")
        command.set_defaults(run=module.run, status=0)
    return parser


def _write_json(target: str, result: Any) -> None:
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8") if target == "-" else "utf-8"
    text = json.dumps(result, ensure_ascii=False, indent=1) + "\n"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:  # JSON's own escapes say the same in ASCII
        text = json.dumps(result, indent=1) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        write_text(file_of(target), text)
    except OSError as problem:
        raise not_writable(target, problem.strerror or str(problem)) from problem
