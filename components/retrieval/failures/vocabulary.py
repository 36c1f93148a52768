"""The words of a corpus, to tell which words of a query it knows, and which of its words a misspelt one may stand for.

A word counts as misspelt if neither the corpus (in any regular form: components.words.forms) nor the model's vocabulary has
it, and a word of the corpus lies one edit away: a letter added, left out, replaced, or exchanged with its neighbour (Damerau
1964, who found four of five misspellings to be one of these). Of several such words the most frequent one is taken, of
equally frequent ones the first in the alphabet. Words of more than LONGEST letters are compared with none.

What it does not show: that the word is misspelt. A name that the corpus lacks may lie one letter from a word that it has, and
a misspelling may be a word itself ("form" for "from").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

from components.jobs import IsStopped, Stoppable
from components.sizes import memory_of
from components.words.forms import stems_of
from components.words.function import is_function_word
from components.words.unicode_words import folded, words

SHORTEST = 5  # letters of a word that is compared with its neighbours: a shorter one has too many
SHORTEST_NEIGHBOUR = 4
LONGEST = 40  # what is left of a word without each of its letters takes memory by the square of its length
_BEGINS_WORD, _CONTINUES = "▁Ġ", "##"  # signs of pieces: behind a space, and within a word


class CorpusWords:
    """The words of a corpus with their numbers, and those that the model's vocabulary has whole."""

    def __init__(self, texts: Iterable[str], pieces: Iterable[str] = ()) -> None:
        """`pieces` are the pieces of the model's vocabulary, with the signs that its tokenizer puts into them."""
        self.counts: Counter[str] = Counter(word for text in texts for word in words(text))
        self._pieces = frozenset(
            folded(piece.lstrip(_BEGINS_WORD)) for piece in pieces if not piece.startswith(_CONTINUES)
        )

    @cached_property
    def _stems(self) -> frozenset[str]:
        return _stems(self.counts)

    @cached_property
    def _by_deletion(self) -> dict[str, str]:
        return _by_deletion(self.counts)

    def prepare(self, is_stopped: IsStopped) -> None:
        """Make now what the first question would make, so that `nbytes` does not grow any more. Raises Stopped."""
        own = Stoppable(tuple(self.counts), is_stopped)
        self._stems, self._by_deletion = _stems(own), _by_deletion(own)

    @property
    def nbytes(self) -> int:
        """Memory that the words take by now, in bytes."""
        return memory_of(self)

    @property
    def own_nbytes(self) -> int:
        """The same without the model's vocabulary."""
        return memory_of((self.counts, self._stems, self._by_deletion))

    def knows(self, word: str) -> bool:
        """Whether the corpus has a folded word in any regular form, or the model's vocabulary has it whole."""
        return word in self.counts or word in self._pieces or not stems_of(word).isdisjoint(self._stems)

    def neighbour(self, word: str) -> str | None:
        """The corpus's word one edit from a folded word that is not known; None for a known or short one, and without any."""
        if not SHORTEST <= len(word) <= LONGEST or not word.isalpha() or is_function_word(word) or self.knows(word):
            return None
        rests = {word, *_without_a_letter(word)}
        others = {other for rest in rests for other in self._by_deletion.get(rest, "").split()}
        near = {other for other in others if are_one_edit_apart(word, other) and not is_function_word(other)}
        return min(near, key=lambda other: (-self.counts[other], other), default=None)

    def unknown(self, query: str) -> tuple[str, ...]:
        """The words of a query that are not known, function words apart, each once."""
        own = dict.fromkeys(words(query))
        return tuple(word for word in own if not is_function_word(word) and not self.knows(word))


def are_one_edit_apart(first: str, second: str) -> bool:
    """Whether one letter added, left out, replaced, or exchanged with its neighbour makes one word of the other."""
    if first == second or abs(len(first) - len(second)) > 1:
        return False
    start = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    one, other = first[start:], second[start:]
    if len(one) == len(other):
        is_exchanged = one[:2] == other[:2][::-1] and one[2:] == other[2:]
        return one[1:] == other[1:] or is_exchanged
    return one[1:] == other if len(one) > len(other) else one == other[1:]


def _stems(own: Iterable[str]) -> frozenset[str]:
    return frozenset(stem for word in own for stem in stems_of(word))


def _by_deletion(own: Iterable[str]) -> dict[str, str]:
    """What is left of each word without one of its letters, and the word itself, to the words, with spaces between them: one
    edit apart are only words that have such a rest in common."""
    found: dict[str, str] = {}
    for word in own:
        if SHORTEST_NEIGHBOUR <= len(word) <= LONGEST and word.isalpha():
            for rest in {word, *_without_a_letter(word)}:
                found[rest] = f"{found[rest]} {word}" if rest in found else word
    return found


def _without_a_letter(word: str) -> Iterator[str]:
    return (word[:place] + word[place + 1 :] for place in range(len(word)))
