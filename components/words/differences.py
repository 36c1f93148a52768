"""In what two texts differ, word by word: the words of each that the other has not, or has in another place, and of what kind
the difference is.

The kind comes from the words alone, never from a model: what a cosine is compared with must not come from what gives it. The
word lists are English; in another language most differences are of words or of wording.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from components.words.exchanges import exchange
from components.words.opposites import opposite_of
from components.words.unicode_words import folded, spans

Kind = Literal["negation", "order", "number", "day", "opposite", "word", "wording", "marks"]
# From the kind that is certainly no repetition to the one that may well be; each as it stands in a list.
KINDS: dict[Kind, str] = {
    "negation": "a negation",
    "order": "another order",
    "number": "another number",
    "day": "another day or month",
    "opposite": "an opposite word",
    "word": "one or two words",
    "wording": "other wording",
    "marks": "marks and capitals",
}
# Of a pair that differs so, the two texts do not say the same; in a sentence: "a number or a day differs".
OPPOSED: dict[Kind, str] = {
    "negation": "a “not”",
    "order": "who did it to whom",
    "number": "a number",
    "day": "a day",
    "opposite": "a word for its opposite",
}
SHARED = 0.4  # of the words of the longer text: texts that share fewer are two wordings
FEW_WORDS = 2  # of each text
_NOT = frozenset(("not", "no", "never", "nobody", "nothing", "none", "cannot", "without", "nor", "neither"))
_NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion half twice"
)
_NUMBERS = frozenset(_NUMBER_WORDS.split())
# Numbers only beside another one: "a second" is a time too.
_OTHER_NUMBER_WORDS = "first second third fourth fifth dozen dozens hundreds thousands millions billions once"
_NUMBERS_BESIDE = frozenset(_OTHER_NUMBER_WORDS.split())
_DAY_WORDS = (
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september "
    "october november december yesterday today tomorrow morning evening afternoon noon midnight"
)
_DAYS = frozenset(_DAY_WORDS.split())
# Opposites that are no adjectives or verbs, beside those of `opposites`.
_OTHER_OPPOSITES = (
    "before after, above below, up down, inside outside, more less, most least, always never, increase decrease, increased "
    "decreased, rose fell, rises falls, buy sell, bought sold, win lose, won lost, accept reject, accepted rejected, remember "
    "forget, remembered forgot, love hate, loves hates, loved hated, arrive leave, left right, first last, all none, with "
    "without"
)
_OPPOSED_WORDS = frozenset(
    pair
    for one, other in (item.split() for item in _OTHER_OPPOSITES.split(", "))
    for pair in ((one, other), (other, one))
)


@dataclass(frozen=True)
class Piece:
    """A run of words of a text."""

    text: str
    differs: bool  # whether the other text has it not, or in another place


@dataclass(frozen=True)
class TextDifference:
    """Two texts in runs of words, and of what kind their difference is."""

    kind: Kind
    first: tuple[Piece, ...]
    second: tuple[Piece, ...]


def difference(first: str, second: str) -> TextDifference:
    """The difference of two texts. Words are compared without capitals; marks belong to the word at which they stand."""
    one, other = first.split(), second.split()
    plain = [_plain(word) for word in one], [_plain(word) for word in other]
    steps = exchange(*plain) or SequenceMatcher(None, *plain, autojunk=False).get_opcodes()
    runs = [(step != "equal", one[a:b], other[c:d]) for step, a, b, c, d in steps]
    kind = _kind(one, other, runs)
    return TextDifference(
        kind,
        tuple(Piece(" ".join(left), differs) for differs, left, _ in runs if left),
        tuple(Piece(" ".join(right), differs) for differs, _, right in runs if right),
    )


def shared(found: TextDifference) -> TextDifference:
    """The same texts in runs of words that the other text has too, in whatever place, and of words that it has not."""
    texts = [" ".join(piece.text for piece in side).split() for side in (found.first, found.second)]
    plain = [set(map(_plain, words)) for words in texts]

    def pieces(words: Sequence[str], other: Collection[str]) -> tuple[Piece, ...]:
        runs = groupby(words, lambda word: _plain(word) not in other)
        return tuple(Piece(" ".join(run), differs) for differs, run in runs)

    return TextDifference(found.kind, pieces(texts[0], plain[1]), pieces(texts[1], plain[0]))


def _kind(one: Sequence[str], other: Sequence[str], runs: Sequence[tuple[bool, list[str], list[str]]]) -> Kind:
    if [_plain(word) for word in one] == [_plain(word) for word in other]:
        return "marks"
    left = [_plain(word) for differs, words, _ in runs if differs for word in words]
    right = [_plain(word) for differs, _, words in runs if differs for word in words]
    same = sum(len(words) for differs, words, _ in runs if not differs)
    if same < SHARED * max(len(one), len(other)):
        return "wording"
    both = {*left, *right}
    if _is_negated(left) != _is_negated(right):
        return "negation"
    if sorted(left) == sorted(right):
        return "order"
    numbers = [sorted(word for word in words if is_number(word) or word in _NUMBERS_BESIDE) for words in (left, right)]
    if all(numbers) and numbers[0] != numbers[1]:
        return "number"
    if left and right and both <= _DAYS:
        return "day"
    if len(left) == len(right) and any(map(_are_opposites, left, right)):
        return "opposite"
    return "word" if len(left) <= FEW_WORDS and len(right) <= FEW_WORDS else "wording"


def _plain(word: str) -> str:
    """A word as it is compared: folded, without the marks around it."""
    plain = folded(word)
    places = list(spans(plain))
    return plain[places[0][1] : places[-1][2]] if places else word


def _is_negated(words: Sequence[str]) -> bool:
    """Whether an odd number of the words negates: two negations are none."""
    return sum(map(negates, words)) % 2 == 1


def negates(word: str) -> bool:
    """Whether a folded word is an English negation: "not", "never", "doesn't"."""
    return word in _NOT or word.endswith(("n't", "n’t"))


def is_number(word: str) -> bool:
    """Whether a folded word is or has a number: "19", "E-23", "nineteen"."""
    return any(sign.isdigit() for sign in word) or any(part in _NUMBERS for part in word.split("-"))


def _are_opposites(one: str, other: str) -> bool:
    return (one, other) in _OPPOSED_WORDS or opposite_of(one) == other or opposite_of(other) == one
