"""Words that are written from right to left in a sentence: isolated, so that they do not reverse the numbers beside them."""

from __future__ import annotations

import re
import unicodedata

_FIRST, _LAST = "\u2068", "\u2069"  # FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE of Unicode
_QUOTED = re.compile("“([^“”]*)”")


def isolated(text: str) -> str:
    """The text; isolated if one of its letters is written from right to left and it is not yet."""
    if not text.startswith(_FIRST) and any(unicodedata.bidirectional(letter) in {"R", "AL"} for letter in text):
        return f"{_FIRST}{text}{_LAST}"
    return text


def with_isolated_quotes(sentence: str) -> str:
    """A sentence in which whatever stands in “quotation marks” is isolated where it needs it."""
    if sentence.isascii():
        return sentence
    return _QUOTED.sub(lambda found: f"“{isolated(found[1])}”", sentence)
