"""Tokens: how text becomes the numbers a model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.ui import controls, messages
from dashboard.views.tokens import sections, together

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "pieces": navigation.View(
        "Pieces",
        "How does text become numbers?",
        "A tokenizer splits text into pieces of its vocabulary. The model sees only their ids.",
    ),
    "tensors": navigation.View(
        "Input tensors",
        "What exactly does the model read?",
        "Each sentence becomes rows of numbers: ids, token types and the attention mask.",
    ),
    "decoding": navigation.View(
        "Back to text",
        "Can the ids be turned back into the text?",
        "What decoding returns, and what of the text is lost on the way.",
    ),
    "vocabulary": navigation.View(
        "Vocabulary",
        "Which pieces does the tokenizer know?",
        "Everything that the model can read is built from these pieces.",
    ),
    "compare": navigation.View(
        "Another tokenizer",
        "How do two tokenizers split the same text?",
        "Coloured rows are split differently. A model works only with the tokenizer it was trained with.",
    ),
}


def _view(backend: Backend, view: str) -> None:
    if view == "vocabulary":
        sections.vocabulary(backend)
        return
    if messages.no_sentences():
        return
    if view in together.DRAW and together.is_chosen():
        together.DRAW[view](backend)
        return
    sentences = controls.current_tokens(backend)
    if view == "pieces":
        sections.pieces(backend, sentences)
        sections.unusual_characters(backend, sentences)
        messages.truncation(sentences)
        sections.statistics(backend, sentences)
    elif view == "tensors":
        sections.tensors(backend, sentences, controls.current_input(backend))
    elif view == "decoding":
        sections.decoding(backend, sentences)
        sections.special_tokens(backend)
    else:
        sections.another_tokenizer(backend, sentences)


navigation.show(
    "tokens",
    VIEWS,
    _view,
    "drawing the tokens",
)
