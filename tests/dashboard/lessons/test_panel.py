"""The panel of the open lesson: opening, predicting, revealing, going on, leaving, and what the address restores."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from components.errors import UserError
from components.lessons.answers import Answers
from components.lessons.lesson import Scene
from dashboard import caching, ready_made, settings
from dashboard.declared import table
from dashboard.lessons import printed, steps
from tests.support.pages import Open, go_to, setting, texts, traces, type_sentences

LESSON = ready_made.lessons()["two-banks"]
QUESTION = LESSON.steps[0].question
assert QUESTION is not None
assert QUESTION.right == 1
ANSWERS_PAGE, QUESTIONS_PAGE = "How does a word's vector change?", "How does text become numbers?"
MARK, OTHER_MARK = "7d444840-9dc0-41d1-b245-5ffdce74fad2", "0b7a1c9e-3f6d-4a52-9d0e-8a1f2b3c4d5e"


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Answers of this test only, each from a person of its own."""
    answers = Answers()
    monkeypatch.setattr(caching, "lesson_answers", lambda: answers)
    return answers


def has(app: AppTest, key: str) -> bool:
    return any(button.key == key for button in app.button)


def answered(app: AppTest, choice: int) -> AppTest:
    """The page after the open question was answered."""
    return app.button(key=f"lesson_choice_two-banks_1_{choice}").click().run()


def marked(app: AppTest, mark: object) -> AppTest:
    """The page after its browser tab sent its mark."""
    app.session_state["lesson_visitor"] = {"mark": mark}
    return app.run()


def reloaded(open_page: Open, app: AppTest, page: str) -> AppTest:
    """The same address in a new session, before the browser has sent the tab's mark."""
    return open_page(page, **{key: app.query_params[key] for key in app.query_params})


def bars(app: AppTest) -> list[int]:
    """The counts that the panel shows."""
    drawn = [item.proto.body for item in app.get("html") if '<div class="bi-counts' in item.proto.body]
    assert len(drawn) == 1
    return [int(count) for count in re.findall(r"<b>(\d+)</b>", drawn[0])]


def test_a_card_for_each_lesson_opens_it_at_its_first_step(open_page: Open) -> None:
    app = open_page("lessons")
    assert not has(app, "lesson_next")
    assert not app.warning
    assert [key for key in ready_made.lessons() if not has(app, f"start_{key}")] == []
    first = next(iter(ready_made.lessons().values()))
    assert first.key == "ten-minutes"
    stations = [button for button in app.button if str(button.key).startswith("station_")]
    assert [button.label for button in stations] == [
        f"**{number}** {step.title}" for number, step in enumerate(first.steps, start=1)
    ]
    app.button(key="start_two-banks").click().run()
    assert not app.exception
    assert setting(app, "lesson") == ("two-banks", 1)
    assert setting(app, "sentences") == LESSON.steps[0].scene.sentences
    assert app.query_params["lesson"] == "two-banks.1"
    assert "One spelling, two things" in [item.value for item in app.subheader]
    assert [item.value for item in app.title] == ["How does text become numbers?"]  # the page of the step
    app = open_page("lessons")
    app.button(key="station_open_4").click().run()
    assert setting(app, "lesson") == ("ten-minutes", 4)


def test_the_answer_is_shown_only_after_a_prediction(open_page: Open) -> None:
    app = open_page("lessons", lesson="two-banks")
    assert QUESTION.answer not in texts(app)
    assert not app.get("plotly_chart")
    choices = [button.label for button in app.button if (button.key or "").startswith("lesson_choice_two-banks_1_")]
    assert choices == list(QUESTION.choices)
    answered(app, 0)  # one click
    assert QUESTION.answer in texts(app)
    assert "The right answer: bank (gave) and bank (raised)." in texts(app)
    assert [item.value for item in app.title] == ["How does a word's vector change?"]  # the page of the answer
    assert round(float(traces(app)["bank (gave) – bank (raised)"][-1]), 2) == 0.92
    assert bars(app) == [1, 0, 0, 0]


def test_the_answer_can_be_seen_without_a_guess_which_counts_nothing(open_page: Open, counted: Answers) -> None:
    app = open_page("lessons", lesson="two-banks")
    app.button(key="lesson_without_guess").click().run()
    assert QUESTION.answer in texts(app)
    assert f"**{QUESTION.choices[QUESTION.right or 0]}**" in texts(app)
    assert [item.value for item in app.title] == [ANSWERS_PAGE]
    assert counted.counts(("two-banks", 1, ""), 4) == (0, 0, 0, 0)
    assert not has(app, "lesson_change")
    app.button(key="lesson_guess").click().run()  # after all
    assert QUESTION.answer not in texts(app)
    assert [item.value for item in app.title] == [QUESTIONS_PAGE]
    answered(app, 1)
    assert bars(app) == [0, 1, 0, 0]


def test_an_answer_stays_until_it_is_changed_and_counts_once(open_page: Open, counted: Answers) -> None:
    app = answered(open_page("lessons", lesson="two-banks"), 0)
    app.button(key="lesson_next").click().run()
    app.button(key="lesson_back").click().run()
    assert [item.value for item in app.title] == [ANSWERS_PAGE]
    assert QUESTION.answer in texts(app)
    assert bars(app) == [1, 0, 0, 0]
    assert "You are on another page" not in texts(app)
    app.button(key="lesson_change").click().run()
    assert QUESTION.answer not in texts(app)
    assert [item.value for item in app.title] == [QUESTIONS_PAGE]  # an open question stands beside its own scene
    assert has(app, "lesson_choice_two-banks_1_0")  # it is asked again
    assert counted.counts(("two-banks", 1, ""), 4) == (0, 0, 0, 0)
    answered(app, 1)
    assert "**Right.**" in texts(app)
    assert bars(app) == [0, 1, 0, 0]


def test_two_sessions_of_a_class_are_counted_together(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"person": ""}
    monkeypatch.setattr(caching, "person", lambda: now["person"])
    for person, class_code, choice in (("ann", "7b", 1), ("bob", "7b", 2), ("eve", "8a", 0)):
        now["person"] = person
        app = answered(open_page("lessons", lesson="two-banks", **{"class": class_code}), choice)
    assert bars(app) == [1, 0, 0, 0]  # eve is alone in her class
    assert "Class 8a." in texts(app)
    now["person"] = "ann"
    app = open_page("lessons", lesson="two-banks", **{"class": "7b"})
    assert bars(app) == [0, 1, 1, 0]
    shown = "".join(item.proto.body for item in app.get("html")) + texts(app)
    assert "bob" not in shown


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Says which session it is: AppTest gives all of them one id."""

    def now(name: str) -> None:
        monkeypatch.setattr(caching, "person", lambda: name)

    now("first session")
    return now


def test_after_a_reload_an_answer_is_still_the_tabs_own(open_page: Open, sessions: Callable[[str], None]) -> None:
    app = marked(open_page("lessons", lesson="two-banks"), MARK)
    answered(app, 0)
    for number in range(3):
        sessions(f"reload {number}")
        app = marked(reloaded(open_page, app, "layers"), MARK)
        assert "The right answer: bank (gave) and bank (raised)." in texts(app)
        assert [item.value for item in app.title] == [ANSWERS_PAGE]
        assert not app.radio
        assert bars(app) == [1, 0, 0, 0]
    sessions("another tab")
    other = marked(open_page("lessons", lesson="two-banks"), OTHER_MARK)
    assert QUESTION.answer not in texts(other)
    assert bars(answered(other, 1)) == [1, 1, 0, 0]


def test_an_answer_before_the_mark_is_known_counts_once(open_page: Open, sessions: Callable[[str], None]) -> None:
    app = answered(open_page("lessons", lesson="two-banks"), 0)
    assert bars(marked(app, MARK)) == [1, 0, 0, 0]
    sessions("reload")
    app = open_page("lessons", lesson="two-banks")
    answered(app, 1)  # faster than the browser: the question was still open
    assert bars(app) == [1, 1, 0, 0]
    assert bars(marked(app, MARK)) == [0, 1, 0, 0]
    assert "**Right.**" in texts(app)
    app.button(key="lesson_next").click().run()
    app.button(key="lesson_back").click().run()
    assert bars(app) == [0, 1, 0, 0]


def test_what_is_no_mark_is_ignored(open_page: Open, counted: Answers) -> None:
    app = open_page("lessons", lesson="two-banks")
    for mark in (None, "", "ann", MARK.upper(), MARK + "\n", MARK.replace("-", ""), [MARK], 7, {"mark": MARK}):
        marked(app, mark)
        assert not app.exception, mark
        assert "_visitor" not in app.session_state, mark
    answered(app, 0)
    assert not app.exception
    assert counted.of_person(("two-banks", 1, ""), "test session id") == 0
    assert "_visitor" not in app.session_state


def test_a_session_keeps_its_first_mark(open_page: Open, counted: Answers) -> None:
    app = answered(marked(open_page("lessons", lesson="two-banks"), MARK), 0)
    assert bars(marked(app, OTHER_MARK)) == [1, 0, 0, 0]
    assert counted.of_person(("two-banks", 1, ""), MARK) == 0
    assert counted.of_person(("two-banks", 1, ""), OTHER_MARK) is None


def test_a_short_link_opened_again_shows_the_answers_scene(open_page: Open, sessions: Callable[[str], None]) -> None:
    answered(marked(open_page("lessons", lesson="two-banks"), MARK), 0)
    sessions("the link again")
    app = open_page("tokens", lesson="two-banks.1", **LESSON.steps[0].scene.address)  # where a short link leads
    assert [item.value for item in app.title] == [QUESTIONS_PAGE]
    marked(app, MARK)
    assert [item.value for item in app.title] == [ANSWERS_PAGE]
    assert QUESTION.answer in texts(app)


def test_the_link_of_somebody_who_had_answered_shows_the_questions_scene(
    open_page: Open, sessions: Callable[[str], None]
) -> None:
    app = answered(marked(open_page("lessons", lesson="two-banks"), MARK), 0)
    assert [item.value for item in app.title] == [ANSWERS_PAGE]
    sessions("somebody else")
    other = marked(reloaded(open_page, app, "layers"), OTHER_MARK)
    assert [item.value for item in other.title] == [QUESTIONS_PAGE]
    assert has(other, "lesson_choice_two-banks_1_0")


def test_next_and_back_set_what_the_page_shows(open_page: Open) -> None:
    app = open_page("lessons", lesson="two-banks")
    app.button(key="lesson_next").click().run()
    assert setting(app, "lesson") == ("two-banks", 2)
    assert "bank (gave) – bank (river)" in traces(app)
    assert app.query_params["lesson"] == "two-banks.2"
    app.button(key="lesson_back").click().run()
    assert setting(app, "lesson") == ("two-banks", 1)
    assert not app.get("plotly_chart")
    assert app.button(key="lesson_back").disabled


def test_who_has_wandered_off_comes_back(open_page: Open) -> None:
    app = open_page("lessons", lesson="two-banks.2")
    app.session_state["sentences"] = ("Something else.",)
    go_to(app, "model")
    assert "You are on another page than this step." in texts(app)
    assert app.query_params["lesson"] == "two-banks.2"  # it stays on all pages
    app.button(key="lesson_again").click().run()
    assert setting(app, "sentences") == LESSON.steps[1].scene.sentences
    assert "bank (gave) – bank (river)" in traces(app)
    assert "You are on another page" not in texts(app)


def test_own_sentences_can_be_brought_back(open_page: Open) -> None:
    app = open_page("layers", s=["My own sentence.", "Another one of mine."])
    go_to(app, "lessons")
    app.button(key="start_two-banks").click().run()
    assert "The lesson's sentences are now in place of your 2 sentences" in texts(app)
    app.button(key="bring_back").click().run()
    assert setting(app, "sentences") == ("My own sentence.", "Another one of mine.")


def test_the_lessons_own_sentences_are_not_called_the_persons(open_page: Open) -> None:
    """A step may open a page without sentences; those of the step before then stay, and are still the lesson's."""
    lesson = ready_made.lessons()["one-by-one-or-together"]
    app = open_page("lessons", lesson=lesson.key)
    app.button(key="lesson_next").click().run()
    app.button(key=f"lesson_choice_{lesson.key}_2_1").click().run()
    assert [item.value for item in app.title] == ["What is a cross-encoder given?"]
    app.button(key="lesson_next").click().run()
    assert setting(app, "sentences") == lesson.steps[2].scene.sentences
    assert "in place of" not in texts(app)
    assert not has(app, "bring_back")


def test_after_a_reload_the_lessons_sentences_are_still_the_lessons(open_page: Open) -> None:
    app = open_page("layers", lesson="two-banks.2", **LESSON.steps[1].scene.address)
    for _ in range(len(LESSON.steps) - 2):
        app.button(key="lesson_next").click().run()
        assert "in place of" not in texts(app)
    assert not has(app, "bring_back")


def test_the_sentences_of_lessons_are_written_as_a_session_keeps_them() -> None:
    """Else ready_made.is_ready_made would not know them again."""
    found = [
        scene.sentences for lesson in ready_made.lessons().values() for step in lesson.steps for scene in step.scenes
    ]
    assert len(found) > 50
    assert [texts for texts in found if settings.clean_sentences(list(texts)) != texts] == []


@pytest.mark.parametrize("way_out", ["lesson_leave", "lesson_finish"])
def test_leaving_brings_back_own_sentences(open_page: Open, way_out: str) -> None:
    own = ("My own sentence.", "Another one of mine.")
    app = open_page("layers", s=list(own), lesson=f"two-banks.{len(LESSON.steps)}")
    app.button(key="lesson_back").click().run()
    assert setting(app, "sentences") == LESSON.steps[-2].scene.sentences
    app.button(key="lesson_next").click().run()
    go_to(app, "layers")
    app.button(key=way_out).click().run()
    assert setting(app, "sentences") == own
    assert "Your 2 sentences are back." in texts(app)
    assert not has(app, "bring_back")


def test_leaving_keeps_what_was_typed_in_the_lesson(open_page: Open) -> None:
    app = open_page("layers", s="My own sentence.", lesson="two-banks.1")
    app.button(key="lesson_next").click().run()
    type_sentences(app, "Typed in the lesson.")
    app.button(key="lesson_leave").click().run()
    assert setting(app, "sentences") == ("Typed in the lesson.",)
    assert "back." not in texts(app)
    app.button(key="bring_back").click().run()
    assert setting(app, "sentences") == ("My own sentence.",)


def test_leaving_does_not_undo_what_a_pair_replaced(open_page: Open) -> None:
    """The person had put the pair there, outside the lesson; only what a lesson took away comes back by itself."""
    app = open_page("layers", s="My own sentence.")
    app.session_state["_own_sentences"] = ("My own sentence.",)
    app.session_state["_own_sentences_for"] = "This pair is now in place of"
    app.session_state["_put_sentences"] = app.session_state["sentences"] = ("one", "two")
    go_to(app, "lessons")
    app.button(key="start_two-banks").click().run()
    app.button(key="lesson_leave").click().run()
    assert setting(app, "sentences") == LESSON.steps[0].scene.sentences


def test_leaving_closes_the_panel_and_keeps_the_page(open_page: Open) -> None:
    app = open_page("layers", lesson="two-banks.2", **LESSON.steps[1].scene.address)
    app.button(key="lesson_leave").click().run()
    assert not has(app, "lesson_next")
    assert "lesson" not in app.query_params
    assert "bank (gave) – bank (river)" in traces(app)


def test_the_last_step_finishes(open_page: Open) -> None:
    app = open_page("lessons", lesson=f"two-banks.{len(LESSON.steps)}")
    assert not has(app, "lesson_next")
    app.button(key="lesson_finish").click().run()
    assert not has(app, "lesson_finish")


def test_what_a_finished_lesson_has_shown_is_said_and_what_comes_next(open_page: Open) -> None:
    app = open_page("lessons", lesson=f"two-banks.{len(LESSON.steps)}")
    asked = [
        (number, step.question)
        for number, step in enumerate(LESSON.steps, start=1)
        if step.question is not None and step.question.right is not None
    ]
    given = {("two-banks", number): question.right for number, question in asked}
    given["two-banks", asked[0][0]] = (int(asked[0][1].right or 0) + 1) % len(asked[0][1].choices)
    app.session_state["_lesson_answers"] = given
    app.button(key="lesson_finish").click().run()
    said = texts(app)
    assert f"Finished: {LESSON.title}" in said
    assert all(f"- {step.title}" in said for step in LESSON.steps)
    assert " right." not in said  # guesses are no points
    assert f"{len(asked) - 1} of {len(asked)}" not in said
    keys = list(ready_made.lessons())
    following = ready_made.lessons()[keys[keys.index("two-banks") + 1]]
    assert app.button(key="next_lesson").label == f"Next: {following.title}"
    app.button(key="next_lesson").click().run()
    assert setting(app, "lesson") == (following.key, 1)
    assert "Finished" not in texts(app)


def test_what_is_said_of_a_finished_lesson_can_be_closed(open_page: Open) -> None:
    app = open_page("lessons", lesson=f"two-banks.{len(LESSON.steps)}")
    app.button(key="lesson_finish").click().run()
    app.button(key="finished_close").click().run()
    assert "Finished" not in texts(app)
    go_to(app, "lessons")
    assert "assets/lessons" not in texts(app)  # a visitor is told of no files


def test_the_address_of_a_step_restores_it_in_a_new_session(open_page: Open) -> None:
    app = open_page("lessons", lesson="two-banks.3", **{"class": "7b"})
    address = {key: app.query_params[key] for key in app.query_params}
    assert address["lesson"] == "two-banks.3"
    assert address["class"] == "7b"
    again = open_page(LESSON.steps[2].scene.page, **address)
    assert not again.warning
    assert LESSON.steps[2].title in [item.value for item in again.subheader]
    assert {key: again.query_params[key] for key in again.query_params} == address


def test_an_unknown_lesson_is_refused_with_a_notice(open_page: Open) -> None:
    (lesson,) = (setting for setting in table.SETTINGS if setting.short == "lesson")
    unknown = ("no-such-lesson", "two-banks.0", "two-banks.99", "two-banks.x", "../two-banks")
    for value in unknown:
        with pytest.raises((ValueError, UserError)):
            lesson.parse([value])
    for value in unknown[:2]:
        app = open_page("layers", lesson=value)
        assert "was ignored" in app.warning[0].value
        assert not has(app, "lesson_next")


def test_a_class_code_has_no_other_characters(open_page: Open) -> None:
    app = open_page("lessons")
    app.text_input(key="w_class_code_of_page").set_value(" 7B Monday <b> ").run()
    assert setting(app, "class_code") == "7b-monday-b"
    assert "was ignored" in open_page("layers", **{"class": "<b>"}).warning[0].value


def test_the_check_of_addresses_knows_the_pages(open_page: Open) -> None:
    def wrong(page: str, *values: tuple[str, str]) -> list[str]:
        return steps.check_address(Scene(page, values, 1))

    assert wrong("layers", ("s", "A dog."), ("view", "sentences")) == []
    assert wrong("nowhere")[0].startswith("There is no page “nowhere” for a step; choose one of diagnose, inside,")
    assert wrong("layers", ("v", "one-word"), ("h", "3")) == ["The view “One word” of the page “meaning” has no “h”."]
    assert wrong("layers", ("lesson", "two-banks.1")) == ["The view “One word” of the page “meaning” has no “lesson”."]
    for key in ("v", "view"):
        assert wrong("layers", (key, "all")) == ["There is no view “all”."]
    assert wrong("layers", ("v", "one-word"), ("t", "1")) == []


def test_the_handout_links_to_every_step() -> None:
    page = printed.page(LESSON, "http://127.0.0.1:8501").decode()
    for number, step in enumerate(LESSON.steps, 1):
        assert step.title in page
        assert f'<a href="http://127.0.0.1:8501/lessons?lesson=two-banks.{number}">' in page
        assert printed.picture_path(step.scene).exists()
    assert page.count("data:image/png;base64,") == sum(len(step.scenes) for step in LESSON.steps)


def test_home_offers_them(open_page: Open) -> None:
    assert has(open_page("home"), f"start_{next(iter(ready_made.lessons()))}")


def test_the_page_of_lessons_opens_beside_an_open_lesson(open_page: Open) -> None:
    app = open_page("lessons", lesson="two-banks")
    go_to(app, "lessons")
    assert not app.exception  # the panel and the page each have a field for the class's code
    assert has(app, "lesson_next")
    app.text_input(key="w_class_code_of_page").set_value("7b").run()
    assert app.text_input(key="w_class_code").value == "7b"
