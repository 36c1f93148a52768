"""Which lesson and step a session has open, and showing a step: its address is applied as if it were opened as a link."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import streamlit as st

from components.errors import UserError
from dashboard import navigation, ready_made, settings, state
from dashboard.ui import sentence_bar

if TYPE_CHECKING:
    from components.lessons.lesson import Lesson, Scene

KEPT = ("lesson", "class_code", "projector", "max_length")  # settings that showing a step does not change
_ANSWERS = "_lesson_answers"  # session key: (lesson, step) to the number of the choice
PAGES = set(settings.PAGES) - {"home"}


def current() -> tuple[Lesson, int] | None:
    """The open lesson and the number of its step, from 1; None if no lesson is open, or its file is gone."""
    chosen = state.get("lesson")
    lesson = ready_made.lessons().get(chosen[0]) if chosen else None
    return None if lesson is None else (lesson, min(chosen[1], len(lesson.steps)))


def scene_of(lesson: Lesson, number: int) -> Scene:
    """What a step shows now: what belongs to the answer, once the session has answered."""
    question = lesson.steps[number - 1].question
    if question is not None and question.scene is not None and answer_to(lesson, number) is not None:
        return question.scene
    return lesson.steps[number - 1].scene


def answer_to(lesson: Lesson, number: int) -> int | None:
    """The session's choice in a step's question, from 0; None before it has answered."""
    choice = st.session_state.get(_ANSWERS, {}).get((lesson.key, number))
    question = lesson.steps[number - 1].question
    is_choice = question is not None and choice is not None and choice < len(question.choices)
    return choice if is_choice else None


def keep_answer(lesson: Lesson, number: int, choice: int) -> None:
    """Remember the session's choice in a step's question."""
    st.session_state.setdefault(_ANSWERS, {})[lesson.key, number] = choice


def forget_answer(lesson: Lesson, number: int) -> None:
    """Let the session answer a step's question anew."""
    st.session_state.get(_ANSWERS, {}).pop((lesson.key, number), None)


def show(lesson: Lesson, number: int) -> None:
    """Open a step and go to its page. Not from a callback, which cannot go to another page."""
    state.put("lesson", (lesson.key, number))
    scene = scene_of(lesson, number)
    sentence_bar.keep_own(settings.clean_sentences(list(scene.sentences)))
    with state.restoring():
        state.apply(scene.page, scene.address, keep=KEPT)
    st.switch_page(navigation.page_of(scene.page))


def leave() -> None:
    """Close the lesson; the page stays as it is."""
    state.put("lesson", state.default("lesson"))


def open_short_link(page: str, is_first_run: bool) -> None:
    """Go to the step of an address that names nothing but a lesson: /lessons?lesson=two-banks."""
    opened = current()
    if is_first_run and page == "lessons" and opened is not None and "lesson" in st.query_params:
        show(*opened)


def query_of(scene: Scene) -> str:
    """A scene's address behind the question mark."""
    return urlencode(scene.values, quote_via=quote)


def short_link(lesson: Lesson, number: int) -> str:
    """The address, from the server's root, that opens a step with all that it shows; see open_short_link."""
    return f"/lessons?lesson={lesson.key}.{number}"


def check_address(scene: Scene) -> list[str]:
    """What the dashboard would ignore in a scene's address, in sentences."""
    if scene.page not in PAGES:
        return [f"There is no page “{scene.page}” for a step; choose one of {', '.join(sorted(PAGES))}."]
    known = {setting.short: setting for setting in settings.SETTINGS if scene.page in setting.pages}
    wrong = []
    for key, texts in scene.address.items():
        if key not in known or known[key].name in KEPT:
            wrong.append(f"The page “{scene.page}” has no “{key}”.")
            continue
        try:
            value = known[key].parse(texts)
        except (ValueError, UserError) as problem:
            wrong.append(f"“{key}={', '.join(texts)[:60]}” is not possible: {str(problem).rstrip('.')}.")
            continue
        if value == known[key].default and key != "s":  # a file names its sentences even if they are the default
            wrong.append(f"“{key}={', '.join(texts)[:60]}” is what the page shows without it: leave it out.")
    return wrong
