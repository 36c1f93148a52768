"""The printed page: it needs no other file, escapes its texts, and has the answers at the end."""

from __future__ import annotations

import base64
import re
from dataclasses import replace

from components.lessons.handout import handout
from components.lessons.lesson import Lesson, Question, Scene, Step

SCENE = Scene("layers", (("s", "A <b> & a cat."),), 1)
QUESTION = Question("Which <one>?", ("first", "second & last"), 1, "The *second* one, `x < y`.", SCENE)
LESSON = Lesson(
    "a", "Cats & dogs", "Why?", 5, "first steps", (Step("One", "Look **here**:\n\n- a\n- b", SCENE, QUESTION),)
)


def test_the_page_has_text_question_and_answers_apart() -> None:
    page = handout(LESSON, {(1, 0): "http://x/layers?v=one-word&s=A&t=1"}, {(1, 1): b"picture"})
    before, answers = page.split('<section class="answers">')
    assert "<h1>Cats &amp; dogs</h1>" in before
    assert "<p>Look <strong>here</strong>:</p><ul><li>a</li><li>b</li></ul>" in before
    assert "Which &lt;one&gt;?" in before
    assert "<li>A &lt;b&gt; &amp; a cat.</li>" in before
    assert '<a href="http://x/layers?v=one-word&amp;s=A&amp;t=1">' in before
    assert "<em>second</em>" not in before
    assert "The <em>second</em> one, <code>x &lt; y</code>." in answers
    assert "<b>second &amp; last</b>" in answers
    assert base64.b64encode(b"picture").decode() in answers


def test_what_follows_a_question_stands_on_the_next_sheet() -> None:
    plain = Step("Two", "Text.", SCENE, None)
    lesson = replace(LESSON, steps=(plain, LESSON.steps[0], plain, plain))
    page = handout(lesson, {}, {})
    assert re.findall(r"<h2( class=\"next\")?>(\d)\.", page) == [
        ("", "1"),
        ("", "2"),
        (' class="next"', "3"),
        ("", "4"),
    ]
    assert ".next { break-before: page; }" in page


def test_the_page_needs_nothing_else() -> None:
    page = handout(LESSON, {}, {(1, 0): b"picture"})
    assert re.findall(r"(?:src|href)=\"(?!data:)", page) == []
    assert "<script" not in page
    assert "@page { size: A4" in page
    assert "break-before: page" in page
