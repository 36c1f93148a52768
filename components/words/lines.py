"""Sentences on one line: where a typed line is divided, and how sentences are written on one so that they are read back."""

from __future__ import annotations

import re
from collections.abc import Sequence

JOINT = " | "  # between sentences that would not be told apart without it
# Only at the first of several marks: else each mark of a long row of them would look at all that follow.
_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]]*\s+(?=[\"'“‘(\[¿¡]*[\w])|(?<=[。！？])\s*(?=\S)")
_OPENING = "\"'“‘([¿¡"
_MOST_WORD = 200  # characters of a word that may be an abbreviation
_KNOWN = {"prof", "fig", "vol", "rev", "gen", "sen", "rep", "approx"}  # abbreviations with vowels
_VOWEL = re.compile(r"[aeiouyà-ÿ]", re.IGNORECASE)


def sentences_in(line: str) -> tuple[str, ...]:
    """The sentences of a line, without the spaces around them.

    A sentence ends at a full stop, a question or exclamation mark before a word that does not begin with a small letter, and
    at a bar. The full stop of an abbreviation ends none: of one without vowels ("Dr.", "J."), with stops of its own ("U.S.",
    "e.g."), or of a few others ("Prof.").
    """
    found = []
    for part in re.split(r"[|\r\n]", line):
        begin = 0
        for end in _END.finditer(part):
            last_word = part[max(begin, end.start() - _MOST_WORD) : end.start() + 1]
            if not (_begins_small(part, end.end()) or _is_abbreviated(last_word)):
                found.append(part[begin : end.end()].strip())
                begin = end.end()
        found.append(part[begin:].strip())
    return tuple(filter(None, found))


def _begins_small(text: str, place: int) -> bool:
    """Whether the first character at a place of a text, after marks that open something, is a small letter."""
    while place < len(text) and text[place] in _OPENING:
        place += 1
    return text[place : place + 1].islower()


def _is_abbreviated(text: str) -> bool:
    """Whether a text ends with an abbreviation and its full stop."""
    word = text.split()[-1].lstrip("\"'“‘([") if text.split() else ""
    letters = word[:-1]
    if not word.endswith("."):
        return False
    if "." in letters or letters.casefold() in _KNOWN:
        return True
    return letters.isalpha() and len(letters) < 4 and (len(letters) == 1 or not _VOWEL.search(letters))


def on_one_line(sentences: Sequence[str]) -> str:
    """The sentences as one line, from which `sentences_in` reads the same ones where they have no bar themselves."""
    plain = " ".join(sentences)
    return plain if sentences_in(plain) == tuple(sentences) else JOINT.join(sentences)
