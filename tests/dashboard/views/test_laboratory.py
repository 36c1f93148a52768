"""The Laboratory: its list of views, and the field that finds a view by the question it answers."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.declared import table
from dashboard.views.laboratory import overview
from tests.support.pages import Open, setting, settled, texts

# A question in other words than those of the views, and the view that answers it.
ASKED = {
    "how many weights does it have?": "model-facts",
    "does the word bank mean two things here?": "word-senses",
    "is the opposite of a sentence seen as different?": "known-failures",
    "why did my query not find the right document?": "failed-search",
    "which texts in my collection are nearly the same?": "similar-pairs",
    "is a cross-encoder worth its time?": "retrieve-rerank",
    "where does the model look from this word?": "attention-matrix",
    "how is a sentence cut into pieces?": "pieces",
    "do GPT and BERT split words in the same way?": "two-tokenizers",
    "what changes in a model by fine-tuning?": "before-after",
    "what does it get wrong": "known-failures",
    "mistakes of BERT": "known-failures",
    "filling in blanks": "mask-token",
}


def opened(app: AppTest) -> list[str]:
    """The views for which there is a card, in their order."""
    return [str(button.key).removeprefix("open_") for button in app.button if str(button.key).startswith("open_")]


def ask(open_page: Open, question: str, **address: str) -> list[str]:
    app = settled(open_page("laboratory", ask=question, **address))
    assert not app.exception
    assert not app.error
    return opened(app)


def test_without_a_question_it_lists_what_stands_there(open_page: Open) -> None:
    app = open_page("laboratory")
    assert opened(app) == [view.key for view in table.views_of("laboratory")[1:]]
    said = texts(app)
    assert all(view.question in said for view in table.views_of("laboratory")[1:])


def test_a_card_opens_its_view(open_page: Open) -> None:
    app = open_page("laboratory")
    app.button(key="open_neuron-view").click().run()
    assert setting(app, "laboratory_view") == "neuron-view"


def test_most_questions_in_other_words_find_their_view(open_page: Open) -> None:
    found = {question: ask(open_page, question) for question in ASKED}
    right = [question for question, view in ASKED.items() if view in found[question]]
    assert all(0 < len(views) <= overview.MOST_FOUND for views in found.values())
    assert len(right) >= 0.7 * len(ASKED), {question: found[question] for question in ASKED if question not in right}


@pytest.mark.parametrize("question", overview.EXAMPLES)
def test_an_example_is_asked_by_a_click(open_page: Open, question: str) -> None:
    app = open_page("laboratory")
    app.button(key=f"ask_{overview.EXAMPLES.index(question)}").click()
    assert opened(settled(app.run()))
    assert app.query_params["ask"] in (question, [question])


def test_nonsense_finds_nothing_and_says_so(open_page: Open) -> None:
    app = settled(open_page("laboratory", ask="zxqv wvut"))
    assert opened(app) == []
    assert "No view's question comes close" in texts(app)


def test_what_is_found_does_not_depend_on_the_model(open_page: Open, tiny_folder: Any) -> None:
    question = next(iter(ASKED))
    assert ask(open_page, question, m=str(tiny_folder("bert"))) == ask(open_page, question)
