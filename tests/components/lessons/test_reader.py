"""The format of lessons: what is read, and one line for each thing to mend."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from components.lessons.reader import Problem, lesson_files, read_lesson, same_keys

HEAD = "---\ntitle: Two banks\nquestion: When?\nminutes: 10\nlevel: first steps\n---\n"
STEP = "## A step\nShow: layers?s=A dog.&s=A cat%26co.&t=1&t=2\n\nLook.\n"
QUESTION = "Question: Which?\n- [ ] one\n- [x] two\n\nAnswer: layers?view=sentences\n\nTwo.\n"


def read(folder: Path, text: str | bytes, name: str = "01-two-banks.md") -> tuple[object, list[Problem]]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_lesson(path)


def test_a_file_becomes_a_lesson(tmp_path: Path) -> None:
    (tmp_path / "01-two-banks.md").write_text(
        HEAD + STEP + "Holds: cosine(dog@1, 1@2, 3) < 0.9\nSays: Most similar\n" + QUESTION, encoding="utf-8"
    )
    lesson, problems = read_lesson(tmp_path / "01-two-banks.md")
    assert problems == []
    assert lesson is not None
    assert (lesson.key, lesson.title, lesson.question) == ("two-banks", "Two banks", "When?")
    assert (lesson.minutes, lesson.level, len(lesson.steps)) == (10, "first steps", 1)
    step = lesson.steps[0]
    assert (step.title, step.text) == ("A step", "Look.")
    assert step.scene.page == "layers"
    assert step.scene.address == {"s": ["A dog.", "A cat&co."], "t": ["1", "2"]}
    assert step.scene.says == ("Most similar",)
    assert [claim.text for claim in step.scene.claims] == ["cosine(dog@1, 1@2, 3) < 0.9"]
    assert step.question is not None
    assert (step.question.text, step.question.choices, step.question.right) == ("Which?", ("one", "two"), 1)
    assert step.question.answer == "Two."
    assert step.question.scene is not None
    assert step.question.scene.address == {"view": ["sentences"]}
    assert step.scenes == (step.scene, step.question.scene)


def test_what_is_as_long_as_may_be_is_read(tmp_path: Path) -> None:
    text = HEAD.replace("Two banks", "x" * 60).replace("minutes: 10", "minutes: 90") + STEP * 20
    lesson, problems = read(tmp_path, text)
    assert problems == []
    assert (len(lesson.title), lesson.minutes, len(lesson.steps)) == (60, 90, 20)


def test_a_question_without_a_right_choice_is_one_of_opinion(tmp_path: Path) -> None:
    (tmp_path / "01-a.md").write_text(HEAD + STEP + QUESTION.replace("[x]", "[ ]"), encoding="utf-8")
    lesson, problems = read_lesson(tmp_path / "01-a.md")
    assert problems == []
    assert lesson is not None
    assert lesson.steps[0].question is not None
    assert lesson.steps[0].question.right is None


@pytest.mark.parametrize(
    ("text", "line", "wrong"),
    [
        ("no head", 1, "The file does not begin with a line of three dashes."),
        ("---\ntitle: x\n", 1, "The second line of three dashes is missing."),
        (HEAD.replace("title: Two banks\n", "") + STEP, 1, "“title” is missing."),
        (HEAD.replace("question: When?", "question:") + STEP, 3, "“question” is missing."),
        (HEAD.replace("minutes: 10", "minutes: ten") + STEP, 4, "“ten” is not a number of minutes."),
        (HEAD.replace("minutes: 10", "minutes: 0") + STEP, 4, "“0” is not a number of minutes."),
        (HEAD.replace("minutes: 10", "minutes: 91") + STEP, 4, "“91” is not a number of minutes."),
        (HEAD.replace("first steps", "easy") + STEP, 5, "“easy” is not a level."),
        (HEAD.replace("level:", "levels:") + STEP, 5, "“levels: first steps” is none of title,"),
        (HEAD.replace("minutes: 10", "minutes: 10\nminutes: 11") + STEP, 5, "“minutes” is given a second time."),
        (HEAD.replace("Two banks", "x" * 61) + STEP, 2, "The title has more than 60 characters."),
        (HEAD, 6, "There is no step."),
        (HEAD + "text\n" + STEP, 7, "There is text before the first step."),
        (HEAD + "# A title\n" + STEP, 7, "Only steps have headings"),
        (HEAD + STEP * 21, 7 + 4 * 20, "There are more than 20 steps."),
        (HEAD + "## A step\nLook.\n", 7, "The step shows no page."),
        (HEAD + "## A step\nShow: layers\n", 7, "The step has neither text nor a question."),
        (HEAD + STEP.replace("layers?", "?"), 8, "The address names no page."),
        (HEAD + STEP.replace("A dog.", "A #1 dog."), 8, "The address contains a number sign."),
        (HEAD + STEP.replace("&t=1", "&t"), 8, "The part behind the question mark cannot be read."),
        (HEAD + STEP + "Show: layers\n", 11, "“Show:” is not the first line of its step."),
        (HEAD + STEP + "show: layers\n", 11, "“show: layers” is not read as you may mean it."),
        (HEAD + STEP + "Holds: cosine(dog@1)\n", 11, "The claim cannot be read: it does not compare two measures"),
        (HEAD + STEP + "Holds: cosine(dog@1) < 1\n", 11, "The claim cannot be read: cosine(…) needs 3 values, not 1."),
        (HEAD + STEP + "Holds: size(dog@1) < 1\n", 11, "The claim cannot be read: size(dog@1) is neither a number"),
        (HEAD + STEP + "Holds: pieces(dog) = 1\n", 11, "The claim cannot be read: dog names no word of a sentence"),
        (HEAD + "## A\nShow: layers\nHolds: tokens(1) = 3\nLook.\n", 9, "“Holds:” needs sentences in the address."),
        (HEAD + "## A\nSays: x\nShow: layers\nLook.\n", 8, "“Says:” stands above the address."),
        (HEAD + STEP + "Says:\n", 11, "“Says:” is empty."),
        (HEAD + STEP + "See ![a cat](cat.png)\n", 11, "Pictures, formulas and HTML are not shown."),
        (HEAD + STEP + "A <b>cat</b>\n", 11, "Pictures, formulas and HTML are not shown."),
        (HEAD + "## See ![a cat](//x.example/cat.png)\n", 7, "Pictures, formulas and HTML are not shown."),
        (HEAD + STEP + "Question: Is $x$ large?\n", 11, "Pictures, formulas and HTML are not shown."),
        (HEAD + STEP + "Question: Which?\n- [x] ![a](//x.example/a.png)\n", 12, "Pictures, formulas and HTML are not"),
        (HEAD.replace("title: ", "title: ![](//x.example/a.png) "), 2, "Pictures, formulas and HTML are not shown."),
        (HEAD + STEP + "- [ ] one\n", 11, "“- [ ] one” is not read as you may mean it."),
        (HEAD + STEP + QUESTION.replace("- [x] two\n", ""), 11, "The question has 1 choices."),
        (
            HEAD + STEP + QUESTION.replace("two", "two\n- [ ] c\n- [ ] d\n- [ ] e\n- [ ] f\n- [ ] g"),
            11,
            "The question has 7",
        ),
        (HEAD + STEP + QUESTION.replace("two", "one"), 11, "Two choices are the same."),
        (HEAD + STEP + QUESTION.replace("[ ] one", "[x] one"), 11, "2 choices are marked as right."),
        (HEAD + STEP + QUESTION.replace("\nTwo.\n", ""), 15, "The question has no answer."),
        (HEAD + STEP + QUESTION.split("Answer")[0], 11, "The question has no answer."),
        (HEAD + STEP + QUESTION.replace("Which?", ""), 11, "The question is empty."),
        (HEAD + STEP + QUESTION + QUESTION, 18, "This step has a second question."),
        (HEAD + STEP + "Answer:\nx\n", 11, "There is no question for this answer."),
        (HEAD + STEP + QUESTION.replace("- [ ] one", "- [ ] one\nmore"), 13, "Between a question and its answer"),
        (b"\xff\xfe", 1, "The file is not UTF-8."),
        (b"x" * 200_001, 1, "The file has more than 200,000 bytes."),
    ],
)
def test_a_problem_names_its_line_and_what_to_mend(tmp_path: Path, text: str | bytes, line: int, wrong: str) -> None:
    lesson, problems = read(tmp_path, text)
    assert lesson is None
    found = [str(problem) for problem in problems if problem.line == line and problem.wrong.startswith(wrong)]
    assert len(found) == 1, [str(problem) for problem in problems]
    assert found[0].startswith(f"01-two-banks.md:{line}: {wrong}")
    assert all("\n" not in str(problem) and problem.mend for problem in problems)


def test_the_name_of_a_file_is_the_lessons_name(tmp_path: Path) -> None:
    _, problems = read(tmp_path, HEAD + STEP, "Banks.md")
    assert [problem.wrong for problem in problems] == ["The name of the file has another form."]
    read(tmp_path, HEAD + STEP, "02-banks.md")
    read(tmp_path, HEAD + STEP, "03-banks.md")
    (tmp_path / "README.md").write_text("No lesson.", encoding="utf-8")
    assert [path.name for path in lesson_files(tmp_path)] == ["02-banks.md", "03-banks.md", "Banks.md"]
    assert [str(problem) for problem in same_keys(lesson_files(tmp_path))] == [
        "03-banks.md:1: 02-banks.md has the same name behind the number. Rename one of them."
    ]


def test_an_address_check_adds_its_problems(tmp_path: Path) -> None:
    (tmp_path / "01-a.md").write_text(HEAD + STEP, encoding="utf-8")
    lesson, problems = read_lesson(tmp_path / "01-a.md", lambda scene: [f"No page {scene.page}."])
    assert lesson is None
    assert [str(problem) for problem in problems] == [
        "01-a.md:8: No page layers. Open the page as it should look, and copy its address."
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_no_lesson_and_nobody_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "01-two-banks.md"
    os.mkfifo(path)
    lesson, problems = read_lesson(path)
    assert lesson is None
    assert [problem.wrong for problem in problems] == ["This is no plain file."]


@pytest.mark.parametrize("name", ["13-\ud800.md", "13-a\0b.md"])
def test_a_name_that_no_file_can_have_is_a_problem_and_no_error(name: str, tmp_path: Path) -> None:
    lesson, problems = read_lesson(tmp_path / name)
    assert lesson is None
    assert any("cannot be read" in str(problem) for problem in problems)
