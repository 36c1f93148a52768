"""The panel of the open lesson, beside every page: the text of a step, its question, and the way to the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import navigation, ready_made, settings, state
from dashboard.declared import table
from dashboard.lessons import counted, printed, steps
from dashboard.ui import browser, controls

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.lessons.lesson import Lesson, Question


def draw(page: str) -> None:
    """Draw the panel, if a lesson is open. style.css puts it at the right, or on a phone at the bottom."""
    opened = steps.current()
    if opened is None:
        if (lesson := steps.finished()) is not None:
            _finished(lesson)
        return
    if browser.know_visitor("lesson_visitor"):
        steps.settle(page)
    lesson, number = opened
    step = lesson.steps[number - 1]
    with _panel():
        with st.expander(f"**{lesson.title}**  ·  step {number} of {len(lesson.steps)}", expanded=True):
            with st.container(key="lesson_where"):  # on a phone the line that folds the panel says it
                st.caption(f"{lesson.title} · step {number} of {len(lesson.steps)}")
            st.subheader(step.title, anchor=False)
            st.markdown(step.text)
            if step.question is not None:
                _question(lesson, number, step.question)
            _foot(page, lesson, number)
        _way(lesson, number)
    browser.scroll_lesson("lesson_scroll", f"{lesson.key}.{number}", steps.is_answered(lesson, number))


def _panel() -> DeltaGenerator:
    """The place of the panel; the page beside it leaves room for it."""
    st.html(f"<style>{browser.asset('lesson', 'css')}</style>")
    return st.container(key="lesson_panel")


def _question(lesson: Lesson, number: int, question: Question) -> None:
    """The question; once the visitor has answered, the answer and what others chose."""
    chosen = steps.answer_to(lesson, number)
    key = f"lesson_choice_{lesson.key}_{number}"
    st.markdown(f"**{question.text}**")
    if chosen is not None:
        counted.bars(lesson, number, question, chosen)
        with st.container(key="lesson_verdict"):  # lesson_scroll.js looks for it
            if question.right is not None:
                is_right = chosen == question.right
                verdict = "Right." if is_right else f"The right answer: {question.choices[question.right]}."
                st.markdown(f"**{verdict}**")
            st.markdown(question.answer)
        return
    if steps.is_answered(lesson, number):
        _without_guess(lesson, number, question)
        return
    with st.container(key="lesson_choices", gap="xsmall"):
        clicked = [
            st.button(text, key=f"{key}_{place}", width="stretch") for place, text in enumerate(question.choices)
        ]
    is_skipped = st.button("Show it without a guess", key="lesson_without_guess", type="tertiary")
    if not is_skipped and not any(clicked):
        return
    if is_skipped:
        steps.skip_guess(lesson, number)
    else:
        steps.keep_answer(lesson, number, clicked.index(True))
    if question.scene is not None:
        steps.show(lesson, number)
    st.rerun()


def _without_guess(lesson: Lesson, number: int, question: Question) -> None:
    """The answer for who did not want to guess, and the way back to the question."""
    with st.container(key="lesson_verdict"):
        if question.right is not None:
            st.markdown(f"**{question.choices[question.right]}**")
        st.markdown(question.answer)
    if st.button("Guess after all", key="lesson_guess", type="tertiary", icon=":material/edit:"):
        steps.guess_after_all(lesson, number)
        if question.scene is not None:
            steps.show(lesson, number)
        st.rerun()


def _way(lesson: Lesson, number: int) -> None:
    """The buttons to the step before and the next one."""
    is_last = number == len(lesson.steps)
    with st.container(horizontal=True, key="lesson_way", gap="small"):
        if st.button("Back", key="lesson_back", icon=":material/arrow_back:", disabled=number == 1, width="stretch"):
            steps.show(lesson, number - 1)
        if is_last:
            st.button(
                "Finish",
                key="lesson_finish",
                icon=":material/check:",
                on_click=steps.finish,
                args=(lesson,),
                width="stretch",
            )
        elif st.button(
            "Next", key="lesson_next", icon=":material/arrow_forward:", icon_position="right", width="stretch"
        ):
            steps.show(lesson, number + 1)


def _finished(lesson: Lesson) -> None:
    """After the last step: what the lesson has shown, and what comes next. Guesses are not counted as points."""
    with _panel():
        with st.container(key="lesson_finished"):
            st.subheader(f"Finished: {lesson.title}", anchor=False)
            st.markdown(f"**{lesson.question}** You have seen:")
            st.markdown("\n".join(f"- {step.title}" for step in lesson.steps))
        lessons = list(ready_made.lessons().values())
        further = lessons[lessons.index(lesson) + 1 :][:1]
        with st.container(key="lesson_further", gap="small"):
            for following in further:
                if st.button(
                    f"Next: {following.title}",
                    key="next_lesson",
                    icon=":material/play_arrow:",
                    type="primary",
                    width="stretch",
                ):
                    steps.show(following, 1)
            with st.container(horizontal=True, gap="small"):
                if st.button("All lessons", key="finished_lessons", icon=":material/list:", width="stretch"):
                    steps.close_finished()
                    navigation.go_to("lessons")
                st.button(
                    "Close",
                    key="finished_close",
                    icon=":material/close:",
                    on_click=steps.close_finished,
                    width="stretch",
                )


def _foot(page: str, lesson: Lesson, number: int) -> None:
    """What is needed less often: back to what the step shows, the class, the printed page, the way out."""
    scene = steps.scene_of(lesson, number)
    is_here = page == table.place_of(steps.view_of(scene))
    if not is_here:
        st.info("You are on another page than this step.", icon=":material/explore:")
    with st.container(horizontal=True, key="lesson_foot", gap="xsmall"):
        if st.button(
            "Show this step again",
            key="lesson_again",
            icon=":material/replay:",
            type="tertiary" if is_here else "primary",
            help="The sentences, the page and the settings of this step",
        ):
            steps.show(lesson, number)
        class_code()
        printed.button(lesson, key="lesson_handout")
        st.button(
            "Leave the lesson", key="lesson_leave", icon=":material/close:", type="tertiary", on_click=steps.leave
        )


def class_code(key: str = "", counted: str = "Answers", name: str = "Class") -> None:
    """A button with this name that opens the field for the class's code; `key` tells a second one on the same page apart.

    `counted` names what is counted together for a class.
    """
    code = state.get("class_code")
    with st.popover(f"Class {code}" if code else name, icon=":material/groups:"):
        controls.bind(
            "class_code",
            st.text_input,
            "Class code",
            from_widget=settings.class_code,
            max_chars=settings.MOST_CODE,
            key=key,
            placeholder="such as 7b-monday",
        )
        st.caption(
            f"{counted} are counted together for all who enter the same code. Two tabs of a browser count as two people. "
            "Nobody's name is stored, and the counts are gone some hours after the last one. The address contains the code: "
            "“Copy link” gives it to the class."
        )
