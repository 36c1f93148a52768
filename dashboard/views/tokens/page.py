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
        sections.unusual(backend, sentences)
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
    "A tokenizer cuts text into pieces it knows and gives each its number. The model sees only these numbers; "
    "what the vocabulary lacks it never sees.",
    VIEWS,
    _view,
    "drawing the tokens",
    of_sentences=True,
)
