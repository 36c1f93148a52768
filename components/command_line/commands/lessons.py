"""`lessons [FILES]`: whether the files of lessons can be used."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from components.command_line import options as shared
from components.errors import InputError
from components.folders import ASSETS

NAME = "lessons"
HELP = "check the files of lessons, and what they state about the included model"
FOLDER = ASSETS / "lessons"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", type=Path, nargs="*", help="files (default: all of assets/lessons)")
    parser.add_argument("--no-model", action="store_true", help="do not check the lines with “Holds:”")


def run(options: argparse.Namespace) -> dict[str, Any]:
    from components.lessons.reader import claim_problems, lesson_files, read_lesson, same_keys

    files = options.files or lesson_files(FOLDER)
    problems = same_keys(files)
    lessons = []
    for path in files:
        lesson, found = read_lesson(path)
        problems += found
        if lesson is not None:
            lessons.append((path, lesson))
    if not options.no_model and lessons:
        from components.model.backend import Backend

        backend = Backend.load("embedded")
        for path, lesson in lessons:
            problems += claim_problems(path, lesson, backend)
    for problem in problems:
        shared.say(str(problem))
    if problems:
        raise InputError(
            f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in {len({item.file for item in problems})} of "
            f"{len(files)} files.",
            "Each is listed above.",
            "docs/lessons.md describes the format.",
        )
    steps = sum(len(lesson.steps) for _, lesson in lessons)
    if options.json != "-":
        shared.say(f"{len(lessons)} lessons with {steps} steps: no problem found.")
    return {"lessons": [lesson.key for _, lesson in lessons], "steps": steps}
