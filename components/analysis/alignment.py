"""Two tokenizations of one text, matched by the characters of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from components.model.trace import Token, TokenizedSentence


@dataclass(frozen=True)
class AlignedSpan:
    """A part of the text at whose ends both tokenizers split it, and the tokens of each within it."""

    start: int
    end: int
    text: str
    first: tuple[Token, ...]  # may be empty: a tokenizer can drop characters
    second: tuple[Token, ...]


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


def agreement(spans: Sequence[AlignedSpan]) -> float:
    """Share of groups that both tokenizers keep as one piece each, 0..1; 1 for no groups."""
    if not spans:
        return 1.0
    return sum(len(span.first) == 1 and len(span.second) == 1 for span in spans) / len(spans)
