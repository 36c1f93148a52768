"""How much of a text a model reads at all: the letters that it does not know, or reads one by one as it reads no word it knows.

A vocabulary holds the words of the languages that a model was trained with, whole or in a few long pieces. A text in another
language becomes unknown tokens, or single letters of which hardly any vector says more than the letter. So the share of such
letters tells a language that a model does not know, before any number of the page is looked at.

A letter counts as not known if it is read by the unknown token, by no token at all (as removed vowel signs), or by a piece of
one character that is not a word of its own. Chinese characters are read one by one by most models that know Chinese: of them
only those count that are unknown, or read in several pieces as a tokenizer of bytes reads what its vocabulary lacks. So it is
for a tokenizer whose vocabulary has hardly any longer pieces.

What this does not show: a language whose words are in the vocabulary, but of which the model has learnt little; and one that
shares its letters and many pieces with English, as Polish does for an English model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import regex

from components.model.tokenization import Tokenization, clean_text
from components.model.trace import TokenizedSentence
from components.numbers import percent
from components.words.unicode_words import has_pairs, is_within_word

# At least half: measured with the included model, it is 0.2 % of all letters of the included corpus, and at most 11 % of one
# of its sentences and headlines. Of ordinary sentences that were written for this, it is at most 15 % in French, 13 % in
# German, 8 % in Spanish, 19 % in Polish, 30 % in Turkish and 39 % in Vietnamese, whose letters English has; and at least 62 %
# in Chinese, 80 % in Japanese, and 89 % in Arabic, Russian, Greek, Hebrew, Hindi, Tamil, Korean and Thai.
FAR_ABOVE = 0.5
USUAL = 0.11  # at most, in a text of a language that the included model knows; other models were not measured
LEAST_LETTERS = 4  # of a text: in fewer the share says nothing
MOST_TEXTS, MOST_CHARACTERS = 200, 500  # of a corpus: evenly spaced texts stand for it, each by its beginning
_SPACES = "▁Ġ"
_CHINESE = regex.compile(r"\p{Han}")
_LETTERS = regex.compile(r"[\p{L}\p{M}]")
_BESIDE = regex.compile(r"[\p{L}\p{M}\p{N}_]")
_OF_VOCABULARY = regex.compile(r"^(?:##|▁|Ġ)?(\p{L}[\p{L}\p{M}]*)(?:</w>)?$")


@dataclass(frozen=True)
class KnownLetters:
    """Letters of some text, marks on them included, and how many of them a model does not know."""

    letters: int
    not_known: int

    @property
    def share(self) -> float:
        """Of letters that are not known, 0..1."""
        return self.not_known / self.letters if self.letters else 0.0

    @property
    def is_far_above(self) -> bool:
        """Whether the model does not know the language: see FAR_ABOVE."""
        return self.letters >= LEAST_LETTERS and self.share >= FAR_ABOVE


def known_letters(sentence: TokenizedSentence, unknown_id: int | None, is_long: bool = True) -> KnownLetters:
    """The letters of a sentence's first text, as far as it is read. `is_long` is what `has_long_pieces` says."""
    text = sentence.text
    begin, end = sentence.read_span()
    letters = {place for place in range(begin, end) if _LETTERS.match(text[place])}
    known: set[int] = set()
    alone: set[int] = set()  # characters that are a piece of their own
    pieces: Counter[int] = Counter()  # of each Chinese character
    for token in sentence.tokens:
        if token.word is None or token.in_pair or token.id == unknown_id:
            continue
        if token.piece.strip(_SPACES):  # the sign of a space has the place of the character behind it
            pieces.update(place for place in range(token.start, token.end) if _CHINESE.match(text[place]))
        surface = text[token.start : token.end].strip()
        if len(surface) == 1 and is_long and not _CHINESE.match(surface):
            alone.add(token.end - 1)
        else:
            known.update(range(token.start, token.end))
    known.update(place for place in alone if not _is_part(text, place, alone))
    known.difference_update(place for place, count in pieces.items() if count > 1)
    return KnownLetters(len(letters), len(letters - known))


def _is_part(text: str, place: int, alone: Container[int]) -> bool:
    """Whether a character that is a piece of its own is part of a word, as far as that can be seen.

    In a script without spaces some words have one letter; two of them beside each other are taken for parts. What stands
    behind an apostrophe, as the t of "don't", is a piece of its own in every tokenizer of words.
    """
    if has_pairs(text[place]):
        return place - 1 in alone or place + 1 in alone
    before, after = text[max(0, place - 1) : place], text[place + 1 : place + 2]
    return (_BESIDE.match(before) is not None and is_within_word(text, place)) or (
        _BESIDE.match(after) is not None and is_within_word(text, place + 1)
    )


def has_long_pieces(vocabulary: Sequence[str]) -> bool:
    """Whether more of a vocabulary's pieces have several letters than one; Chinese characters apart.

    False for tokenizers of characters, as those of some Japanese models, which read every language so.
    """
    single = several = 0
    for piece in vocabulary:
        found = _OF_VOCABULARY.match(piece)
        if found is not None and not _CHINESE.search(found[1]):
            several += len(found[1]) > 1
            single += len(found[1]) == 1
    return several > single


def sample(texts: Sequence[str]) -> list[str]:
    """The texts of a corpus that are looked at: evenly spaced ones, of each its beginning."""
    rows = np.linspace(0, len(texts) - 1, min(MOST_TEXTS, len(texts))).round().astype(int).tolist()
    return [texts[row][:MOST_CHARACTERS] for row in rows]


def together(found: Iterable[KnownLetters]) -> KnownLetters:
    """The letters of several texts as those of one."""
    counts = list(found)
    return KnownLetters(sum(one.letters for one in counts), sum(one.not_known for one in counts))


def of_corpus(texts: Sequence[str], tokenization: Tokenization, is_long: bool) -> KnownLetters:
    """The letters of a corpus, from a sample of its texts."""
    return together(
        known_letters(tokenization.tokenize(clean_text(text)), tokenization.unknown_id, is_long)
        for text in sample(texts)
    )


def in_words(model: str, share: float, of: str, is_included: bool) -> str:
    """What is said of a model that does not know the language of a text: `of` names the text, as in “sentence 2”.

    What is usual was measured with the included model, and is said of no other.
    """
    usual = f" (usual: up to {percent(USUAL)})" if is_included else ""
    return f"{model} does not know the language of {of}: {percent(share)} of letters are unknown or read one by one{usual}."


def said_of(texts: Mapping[str, Sequence[str]], tokenization: Tokenization, model: str, is_included: bool) -> list[str]:
    """The sentences on those of some texts, by their names, whose language a model does not know; for the command line."""
    is_long = has_long_pieces(tokenization.vocabulary)
    found = {name: of_corpus(own, tokenization, is_long) for name, own in texts.items()}
    return [
        in_words(model, letters.share, name, is_included) for name, letters in found.items() if letters.is_far_above
    ]
