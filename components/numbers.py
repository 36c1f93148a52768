"""Numbers as people read them: the one home of turning a number into text, for pages, figures, lessons and reports.

A number is rounded once, from its full value: never from one that was rounded before, because 0.7446 is 0.74 and not 0.745 and
then 0.75. The nearest decimal is taken; exactly half way, which only fractions such as 1/8 are, the even one, as everywhere in
Python. So a reader's own `round` gives the same text. The minus sign is that of print; tables that are saved (CSV, JSON) have
numbers and a hyphen, which other programs read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

MISSING = "–"  # of a number that is not there (NaN)


def number(value: float, digits: int = 3) -> str:
    """A number with so many decimals and a minus sign as in print; zero has no sign."""
    return signed(value, digits).removeprefix("+")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, plus or minus, and so many decimals; zero has no sign."""
    if math.isnan(value):
        return MISSING
    text = f"{value:+,.{digits}f}".replace("inf", "∞")
    return text.replace("-", "−") if text.strip("+-0.,") else text[1:]


def difference(later: float, earlier: float, digits: int = 1) -> float:
    """How far apart two numbers are that both stand beside it with so many decimals: of both as they are shown.

    96.72 and 87.14 read 96.7 and 87.1: the reader takes 9.6 from them, and 9.58 would read as a mistake.
    """
    return round(later, digits) - round(earlier, digits)


def as_read(value: float) -> str:
    """A number with the decimals that were written in a file: "4.25" for 4,25, and "4" for 4.0."""
    return f"{value:.12g}".replace("-", "−")


def apart(*values: float, digits: int = 2, most: int = 3) -> tuple[str, ...]:
    """Numbers that are compared, all with so many decimals; with more, up to `most`, where different ones would read the same.

    1 counts as one of them: what is nearly 1 is not 1.
    """
    known = [value for value in (*values, 1.0) if not math.isnan(value)]
    while digits < most and len({number(value, digits) for value in known}) < len(
        {number(value, most) for value in known}
    ):
        digits += 1
    return tuple(number(value, digits) for value in values)


LEAST = 0.0005  # a probability below it is shown as "less than 0.1 %", in which no two of them differ


def percent(share: float) -> str:
    """A share as people read it; a small one is not zero."""
    return "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def share_text(share: float) -> str:
    """A probability, with one more figure than `percent`: "42 %", "7.1 %", "less than 0.1 %"; never 100 % for what is less."""
    if share < LEAST:
        return "less than 0.1 %" if share > 0 else "0 %"
    if 0.995 <= share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def enumerated(parts: Sequence[str]) -> str:
    """Parts of a sentence as English lists them: "a, b and c"; empty without parts."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 query", "1,200 queries"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def millions(count: int) -> str:
    """A large number in words: "22.7 million"; a smaller one as it is: "41,248"."""
    return f"{count / 1e6:,.1f} million" if count >= 1e6 else f"{count:,}"


def significant(value: float, figures: int = 2) -> str:
    """A number of any size with its sign and so many significant figures, without an exponent: "−0.0000085" for -8.5e-06."""
    if not value or not math.isfinite(value):
        return signed(value, 0)
    digits = max(0, figures - 1 - math.floor(math.log10(abs(value))))
    return signed(value, digits)


def ordinal(rank: int) -> str:
    """The place of something in an order, from 1: "1st", "57th", "1,203rd"."""
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank:,}{ending}"
