"""`numbers ADDRESS`: the numbers of the figures that the dashboard draws at an address, without a browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from components.command_line import dashboard_process
from components.command_line import options as shared
from components.errors import InputError

NAME = "numbers"
OF_FILE = ("text_column", "header", "quotes", "escapes", "separator", "encoding")  # how --corpus is read
HELP = "print the numbers of the figures of a view, which its address names"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", metavar="ADDRESS", help="of a view, as Share gives it: /meaning?v=score-split&s=...")
    parser.add_argument("--figure", metavar="KEY", default="", help="one figure alone, by its key (default: all)")
    parser.add_argument(
        "--corpus", metavar="FILE", type=Path, help="the file that the view searches (default: the demo)"
    )
    parser.add_argument("--text-column", help="the file's column with the sentences (default: detected)")
    shared.add_dialect(parser)


def run(options: argparse.Namespace) -> dict[str, Any]:
    for name in OF_FILE:
        if options.corpus is None and (given := getattr(options, name)) is not None:
            raise InputError(
                f"--{'no-' if given is False else ''}{name.replace('_', '-')} is given without --corpus.",
                "It says how the file of --corpus is read.",
                "Add --corpus FILE, or leave it out.",
            )
    question = {"address": options.address, "figure": options.figure}
    if options.corpus is not None:
        path, dialect = str(options.corpus.absolute()), shared.dialect_of(options).as_text
        question["corpus"] = {
            "paths": [path],
            "encoding": options.encoding,
            "column": options.text_column,
            "dialect": dialect,
        }
    answer = dashboard_process.answer_of(question)
    if options.json != "-":
        for figure in answer["figures"]:
            shared.say(f"{figure['key']}: {figure['title']}")
            if figure["finding"]:
                shared.say(figure["finding"])
            for row in (figure["columns"], *figure["rows"]):
                shared.say(" | ".join("" if cell is None else str(cell) for cell in row))
            shared.say()
    return answer
