"""What two sequences have in common, in the same order: the longest common runs, as difflib finds them.

Its time grows with the cube of the length for some sequences. So of long ones only the common beginning and end are looked for
at first, and where what lies between is still long, it counts as one difference.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

MOST_COMPARED = 250  # items of a sequence: some tenths of a second, whatever they are
Item = TypeVar("Item", bound=Hashable)
Step = tuple[str, int, int, int, int]  # "equal", "replace", "delete" or "insert", and the two ranges


def steps(first: Sequence[Item], second: Sequence[Item]) -> list[Step]:
    """The steps that turn the first sequence into the second, from left to right; the ranges end before their last number."""
    if max(len(first), len(second)) <= MOST_COMPARED:
        return list(SequenceMatcher(None, first, second, autojunk=False).get_opcodes())
    most = min(len(first), len(second))
    start = next((place for place in range(most) if first[place] != second[place]), most)
    rest = most - start
    end = next((place for place in range(rest) if first[-1 - place] != second[-1 - place]), rest)
    last_first, last_second = len(first) - end, len(second) - end
    middle: list[Step] = []
    if max(last_first, last_second) - start <= MOST_COMPARED:
        found = SequenceMatcher(None, first[start:last_first], second[start:last_second], autojunk=False).get_opcodes()
        middle = [(name, a + start, b + start, c + start, d + start) for name, a, b, c, d in found]
    elif start < last_first and start < last_second:
        middle = [("replace", start, last_first, start, last_second)]
    else:
        middle = [("insert" if start == last_first else "delete", start, last_first, start, last_second)]
    before: list[Step] = [("equal", 0, start, 0, start)] if start else []
    return [*before, *middle, *([("equal", last_first, len(first), last_second, len(second))] if end else [])]
