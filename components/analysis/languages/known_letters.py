"""How much of a text a model reads at all: the letters that it does not know, or reads one by one as it reads no word it knows.

A vocabulary holds the words of the languages that a model was trained with, whole or in a few long pieces. A text in another
language becomes unknown tokens, or single letters of which hardly any vector says more than the letter. So the share of such
letters tells a language that a model does not know, before any number of the page is looked at.

A letter counts as not known if it is read by the unknown token, by no token at all (as removed vowel signs), or by a piece of
one character that is not a word of its own. Chinese characters are read one by one by most models that know Chinese: of them
only the unknown ones count, and so it is for a tokenizer whose vocabulary has hardly any longer pieces.

What this does not show: a language whose words are in the vocabulary, but of which the model has learnt little; and one that
shares its letters and many pieces with English, as Polish does for an English model.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import regex

from components.model.trace import TokenizedSentence
from components.numbers import percent
from components.words.unicode_words import is_within_word

# The share of letters that are not known, from which a page says that the model does not know the language. Measured with the
# included model, on the sentences of the included corpus: 0.2 % of all letters, 4 % in the sentence with most. By hand-written
# sentences of ten words: at most 15 % in French, 13 % in German, 19 % in Polish, 30 % in Turkish; from 62 % in Chinese, from
# 87 % in Greek, Russian, Hebrew, Arabic, Hindi, Tamil, Korean, Japanese and Thai. Languages of Latin letters are below, others
# far above.
FAR_ABOVE = 0.4
USUAL = 0.05  # at most, in a sentence of a language that the model knows: above the 4 % measured
LEAST_LETTERS = 10  # of a text: in fewer, as in "abc xyz", the share says nothing
MOST_TEXTS, MOST_CHARACTERS = 200, 500  # of a corpus, which its beginning and evenly spaced texts stand for
_CHINESE = regex.compile(r"\p{Han}")
_LETTERS = regex.compile(r"[\p{L}\p{M}]")
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
    for token in sentence.tokens:
        if token.word is None or token.in_pair or token.id == unknown_id:
            continue
        surface = text[token.start : token.end].strip()
        if len(surface) == 1 and is_long and not _CHINESE.match(surface):
            alone.add(token.end - 1)
        else:
            known.update(range(token.start, token.end))
    known.update(place for place in alone if not _is_part(text, place, alone))
    return KnownLetters(len(letters), len(letters - known))


def _is_part(text: str, place: int, alone: Container[int]) -> bool:
    """Whether a character that is a piece of its own is part of a word, as far as that can be seen.

    In a script without spaces some words have one letter; two of them beside each other are taken for parts.
    """
    if has_pairs(text[place]):
        return place - 1 in alone or place + 1 in alone
    return is_within_word(text, place) or is_within_word(text, place + 1)


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


def of_texts(sentences: Iterable[TokenizedSentence], unknown_id: int | None, is_long: bool = True) -> KnownLetters:
    """The letters of several texts together."""
    found = [known_letters(sentence, unknown_id, is_long) for sentence in sentences]
    return KnownLetters(sum(one.letters for one in found), sum(one.not_known for one in found))


def sample(texts: Sequence[str]) -> list[str]:
    """The texts of a corpus that are looked at: evenly spaced ones, of each its beginning."""
    step = max(1, len(texts) // MOST_TEXTS)
    return [texts[row][:MOST_CHARACTERS] for row in range(0, len(texts), step)][:MOST_TEXTS]


def in_words(model: str, share: float, of: str) -> str:
    """What is said of a model that does not know the language of a text: `of` names the text, as in “sentence 2”."""
    return (
        f"{model} does not know the language of {of}: {percent(share)} of the letters are unknown to it or read one by one "
        f"(in a language that it knows, below {percent(USUAL)}), so that its numbers say little."
    )
