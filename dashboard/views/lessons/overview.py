"""Lessons: short texts, each with a few steps, that show something on the other pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components.lessons.reader import LEVELS
from dashboard import ready_made
from dashboard.lessons import panel, printed, steps
from dashboard.ui import messages, wording

if TYPE_CHECKING:
    from components.lessons.lesson import Lesson

COLUMNS = 2  # of the lessons after the first


def render() -> None:
    with st.container(key="view_header"):
        st.title("What can be learnt here?", anchor=False)
        st.caption(
            "A lesson goes from picture to picture. Where it asks, you guess first, and then the model computes the answer."
        )
    messages.notices("lessons")
    lessons = list(ready_made.lessons().values())
    if lessons:
        _first(lessons[0])
    if len(lessons) > 1:
        with st.container(horizontal=True, vertical_alignment="center", key="lesson_class"):
            st.subheader("More lessons", anchor=False, width="content")
            panel.class_code(
                key="w_class_code_of_page", name="Run it with a class"
            )  # the open lesson's panel has one too
            st.caption(
                "Give your class a code: everyone guesses, and the guesses are counted anonymously.", width="content"
            )
        _rows(lessons[1:])
    _problems()


def _first(lesson: Lesson) -> None:
    """The lesson to begin with: one card with a station for each of its steps."""
    opened = steps.current()
    now = opened[1] if opened is not None and opened[0].key == lesson.key else 0
    with st.container(border=True, key=f"lesson_card_{lesson.key}"):
        left, right = st.columns([1, 2], gap="medium")
        with left:
            st.subheader(lesson.title, anchor=False)
            st.markdown(f"{lesson.question} {len(lesson.steps)} steps, about {lesson.minutes} minutes.")
            with st.container(horizontal=True, gap="small"):
                _start(lesson, now, is_first=True)
                printed.button(lesson, key=f"handout_{lesson.key}")
        with right:
            _stations(lesson, now)


def _stations(lesson: Lesson, now: int) -> None:
    """A button for each step, which opens it; the steps before the open one have a tick."""
    with st.container(key="lesson_stations"):
        for number, step in enumerate(lesson.steps, start=1):
            kind = "done" if number < now else "now" if number == now else "open"
            label = f"**{'✓' if number < now else number}** {messages.escape(step.title)}"
            if st.button(label, key=f"station_{kind}_{number}"):
                steps.show(lesson, number)


def _start(lesson: Lesson, now: int, is_first: bool = False) -> None:
    """The button that opens a lesson, or goes on where it was left."""
    if st.button(
        f"Go on with step {now}" if now else "Start",
        key=f"start_{lesson.key}",
        icon=":material/play_arrow:",
        type="primary" if is_first or now else "secondary",
    ):
        steps.show(lesson, now or 1)


def _rows(lessons: list[Lesson]) -> None:
    """All but the first, by their level."""
    opened = steps.current()
    for level in LEVELS:
        of_level = [lesson for lesson in lessons if lesson.level == level]
        if not of_level:
            continue
        st.markdown(f"###### {level.capitalize()}")
        for number, lesson in enumerate(of_level):
            if number % COLUMNS == 0:
                columns = st.columns(
                    min(COLUMNS, len(of_level) - number), gap="large"
                )  # the last one alone has the whole width
            now = opened[1] if opened is not None and opened[0].key == lesson.key else 0
            with columns[number % COLUMNS].container(
                key=f"lesson_row_{lesson.key}", horizontal=True, gap="small", vertical_alignment="center"
            ):
                time = f"{lesson.minutes}{wording.NBSP}min"
                st.markdown(f"**{lesson.title}** :gray[{time}]  \n{lesson.question}")
                _start(lesson, now)
                printed.button(lesson, key=f"handout_{lesson.key}")


def _problems() -> None:
    """What is to be mended in the files, for whoever writes one."""
    problems = [str(problem) for problem in ready_made.lesson_problems()]
    for lesson in ready_made.lessons().values():
        for step in lesson.steps:
            for scene in step.scenes:
                problems += [
                    f"The lesson “{lesson.title}”, line {scene.line}: {wrong}" for wrong in steps.check_address(scene)
                ]
    if problems:
        lines = "\n".join(f"- {messages.escape(line)}" for line in problems)
        st.warning(f"To mend in the files of lessons (docs/lessons.md describes them):\n\n{lines}")
