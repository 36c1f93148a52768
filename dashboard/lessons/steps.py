"""Which lesson and step a session has open, and showing a step: its address is applied as if it were opened as a link."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import streamlit as st

from components.errors import UserError
from dashboard import caching, navigation, ready_made, settings, state
from dashboard.declared import addresses, older, table
from dashboard.ui import sentence_bar

if TYPE_CHECKING:
    from components.lessons.lesson import Lesson, Scene

KEPT = ("lesson", "class_code", "projector", "max_length")  # settings that showing a step does not change
_FINISHED = "_lesson_finished"  # session key: the lesson that was finished last, until what it says is closed
_WITHOUT_GUESS = "_lesson_without_guess"  # session key: the (lesson, step) whose answer was asked for without a guess
_ANSWERS = "_lesson_answers"  # session key: (lesson, step) to the number of the choice
# On which a step can show something.
PAGES = {page.key for page in table.PAGES if any(view.is_framed for view in table.views_of(page.key))}


def current() -> tuple[Lesson, int] | None:
    """The open lesson and the number of its step, from 1; None if no lesson is open, or its file is gone."""
    chosen = state.get("lesson")
    lesson = ready_made.lessons().get(chosen[0]) if chosen else None
    return None if lesson is None else (lesson, min(chosen[1], len(lesson.steps)))


def scene_of(lesson: Lesson, number: int) -> Scene:
    """What a step shows now: what belongs to the answer, once the visitor has answered."""
    question = lesson.steps[number - 1].question
    if question is not None and question.scene is not None and is_answered(lesson, number):
        return question.scene
    return lesson.steps[number - 1].scene


def answer_to(lesson: Lesson, number: int) -> int | None:
    """The visitor's choice in a step's question, from 0; None before they have answered.

    It is the one that is counted, which outlives a reload. Where none is, as in a class that the person has joined since,
    or after the counts are gone, it is the session's.
    """
    choice = caching.lesson_answers().of_person(counted_as(lesson, number), caching.visitor())
    if choice is None:
        choice = st.session_state.get(_ANSWERS, {}).get((lesson.key, number))
    question = lesson.steps[number - 1].question
    is_choice = question is not None and choice is not None and choice < len(question.choices)
    return choice if is_choice else None


def is_answered(lesson: Lesson, number: int) -> bool:
    """Whether a step shows its answer: the visitor has guessed, or wanted to see it without a guess."""
    return answer_to(lesson, number) is not None or (lesson.key, number) in st.session_state.get(_WITHOUT_GUESS, set())


def is_asking() -> bool:
    """Whether the question of the open step waits for an answer, which no picture may give away meanwhile."""
    opened = current()
    if opened is None:
        return False
    lesson, number = opened
    return lesson.steps[number - 1].question is not None and not is_answered(lesson, number)


def skip_guess(lesson: Lesson, number: int) -> None:
    """Show a step's answer without a guess; nothing is counted."""
    st.session_state.setdefault(_WITHOUT_GUESS, set()).add((lesson.key, number))


def guess_after_all(lesson: Lesson, number: int) -> None:
    """Ask a step's question again that was shown without a guess."""
    st.session_state.get(_WITHOUT_GUESS, set()).discard((lesson.key, number))


def keep_answer(lesson: Lesson, number: int, choice: int) -> None:
    """Count the visitor's choice in a step's question, in place of the one before."""
    st.session_state.setdefault(_ANSWERS, {})[lesson.key, number] = choice
    caching.lesson_answers().give(counted_as(lesson, number), caching.visitor(), choice)


def forget_answer(lesson: Lesson, number: int) -> None:
    """Let the visitor answer a step's question anew; until then they have no answer that counts."""
    st.session_state.get(_ANSWERS, {}).pop((lesson.key, number), None)
    caching.lesson_answers().take_back(counted_as(lesson, number), caching.visitor())


def counted_as(lesson: Lesson, number: int) -> tuple[str, int, str]:
    """What the answers to a step's question are counted for: the class, if there is one."""
    return lesson.key, number, state.get("class_code")


def show(lesson: Lesson, number: int) -> None:
    """Open a step and go to its page. Not from a callback, which cannot go to another page."""
    close_finished()
    state.put("lesson", (lesson.key, number))
    scene = scene_of(lesson, number)
    if scene.sentences:
        sentence_bar.keep_own(settings.clean_sentences(list(scene.sentences)))
    elif table.VIEWS[view_of(scene)].uses_sentences:  # an address that names none means the default ones
        sentence_bar.keep_own(state.default("sentences"))
    page = table.place_of(view_of(scene))
    with state.restoring():
        state.apply(page, address_of(scene), keep=KEPT)
    st.switch_page(navigation.page_of(page))


def leave() -> None:
    """Close the lesson. The page stays as it is, but a person's own sentences come back where the lesson's stand."""
    state.put("lesson", state.default("lesson"))
    sentence_bar.bring_back()


def finish(lesson: Lesson) -> None:
    """Close a lesson at its end; what it has shown is said in its place."""
    st.session_state[_FINISHED] = lesson.key
    leave()


def finished() -> Lesson | None:
    """The lesson that was just finished; None without one."""
    return ready_made.lessons().get(st.session_state.get(_FINISHED, ""))


def close_finished() -> None:
    """Say no more of the lesson that was finished."""
    st.session_state.pop(_FINISHED, None)


def open_short_link(page: str, is_first_run: bool) -> None:
    """Go to the step of an address that names nothing but a lesson: /lessons?lesson=two-banks."""
    opened = current()
    if is_first_run and page == "lessons" and opened is not None and "lesson" in st.query_params:
        show(*opened)


def settle(page: str) -> None:
    """Once the visitor is known: show the answer's scene with their answer, and the question's scene without one.

    A link may show the other one: it was opened before the answer was known, or it is somebody else's, who had answered.
    What a person has chosen on the pages stays.
    """
    opened = current()
    question = None if opened is None else opened[0].steps[opened[1] - 1].question
    if opened is None or question is None or question.scene is None:
        return
    step = opened[0].steps[opened[1] - 1]
    other = step.scene if is_answered(*opened) else question.scene
    if _is_shown(other, page):
        show(*opened)


def _is_shown(scene: Scene, page: str) -> bool:
    """Whether a page shows a scene, with nothing changed."""
    kept = {table.SETTING[name].short for name in KEPT}
    address = {key: texts for key, texts in state.address_of(page)[0].items() if key not in kept}
    shown = address_of(scene)
    if scene.sentences == state.default("sentences"):
        del shown["s"]
    return page == table.place_of(view_of(scene)) and address == shown


def address_of(scene: Scene) -> dict[str, list[str]]:
    """A scene's address, with the view that it shows: files may name it as older addresses do."""
    found = older.translated(scene.page, scene.address)
    if table.VIEW not in found and scene.page in PAGES and len(views := table.views_of(scene.page)) > 1:
        found = {table.VIEW: [views[0].key]} | found
    return found


def view_of(scene: Scene) -> str:
    """The key of the view that a scene shows; the first one of its page if it names none that exists."""
    named = "".join(address_of(scene).get(table.VIEW, ()))
    return named if named in table.VIEWS else table.views_of(addresses.page_of(scene.page))[0].key


def query_of(scene: Scene) -> str:
    """A scene's address behind the question mark."""
    values = [(key, text) for key, texts in address_of(scene).items() for text in texts]
    return urlencode(values, quote_via=quote)


def short_link(lesson: Lesson, number: int) -> str:
    """The address, from the server's root, that opens a step with all that it shows; see open_short_link."""
    return f"/lessons?lesson={lesson.key}.{number}"


def check_address(scene: Scene) -> list[str]:
    """What the dashboard would ignore in a scene's address, in sentences."""
    if addresses.page_of(scene.page) not in PAGES:
        return [f"There is no page “{scene.page}” for a step; choose one of {', '.join(sorted(PAGES))}."]
    address, view = address_of(scene), table.VIEWS[view_of(scene)]
    if address.get(table.VIEW, [view.key]) != [view.key]:
        return [f"There is no view “{', '.join(address[table.VIEW])[:60]}”."]
    known = {setting.short: setting for setting in table.settings_in(view.key)}
    wrong = []
    for key, texts in address.items():
        if key == table.VIEW:
            continue
        if key not in known or known[key].name in KEPT:
            wrong.append(f"The view “{view.label}” of the page “{table.place_of(view.key)}” has no “{key}”.")
            continue
        try:
            value = known[key].parse(texts)
        except (ValueError, UserError) as problem:
            wrong.append(f"“{key}={', '.join(texts)[:60]}” is not possible: {str(problem).rstrip('.')}.")
            continue
        if value == known[key].default and key != "s":  # a file names its sentences even if they are the default
            wrong.append(f"“{key}={', '.join(texts)[:60]}” is what the page shows without it: leave it out.")
    return wrong
