"""The words of some sentences, and the one to look at first.

The word to begin with is the one about which there is something to see. A content word that occurs twice, in one sentence or
in two, in the same form or in another: of its occurrences the one that is least similar to another after the last block.
Else a pronoun with at least two content words before it, of which it may mean either. Else the rarest word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.arrays import unit
from components.model.trace import TokenizedSentence
from components.words.forms import stems_of
from components.words.function import FUNCTION_WORDS, PERSONAL

CANDIDATES = 2  # content words before a pronoun that it could mean


@dataclass(frozen=True)
class Word:
    """A word as the tokenizer separates them; it has a letter or a digit."""

    sentence: int
    text: str  # as typed
    positions: tuple[int, ...]  # of its tokens
    start: int  # characters in its sentence
    end: int
    rarity: tuple[bool, int]  # whether it has several pieces, and its highest id: vocabularies are sorted by frequency

    @property
    def last(self) -> int:
        """The position of its last token, from which it looks at others."""
        return self.positions[-1]

    @property
    def is_content(self) -> bool:
        """Whether it has a meaning of its own, unlike "the" or a number."""
        return self.text.lower() not in FUNCTION_WORDS and any(map(str.isalpha, self.text))

    @property
    def is_pronoun(self) -> bool:
        """Whether it stands for somebody or something that was named before."""
        return self.text.lower() in PERSONAL


def words_of(sentences: Sequence[TokenizedSentence]) -> tuple[Word, ...]:
    """All words of the sentences, from the first to the last."""
    found = []
    for row, sentence in enumerate(sentences):
        for token in sentence.tokens:
            positions = sentence.word_positions(token.position)
            if token.special or token.word is None or positions[0] != token.position:
                continue
            text = sentence.word_text(token.position)
            if any(map(str.isalnum, text)):
                pieces = [sentence.tokens[position] for position in positions]
                rarity = (len(pieces) > 1, max(piece.id for piece in pieces))
                found.append(Word(row, text, positions, pieces[0].start, pieces[-1].end, rarity))
    return tuple(found)


def twins_of(words: Sequence[Word]) -> tuple[tuple[int, ...], ...]:
    """For each word the numbers of its other occurrences, in the same form or another; none for a function word."""
    stems = [stems_of(word.text) if word.is_content else frozenset() for word in words]
    having: dict[str, set[int]] = {}
    for number, own in enumerate(stems):
        for stem in own:
            having.setdefault(stem, set()).add(number)
    return tuple(
        tuple(sorted(set[int]().union(*(having[stem] for stem in own)) - {number})) for number, own in enumerate(stems)
    )


def first_choice(words: Sequence[Word], vectors: np.ndarray) -> int | None:
    """The number of the word to look at first; None if there is no word. `vectors`: after the last block, [word, dim]."""
    if not words:
        return None
    directions = unit(np.asarray(vectors, np.float64))
    pairs = [(number, twin) for number, twins in enumerate(twins_of(words)) for twin in twins]
    if pairs:
        cosines = [float(directions[number] @ directions[twin]) for number, twin in pairs]
        return pairs[int(np.argmin(cosines))][0]
    content = [number for number, word in enumerate(words) if word.is_content]
    for number, word in enumerate(words):
        before = [other for other in content if other < number and words[other].sentence == word.sentence]
        if word.is_pronoun and len(before) >= CANDIDATES:
            return number
    return max(content or range(len(words)), key=lambda number: words[number].rarity)
