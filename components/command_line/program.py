"""The program: its commands, and how errors become one line and an exit status.

0: done. 2: invalid input, with one line: the problem, what was expected, how to fix it. 130: stopped with Ctrl-C.
Results go to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from components.command_line import cache, check, evaluate, index, reproduce, search, sts
from components.errors import InputError, UserError

COMMANDS = (index, search, evaluate, sts, reproduce, check, cache)


class Parser(argparse.ArgumentParser):
    """argparse with errors in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise InputError(
            f"{self.prog}: {message}.",
            "The arguments listed in the help were expected.",
            f"See {self.prog} --help",
        )


def main(arguments: Sequence[str]) -> int:
    """Run a command and return the exit status."""
    try:
        options = _parser().parse_args(arguments)
        result = options.run(options)
        if options.json is not None and result is not None:
            _write_json(options.json, result)
    except UserError as problem:
        sys.stderr.write(" ".join(str(problem).split()) + "\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. Run the same command again to continue where it stopped.\n")
        return 130
    except BrokenPipeError:  # the reader has ended, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> Parser:
    parser = Parser(prog="python -m components", description="BERT Internals without a browser.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for module in COMMANDS:
        command = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.add_argument(
            "--json", metavar="FILE|-", help="write the result as JSON into FILE, or to standard output for -"
        )
        command.set_defaults(run=module.run)
    return parser


def _write_json(target: str, result: Any) -> None:
    text = json.dumps(result, ensure_ascii=False, indent=1) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InputError(
            f"{target} could not be written: {problem.strerror or problem}.",
            "A file in an existing folder was expected.",
            "Choose another file, or - for standard output.",
        ) from problem
