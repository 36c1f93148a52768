"""What each view of pieces draws: of each sentence alone, or of two that are read as one input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.ui import controls, messages
from dashboard.views.tokens import sections, together

if TYPE_CHECKING:
    from components.model.backend import Backend


def pieces(backend: Backend) -> None:
    """The pieces as chips, what is unusual about their characters, and counts."""
    if together.is_chosen():
        together.pieces(backend)
        return
    sentences = controls.current_tokens(backend)
    sections.pieces(backend, sentences)
    sections.unusual_characters(backend, sentences)
    messages.truncation(sentences)
    sections.statistics(backend, sentences)


def tensors(backend: Backend) -> None:
    """The numbers that the model reads."""
    if together.is_chosen():
        together.tensors(backend)
        return
    sections.tensors(backend, controls.current_tokens(backend), controls.current_input(backend))


def decoding(backend: Backend) -> None:
    """What decoding the ids gives, and the special tokens."""
    if together.is_chosen():
        together.decoding(backend)
        return
    sections.decoding(backend, controls.current_tokens(backend))
    sections.special_tokens(backend)


def vocabulary(backend: Backend) -> None:
    """A search in the vocabulary."""
    sections.vocabulary(backend)


def two_tokenizers(backend: Backend) -> None:
    """The same sentences split by another tokenizer."""
    sections.another_tokenizer(backend, controls.current_tokens(backend))
