"""What a class answered, as bars that follow while others answer."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import caching, state
from dashboard.lessons import steps
from dashboard.ui import wording

if TYPE_CHECKING:
    from components.lessons.lesson import Lesson, Question

SECONDS = 2.0  # between two looks at the counts


def bars(lesson: Lesson, number: int, question: Question, chosen: int) -> None:
    """How many chose what, drawn again every SECONDS, and a button to answer anew."""
    # Again, for a class that the person has joined since, or after the counts were gone.
    steps.keep_answer(lesson, number, chosen)

    @st.fragment(run_every=SECONDS)
    def counts() -> None:
        numbers = caching.lesson_answers().counts(steps.counted_as(lesson, number), len(question.choices))
        st.html(_html(question, numbers, chosen))

    with st.container(key="lesson_counts", gap="xsmall"):
        counts()
        code = state.get("class_code")
        who = f"Class {code}." if code else "All who read this lesson on this server."
        st.caption(who)
        if st.button("Change my guess", key="lesson_change", type="tertiary", icon=":material/edit:"):
            steps.forget_answer(lesson, number)
            if question.scene is not None:
                steps.show(lesson, number)  # the question is not answered beside its answer
            st.rerun()


def _html(question: Question, numbers: tuple[int, ...], chosen: int) -> str:
    most = max(1, *numbers)
    rows = []
    for place, (text, count) in enumerate(zip(question.choices, numbers, strict=True)):
        marks = [] if place != chosen else ["your guess"]
        marks += ["right"] if place == question.right else []
        mark = f" <em>{', '.join(marks)}</em>" if marks else ""
        kind = " right" if place == question.right else ""
        rows.append(
            f'<div class="bi-count{kind}"><span>{escape(text)}{mark}</span>'
            f'<i style="width: {100 * count / most:.0f}%"></i><b>{count}</b></div>'
        )
    total = wording.counted(sum(numbers), "answer")
    return f'<div class="bi-counts" role="group" aria-label="{total}">{"".join(rows)}</div>'
