"""How well hidden words are guessed: the rank of the best answer, with intervals, beside guesses by counting.

A guess is a whole word: pieces that continue a word ("##ing") and special ones ([PAD]) are left out. Among the rest the rank
of a sentence is one more than the number of pieces with a higher score than its best acceptable answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypedDict

import numpy as np
import torch

from components.arrays import Float64, Int64
from components.errors import InputError
from components.training.masked_words.adapter import MaskedWordModel
from components.training.masked_words.batches import Bools
from components.training.masked_words.units import Units
from components.training.masked_words.wordnet import MaskedSentence

TOP = (1, 5)  # guesses that count as right
SURE = 0.95  # of the intervals
DRAWS = 1_000  # of the bootstrap
AT_ONCE = 100  # sentences
LONGEST = 128  # tokens
TRIGRAM_OWN, NEIGHBOURS_OWN = (
    5.0,
    20.0,
)  # how often a piece must have been seen to weigh as much as what stands in for it
Interval = tuple[float, float]


class SetMeasures(TypedDict):
    """What is measured on a set; shares from 0 to 1, intervals of 95 %."""

    n: int
    top1: float
    top1_interval: Interval
    top5: float
    top5_interval: Interval
    mean_rank: float
    mean_rank_interval: Interval


def wilson(right: int, count: int, sure: float = SURE) -> Interval:
    """The interval of a share (Wilson 1927), from 0 to 1."""
    z = NormalDist().inv_cdf((1 + sure) / 2)
    share = right / count
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    whole = 1 + z * z / count
    return max((middle - half) / whole, 0.0), min((middle + half) / whole, 1.0)


def bootstrap(values: Int64, draws: int = DRAWS, sure: float = SURE, seed: int = 0) -> Interval:
    """The interval of a mean by drawing as many values again and again (percentiles; Efron 1979)."""
    rng = np.random.default_rng(seed)
    means = [values[rng.integers(0, len(values), len(values))].mean() for _ in range(draws)]
    low, high = np.quantile(means, [(1 - sure) / 2, (1 + sure) / 2])
    return float(low), float(high)


def summary(ranks: Int64) -> SetMeasures:
    """What the ranks of a set's sentences come to."""
    count = len(ranks)
    first, five = (int((ranks <= most).sum()) for most in TOP)
    return {
        "n": count,
        "top1": first / count,
        "top1_interval": wilson(first, count),
        "top5": five / count,
        "top5_interval": wilson(five, count),
        "mean_rank": float(ranks.mean()),
        "mean_rank_interval": bootstrap(ranks),
    }


@dataclass(frozen=True, eq=False)
class Hole:
    """A sentence with one [MASK] as pieces, and the pieces that are right there."""

    pieces: Int64  # [token], with [CLS] and [SEP]
    place: int  # of [MASK]
    answers: Int64

    @property
    def neighbours(self) -> tuple[int, int]:
        """The pieces before and behind the mask; at the ends [SEP], which stands between units."""
        before, behind = int(self.pieces[self.place - 1]), int(self.pieces[self.place + 1])
        return (int(self.pieces[-1]) if self.place == 1 else before), behind


def holes(sentences: Sequence[MaskedSentence], tokenizer: Any) -> tuple[Hole, ...]:
    """Sentences as pieces. `tokenizer` is of the tokenizers library. Raises InputError for one that cannot be measured."""
    mask, found = tokenizer.token_to_id("[MASK]"), []
    for sentence in sentences:
        pieces = np.array(tokenizer.encode(sentence["sentence"]).ids[:LONGEST], np.int64)
        numbers = (tokenizer.token_to_id(answer) for answer in sentence["answers"])
        answers = np.array(sorted({number for number in numbers if number is not None}), np.int64)
        places = np.flatnonzero(pieces == mask)
        if len(places) != 1 or not len(answers) or places[0] + 1 == len(pieces):
            raise InputError(
                f"{sentence['sentence'][:80]!r} cannot be measured.",
                "It needs one [MASK] within 128 tokens, and an answer that is one piece of the vocabulary.",
                "Change the sentence or its answers.",
            )
        found.append(Hole(pieces, int(places[0]), answers))
    return tuple(found)


def rank(scores: Float64, answers: Int64, may_be_guessed: Bools) -> int:
    """The rank of the best answer, from 1: scores [piece], may_be_guessed [piece]."""
    return 1 + int(((scores > scores[answers].max()) & may_be_guessed).sum())


def whole_words(names: Sequence[str]) -> Bools:
    """Which pieces may be guessed, by their names: no "##" piece and no special one."""
    return np.array([not name.startswith("##") and not (name.startswith("[") and name.endswith("]")) for name in names])


def model_ranks(
    model: MaskedWordModel, asked: Sequence[Hole], may_be_guessed: Bools, dtype: torch.dtype = torch.float32
) -> Int64:
    """The rank in each sentence by the model, int64 [sentence]."""
    ranks = np.zeros(len(asked), np.int64)
    order = sorted(range(len(asked)), key=lambda number: len(asked[number].pieces))
    with torch.no_grad():
        for start in range(0, len(order), AT_ONCE):
            numbers = order[start : start + AT_ONCE]
            length = max(len(asked[number].pieces) for number in numbers)
            pieces = torch.zeros(len(numbers), length, dtype=torch.long)
            is_text = torch.zeros(len(numbers), length, dtype=torch.bool)
            for row, number in enumerate(numbers):
                own = torch.from_numpy(asked[number].pieces)
                pieces[row, : len(own)], is_text[row, : len(own)] = own, True
            states = model.last_layer(pieces, is_text, dtype)
            places = torch.tensor([asked[number].place for number in numbers])
            scores = model.scores(states[torch.arange(len(numbers)), places]).double().numpy()
            for row, number in enumerate(numbers):
                ranks[number] = rank(scores[row], asked[number].answers, may_be_guessed)
    return ranks


@dataclass(frozen=True, eq=False)
class Counted:
    """What follows from counting the same text, each unit as often as a pass draws it on average."""

    shares: Float64  # [piece], of the whole text, with half a count for each piece
    before: Int64  # the piece before, the piece and the piece behind, of every place of the text in order of `before`
    middle: Int64
    behind: Int64
    weights: Float64
    by_behind: Int64  # the places in order of `behind`

    def unigram(self, hole: Hole) -> Float64:
        """The share of each piece, whatever the sentence."""
        return self.shares

    def trigram(self, hole: Hole) -> Float64:
        """The probability of each piece between its two neighbours, float64 [piece].

        Counts of the three pieces together; where these are few, the product of what follows the first and what stands before
        the last, over the piece's own share (as if the two were independent given the piece).
        """
        first, last = hole.neighbours
        left = slice(*np.searchsorted(self.before, [first, first + 1]))
        is_both = self.behind[left] == last
        right = self.by_behind[slice(*np.searchsorted(self.behind, [last, last + 1], sorter=self.by_behind))]
        following = self._smoothed(self.middle[left], self.weights[left], self.shares, NEIGHBOURS_OWN)
        preceding = self._smoothed(self.middle[right], self.weights[right], self.shares, NEIGHBOURS_OWN)
        product = following * preceding / self.shares
        middle, weights = self.middle[left][is_both], self.weights[left][is_both]
        return self._smoothed(middle, weights, product / product.sum(), TRIGRAM_OWN)

    def _smoothed(self, pieces: Int64, weights: Float64, stand_in: Float64, own: float) -> Float64:
        counts = np.bincount(pieces, weights, len(self.shares))
        return (counts + own * stand_in) / (counts.sum() + own)


def count(units: Units, vocabulary_size: int, boundary: int, wanted: Sequence[Hole]) -> Counted:
    """Count the text's pieces and their neighbours, as far as the sentences that will be asked need them.

    `boundary` ([SEP]) stands before, between and behind the units.
    """
    starts = units.starts[:-1]
    text = np.insert(units.pieces.astype(np.int64), starts, boundary)
    weights = np.insert(np.repeat(units.weights, units.lengths()).astype(np.float64), starts, units.weights)
    text = np.append(text, boundary)
    counts = np.bincount(text[:-1], weights, vocabulary_size) + 0.5
    needed = np.zeros((2, vocabulary_size), bool)
    for hole in wanted:
        first, last = hole.neighbours
        needed[0, first] = needed[1, last] = True
    before, middle, behind = text[:-2], text[1:-1], text[2:]
    is_needed = (middle != boundary) & (needed[0][before] | needed[1][behind])
    before, middle, behind, own = (array[is_needed] for array in (before, middle, behind, weights[1:]))
    order = np.argsort(before, kind="stable")
    before, middle, behind, own = (array[order] for array in (before, middle, behind, own))
    return Counted(counts / counts.sum(), before, middle, behind, own, np.argsort(behind, kind="stable"))


def counted_ranks(guess: Callable[[Hole], Float64], asked: Sequence[Hole], may_be_guessed: Bools) -> Int64:
    """The rank in each sentence by counting, int64 [sentence]; `guess` is a method of Counted."""
    return np.array([rank(guess(hole), hole.answers, may_be_guessed) for hole in asked], np.int64)


def measure_all(
    model: MaskedWordModel, counted: Counted, sets: Mapping[str, Sequence[Hole]], may_be_guessed: Bools
) -> dict[str, dict[str, SetMeasures]]:
    """Of each set, what the model as its file has it, the unigram guess and the trigram reach, in float32."""
    rounded = model.rounded()
    return {
        name: {
            "model": summary(model_ranks(rounded, asked, may_be_guessed)),
            "unigram": summary(counted_ranks(counted.unigram, asked, may_be_guessed)),
            "trigram": summary(counted_ranks(counted.trigram, asked, may_be_guessed)),
        }
        for name, asked in sets.items()
    }
