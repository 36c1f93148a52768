"""What tokenization did to a text: statistics, what decoding cannot bring back, a word all sentences share."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from components.model.trace import TokenizedSentence


@dataclass(frozen=True)
class TokenStatistics:
    """Counts over a set of sentences; special tokens are left out except in `tokens`."""

    sentences: int
    tokens: int  # special tokens included: what the model reads
    pieces: int  # tokens that stand for text
    words: int  # as the tokenizer splits them; punctuation marks count as words of their own
    split_words: int  # words of two or more pieces
    unknown: int  # pieces the vocabulary does not have

    @property
    def pieces_per_word(self) -> float:
        return self.pieces / self.words if self.words else 0.0

    @property
    def unknown_share(self) -> float:
        """Share of unknown pieces, 0..1."""
        return self.unknown / self.pieces if self.pieces else 0.0


def statistics(sentences: Sequence[TokenizedSentence], unknown_id: int | None) -> TokenStatistics:
    """Count tokens, words and unknown pieces over the sentences."""
    words: dict[tuple[int, bool, int], int] = {}
    tokens = pieces = unknown = 0
    for row, sentence in enumerate(sentences):
        tokens += len(sentence)
        for token in sentence.tokens:
            if token.special or token.word is None:
                continue
            pieces += 1
            unknown += token.id == unknown_id
            key = (row, token.in_pair, token.word)
            words[key] = words.get(key, 0) + 1
    split = sum(count > 1 for count in words.values())
    return TokenStatistics(len(sentences), tokens, pieces, len(words), split, unknown)


@dataclass(frozen=True)
class Losses:
    """What is different in a text after encoding and decoding."""

    decoded: str
    case: bool  # capital letters became small ones
    accents: bool  # marks over or under letters are gone
    spacing: bool  # spaces were added, merged or removed
    unknown: tuple[str, ...]  # what became the unknown token, as typed
    truncated: int  # pieces cut away
    other: bool  # changed in another way: characters dropped or replaced

    @property
    def nothing(self) -> bool:
        return not (self.case or self.accents or self.spacing or self.unknown or self.truncated or self.other)


def losses(sentence: TokenizedSentence, decoded: str, unknown_id: int | None) -> Losses:
    """Compare a sentence's text with its `decoded` form (special tokens left out).

    The kinds are told apart by folding them away one after the other: what still differs after spaces are
    dropped, marks are stripped and case is folded is something else.
    """
    unknown = tuple(
        dict.fromkeys(
            sentence.surface(token.position)
            for token in sentence.tokens
            if token.id == unknown_id and token.word is not None
        )
    )
    cut = {item.of_pair: item for item in sentence.dropped}
    text = sentence.text[: cut[False].start] if False in cut else sentence.text
    if sentence.pair is not None:
        text += " " + (sentence.pair[: cut[True].start] if True in cut else sentence.pair)
    typed, back = "".join(text.split()), "".join(decoded.split())
    folded = _without_marks(typed).lower() == _without_marks(back).lower()
    return Losses(
        decoded=decoded,
        case=typed != back and any(char.isupper() for char in typed) and not any(c.isupper() for c in back),
        accents=_marks(typed) > _marks(back) and not unknown,
        # Where letters changed too, spaces are compared by how many words there are on each side.
        spacing=len(text.split()) != len(decoded.split()) or (folded and len(text.strip()) != len(decoded.strip())),
        unknown=unknown,
        truncated=sum(item.tokens for item in sentence.dropped),
        other=not folded and not unknown,
    )


def _without_marks(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")


def _marks(text: str) -> int:
    return sum(unicodedata.category(char) == "Mn" for char in unicodedata.normalize("NFD", text))


@dataclass(frozen=True)
class SharedWord:
    """A word found in several sentences."""

    word: str  # lower case
    positions: tuple[int, ...]  # its first piece's position in each sentence


def shared_word(sentences: Sequence[TokenizedSentence]) -> SharedWord | None:
    """The longest word that every sentence has (case ignored), at its first place in each; None if there is none.

    Longest, because long words are seldom the grammatical ones ("the", "is"). The first wins a tie.
    """
    places = [_first_places(sentence) for sentence in sentences]
    if not places:
        return None
    common = [word for word in places[0] if all(word in other for other in places[1:])]
    if not common:
        return None
    word = max(common, key=len)
    return SharedWord(word, tuple(found[word] for found in places))


def default_positions(sentences: Sequence[TokenizedSentence]) -> tuple[int, ...]:
    """The token of interest in each sentence before anybody chose: the shared word, else the longest word."""
    shared = shared_word(sentences)
    if shared is not None:
        return shared.positions
    chosen = []
    for sentence in sentences:
        places = _first_places(sentence)
        chosen.append(places[max(places, key=len)] if places else 0)
    return tuple(chosen)


def _first_places(sentence: TokenizedSentence) -> dict[str, int]:
    """Each word with a letter or digit in it, to the position of its first piece."""
    places: dict[str, int] = {}
    for token in sentence.tokens:
        if token.special or token.word is None:
            continue
        word = sentence.word_text(token.position).lower()
        if any(char.isalnum() for char in word):
            places.setdefault(word, sentence.word_positions(token.position)[0])
    return places
