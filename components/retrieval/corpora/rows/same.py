"""When two texts are the same: for splits, for texts that a demo measures with, and for right and wrong answers."""

from __future__ import annotations

import unicodedata

from components.words.unicode_words import words_and_signs


def normalised(text: str) -> str:
    """The words of a text, folded, and signs such as €: texts are the same if this is equal. A text without both stays."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(words_and_signs(folded)) or folded.strip()
