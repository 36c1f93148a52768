"""The words of a text as a person typed them: what stands between two spaces, without the punctuation around it.

"doesn't", "workers'", "lie-detector" and "3.5" are one word each; a word with its apostrophe or hyphen is not taken apart. An
apostrophe after "s", or in place of letters that are not spoken ("goin'", "ol'"), belongs to its word unless it closes a
quotation. In a script without spaces between words each letter is one, with its marks. These are words to click on or to leave
out; which words are the same is decided by components.words.unicode_words, and tokenizers cut texts in other ways
(components.model.tokenization).
"""

from __future__ import annotations

import re
import unicodedata

import regex

from components.words.unicode_words import has_pairs, parts

RUN = re.compile(r"\S+")
_ABBREVIATION = regex.compile(r"(?:\w\p{M}*+\.)++\w\p{M}*+")  # its last full stop belongs to it: "U.S.", "p.m."
# The apostrophe before these opens nothing: "the '90s", "'em".
_OPENS_NOTHING = re.compile(r"\d\ds|tis|twas|em|til|cause|bout|round", re.IGNORECASE)
_ELIDED = re.compile(r"\w+in|ol|lil|an|th|wi|o", re.IGNORECASE)  # the apostrophe after these can stand for letters
_OF_WORDS = "%#@&"  # punctuation by Unicode, but part of a word: "50%", "C#", "@name"
CLOSING = {"(": ")", "[": "]", "{": "}", "“": "”", "„": "“", "‘": "’", "«": "»", '"': '"', "'": "'"}
_OPENED_BY = {")": "(", "]": "[", "}": "{"}


def typed_words(text: str) -> tuple[tuple[int, int], ...]:
    """The spans of characters of a text's words, from left to right; a run without a letter or digit is no word."""
    spans = []
    quotations = 0  # in single marks, open at this place
    for run in RUN.finditer(text):
        start, end = _inner(text, *run.span())
        if not any(character.isalnum() for character in text[start:end]):
            continue
        if not _OPENS_NOTHING.fullmatch(text, start, end):
            quotations += sum(character in "'‘" for character in text[run.start() : start])
        closing = sum(character in "'’" for character in text[end : run.end()])
        can_belong = text[end - 1] in "sS" or _ELIDED.fullmatch(text, start, end)
        if closing and not quotations and text[end] in "'’" and can_belong:
            end += 1
        quotations = max(0, quotations - closing)
        is_divided = has_pairs(text[start:end])
        divided = [_inner(text, *part) for part in parts(text, start, end)] if is_divided else [(start, end)]
        spans += [(first, last) for first, last in divided if any(map(str.isalnum, text[first:last]))]
    return tuple(spans)


def is_open(text: str, closing: str) -> bool:
    """Whether a mark of CLOSING that comes next would close a bracket or quotation of a text."""
    opening = {first for first, last in CLOSING.items() if last == closing}
    if closing in ")]}":  # they also stand within words
        return sum(map(text.count, opening)) > text.count(closing)
    opening.add(closing)  # ”Swedish” and "typewriters" have one mark for both
    count = 0
    for run in RUN.finditer(text):
        start, end = _inner(text, *run.span())
        count += sum(character in opening for character in text[run.start() : start])
        count = max(0, count - text[end : run.end()].count(closing))
    return count > 0


def _inner(text: str, start: int, end: int) -> tuple[int, int]:
    """A run of characters without the punctuation around it."""
    last = end
    while start < end and _is_outside(text[start]):
        start += 1
    opened: dict[str, int] = {}  # where each bracket is opened first, looked for once: the run may be very long
    while start < end and _is_outside(text[end - 1]):
        opening = _OPENED_BY.get(text[end - 1])
        if opening is not None:  # one that closes a bracket within the word, as in "word(s)", belongs to it
            if opening not in opened:
                opened[opening] = text.find(opening, start, end)
            if 0 <= opened[opening] < end:
                break
        end -= 1
    if end < last and text[end] == "." and _ABBREVIATION.fullmatch(text, start, end):
        end += 1
    return start, end


def _is_outside(character: str) -> bool:
    return unicodedata.category(character).startswith("P") and character not in _OF_WORDS
