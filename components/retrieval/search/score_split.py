"""The score of a hit as a sum over the words of the query, and as a sum over the words of the hit.

Each score that search ranks by is linear in one of the two texts while the other is held: a cosine or dot product of mean
vectors, of word counts or of weights, and BM25 and Jelinek-Mercer, which are sums over the query's words from the start. So
what the words of one text add, with the terms that belong to no word, is the score: exactly, and for both texts.

A distance is no such sum. Of a Euclidean one the negative square is split, which orders hits in the same way: it is twice the
dot product minus both squared lengths. Of a Manhattan distance nothing is: the cosine of the same two vectors is split in its
place, and `of` says so.

For vectors these are the sums of rows and columns of the token ledger (components.analysis.why.token_ledger) at the layer and
pooling of the search. The corpus's vectors may be stored in fewer bits than the passes here have; what that changes is a term
of its own, so that the sum is the score that ranked the hit and not another one.

What it does not show: causes. Without a word all other tokens would have other vectors. Above layer 0 each token's vector has
something of all other tokens in it, and special tokens have content only from them. [CLS] pooling takes one token's vector, so
that its split by tokens has one part and says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from components.analysis.why.ledger import LedgerPart, Term
from components.analysis.why.token_ledger import token_ledger

if TYPE_CHECKING:
    from components.model.trace import Pooling, Trace
    from components.retrieval.search.exact import Similarity

Span = tuple[int, int]  # first character, last + 1
Shade = tuple[int, int, float]  # a span, and how strongly it is shaded, above 0 to 1
PartKind = Literal["word", "punctuation", "special", "prompt", "rest"]
SHADED_FROM = 0.4  # of the largest part of a text: what carries the score, and not each word that adds a little
LEAST_SCALED = (
    0.08  # of the cosine: a text whose largest part is smaller is shaded fainter, or nonsense would look explained
)
STORED = "rounding of the stored vectors"
PROMPT = "the model's prompt"
SQUARE, COSINE = "negative squared distance", "cosine"  # what is split in place of a distance


@dataclass(frozen=True)
class ScorePart:
    """A word of a text, or several things together, and what they add to the score."""

    text: str
    kind: PartKind
    spans: tuple[Span, ...]  # where it stands in its text; none for special tokens and a prompt
    value: float  # in units of the score


@dataclass(frozen=True, eq=False)
class ScoreSplit:
    """One score as two sums: over the query's parts, and over the hit's. Each with the `terms` is the score."""

    score: float  # as the ranking has it, or what `of` names
    query: tuple[ScorePart, ...]
    hit: tuple[ScorePart, ...]
    terms: tuple[Term, ...] = ()  # of no word
    texts: tuple[str, str] = ("", "")  # the two texts that the spans are of
    one_token: bool = False  # the vectors are those of one token each ([CLS]): there is no split by words
    of: str = ""  # what is split in place of the score of a ranking by distances, which is no sum

    @property
    def left_over(self) -> tuple[float, float]:
        """What the query's parts and the terms leave of the score, and the hit's: rounding."""
        terms = sum(term.value for term in self.terms)
        of_query, of_hit = (sum(part.value for part in parts) for parts in (self.query, self.hit))
        return self.score - of_query - terms, self.score - of_hit - terms

    @property
    def is_of_shared_words(self) -> bool:
        """Whether both sums are over the same words: those that the two texts share."""
        values = [sorted(part.value for part in parts if part.value) for parts in (self.query, self.hit)]
        return bool(values[0]) and values[0] == values[1]


def split_of_vectors(
    trace: Trace,
    layer: int,
    pooling: Pooling,
    similarity: Similarity,
    score: float,
    prompts: tuple[int, int] = (0, 0),
    stored: str = STORED,
    hit: int = 1,
) -> ScoreSplit:
    """The score of a query and a hit, the first sentence of a trace and that of number `hit`, at a layer and pooling.

    `prompts` are the characters of the model's own prompts in front of both. `stored` names what the ranking's `score`
    differs by from that of the trace's vectors. Of a distance `of` names what is split. Raises ValueError as `token_ledger`
    does.
    """
    first, second = trace.sentences[0], trace.sentences[hit]
    ledger = token_ledger(trace, layer, pooling, 0, hit).by_typed_word(first, second)
    scale, lengths, of = 1.0, list[Term](), ""
    if similarity == "dot":
        scale = float(np.prod(ledger.lengths))
    elif similarity == "euclidean":
        scale, score, of = 2 * float(np.prod(ledger.lengths)), -(score**2), SQUARE
        squares = (float(length) ** 2 for length in ledger.lengths)
        names = ("the query's squared length", "the hit's squared length")
        lengths = [Term(name, -square) for name, square in zip(names, squares, strict=True)]
    elif similarity == "manhattan":
        score, of = ledger.cosine, COSINE
    lost = score - scale * ledger.cosine - sum(term.value for term in lengths)
    own = trace.head if pooling == "own" else None
    sides = [
        _with_prompt(
            [_part(part, scale * float(value), prompt) for part, value in zip(parts, values, strict=True)],
            parts,
            prompt,
        )
        for parts, values, prompt in zip((ledger.first, ledger.second), ledger.part_scores(), prompts, strict=True)
    ]
    return ScoreSplit(
        score,
        sides[0],
        sides[1],
        (*(Term(term.name, scale * term.value) for term in ledger.terms), *lengths, Term(stored, lost)),
        (first.text[prompts[0] :], second.text[prompts[1] :]),
        one_token=pooling == "cls" if own is None else own.modes == ("cls",),
        of=of,
    )


def shades(parts: Sequence[ScorePart], least: float = LEAST_SCALED) -> tuple[Shade, ...]:
    """The words that carry a score, each with how strongly it is shaded, in the order of the text.

    These are the words that add at least SHADED_FROM of what the one that adds most does; that one is shaded fully, unless
    it adds less than `least`, in units of the score.
    """
    words = [part for part in parts if part.kind == "word" and part.spans]
    scale = max([least, *(part.value for part in words)])
    strong = [part for part in words if part.value / scale >= SHADED_FROM - 1e-9]
    return tuple(sorted((*span, part.value / scale) for part in strong for span in part.spans))


def split_by_shared_words(
    score: float,
    values: Mapping[str, float],
    texts: tuple[str, str],
    spans: tuple[Mapping[str, Sequence[Span]], Mapping[str, Sequence[Span]]],
    terms: Sequence[Term] = (),
) -> ScoreSplit:
    """A score that is a sum over the query's words: `values` are what each adds, `spans` where they stand in both texts.

    A word of the query that the hit does not have adds 0, and stands only in the query.
    """
    sides = [
        tuple(
            ScorePart(word, "word", tuple(where[word]), value)
            for word, value in values.items()
            if word in where and (number == 0 or value)
        )
        for number, where in enumerate(spans)
    ]
    return ScoreSplit(score, sides[0], sides[1], tuple(terms), texts)


def _part(part: LedgerPart, value: float, prompt: int) -> ScorePart:
    """A part of a ledger with its value; its span counts from behind the prompt."""
    spans = () if part.kind == "special" else ((max(0, part.start - prompt), part.end - prompt),)
    return ScorePart(part.text, part.kind, spans, value)


def _with_prompt(scored: Sequence[ScorePart], parts: Sequence[LedgerPart], prompt: int) -> tuple[ScorePart, ...]:
    """The parts of a text with those of the prompt as one; a word that begins in the prompt belongs to it."""
    is_of_prompt = [part.kind != "special" and part.start < prompt for part in parts]
    own = tuple(part for part, of_prompt in zip(scored, is_of_prompt, strict=True) if not of_prompt)
    if not any(is_of_prompt):
        return own
    value = sum(part.value for part, of_prompt in zip(scored, is_of_prompt, strict=True) if of_prompt)
    return (ScorePart(PROMPT, "prompt", (), value), *own)
