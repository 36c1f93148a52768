"""The process that draws for commands: `python -m components site` and `numbers` start it, as components know no dashboard.

It reads one JSON text, {"out", "model", "sentences" or null} for a site, {"address", "figure", "corpus" or nothing} for
numbers, and answers with one: what was written, or found, or {"problem": [...]}, the three sentences of an error that a person
can mend.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from components.command_line.options import progress_bar
from components.errors import InputError, UserError
from components.folders import check_writable
from components.model.catalog import parse_model


def main() -> int:
    """Answer what is asked for; returns the exit status."""
    logging.disable(logging.WARNING)  # Streamlit warns that no server runs
    try:
        asked = json.loads(sys.stdin.read())
        answer, status = (_written if "out" in asked else _numbers)(asked), 0
    except UserError as problem:
        answer, status = {"problem": [problem.problem, problem.expected, problem.fix]}, 2
    sys.stdout.write(json.dumps(answer) + "\n")
    return status


def _numbers(asked: dict[str, Any]) -> dict[str, Any]:
    from dashboard.website.numbers import numbers_at

    return numbers_at(asked["address"], asked["figure"], asked.get("corpus"))


def _written(asked: dict[str, Any]) -> dict[str, Any]:
    out = Path(asked["out"])
    spec = parse_model(asked["model"])
    try:
        from dashboard.website.files import SiteFolder

        SiteFolder(out)
        check_writable(out)
        from dashboard import caching
        from dashboard.website.pages import Given
        from dashboard.website.writing import write

        job = caching.models().request(spec)
        job.finished.wait()
        if job.result is None:
            raise job.error or RuntimeError("the model was not loaded")
        given = Given(job.result, asked["sentences"])
        with progress_bar("Drawing the views", unit=" pictures") as progress:
            return write(out, given, progress).to_json()
    except OSError as problem:
        raise InputError(
            f"{problem.filename or out} cannot be used: {problem.strerror or problem}.",
            "The folder of a site must be one that this program can write to.",
            "Name another folder.",
        ) from problem


if __name__ == "__main__":
    try:
        ended = main()
    except KeyboardInterrupt:
        ended = 130
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(ended)  # threads of the dashboard still wait for work: Python's own end would wait for them, or abort
