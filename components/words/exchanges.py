"""Where two texts have the same words, and two runs of them have changed places: "a dog saw the cat", "the cat saw a dog".

The longest runs that both have in common, which tell other differences, would leave out one of the two and take with the other
what stands between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Step = tuple[str, int, int, int, int]  # as difflib's: "equal" or "replace", and the two ranges
LONGEST = 60  # words from the first that differs to the last: every two lengths are tried


def exchange(first: Sequence[str], second: Sequence[str]) -> list[Step] | None:
    """The steps by which two runs of words change places, the shortest such runs; None if the texts do not differ so.

    What lies between the two is the same. Neighbours count only if each is one word: of "today he came" and "he came today" the
    one word has moved, and the two others have not.
    """
    if len(first) != len(second) or Counter(first) != Counter(second):
        return None
    differing = [place for place, words in enumerate(zip(first, second, strict=True)) if words[0] != words[1]]
    if not differing or differing[-1] - differing[0] >= LONGEST:
        return None
    start, end = differing[0], differing[-1] + 1
    if len(differing) == 2:  # whatever lies between
        sizes: tuple[int, int] | None = (1, 1)
    else:
        sizes = _runs(first[start:end], second[start:end])
    if sizes is None:
        return None
    one, other = sizes
    steps = [
        ("equal", 0, start, 0, start),
        ("replace", start, start + one, start, start + other),
        ("equal", start + one, end - other, start + other, end - one),
        ("replace", end - other, end, end - one, end),
        ("equal", end, len(first), end, len(second)),
    ]
    return [step for step in steps if step[1] < step[2]]


def _runs(first: Sequence[str], second: Sequence[str]) -> tuple[int, int] | None:
    """The numbers of words of the runs at the start and at the end of the first text that change places."""
    count = len(first)
    for both in range(3, count):  # at least one word between
        for one in range(1, both):
            other = both - one
            if (
                first[:one] == second[count - one :]
                and first[count - other :] == second[:other]
                and first[one : count - other] == second[other : count - one]
            ):
                return one, other
    return None
