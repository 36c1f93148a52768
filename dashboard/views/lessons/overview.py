"""Lessons: short texts, each with a few steps, that show something on the other pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components.lessons.reader import LEVELS
from dashboard import ready_made
from dashboard.lessons import panel, printed, steps
from dashboard.ui import messages

if TYPE_CHECKING:
    from components.lessons.lesson import Lesson

CARDS = 3  # per row


def render() -> None:
    with st.container(key="view_header"):
        st.title("What can be learnt here?", anchor=False)
        st.caption(
            "Each lesson answers one question in a few steps. Its text stays beside the pages and sets what they show; "
            "before it shows something, it asks what you expect."
        )
    messages.notices("lessons")
    with st.container(horizontal=True, vertical_alignment="center", key="lesson_class"):
        panel.class_code(key="w_class_code_of_page")  # the open lesson's panel has one too
        st.caption("A class that enters one code sees its answers counted, without names.", width="content")
    for level in LEVELS:
        chosen = [lesson for lesson in ready_made.lessons().values() if lesson.level == level]
        if chosen:
            st.subheader(level.capitalize(), anchor=False)
            _cards(chosen)
    _problems()


def _cards(lessons: list[Lesson]) -> None:
    opened = steps.current()
    columns = [column for _ in range(0, len(lessons), CARDS) for column in st.columns(CARDS)]
    for column, lesson in zip(columns, lessons, strict=False):
        is_open = opened is not None and opened[0].key == lesson.key
        with column.container(border=True, key=f"lesson_card_{lesson.key}", height="stretch"):
            st.markdown(f"**{lesson.title}**")
            st.markdown(lesson.question)
            st.caption(f"{len(lesson.steps)} steps · about {lesson.minutes} minutes")
            with st.container(horizontal=True, gap="small"):
                if st.button(
                    "Go on" if is_open else "Start",
                    key=f"start_{lesson.key}",
                    icon=":material/play_arrow:",
                    type="primary" if is_open else "secondary",
                ):
                    steps.show(lesson, opened[1] if opened is not None and is_open else 1)
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
