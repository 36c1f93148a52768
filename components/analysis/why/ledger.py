"""A similarity of two texts as a sum: what each pair of tokens contributes, and what belongs to no pair.

The form that every split of a score has. It always sums: the contributions of the pairs, the terms that belong to no pair, and
what is left over are the cosine. Rows are parts of text A, columns parts of text B: tokens, or words, whose contributions
are the sums of those of their pieces.

What a split does not show: causes. A pair with a large contribution need not be the reason why the texts are similar: without
it, other tokens would have other vectors. And it is one split of many: another rule gives other numbers with the same sum.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from components.arrays import Float64, read_only
from components.model.trace import Pooling, TokenizedSentence
from components.words.typed import RUN, typed_words
from components.words.unicode_words import has_pairs

PartKind = Literal["word", "punctuation", "special", "rest"]


@dataclass(frozen=True)
class LedgerPart:
    """A token, a word, or several of them together: one row or column of a ledger."""

    text: str  # as typed; the piece itself for a special token
    kind: PartKind
    positions: tuple[int, ...]  # of its tokens in the model's input
    start: int = 0  # character span in its text; (0, 0) for special tokens and the rest
    end: int = 0


@dataclass(frozen=True)
class TopPair:
    """One cell of a ledger."""

    first: LedgerPart
    second: LedgerPart
    contribution: float


@dataclass(frozen=True)
class Term:
    """A part of the score that belongs to no pair of tokens."""

    name: str
    value: float


@dataclass(frozen=True, eq=False)
class Ledger:
    """The cosine of two texts' vectors as a sum. Everything is in units of the cosine."""

    first: tuple[LedgerPart, ...]  # rows
    second: tuple[LedgerPart, ...]  # columns
    contributions: Float64  # [row, column]
    terms: tuple[Term, ...]  # of no pair
    cosine: float  # of the two vectors, computed directly
    lengths: tuple[float, float]  # norms of the two vectors
    layer: int
    pooling: Pooling

    def __post_init__(self) -> None:
        read_only(self.contributions)

    @property
    def dot_product(self) -> float:
        return self.cosine * self.lengths[0] * self.lengths[1]

    @property
    def left_over(self) -> float:
        """What the contributions and the terms do not explain of the cosine: rounding, or an integral's error."""
        return self.cosine - float(self.contributions.sum()) - sum(term.value for term in self.terms)

    def part_scores(self) -> tuple[Float64, Float64]:
        """The sum of each row, [row], and of each column, [column]: what each part has in common with the other text."""
        return self.contributions.sum(axis=1), self.contributions.sum(axis=0)

    def by_word(self, first: TokenizedSentence, second: TokenizedSentence) -> Ledger:
        """The same with one row for each word of A and one column for each of B; the ledger must be of their tokens.

        `by_word(...).part_scores()` is one number for each word of both texts; `Part.start` and `end` say where it stands.
        """
        return self._in_parts(word_parts(first), word_parts(second))

    def by_typed_word(self, first: TokenizedSentence, second: TokenizedSentence) -> Ledger:
        """As `by_word`, with the words as a person typed them: "doesn't" is one; all special tokens are one part."""
        return self._in_parts(typed_parts(first), typed_parts(second))

    def _in_parts(self, rows: tuple[LedgerPart, ...], columns: tuple[LedgerPart, ...]) -> Ledger:
        return replace(
            self,
            first=rows,
            second=columns,
            contributions=_membership(rows, self.first) @ self.contributions @ _membership(columns, self.second).T,
        )

    def bounded(self, most: int) -> Ledger:
        """The same with at most so many rows and columns: those that contribute most stay, the last sums up the others.

        Most is the sum of the sizes of a row's contributions, so that opposite signs do not hide a part.
        """
        sizes = np.abs(self.contributions)
        rows, kept_rows = _kept(self.first, sizes.sum(axis=1), most)
        columns, kept_columns = _kept(self.second, sizes.sum(axis=0), most)
        return replace(self, first=rows, second=columns, contributions=kept_rows @ self.contributions @ kept_columns.T)

    def without_special(self) -> Ledger:
        """The same without the rows and columns of special tokens, where these contribute nothing; else it is left over."""
        rows, columns = (
            [number for number, part in enumerate(parts) if part.kind != "special"]
            for parts in (self.first, self.second)
        )
        return replace(
            self,
            first=tuple(self.first[row] for row in rows),
            second=tuple(self.second[column] for column in columns),
            contributions=self.contributions[np.ix_(rows, columns)],
        )

    def top(self, count: int) -> tuple[TopPair, ...]:
        """The pairs of words that add most, largest first; no special tokens and no punctuation. Only those above 0."""
        return tuple(pair for pair in self._pairs_of_words()[::-1][:count] if pair.contribution > 0)

    def lowest(self) -> TopPair | None:
        """The pair of words that takes most away; no special tokens and no punctuation. None if no pair is below 0."""
        return next((pair for pair in self._pairs_of_words()[:1] if pair.contribution < 0), None)

    def _pairs_of_words(self) -> list[TopPair]:
        """All pairs of words, the smallest contribution first."""
        rows, columns = (
            [number for number, part in enumerate(parts) if part.kind == "word"] for parts in (self.first, self.second)
        )
        cells = sorted((float(self.contributions[row, column]), row, column) for row in rows for column in columns)
        return [TopPair(self.first[row], self.second[column], value) for value, row, column in cells]

    def outside_words(self) -> float:
        """The sum of all cells of which one side is a special token or punctuation."""
        is_word = [np.array([part.kind in {"word", "rest"} for part in parts]) for parts in (self.first, self.second)]
        return float(self.contributions[~(is_word[0][:, None] & is_word[1][None])].sum())


def token_parts(sentence: TokenizedSentence) -> tuple[LedgerPart, ...]:
    """Every token of a text as a part, special tokens included."""
    return tuple(
        LedgerPart(token.piece, _kind(sentence, (token.position,)), (token.position,), token.start, token.end)
        for token in sentence.tokens
    )


def word_parts(sentence: TokenizedSentence) -> tuple[LedgerPart, ...]:
    """The words of a text by the tokenizer's own boundaries, each mark of punctuation, and each special token."""
    groups: dict[tuple[int, ...], LedgerPart] = {}
    for token in sentence.tokens:
        positions = sentence.word_positions(token.position)
        spans = [sentence.tokens[position] for position in positions]
        start, end = min(item.start for item in spans), max(item.end for item in spans)
        text = sentence.word_text(token.position).strip() or token.piece
        groups.setdefault(positions, LedgerPart(text, _kind(sentence, positions), positions, start, end))
    return tuple(groups.values())


def typed_parts(sentence: TokenizedSentence) -> tuple[LedgerPart, ...]:
    """The words of a text as typed, each with the punctuation beside it, and last all special tokens together.

    A run with letters of a script without spaces between words (Chinese, Thai) stays in the pieces of the tokenizer.
    """
    runs: dict[tuple[int, int], list[LedgerPart]] = {}
    special: list[LedgerPart] = []
    spans = [run.span() for run in RUN.finditer(sentence.text)]
    starts = [start for start, _ in spans]
    for part in word_parts(sentence):
        if part.kind == "special" or not spans:
            special.append(part)
            continue
        text = sentence.text[part.start : part.end]
        first = part.start + len(text) - len(text.lstrip())  # some tokenizers count the space before a word to it
        start, end = spans[max(0, bisect_right(starts, first) - 1)]
        is_whole = not has_pairs(sentence.text[start:end])
        runs.setdefault((start, end) if is_whole else (part.start, part.end), []).append(part)
    words = typed_words(sentence.text)  # of the whole text: whether an apostrophe closes a quotation shows only there
    word_of = {starts[bisect_right(starts, start) - 1]: (start, end) for start, end in words}  # by the run's start
    parts = [_joined(own, _typed(sentence.text, span, own, word_of.get(span[0]))) for span, own in runs.items()]
    return (*parts, _joined(special, " ".join(part.text for part in special))) if special else tuple(parts)


def _typed(text: str, span: tuple[int, int], parts: Sequence[LedgerPart], word: tuple[int, int] | None) -> str:
    """The `word` at a span of a text, without the punctuation around it; as far as the model read it."""
    read = max(part.end for part in parts)
    if has_pairs(text[span[0] : read]):
        return text[span[0] : read].strip()
    if word is not None and word[1] <= min(read, span[1]):
        return text[word[0] : word[1]]
    run = text[span[0] : read]
    words = typed_words(run)
    return run[words[0][0] : words[0][1]] if words else run.strip()


def _joined(parts: Sequence[LedgerPart], text: str) -> LedgerPart:
    """Several parts as one."""
    kinds = {part.kind for part in parts}
    kind: PartKind = next(kind for kind in ("word", "punctuation", "special", "rest") if kind in kinds)
    positions = tuple(position for part in parts for position in part.positions)
    return LedgerPart(text, kind, positions, min(part.start for part in parts), max(part.end for part in parts))


def _kind(sentence: TokenizedSentence, positions: Sequence[int]) -> PartKind:
    if sentence.tokens[positions[0]].special:
        return "special"
    surface = "".join(sentence.surface(position) for position in positions)
    return "word" if any(character.isalnum() for character in surface) else "punctuation"


def _membership(parts: Sequence[LedgerPart], tokens: Sequence[LedgerPart]) -> Float64:
    """1 where a token belongs to a part, float64 [part, token]. Raises ValueError unless each token belongs to one part."""
    column = {token.positions[0]: number for number, token in enumerate(tokens)}
    matrix = np.zeros((len(parts), len(tokens)))
    for row, part in enumerate(parts):
        matrix[row, [column[position] for position in part.positions]] = 1
    if not (matrix.sum(axis=0) == 1).all():
        raise ValueError("the ledger is not of these texts' tokens")
    return matrix


def _kept(parts: tuple[LedgerPart, ...], sizes: Float64, most: int) -> tuple[tuple[LedgerPart, ...], Float64]:
    """At most so many parts, the last for all others, and which of the `parts` each sums up [kept, part]."""
    if len(parts) <= most:
        return parts, np.eye(len(parts))
    kept = np.sort(np.argsort(-sizes, kind="stable")[: most - 1])
    others = np.setdiff1d(np.arange(len(parts)), kept)
    matrix = np.zeros((most, len(parts)))
    matrix[np.arange(len(kept)), kept] = 1
    matrix[-1, others] = 1
    positions = tuple(position for number in others for position in parts[number].positions)
    rest = LedgerPart(f"{len(others)} others", "rest", positions)
    return (*(parts[number] for number in kept), rest), matrix
