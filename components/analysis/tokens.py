"""What tokenization did to a text: statistics, what decoding cannot bring back, a word all sentences share."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from components.model.trace import Token, TokenizedSentence


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
    spacing: bool  # spaces were added, merged, removed, or made of another kind
    unknown: tuple[str, ...]  # what became the unknown token, as typed
    truncated: int  # pieces cut away
    other: bool  # changed in another way: characters dropped or replaced

    @property
    def nothing(self) -> bool:
        return not (self.case or self.accents or self.spacing or self.unknown or self.truncated or self.other)


def losses(sentence: TokenizedSentence, decoded: str, unknown_id: int | None) -> Losses:
    """Compare a sentence's text with `decoded`: its own tokens put together again, without [CLS] and the like.

    The kinds are told apart by folding them away one after the other: what still differs after spaces are
    dropped, marks are stripped and case is folded is something else. What an unknown token stood for takes no
    part, nor do the spaces around it; the same goes for a special token somebody typed ("[MASK]"). So it does
    not matter whether `decoded` spells these out. Spaces before and after the whole text do not count.
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
    back = decoded
    for piece in {token.piece for token in unknown}:
        back = back.replace(piece, " ")
    typed = " ".join(known)
    return Losses(
        decoded=decoded,
        case=_capitals(typed) > _capitals(back),
        accents=_marks(typed) > _marks(back),
        spacing=_spaces_differ(known, back),
        unknown=tuple(dict.fromkeys(sentence.surface(token.position) for token in unknown)),
        truncated=sum(item.tokens for item in sentence.dropped),
        other=_folded("".join(typed.split())) != _folded("".join(back.split())),
    )


def _known_stretches(sentence: TokenizedSentence, left_out: Sequence[Token]) -> list[str]:
    """The text (and its pair) as far as it was kept, without what some tokens stood for; trimmed, none empty."""
    cut = {item.of_pair: item.start for item in sentence.dropped}
    stretches = []
    for text, in_pair in ((sentence.text, False), (sentence.pair or "", True)):
        begin = 0
        for token in left_out:
            if token.in_pair == in_pair:
                stretches.append(text[begin : token.start])
                begin = token.end
                # The sign that colours an emoji, or an accent, belongs to what it follows.
                while begin < len(text) and unicodedata.category(text[begin]) in {"Mn", "Me", "Cf"}:
                    begin += 1
        stretches.append(text[begin : cut.get(in_pair)])
    return [stretch.strip() for stretch in stretches if stretch.strip()]


def _spaces_differ(known: Sequence[str], back: str) -> bool:
    """Whether spaces within the known stretches of a text are others in its decoded form."""
    stretches = [seen for seen in map(_seen, known) if seen]
    there = _seen(back)
    if "".join("".join(stretches).split()) == "".join(there.split()):
        # No two of the pattern's gaps touch, so it cannot backtrack at length.
        return re.fullmatch(r"\s*".join(map(re.escape, stretches)), there) is None
    # Letters changed too: only the number of words can be compared.
    return len(" ".join(stretches).split()) != len(there.split())


def _seen(text: str) -> str:
    """What a reader sees of a text, folded: control characters would pass for letters beside its spaces."""
    return _folded("".join(char for char in text if not _is_invisible(char))).strip()


def _folded(text: str) -> str:
    """Without marks and in small letters, one by one as tokenizers do (`"Σ".lower()` depends on its place)."""
    return "".join(char.lower() for char in unicodedata.normalize("NFD", text) if not _is_mark(char))


def _capitals(text: str) -> int:
    return sum(char.isupper() for char in text)


def _marks(text: str) -> int:
    return sum(_is_mark(char) for char in unicodedata.normalize("NFD", text))


def _is_mark(char: str) -> bool:
    """A mark on a letter; variation selectors (which make ♥ an emoji) are of the same category, but none."""
    return unicodedata.category(char) == "Mn" and not _is_selector(char)


def _is_invisible(char: str) -> bool:
    return (unicodedata.category(char) in {"Cc", "Cf"} and not char.isspace()) or _is_selector(char)


def _is_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f"


@dataclass(frozen=True)
class SharedWord:
    """A word found in several sentences."""

    word: str  # lower case
    positions: tuple[int, ...]  # its first piece's position in each sentence


def shared_word(sentences: Sequence[TokenizedSentence]) -> SharedWord | None:
    """The longest word that every sentence has (case ignored), at its first place in each; None if there is none.

    Longest, because long words are seldom the grammatical ones ("the", "is"). The first wins a tie.
    """
    positions = [_first_positions(sentence) for sentence in sentences]
    if not positions:
        return None
    common = [word for word in positions[0] if all(word in other for other in positions[1:])]
    if not common:
        return None
    word = max(common, key=len)
    return SharedWord(word, tuple(position_of[word] for position_of in positions))


def default_positions(sentences: Sequence[TokenizedSentence], focus: Sequence[str] = ()) -> tuple[int, ...]:
    """The token of interest in each sentence before anybody chose.

    `focus` names a word for each sentence (case ignored); without it, or where a sentence lacks its word, it
    is the word that all sentences share, else each sentence's longest.
    """
    if len(focus) == len(sentences):
        wanted = [_first_positions(sentence).get(word.lower()) for sentence, word in zip(sentences, focus, strict=True)]
        known = tuple(position for position in wanted if position is not None)
        if len(known) == len(sentences):
            return known
    shared = shared_word(sentences)
    if shared is not None:
        return shared.positions
    chosen = []
    for sentence in sentences:
        positions = _first_positions(sentence)
        chosen.append(positions[max(positions, key=len)] if positions else 0)
    return tuple(chosen)


def _first_positions(sentence: TokenizedSentence) -> dict[str, int]:
    """Each word with a letter or digit in it, to the position of its first piece."""
    positions: dict[str, int] = {}
    for token in sentence.tokens:
        if token.special or token.word is None:
            continue
        word = sentence.word_text(token.position).lower()
        if any(char.isalnum() for char in word):
            positions.setdefault(word, sentence.word_positions(token.position)[0])
    return positions


def position_at(sentence: TokenizedSentence, start: int, end: int, in_pair: bool = False) -> int | None:
    """The first token whose characters overlap a span of the text; None where no token stands for it.

    With it a choice made in one model's tokenization is found again in another's.
    """
    for token in sentence.tokens:
        if token.word is not None and token.in_pair == in_pair and token.start < end and start < token.end:
            return token.position
    return None
