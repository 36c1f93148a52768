"""Tokens: how text becomes the numbers a model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.ui import controls, messages
from dashboard.views.tokens import sections

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "pieces": "Pieces",
    "tensors": "Input tensors",
    "decoding": "Back to text",
    "vocabulary": "Vocabulary",
    "compare": "Another tokenizer",
}


def _view(backend: Backend, view: str) -> None:
    sentences = controls.current_tokens(backend)
    if view == "pieces":
        messages.truncation(sentences)
        sections.unusual_characters(backend, sentences)
        sections.pieces(backend, sentences)
        sections.statistics(backend, sentences)
    elif view == "tensors":
        sections.tensors(backend, sentences)
    elif view == "decoding":
        sections.decoding(backend, sentences)
        sections.special_tokens(backend)
    elif view == "vocabulary":
        sections.vocabulary(backend)
    else:
        sections.another_tokenizer(backend, sentences)


navigation.show(
    "tokens",
    "A tokenizer splits text into pieces of its vocabulary and gives each piece its number. The model sees only these "
    "numbers. It never sees text that the vocabulary cannot express.",
    VIEWS,
    _view,
    "drawing the tokens",
    needs_sentences=True,
)
