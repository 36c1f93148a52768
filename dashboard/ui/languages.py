"""Lines above what is computed from texts in a language that a model does not know, or without spaces between words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components.analysis.languages.known_letters import in_words, together
from components.errors import UserError
from components.model.catalog import EMBEDDED_KEY
from components.numbers import enumerated
from components.words.unicode_words import has_pairs, has_spaced_words
from dashboard import caching
from dashboard.ui.messages import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus

NAMED = 4  # sentences by their numbers


def say_of_sentences(backends: Sequence[Backend], texts: Sequence[str]) -> None:
    """Say of which sentences a model does not know the language; nothing for others. One line for each model."""
    for backend in backends:
        try:
            found = [caching.known_letters(backend, text) for text in texts]
        except UserError:  # of a tokenizer that fails on a text: the view, which reads it too, says so
            continue
        rows = [row for row, letters in enumerate(found, start=1) if letters.is_far_above]
        if rows:
            _say(backend, together(found[row - 1] for row in rows).share, _named(rows, len(texts)))


def say_pieces_are_words(texts: Sequence[str]) -> None:
    """Say of which sentences the words cannot be told, because their script has no spaces, so that pieces stand for them."""
    rows = [row for row, text in enumerate(texts, start=1) if has_pairs(text)]
    if rows:
        named = _named(rows, len(texts))
        are_mixed = any(has_spaced_words(texts[row - 1]) for row in rows)
        what = "parts with no spaces between words; in these" if are_mixed else "no spaces between words:"
        verb = "have" if named.endswith("sentences") or named.startswith("sentences") else "has"
        st.caption(f"{named[0].upper()}{named[1:]} {verb} {what} each piece of the tokenizer stands for a word.")


def is_unknown(backend: Backend, text: str) -> bool:
    """Whether a model does not know the language of a text, as far as its letters tell."""
    try:
        return caching.known_letters(backend, text).is_far_above
    except UserError:  # as above
        return False


def say_of_corpus(backends: Sequence[Backend], corpus: Corpus, query: str = "") -> None:
    """The same of a corpus as a whole and of a query, in one line for each model."""
    for backend in backends:
        try:
            found = {
                f"“{escape(corpus.name[:60])}”": caching.known_letters_of_corpus(
                    backend, corpus.content_hash, corpus.texts
                ),
                "the query": caching.known_letters(backend, query),
            }
        except UserError:  # as above
            continue
        unknown = {of: letters for of, letters in found.items() if letters.is_far_above}
        if unknown:
            _say(backend, together(unknown.values()).share, " and of ".join(unknown))


def _say(backend: Backend, share: float, of: str) -> None:
    said = in_words(f"**{escape(backend.spec.title)}**", share, of, backend.spec.key == EMBEDDED_KEY)
    st.markdown(f":orange[:material/translate:] {said}")


def _named(rows: Sequence[int], count: int) -> str:
    if len(rows) == count:
        return "the sentence" if count == 1 else "the sentences"
    if len(rows) > NAMED:
        return f"{len(rows)} of the {count} sentences"
    return f"sentence{'s' if len(rows) > 1 else ''} {enumerated([str(row) for row in rows])}"
