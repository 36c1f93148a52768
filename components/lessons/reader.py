"""Reads the files of lessons: Markdown with a few lines that have a meaning. docs/lessons.md describes the format.

Nothing in a file is ever evaluated. Every problem becomes one line: the file and the line, what is wrong, what to mend.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from components.lessons.claims import EXAMPLE, Claim, parse_claim
from components.lessons.lesson import Lesson, Question, Scene, Step

if TYPE_CHECKING:
    from components.model.backend import Backend

LEVELS = ("first steps", "next steps", "in depth")
MOST_BYTES = 200_000
MOST_STEPS, MOST_CHOICES, MOST_MINUTES = 20, 6, 90
LONGEST = {"title": 60, "question": 120, "heading": 70, "choice": 160}  # characters
_NAME = re.compile(r"\d{2}-(?P<key>[a-z0-9]+(-[a-z0-9]+)*)\.md")
_LINE = re.compile(r"(?P<word>Show|Holds|Says|Question|Answer):\s*(?P<rest>.*)")
_CHOICE = re.compile(r"- \[(?P<mark>[ x])\] (?P<text>.*\S)\s*")
# Words that look like one of ours, but would be shown as text.
_NO_WORDS = re.compile(r"!\[|\$|<[a-zA-Z/!]")  # begins a picture, a formula or HTML
_ALMOST = re.compile(r"(?i)(show|holds|says|question|answer)\s*:.*|[-*] ?\[.{0,3}\].*")


@dataclass(frozen=True)
class Problem:
    """One thing to mend in a file."""

    file: str
    line: int  # from 1
    wrong: str  # a sentence
    mend: str  # a sentence

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.wrong} {self.mend}"


@dataclass
class _Draft:
    """A step while it is read."""

    title: str
    line: int
    text: list[str] = field(default_factory=list)
    scenes: list[Scene | None] = field(default_factory=lambda: [None])  # the step's, then the answer's
    question: str | None = None
    question_line: int = 0
    choices: list[tuple[bool, str]] = field(default_factory=list)
    answer: list[str] | None = None
    answer_line: int = 0


AddressCheck = Callable[[Scene], list[str]]  # what is wrong with a scene's address, in sentences


def read_lesson(path: Path, check_address: AddressCheck | None = None) -> tuple[Lesson | None, list[Problem]]:
    """A file's lesson, and the problems of the file; with problems, there is no lesson.

    `check_address` says more about an address than its form: the dashboard knows which values its pages have.
    """
    reader = _LessonReader(path)
    lesson = reader.read()
    if lesson is not None and check_address is not None:
        for step in lesson.steps:
            for scene in step.scenes:
                for wrong in check_address(scene):
                    reader.report(scene.line, wrong, "Open the page as it should look, and copy its address.")
    return (None if reader.problems else lesson), reader.problems


def lesson_files(folder: Path) -> list[Path]:
    """The files of a folder that are lessons, in the order of their numbers."""
    return sorted(path for path in folder.glob("*.md") if path.name != "README.md")


def same_keys(files: list[Path]) -> list[Problem]:
    """A problem for each file whose key another file before it has."""
    seen: dict[str, str] = {}
    problems = []
    for path in files:
        key = lesson_key(path)
        if key in seen:
            problems.append(
                Problem(path.name, 1, f"{seen[key]} has the same name behind the number.", "Rename one of them.")
            )
        elif key:
            seen[key] = path.name
    return problems


def lesson_key(path: Path) -> str:
    """The name of a lesson in addresses; empty for a file whose name has another form."""
    name = _NAME.fullmatch(path.name)
    return name["key"] if name else ""


def claim_problems(path: Path, lesson: Lesson, backend: Backend) -> list[Problem]:
    """A problem for each claim of a lesson that does not hold for a model."""
    return [
        Problem(path.name, claim.line, f"“{claim.text}” does not hold: {wrong}.", "Correct the text and the claim.")
        for step in lesson.steps
        for scene in step.scenes
        for claim in scene.claims
        if (wrong := claim.problem(backend, scene.sentences))
    ]


class _LessonReader:
    def __init__(self, path: Path) -> None:
        self.path, self.problems = path, list[Problem]()

    def report(self, line: int, wrong: str, mend: str) -> None:
        self.problems.append(Problem(self.path.name, line, wrong, mend))

    def read(self) -> Lesson | None:
        key = lesson_key(self.path)
        if not key:
            self.report(1, "The name of the file has another form.", "Name it as in: 13-my-lesson.md")
        try:
            if self.path.exists() and not self.path.is_file():  # a pipe would keep its reader waiting for ever
                self.report(1, "This is no plain file.", "Write the lesson into a file.")
                return None
            with self.path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                self.report(
                    1, f"The file has more than {MOST_BYTES:,} bytes.", "Shorten it, or make two lessons of it."
                )
                return None
            lines = content.decode("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            self.report(1, "The file is not UTF-8.", "Save it as UTF-8.")
            return None
        except (OSError, ValueError) as problem:  # the second: of a name with a zero byte, or half a character
            reason = problem.strerror if isinstance(problem, OSError) else "it has a name that no file can have"
            self.report(1, f"The file cannot be read: {reason}.", "Check its name and its permissions.")
            return None
        head, body_start = self._head(lines)
        drafts = self._drafts(lines, body_start)
        steps = tuple(step for draft in drafts if (step := self._step(draft)) is not None)
        if not drafts:
            self.report(
                len(lines) or 1, "There is no step.", "Begin each step with a line such as: ## What is a token?"
            )
        if len(drafts) > MOST_STEPS:
            self.report(drafts[MOST_STEPS].line, f"There are more than {MOST_STEPS} steps.", "Make two lessons of it.")
        self.problems.sort(key=lambda problem: problem.line)
        if self.problems:
            return None
        return Lesson(key, head["title"], head["question"], int(head["minutes"]), head["level"], steps)

    def _head(self, lines: list[str]) -> tuple[dict[str, str], int]:
        """The values between the two lines of dashes, and the number of the first line behind them."""
        mend = "Begin the file with ---, the lines title, question, minutes and level, and --- again."
        if not lines or lines[0].strip() != "---":
            self.report(1, "The file does not begin with a line of three dashes.", mend)
            return {}, 0
        end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
        if end is None:
            self.report(1, "The second line of three dashes is missing.", mend)
            return {}, len(lines)
        head: dict[str, str] = {}
        at: dict[str, int] = {}
        for number, line in enumerate(lines[1:end], 2):
            if not line.strip():
                continue
            name, colon, value = (part.strip() for part in line.partition(":"))
            if not colon or name not in {"title", "question", "minutes", "level"}:
                self.report(number, f"“{line.strip()[:40]}” is none of title, question, minutes and level.", mend)
            elif name in head:
                self.report(number, f"“{name}” is given a second time.", "Remove one of the two lines.")
            else:
                head[name], at[name] = value, number
                self._check_words(line, number)
        for name in ("title", "question", "minutes", "level"):
            if not head.get(name):
                self.report(at.get(name, 1), f"“{name}” is missing.", f"Write a line such as: {_EXAMPLES[name]}")
        for name in ("title", "question"):
            self._check_length(head.get(name, ""), name, at.get(name, 1))
        minutes = head.get("minutes")
        if minutes and not (re.fullmatch(r"[0-9]{1,2}", minutes) and 1 <= int(minutes) <= MOST_MINUTES):
            mend = f"Write a whole number from 1 to {MOST_MINUTES}."
            self.report(at["minutes"], f"“{minutes}” is not a number of minutes.", mend)
        if head.get("level") and head["level"] not in LEVELS:
            self.report(at["level"], f"“{head['level']}” is not a level.", f"Choose one of: {', '.join(LEVELS)}.")
        return head, end + 1

    def _check_words(self, line: str, number: int) -> None:
        """Report what pages would draw as something else than words, and fetch from elsewhere: pictures, formulas, HTML."""
        if _NO_WORDS.search(line):
            self.report(number, "Pictures, formulas and HTML are not shown.", "Write it in words.")

    def _check_length(self, text: str, name: str, line: int) -> None:
        if len(text) > LONGEST[name]:
            self.report(line, f"The {name} has more than {LONGEST[name]} characters.", "Shorten it.")

    def _drafts(self, lines: list[str], start: int) -> list[_Draft]:
        drafts: list[_Draft] = []
        for number, line in enumerate(lines[start:], start + 1):
            if line.startswith("## "):
                drafts.append(_Draft(line[3:].strip(), number))
                self._check_words(line, number)
                self._check_length(drafts[-1].title, "heading", number)
            elif line.startswith("#"):
                self.report(number, "Only steps have headings, with two number signs.", "Write: ## The step's title")
            elif drafts:
                self._take(drafts[-1], line, number)
            elif line.strip():
                self.report(number, "There is text before the first step.", "Begin the step with: ## Its title")
        return drafts

    def _take(self, draft: _Draft, line: str, number: int) -> None:
        """Add a line to a step."""
        marked, choice = _LINE.fullmatch(line.strip()), _CHOICE.fullmatch(line)
        if marked is not None:
            self._take_marked(draft, marked["word"], marked["rest"], number)
        elif choice is not None and draft.question is not None and draft.answer is None:
            draft.choices.append((choice["mark"] == "x", choice["text"]))
            self._check_words(line, number)
            self._check_length(choice["text"], "choice", number)
        elif _ALMOST.fullmatch(line.strip()):
            self.report(
                number,
                f"“{line.strip()[:40]}” is not read as you may mean it.",
                "Write Show:, Holds:, Says:, Question: or Answer:, and below a question choices as - [ ] or - [x].",
            )
        elif _NO_WORDS.search(line):
            self._check_words(line, number)
        elif draft.answer is not None:
            draft.answer.append(line)
        elif draft.question is None:
            draft.text.append(line)
        elif line.strip():
            self.report(
                number, "Between a question and its answer there are only choices.", "Write it above the question."
            )

    def _take_marked(self, draft: _Draft, word: str, rest: str, number: int) -> None:
        if word == "Show":
            if draft.scenes[0] is not None or draft.question is not None:
                self.report(number, "“Show:” is not the first line of its step.", "Write it once, below the heading.")
            else:
                draft.scenes[0] = self._scene(rest, number)
        elif word == "Question":
            if draft.question is not None:
                self.report(number, "This step has a second question.", "Begin a new step for it.")
            elif not rest:
                self.report(number, "The question is empty.", "Write it behind “Question:”, on one line.")
            draft.question, draft.question_line = rest, number
            self._check_words(rest, number)
        elif word == "Answer":
            if draft.question is None or draft.answer is not None:
                self.report(number, "There is no question for this answer.", "Write “Question:” and choices above it.")
            draft.answer, draft.answer_line = [], number
            if rest:
                draft.scenes.append(self._scene(rest, number))
        else:
            self._take_check(draft, word, rest, number)

    def _take_check(self, draft: _Draft, word: str, rest: str, number: int) -> None:
        scene = draft.scenes[-1]
        if scene is None:
            self.report(number, f"“{word}:” stands above the address.", "Write it below the line with “Show:”.")
            return
        if word == "Says":
            if not rest:
                self.report(number, "“Says:” is empty.", "Write a text that the page shows.")
            draft.scenes[-1] = replace(scene, says=(*scene.says, rest))
            return
        if not scene.sentences:
            self.report(number, "“Holds:” needs sentences in the address.", "Add them as s=… to the address above.")
        claim: Claim
        try:
            claim = parse_claim(rest, number)
        except ValueError as problem:
            self.report(number, f"The claim cannot be read: {problem}.", EXAMPLE)
            return
        draft.scenes[-1] = replace(scene, claims=(*scene.claims, claim))

    def _scene(self, address: str, number: int) -> Scene | None:
        page, _, query = address.strip().removeprefix("/").partition("?")
        if not re.fullmatch("[a-z]+", page):
            self.report(number, "The address names no page.", "Write it as in: layers?s=A dog runs.&s=A cat sleeps.")
            return None
        if "#" in query:
            self.report(number, "The address contains a number sign.", "Write %23 for it.")
            return None
        try:
            values = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
        except (ValueError, UnicodeDecodeError):
            self.report(
                number,
                "The part behind the question mark cannot be read.",
                "Write key=value, with & between two values.",
            )
            return None
        return Scene(page, tuple(values), number)

    def _step(self, draft: _Draft) -> Step | None:
        before = len(self.problems)
        scene, text = draft.scenes[0], "\n".join(draft.text).strip()
        if not draft.title:
            self.report(draft.line, "The step has no title.", "Write it behind ##.")
        if scene is None and not any(problem.line > draft.line for problem in self.problems):
            self.report(draft.line, "The step shows no page.", "Write below the heading: Show: layers?s=A dog runs.")
        if not text and draft.question is None:
            self.report(draft.line, "The step has neither text nor a question.", "Say what to look at.")
        question = None if draft.question is None else self._question(draft)
        if len(self.problems) > before or scene is None:
            return None
        return Step(draft.title, text, scene, question)

    def _question(self, draft: _Draft) -> Question | None:
        right = [number for number, (is_right, _) in enumerate(draft.choices) if is_right]
        line, texts = draft.question_line, [text for _, text in draft.choices]
        if not 2 <= len(draft.choices) <= MOST_CHOICES:
            self.report(
                line,
                f"The question has {len(draft.choices)} choices.",
                f"Write 2 to {MOST_CHOICES}, one a line, as: - [ ] a choice, or - [x] the right one",
            )
        if len(set(texts)) < len(texts):
            self.report(line, "Two choices are the same.", "Change one of them.")
        if len(right) > 1:
            self.report(line, f"{len(right)} choices are marked as right.", "Mark one with [x], or none for opinions.")
        answer = "\n".join(draft.answer or []).strip()
        if not answer:
            self.report(
                draft.answer_line or line, "The question has no answer.", "Write “Answer:”, and the text below it."
            )
        of_answer = draft.scenes[1] if len(draft.scenes) > 1 else None
        return Question(draft.question or "", tuple(texts), right[0] if right else None, answer, of_answer)


_EXAMPLES = {
    "title": "title: Two banks",
    "question": "question: When does one word get two meanings?",
    "minutes": "minutes: 10",
    "level": f"level: {LEVELS[0]}",
}
