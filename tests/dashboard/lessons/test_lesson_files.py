"""Every lesson of assets/lessons: its addresses are the dashboard's, and it says what the pages show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from components.lessons.lesson import Lesson, Scene
from components.lessons.reader import claim_problems, lesson_files, read_lesson, same_keys
from dashboard import ready_made, settings
from dashboard.declared import table
from dashboard.lessons import steps
from tests.support.pages import Open, at_rest, texts

FILES = lesson_files(ready_made.LESSONS)
LESSONS = [lesson for path in FILES if (lesson := read_lesson(path)[0]) is not None]
# A few pages are drawn from random numbers or by threads of their own: their address is checked, not their drawing.
MAPS_BY_UMAP = ("by", "umap")


# View to where lessons show it first: the lesson, the number of the step, and the scene of that step.
FIRST_OF_VIEW = {
    steps.view_of(scene): (lesson.key, number, place)
    for lesson in reversed(LESSONS)
    for number, step in reversed([*enumerate(lesson.steps, 1)])
    for place, scene in reversed([*enumerate(step.scenes)])
    if MAPS_BY_UMAP not in scene.values
}


def scenes() -> Iterator[Any]:
    """Each address once, with all that lessons say of what is shown there."""
    found: dict[tuple[Any, ...], tuple[str, Scene, list[str]]] = {}
    for lesson in LESSONS:
        for number, step in enumerate(lesson.steps, 1):
            for place, scene in enumerate(step.scenes):
                if MAPS_BY_UMAP not in scene.values:
                    name = f"{lesson.key}-{number}{'-answer' if place else ''}"
                    found.setdefault((scene.page, scene.values), (name, scene, []))[2].extend(scene.says)
    for name, scene, says in found.values():
        usual = name.startswith(LESSONS[0].key)  # who goes through a lesson sees the others too, in one session
        yield pytest.param(scene, says, id=name, marks=() if usual else pytest.mark.rare)


def shown(app: AppTest) -> str:
    """All that a page says, without marks of Markdown, and with the texts of our own components."""
    own = [
        text
        for raw in _components(app.main)
        for text in (json.dumps(json.loads(raw), ensure_ascii=False), *_whole(raw))
    ]
    said = "\n".join([texts(app), *(str(table.value) for table in app.table), *own])
    return re.sub(r"[*\\\u2060]", "", said)


def _whole(raw: str) -> list[str]:
    """The texts that a component draws in parts, one word after the other."""
    found: list[str] = []

    def joined(item: dict[str, Any]) -> dict[str, Any]:
        if isinstance(item.get("parts"), list):
            found.append("".join(part["text"] for part in item["parts"] if isinstance(part, dict) and "text" in part))
        return item

    json.loads(raw, object_hook=joined)
    return found


def _components(element: Any) -> Iterator[str]:
    raw = getattr(getattr(element, "proto", None), "json", None)
    if isinstance(raw, str) and raw.startswith(("{", "[")):
        yield raw
    for child in getattr(element, "children", {}).values():
        yield from _components(child)


def test_there_are_lessons_for_every_subject_without_a_problem() -> None:
    problems = same_keys(FILES)
    for path in FILES:
        problems += read_lesson(path, steps.check_address)[1]
    assert [str(problem) for problem in problems] == []
    assert [lesson.key for lesson in LESSONS][:14] == [
        *("ten-minutes", "tokens", "layer-zero", "two-banks", "opposites", "idioms", "heads"),
        *("cls-or-mean", "before-bert"),
        *("one-by-one-or-together", "fine-tuning", "reading-a-map", "negation", "a-sentence-with-a-hole"),
    ]
    assert all(4 <= len(lesson.steps) <= 7 for lesson in LESSONS)
    assert all(sum(step.question is not None for step in lesson.steps) >= 2 for lesson in LESSONS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_lesson_states_holds_for_the_included_model(path: Any, embedded: Any) -> None:
    lesson, _ = read_lesson(path)
    assert lesson is not None
    assert [str(problem) for problem in claim_problems(path, lesson, embedded)] == []


def test_a_lesson_writes_each_number_as_the_measured_one_rounds(embedded: Any) -> None:
    """A claim may differ a little between machines, but its number is rounded once: 0.98487 is 0.98, not 0.99."""
    wrong = [
        f"{lesson.key}: {claim.text}, not {measured}"
        for lesson in LESSONS
        for step in lesson.steps
        for scene in step.scenes
        for claim in scene.claims
        if (measured := claim.misrounded(embedded, scene.sentences))
    ]
    assert wrong == []


@pytest.mark.parametrize(("scene", "says"), scenes())
def test_a_page_shows_what_the_lesson_says_and_keeps_its_address(
    open_page: Open, scene: Scene, says: list[str]
) -> None:
    app = open_page(scene.page, **scene.address)
    if says:
        app = at_rest(app)
    assert not app.exception
    assert not app.error
    assert [item.value for item in app.warning if item.icon == ":material/link_off:"] == []  # a value was refused
    kept = {key: value if isinstance(value, list) else [value] for key, value in app.query_params.items()}
    expected = scene.address
    if scene.sentences == ready_made.ready_made_sets()[settings.DEFAULT_SET].sentences:
        del expected["s"]
    assert kept == expected
    said = shown(app)
    assert [text for text in says if text not in said] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.key)
def test_who_goes_through_a_lesson_sees_what_it_says_at_every_step(open_page: Open, lesson: Lesson) -> None:
    """In one session, from step to step and from question to answer: what was chosen in the step before must not stay."""
    app = open_page("lessons", lesson=lesson.key)
    for number, step in enumerate(lesson.steps, 1):
        for place, scene in enumerate(step.scenes):
            if place:
                app.button(key="lesson_without_guess").click().run()
            if MAPS_BY_UMAP in scene.values:
                continue
            view = steps.view_of(scene)
            app._page_hash = calc_hash(table.place_of(view))  # to which the session has gone
            # The second time as it is when the page is drawn again for whatever reason.
            for _ in range(2 if (lesson.key, number, place) == FIRST_OF_VIEW[view] else 1):
                app = at_rest(app.run()) if scene.says else app.run()
                assert not app.exception
                assert not app.error
                said, where = shown(app), f"step {number}{', answer' if place else ''}"
                assert [text for text in scene.says if text not in said] == [], where
                kept = {key: value if isinstance(value, list) else [value] for key, value in app.query_params.items()}
                assert {key: texts for key, texts in kept.items() if key not in ("lesson", "s")} == {
                    key: texts for key, texts in steps.address_of(scene).items() if key != "s"
                }, where
        if step.question is not None and step.question.scene is None:
            app.button(key="lesson_without_guess").click().run()
        if number < len(lesson.steps):
            app.button(key="lesson_next").click().run()
