"""Lessons: the list of all of them."""

from __future__ import annotations

from dashboard.declared.view import EVERYWHERE, Declared, View

DECLARED = Declared(
    (
        View(
            key="lessons",
            label="Lessons",
            question="What can be learnt here?",
            intro="",
            draw="dashboard.views.lessons.overview:render",
            settings=EVERYWHERE,
            examples=({"class_code": "7b"},),  # with a lesson, the address opens its step on another page
            figure="text",
            is_framed=False,
        ),
    )
)
