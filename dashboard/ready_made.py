"""The ready-made sets of sentences, the lessons, and the path of the assets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from components.folders import ASSETS
from components.lessons.reader import Problem, lesson_files, read_lesson, same_keys

if TYPE_CHECKING:
    from components.lessons.lesson import Lesson


@dataclass(frozen=True)
class ReadyMadeSet:
    key: str
    title: str
    look_for: str
    sentences: tuple[str, ...]
    view: str = "across"  # what its hint describes: a view of Layers, or "pieces" of Tokens
    pair: bool = False  # the set is a question and its answer
    focus: tuple[str, ...] = ()  # the word of interest in each sentence, if the hint names one


@cache
def ready_made_sets() -> dict[str, ReadyMadeSet]:
    """The sets of assets/sets.json by key, in the order of the file."""
    rows = json.loads((ASSETS / "sets.json").read_text(encoding="utf-8"))
    return {
        row["key"]: ReadyMadeSet(**{**row, "sentences": tuple(row["sentences"]), "focus": tuple(row.get("focus", ()))})
        for row in rows
    }


def set_of(sentences: tuple[str, ...]) -> ReadyMadeSet | None:
    """The ready-made set that has these sentences, or None."""
    return next((item for item in ready_made_sets().values() if item.sentences == sentences), None)


def focus_of(sentences: tuple[str, ...]) -> tuple[str, ...]:
    """The words of interest if these sentences are a ready-made set that names them, else empty."""
    item = set_of(sentences)
    return () if item is None else item.focus


def is_ready_made(sentences: tuple[str, ...]) -> bool:
    """Whether these sentences are a ready-made set, or those of a step of a lesson."""
    return set_of(sentences) is not None or any(
        scene.sentences == sentences for lesson in lessons().values() for step in lesson.steps for scene in step.scenes
    )


def is_pair(sentences: tuple[str, ...]) -> bool:
    """Whether these sentences are a ready-made pair of a question and its answer."""
    item = set_of(sentences)
    return item is not None and item.pair


LESSONS = ASSETS / "lessons"


def lessons() -> dict[str, Lesson]:
    """The lessons of assets/lessons by key, in the order of their files; a file that was added or changed is read again."""
    return _read_lessons(_lesson_marks())[0]


def lesson_problems() -> tuple[Problem, ...]:
    """What is to be mended in the files of assets/lessons; a file with problems is no lesson."""
    return _read_lessons(_lesson_marks())[1]


def _lesson_marks() -> tuple[tuple[Path, int, int], ...]:
    """Each file with the time of its last change and its size."""
    return tuple((path, (facts := path.stat()).st_mtime_ns, facts.st_size) for path in lesson_files(LESSONS))


@lru_cache(maxsize=2)
def _read_lessons(marks: tuple[tuple[Path, int, int], ...]) -> tuple[dict[str, Lesson], tuple[Problem, ...]]:
    files = [path for path, _, _ in marks]
    read: dict[str, Lesson] = {}
    problems = same_keys(files)
    for path in files:
        lesson, found = read_lesson(path)
        problems += found
        if lesson is not None:
            read.setdefault(lesson.key, lesson)
    return read, tuple(problems)
