"""What a split of a similarity says, in a sentence: computed from the pairs that the picture shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from components.numbers import number, signed

if TYPE_CHECKING:
    from components.analysis.why.ledger import Ledger, LedgerPart

IN_PERCENT = 0.1  # a cosine from which its parts are written in per cent of it
AGAINST = 0.005  # of the cosine: what takes away more counts against it, since it is not written as 0 %
AGAINST_PARTS = 0.0005  # the same in units of the cosine, where parts are not written in per cent
MUCH = 0.2  # of the cosine
MOST_NAMED = 2  # words that count against the score


def is_in_percent(cosine: float) -> bool:
    """Whether parts are written in per cent of the cosine: of a small or negative one, shares can be of any size."""
    return bool(cosine >= IN_PERCENT)


def of_split(shown: Ledger, safe: Callable[[str], str] = str) -> str:
    """What adds most, and what counts against the score; of texts that differ in one word, what that word does.

    Words are compared with words; where a pair with a special token or a mark gives more than each of them, it is named too.
    `safe` makes a word of people's texts safe for where the sentence is shown.
    """

    def quoted(text: str) -> str:
        return f"“{safe(text)}”"

    first, second = shown.part_scores()
    own = [[row for row, part in enumerate(parts) if part.kind == "word"] for parts in (shown.first, shown.second)]
    if not own[0] or not own[1]:
        return "One of the texts has no word of its own."
    sums = [(float(first[row]), shown.first[row].text) for row in own[0]]
    sums += [(float(second[row]), shown.second[row].text) for row in own[1]]
    most, strongest = max(sums)
    if (different := _only_different(shown)) is not None:
        side, row = different
        value, text = float((first, second)[side][row]), (shown.first, shown.second)[side][row].text
        if _is_against(value, shown.cosine):
            does = f"takes away {_share(-value, shown.cosine)}"
        else:
            does = f"does not count against it: it adds {_share(value, shown.cosine)}"
        by_most = f"{quoted(strongest)} gives the most of the words, {_share(most, shown.cosine)}"
        return f"The only word that differs, {quoted(text)}, {does} ({by_most})."
    cells = shown.contributions[np.ix_(*own)]
    row, column = divmod(int(cells.argmax()), cells.shape[1])
    best = float(cells[row, column])
    pair = f"{quoted(shown.first[own[0][row]].text)} with {quoted(shown.second[own[1][column]].text)}"
    more = _larger_pair(shown, max(best, 0.0), safe)
    of = " of it" * is_in_percent(shown.cosine)
    start = f"{'Of the words, ' * bool(more)}{pair} gives the most, {_share(best, shown.cosine, 1)}{of}"
    if best <= 0:
        start = "No pair of words adds to it"
    against = _against(sums, shown.cosine, quoted)
    return f"{start}{more}{'; ' * bool(against)}{against}."


def of_outside(words: Ledger) -> str:
    """What pairs with a special token or a mark give, where that is much of a score that is written in per cent."""
    outside = words.outside_words()
    if not is_in_percent(words.cosine) or outside < MUCH * words.cosine:
        return ""
    return f"Pairs with special tokens or punctuation give {_share(outside, words.cosine)} in all."


def _larger_pair(shown: Ledger, than: float, safe: Callable[[str], str]) -> str:
    """The pair that gives most, in brackets, if it gives more than a pair of words does; sums of many parts are no pair."""
    single = [[row for row, part in enumerate(parts) if part.kind != "rest"] for parts in (shown.first, shown.second)]
    cells = shown.contributions[np.ix_(*single)]
    row, column = divmod(int(cells.argmax()), cells.shape[1])
    if (most := float(cells[row, column])) <= than:
        return ""
    names = [
        safe(part.text) if part.kind == "special" else f"“{safe(part.text)}”"
        for part in (shown.first[single[0][row]], shown.second[single[1][column]])
    ]
    return f" ({' with '.join(names)} gives {'more, ' * (than > 0)}{_share(most, shown.cosine, 1)})"


def _against(sums: Sequence[tuple[float, str]], cosine: float, quoted: Callable[[str], str]) -> str:
    """The words that count against a score; empty where there are none."""
    words = list(dict.fromkeys(text for value, text in sorted(sums) if _is_against(value, cosine)))
    if not words:
        return ""
    if len(words) > MOST_NAMED:
        return f"{len(words)} words count against it, most of all {quoted(words[0])}"
    return (
        f"only {quoted(words[0])} counts against it"
        if len(words) == 1
        else f"{' and '.join(map(quoted, words))} count against it"
    )


def _is_against(value: float, cosine: float) -> bool:
    return value < -(AGAINST * cosine if is_in_percent(cosine) else AGAINST_PARTS)


def _share(value: float, cosine: float, digits: int = 0) -> str:
    if is_in_percent(cosine):
        return f"{number(100 * value / cosine, digits)} %"
    return signed(value, 3)


def _only_different(shown: Ledger) -> tuple[int, int] | None:
    """The one word that one of the texts has and the other lacks, as text and place in its row; else None."""
    words = [_words(parts) for parts in (shown.first, shown.second)]
    if abs(len(words[0]) - len(words[1])) != 1:
        return None
    longer = int(len(words[1]) > len(words[0]))
    texts = [[text for _, text in row] for row in words]
    same = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), len(texts[1 - longer]))
    if texts[longer][:same] + texts[longer][same + 1 :] != texts[1 - longer]:
        return None
    return longer, words[longer][same][0]


def _words(parts: Sequence[LedgerPart]) -> list[tuple[int, str]]:
    return [(row, part.text.casefold()) for row, part in enumerate(parts) if part.kind in {"word", "rest"}]
