"""A lesson to print: text, pictures and questions, a new sheet after each question, and the answers on their own."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape

from components.lessons.lesson import Lesson, Scene
from components.markup import to_html

_STYLE = """
@page { size: A4; margin: 18mm 16mm; }
body { font: 11pt/1.45 Georgia, "Times New Roman", serif; color: #000; background: #fff; }
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 20pt; margin: 0 0 .2rem; } h2 { font-size: 13pt; margin: 1.4rem 0 .3rem; break-after: avoid; }
.facts, .sentences, figcaption { color: #444; font-size: 9.5pt; } p { margin: .4rem 0; }
figure { margin: .6rem 0; break-inside: avoid; } figure img { max-width: 100%; max-height: 95mm; border: 1px solid #bbb; }
.question { border-left: 3px solid #555; padding: .1rem 0 .1rem .8rem; margin: .7rem 0; break-inside: avoid; }
.question ul { list-style: none; padding: 0; margin: .3rem 0; } .question li::before { content: "\\2610\\00a0\\00a0"; }
.answers, .next { break-before: page; } a { color: #000; word-break: break-all; } code { font-size: 10pt; }
@media print { body { margin: 0; padding: 0; max-width: none; } }
"""


def handout(lesson: Lesson, links: Mapping[tuple[int, int], str], pictures: Mapping[tuple[int, int], bytes]) -> str:
    """A page of HTML that needs no other file.

    `links` and `pictures` (PNG) are by step and scene: (2, 0) is the second step's own scene, (2, 1) the one of its answer.
    """
    title = escape(lesson.title)
    parts = [
        f"<h1>{title}</h1>",
        f'<p class="facts">{escape(lesson.question)} About {lesson.minutes} minutes, {escape(lesson.level)}.</p>',
    ]
    answers = []
    for number, step in enumerate(lesson.steps, 1):
        # What follows a question can answer it: it stands on the next sheet.
        follows_question = number > 1 and lesson.steps[number - 2].question is not None
        place = ' class="next"' if follows_question else ""
        parts.append(f"<h2{place}>{number}. {escape(step.title)}</h2>")
        parts.append(to_html(step.text))
        parts.append(_figure(step.scene, links.get((number, 0)), pictures.get((number, 0))))
        question = step.question
        if question is None:
            continue
        choices = "".join(f"<li>{escape(choice)}</li>" for choice in question.choices)
        parts.append(f'<div class="question"><b>{escape(question.text)}</b><ul>{choices}</ul></div>')
        right = "" if question.right is None else f"<p><b>{escape(question.choices[question.right])}</b></p>"
        figure = ""
        if question.scene is not None:
            figure = _figure(question.scene, links.get((number, 1)), pictures.get((number, 1)))
        answers.append(f"<h2>Step {number}: {escape(question.text)}</h2>{right}{to_html(question.answer)}{figure}")
    if answers:
        parts.append(f'<section class="answers"><h1>Answers</h1>{"".join(answers)}</section>')
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _figure(scene: Scene, link: str | None, picture: bytes | None) -> str:
    sentences = "".join(f"<li>{escape(text)}</li>" for text in scene.sentences)
    listed = f'<ol class="sentences">{sentences}</ol>' if sentences else ""
    page = scene.page.capitalize()
    image = ""
    if picture is not None:
        data = base64.b64encode(picture).decode("ascii")
        image = f'<img alt="The {escape(page)} page in this step" src="data:image/png;base64,{data}">'
    caption = f"The page {escape(page)}" + (f": <a href={_quoted(link)}>{escape(link)}</a>" if link else "")
    return f"{listed}<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _quoted(text: str) -> str:
    return f'"{escape(text, quote=True)}"'
