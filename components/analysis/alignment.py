"""Two tokenizations of one text, matched by the characters of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.model.trace import Token, TokenizedSentence
from components.words.typed import typed_words


@dataclass(frozen=True)
class AlignedSpan:
    """A part of the text at whose ends both tokenizers split it, and the tokens of each within it."""

    start: int
    end: int
    text: str
    first: tuple[Token, ...]  # may be empty: a tokenizer can drop characters
    second: tuple[Token, ...]

    @property
    def is_the_same(self) -> bool:
        """Whether both tokenizers keep this part as one piece; how they write the piece does not matter."""
        return len(self.first) == len(self.second) == 1


def align(first: TokenizedSentence, second: TokenizedSentence) -> tuple[AlignedSpan, ...]:
    """The finest common segmentation of one text by two tokenizers, left to right.

    Tokens whose character spans overlap are in one group, and groups never overlap; special tokens
    (which have no characters) are left out. Only the first text of a pair is compared.
    Raises ValueError if the texts differ.
    """
    if first.text != second.text:
        raise ValueError("the two tokenizations are of different texts")
    sides: tuple[list[Token], list[Token]] = (_of_text(first), _of_text(second))
    spans = sorted(
        [(token.start, token.end, side, token) for side, tokens in enumerate(sides) for token in tokens],
        key=lambda item: (item[0], item[1], item[2]),
    )
    groups: list[tuple[int, int, tuple[list[Token], list[Token]]]] = []
    for start, end, side, token in spans:
        # Zero-width tokens (RoBERTa's lone "Ġ") join the group they touch; others must share a character.
        begin, stop, members = groups[-1] if groups else (-1, -1, ([], []))
        if start < stop or (start == stop and (start == end or begin == stop)):
            groups[-1] = (begin, max(stop, end), members)
        else:
            groups.append((start, end, ([], [])))
        groups[-1][2][side].append(token)
    return tuple(
        AlignedSpan(start, end, first.text[start:end], tuple(members[0]), tuple(members[1]))
        for start, end, members in groups
    )


def _of_text(sentence: TokenizedSentence) -> list[Token]:
    return [token for token in sentence.tokens if token.word is not None and not token.in_pair]


def differing_words(text: str, spans: Sequence[AlignedSpan]) -> tuple[tuple[str, ...], int]:
    """The words of a text that two tokenizers split differently, as typed and in order, and the number of all words.

    Words are those of components.words.typed. `spans` are the text's groups from `align`.
    """
    words = typed_words(text)
    different = [span for span in spans if not span.is_the_same]
    return (
        tuple(
            text[start:end] for start, end in words if any(span.start < end and start < span.end for span in different)
        ),
        len(words),
    )
