"""The words of a text as a person typed them: what stands between two spaces, without the punctuation around it.

"doesn't", "lie-detector" and "3.5" are one word each; a word with its apostrophe or hyphen is not taken apart. Word rankings
and tokenizers cut texts in other ways (components.retrieval.search.words, components.model.tokenization).
"""

from __future__ import annotations

import re
import unicodedata

RUN = re.compile(r"\S+")
_ABBREVIATION = re.compile(r"(?:\w\.)+\w")  # its last full stop belongs to it: "U.S.", "p.m."
_OF_WORDS = "%#@&"  # punctuation by Unicode, but part of a word: "50%", "C#", "@name"
CLOSING = {"(": ")", "[": "]", "{": "}", "“": "”", "„": "“", "‘": "’", "«": "»", '"': '"', "'": "'"}


def typed_words(text: str) -> tuple[tuple[int, int], ...]:
    """The spans of characters of a text's words, from left to right; a run without a letter or digit is no word."""
    spans = []
    for run in RUN.finditer(text):
        start, end = run.span()
        while start < end and _is_outside(text[start]):
            start += 1
        while start < end and _is_outside(text[end - 1]) and not _closes(text[start:end]):
            end -= 1
        if end < run.end() and text[end] == "." and _ABBREVIATION.fullmatch(text, start, end):
            end += 1
        if any(character.isalnum() for character in text[start:end]):
            spans.append((start, end))
    return tuple(spans)


def _is_outside(character: str) -> bool:
    return unicodedata.category(character).startswith("P") and character not in _OF_WORDS


def _closes(word: str) -> bool:
    """Whether a word's last character closes a bracket within it, as in "word(s)"."""
    opening = next((first for first, last in CLOSING.items() if last == word[-1] and first in "([{"), None)
    return opening is not None and opening in word
