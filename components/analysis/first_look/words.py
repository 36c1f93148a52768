"""The words of some sentences, and the one to look at first.

The word to begin with is the one about which there is something to see. A content word that occurs twice, in one sentence or
in two, in the same form or in another: of its occurrences the one that is least similar to another after the last block.
Else a pronoun with at least two content words before it, of which it may mean either. Else the rarest word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from components.arrays import unit
from components.model.trace import TokenizedSentence
from components.words.forms import stems_of
from components.words.function import PERSONAL, function_words_of
from components.words.unicode_words import folded

TIE = 1e-5  # cosines this close are equal: of two equal sentences rounding would decide
ONE_PAIR = 2  # occurrences, each with the other
MOST_TWINS = 100  # occurrences of a word that are told from each other
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
    is_content: bool  # whether it has a meaning of its own, unlike "the" or a number

    @property
    def last(self) -> int:
        """The position of its last token, from which it looks at others."""
        return self.positions[-1]

    @property
    def is_pronoun(self) -> bool:
        """Whether it stands for somebody or something that was named before."""
        return self.text.lower() in PERSONAL


def words_of(sentences: Sequence[TokenizedSentence]) -> tuple[Word, ...]:
    """All words of the sentences, from the first to the last."""
    found: list[Word] = []
    for row, sentence in enumerate(sentences):
        texts = {
            positions: sentence.word_text(positions[0])
            for token in sentence.tokens
            if not token.special and token.word is not None
            for positions in [sentence.word_positions(token.position)]
            if positions[0] == token.position
        }
        grammar = function_words_of(text.lower() for text in texts.values())
        for positions, text in texts.items():
            if any(map(str.isalnum, text)):
                pieces = [sentence.tokens[position] for position in positions]
                rarity = (len(pieces) > 1, max(piece.id for piece in pieces))
                is_content = text.lower() not in grammar and any(map(str.isalpha, text))
                found.append(Word(row, text, positions, pieces[0].start, pieces[-1].end, rarity, is_content))
    return tuple(found)


def twins_of(words: Sequence[Word]) -> tuple[tuple[int, ...], ...]:
    """For each word the numbers of its other occurrences, in the same form or another; none for a function word.

    Of a word that stands very often, its first MOST_TWINS occurrences: the result would grow with their square.
    """
    stems = [stems_of(word.text) if word.is_content else frozenset() for word in words]
    having: dict[str, list[int]] = {}
    for number, own in enumerate(stems):
        for stem in own:
            if len(of_stem := having.setdefault(stem, [])) < MOST_TWINS:
                of_stem.append(number)
    return tuple(
        tuple(sorted(set[int]().union(*(having[stem] for stem in own)) - {number})) for number, own in enumerate(stems)
    )


@dataclass(frozen=True)
class Interest:
    """The word to look at: a token in each sentence, and the sentence whose word it is."""

    row: int
    positions: tuple[int, ...]  # one for each sentence


def interest(
    sentences: Sequence[TokenizedSentence],
    focus: Sequence[str] = (),
    vectors: Callable[[Sequence[Word]], np.ndarray] | None = None,
) -> Interest:
    """The word to look at before a person chooses one, in all sentences.

    A content word that stands twice, a pronoun, or the rarest word: see the module. A sentence with another occurrence of it
    has its first one; any other sentence has the word that is the first choice by itself, and without a word its first token
    that is no special one.

    `focus` names a word for each sentence (ignoring case), which is then the one to look at if every sentence has its word.
    `vectors` gives those of words after the last block, [word, dim]. It is called at most once, and only where they decide:
    where more than two words are occurrences of words. Without it the rarest of these words is taken.
    """
    words = words_of(sentences)
    of_row: dict[int, list[int]] = {}
    for number, word in enumerate(words):
        of_row.setdefault(word.sentence, []).append(number)
    if sentences and len(focus) == len(sentences):
        named = [
            next((number for number in of_row.get(row, ()) if words[number].text.lower() == name.lower()), None)
            for row, name in enumerate(focus)
        ]
        # A special token that stands in the text, such as [MASK], is no word.
        places = [
            _typed_special(sentence, name) if number is None else words[number].positions[0]
            for sentence, name, number in zip(sentences, focus, named, strict=True)
        ]
        known = tuple(place for place in places if place is not None)
        if len(known) == len(sentences):
            return Interest(0, known)
    twins = twins_of(words)
    once = None if vectors is None else cache(partial(vectors, words))
    chosen = _first(range(len(words)), words, twins, once)
    positions = []
    for row, sentence in enumerate(sentences):
        own = of_row.get(row, [])
        if chosen is not None and words[chosen].sentence == row:
            of_own: int | None = chosen
        else:
            again = () if chosen is None else twins[chosen]
            of_own = next((twin for twin in again if words[twin].sentence == row), None)
            of_own = _first(own, words, twins, once) if of_own is None else of_own
        first = next((token.position for token in sentence.tokens if not token.special), 0)  # of emoji, for example
        positions.append(first if of_own is None else words[of_own].positions[0])
    return Interest(0 if chosen is None else words[chosen].sentence, tuple(positions))


def places_of(sentences: Sequence[TokenizedSentence], row: int, position: int) -> tuple[tuple[int, int], ...]:
    """Where the word at a position of a sentence stands, in this form or another: sentence and position of its first token.

    A function word, a mark, a special token or a later piece of a word stands wherever there is an equal one.
    """
    words, token = words_of(sentences), sentences[row].tokens[position]
    number = next(
        (number for number, word in enumerate(words) if word.sentence == row and word.positions[0] == position), None
    )
    if number is None:
        same = [
            (other, item.position)
            for other, sentence in enumerate(sentences)
            for item in sentence.tokens
            if item.piece == token.piece and item.special == token.special
        ]
        return tuple(same)
    own = words[number]
    if own.is_content:
        stems = stems_of(own.text)
        found = [
            other for other, word in enumerate(words) if word.is_content and not stems.isdisjoint(stems_of(word.text))
        ]
    else:
        found = [other for other, word in enumerate(words) if folded(word.text) == folded(own.text)]
    return tuple((words[other].sentence, words[other].positions[0]) for other in found)


def chosen_everywhere(
    sentences: Sequence[TokenizedSentence], chosen: Sequence[int], row: int, position: int
) -> tuple[int, ...]:
    """The chosen token of each sentence after a person has chosen one in one sentence.

    Another sentence that has the word gets its first occurrence, unless another one was chosen there; any other sentence
    keeps what was chosen.
    """
    found: dict[int, list[int]] = {}
    for other, place in places_of(sentences, row, position):
        found.setdefault(other, []).append(place)
    return tuple(
        position if other == row else before if before in found.get(other, [before]) else found[other][0]
        for other, before in enumerate(chosen)
    )


def _typed_special(sentence: TokenizedSentence, name: str) -> int | None:
    of_text = (token for token in sentence.tokens if token.word is not None)
    return next((token.position for token in of_text if token.piece.lower() == name.lower()), None)


def _first(
    among: Sequence[int],
    words: Sequence[Word],
    twins: Sequence[Sequence[int]],
    vectors: Callable[[], np.ndarray] | None,
) -> int | None:
    """The number of the word to look at first among some words; `vectors` [word, dim] are those of all words."""
    inside = set(among)
    again = [number for number in among if any(twin in inside for twin in twins[number])]
    if again and vectors is not None:
        pairs = np.array([(number, twin) for number in again for twin in twins[number] if twin in inside], np.int64)
        if len(pairs) == ONE_PAIR:  # both are as similar to the other
            return int(pairs[0, 0])
        cosines = _cosines(vectors(), pairs)
        again = pairs[cosines <= cosines.min() + TIE][:, 0].tolist()
    elif len(again) == ONE_PAIR:
        return again[0]
    if again:
        return max(again, key=lambda number: (words[number].rarity, -number))
    content = [number for number in among if words[number].is_content]
    for number in among:
        before = [other for other in content if other < number and words[other].sentence == words[number].sentence]
        if words[number].is_pronoun and len(before) >= CANDIDATES:
            return number
    return max(content or among, key=lambda number: words[number].rarity, default=None)


def _cosines(vectors: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The cosine of each pair of words, [pair]: by one product of all words in them, of which there are fewer than pairs."""
    numbers, places = np.unique(pairs, return_inverse=True)
    directions = unit(np.asarray(vectors[numbers], np.float64))
    first, second = places.reshape(pairs.shape).T
    return np.asarray((directions @ directions.T)[first, second])
