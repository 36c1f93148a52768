"""The scores that people gave to pairs of texts: one rule for the same column, wherever it is read.

- A number is written with a decimal point or a decimal comma ("4.8", "4,8", "−1"), or is one already.
- A value that stands for "unknown" is no score: an empty cell, "-", "n/a", "nan", "null", "?", and −1 where no other value is
  negative and some value is a fraction or above 1, as in published test sets whose scores are kept secret (or where there is
  nothing else). Beside 0 and 1 alone, −1 is a score.
- Everything else is no number, and is shown.

What it cannot know: whether "1,234" means 1.234 or 1234. It is read as 1.234, unless other values of its column have a
decimal point, or every comma of the column may divide thousands and a whole number above 99 stands there: then it is no
number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from components.retrieval.corpora.columns import is_missing
from components.retrieval.corpora.readers.encoding import clean

NO_SCORE = "no score (unknown)"
NO_NUMBER = "the score is not a number"
UNKNOWN = frozenset(
    {"", "-", "--", "–", "—", "?", ".", "n/a", "na", "nan", "none", "null", "nil", "unknown", "#n/a", "#nv"}
)
# Labels that say whether two texts belong together, as `label_word` has them.
POSITIVE_LABELS = {"1", "yes", "true", "entailment", "duplicate", "paraphrase", "equivalent", "relevant", "positive"}
NEGATIVE_LABELS = {"0", "no", "false", "contradiction", "notentailment", "notduplicate", "irrelevant", "unrelated"}
NEGATIVE_LABELS |= {"negative", "notrelevant", "notequivalent", "notparaphrase", "different"}
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE)
_JUDGEMENTS = POSITIVE_LABELS | NEGATIVE_LABELS | {"neutral"}
_WITH_COMMA = re.compile(r"[+-]?\d*,\d+(?:e[+-]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")
_LARGE = re.compile(r"[+-]?[1-9]\d{2,}")  # beside which a comma may divide thousands


@dataclass(frozen=True)
class Scores:
    """The scores of a column, row by row."""

    values: tuple[float | None, ...]  # [row]; None where the row has no score
    reasons: tuple[str | None, ...]  # [row]; why the row has none: NO_SCORE or NO_NUMBER
    with_comma: int  # scores that are written with a decimal comma
    minus_ones: int  # values of −1 that stand for "unknown"


def read_scores(values: Sequence[Any]) -> Scores:
    """The scores of a column's values, which may be numbers or texts."""
    texts = [score_text(value) for value in values]
    has_points = any("." in text and _NUMBER.fullmatch(text) and not text.endswith(".0") for text in texts)
    with_commas = [text for text in texts if _WITH_COMMA.fullmatch(text) or _THOUSANDS.fullmatch(text)]
    may_be_thousands = has_points or (all(map(_THOUSANDS.fullmatch, with_commas)) and any(map(_LARGE.fullmatch, texts)))
    numbers: list[float | None] = []
    reasons: list[str | None] = []
    with_comma = 0
    for text in texts:
        plain = text
        if _WITH_COMMA.fullmatch(text) and not (may_be_thousands and _THOUSANDS.fullmatch(text)):
            plain = text.replace(",", ".")
            with_comma += 1
        number = float(plain) if _NUMBER.fullmatch(plain) else math.nan
        is_number = math.isfinite(number)
        numbers.append(number if is_number else None)
        reasons.append(None if is_number else NO_SCORE if text.casefold() in UNKNOWN else NO_NUMBER)
    minus_ones = 0
    if minus_one_is_unknown(number for number in numbers if number is not None):
        for row, known in enumerate(numbers):
            if known == -1:
                numbers[row], reasons[row] = None, NO_SCORE
                minus_ones += 1
    return Scores(tuple(numbers), tuple(reasons), with_comma, minus_ones)


def score_text(value: Any) -> str:
    """A value as text: "1" for 1, 1.0, "1" and True; "" where there is none. The minus sign is that of a keyboard."""
    if is_missing(value):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    text = clean(str(value)).text.replace("\N{MINUS SIGN}", "-").replace("\N{ARABIC DECIMAL SEPARATOR}", ".")
    return str(int(float(text))) if re.fullmatch(r"[+-]?\d{1,15}(\.0+)?", text) else text


def label_word(label: str) -> str:
    """A label as it is compared: "notentailment" for "Not entailment" and "not_entailment"."""
    return "".join(filter(str.isalnum, label.casefold()))


def is_judgement(value: str) -> bool:
    """Whether a value says how well two texts belong together: a number, or a known label."""
    return _NUMBER.fullmatch(score_text(value)) is not None or label_word(value) in _JUDGEMENTS


def minus_one_is_unknown(numbers: Iterable[float]) -> bool:
    """Whether −1 stands for "unknown" among these numbers: where no other is negative, and some are fractions or above 1.

    Beside 0 and 1 alone it is a value, as in a scale of −1, 0 and 1; where there is nothing else, all are unknown.
    """
    others = set(numbers)
    if -1 not in others:
        return False
    others.remove(-1)
    is_wider = any(number > 1 or not float(number).is_integer() for number in others)
    return not others or (is_wider and not any(number < 0 for number in others))


def minus_one_is_no_class(numbers: Iterable[float]) -> bool:
    """Whether −1 stands for "no gold label" among numbers of classes, as in SNLI and GLUE: no other is negative.

    Beside 1 alone it is a class.
    """
    others = set(numbers)
    return -1 in others and others != {-1, 1} and not any(number < 0 for number in others - {-1})
