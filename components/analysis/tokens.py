"""The effects of tokenization on a text: statistics, what decoding cannot restore, a word that all sentences share."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from components.model.trace import Token, TokenizedSentence
from components.words.function import FUNCTION_WORDS


@dataclass(frozen=True)
class TokenStatistics:
    """Counts over a set of sentences; special tokens are left out except in `tokens`."""

    tokens: int  # special tokens included: what the model reads
    pieces: int  # tokens that are part of the text
    word_pieces: int  # tokens that are part of words, and not of punctuation
    words: int  # as the tokenizer separates them; a word has a letter or a digit
    split_words: int  # words of two or more pieces
    unknown: int  # pieces that are not in the vocabulary

    @property
    def pieces_per_word(self) -> float:
        return self.word_pieces / self.words if self.words else 0.0

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
            if _is_word(sentence.word_text(token.position)):
                key = (row, token.in_pair, token.word)
                words[key] = words.get(key, 0) + 1
    split = sum(count > 1 for count in words.values())
    return TokenStatistics(tokens, pieces, sum(words.values()), len(words), split, unknown)


@dataclass(frozen=True)
class DecodingLosses:
    """What differs in a text after encoding and decoding."""

    case: bool  # capital letters became lower case
    accents: bool  # marks above or below letters were removed
    spacing: bool  # spaces were added, merged, removed, or replaced by another kind
    unknown: tuple[str, ...]  # text that became the unknown token, as typed
    truncated: int  # the number of truncated pieces
    other: bool  # changed in another way: characters dropped or replaced


def losses(sentence: TokenizedSentence, decoded: str, unknown_id: int | None) -> DecodingLosses:
    """Compare a sentence's text with `decoded`: its own tokens decoded again, without special tokens.

    `other` is what still differs after spaces and marks are removed and case is ignored. The text of an unknown token
    and the spaces around it are not compared; neither are those of a typed special token ("[MASK]"). It therefore
    does not matter whether `decoded` contains these. Spaces before and after the whole text do not count.
    """
    unknown = [token for token in sentence.tokens if token.id == unknown_id and token.word is not None]
    typed_special = [
        token
        for token in sentence.tokens
        if token.word is not None
        and sentence.surface(token.position).strip() == token.piece
        and token.piece not in decoded
    ]
    known = _known_stretches(sentence, sorted({*unknown, *typed_special}, key=lambda token: token.position))
    restored = decoded
    for piece in {token.piece for token in unknown}:
        restored = restored.replace(piece, " ")
    typed = " ".join(known)
    return DecodingLosses(
        case=_capitals(typed) > _capitals(restored),
        accents=_marks(typed) > _marks(restored),
        spacing=_spaces_differ(known, restored),
        unknown=tuple(dict.fromkeys(sentence.surface(token.position) for token in unknown)),
        truncated=sum(item.tokens for item in sentence.dropped),
        other=_folded("".join(typed.split())) != _folded("".join(restored.split())),
    )


def _known_stretches(sentence: TokenizedSentence, left_out: Sequence[Token]) -> list[str]:
    """The parts of the text (and its pair) that were not truncated, without some tokens; trimmed, none empty."""
    stretches = []
    for text, in_pair in ((sentence.text, False), (sentence.pair or "", True)):
        begin, read_end = sentence.read_span(in_pair)
        for token in left_out:
            if token.in_pair == in_pair:
                stretches.append(text[begin : token.start])
                begin = token.end
                # A modifier of an emoji, or an accent, belongs to the character before it.
                while begin < len(text) and unicodedata.category(text[begin]) in {"Mn", "Me", "Cf"}:
                    begin += 1
        stretches.append(text[begin:read_end])
    return [stretch.strip() for stretch in stretches if stretch.strip()]


def _spaces_differ(known: Sequence[str], restored: str) -> bool:
    """Whether the spaces within the known parts of a text differ from those in its decoded form."""
    stretches = [visible for visible in map(_visible, known) if visible]
    decoded = _visible(restored)
    if "".join("".join(stretches).split()) == "".join(decoded.split()):
        # The gaps in the pattern never touch, so that it cannot backtrack for long.
        return re.fullmatch(r"\s*".join(map(re.escape, stretches)), decoded) is None
    # Letters changed too, so that only the number of words can be compared.
    return len(" ".join(stretches).split()) != len(decoded.split())


def _visible(text: str) -> str:
    """The visible characters of a text, folded: control characters would otherwise count as letters."""
    return _folded("".join(char for char in text if not _is_invisible(char))).strip()


def _folded(text: str) -> str:
    """Without marks and in lower case, one character at a time as tokenizers do (`"Σ".lower()` depends on its context)."""
    return "".join(char.lower() for char in unicodedata.normalize("NFD", text) if not _is_mark(char))


def _capitals(text: str) -> int:
    return sum(char.isupper() for char in text)


def _marks(text: str) -> int:
    return sum(_is_mark(char) for char in unicodedata.normalize("NFD", text))


def _is_mark(char: str) -> bool:
    """Whether it is a mark on a letter; variation selectors (which make ♥ an emoji) share the category but are not."""
    return unicodedata.category(char) == "Mn" and not _is_selector(char)


def _is_invisible(char: str) -> bool:
    return (unicodedata.category(char) in {"Cc", "Cf"} and not char.isspace()) or _is_selector(char)


def _is_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f"


def neighbour_words(sentences: Sequence[TokenizedSentence], positions: Sequence[int]) -> tuple[str, ...]:
    """For the token at a position of each sentence, the nearest content word that tells its sentence from the others.

    A word that no other sentence has is preferred to one that only some others have. Distances count characters; of
    two words at the same distance, the one that follows is used. "" for a sentence without such a word.
    """
    having = Counter(word for sentence in sentences for word in _first_positions(sentence))
    names = []
    others = len(sentences) - 1
    for sentence, position in zip(sentences, positions, strict=True):
        own = sentence.word_positions(position)
        candidates = [
            (having[word] - 1, _gap(sentence, own, start), start < position, start)
            for word, start in _words(sentence)
            if word not in FUNCTION_WORDS and start not in own
        ]
        telling = [candidate for candidate in candidates if candidate[0] < others or not others]
        names.append(sentence.word_text(min(telling)[-1]) if telling else "")
    return tuple(names)


def _gap(sentence: TokenizedSentence, word: Sequence[int], other: int) -> tuple[bool, int]:
    """The characters between a word (its positions) and the word at `other`; words of the same text come first."""
    first, last = sentence.tokens[word[0]], sentence.tokens[word[-1]]
    other_word = sentence.word_positions(other)
    start, end = sentence.tokens[other_word[0]].start, sentence.tokens[other_word[-1]].end
    return first.in_pair != sentence.tokens[other].in_pair, max(first.start - end, start - last.end)


def _first_positions(sentence: TokenizedSentence) -> dict[str, int]:
    """Each word that contains a letter or digit, to the position of its first piece."""
    positions: dict[str, int] = {}
    for word, position in _words(sentence):
        positions.setdefault(word, position)
    return positions


def _words(sentence: TokenizedSentence) -> Iterator[tuple[str, int]]:
    """The words that contain a letter or digit, in lower case, with the position of their first piece."""
    for token in sentence.tokens:
        if token.special or token.word is None or sentence.word_positions(token.position)[0] != token.position:
            continue
        word = sentence.word_text(token.position)
        if _is_word(word):
            yield word.lower(), token.position


def _is_word(text: str) -> bool:
    return any(char.isalnum() for char in text)


def position_at(sentence: TokenizedSentence, start: int, end: int, in_pair: bool = False) -> int | None:
    """The position of the first token whose characters overlap a span of the text, or None.

    It finds the token chosen in one model's tokenization in that of another.
    """
    for token in sentence.tokens:
        if token.word is not None and token.in_pair == in_pair and token.start < end and start < token.end:
            return token.position
    return None
