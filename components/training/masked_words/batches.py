"""Batches with masked words: which units are drawn, and which of their words are to be guessed.

A word is masked with all its pieces (whole-word masks, as BERT's authors published them in 2019). Of the pieces to guess, most
are replaced by [MASK], some by a random piece, and some stay, as in BERT (Devlin et al. 2018). Words of the commonest pieces
are masked less often: there is less to learn from them.

Every random number follows from the seed, the pass and the batch's number in it, so that a run can go on from any batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.arrays import Float64, Int64
from components.training.masked_words.units import Units

TOKENS = 2_048  # of a batch at most, padding and special tokens included
SORTED_AT_ONCE = 12_000  # units whose batches have units of one length
SHARE, COMMON_SHARE = 0.28, 0.10  # of words that are to be guessed; of those that begin with a common piece
COMMON = 150  # pieces
AS_MASK, AS_RANDOM = 0.85, 0.08  # of the pieces to guess; the rest stays as it is
_DRAW, _MASKS = 0, 1  # what random numbers are for

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Pieces:
    """What the masks must know of a vocabulary."""

    begins_word: Bools  # [piece]: not a "##" piece
    is_special: Bools  # [piece]: [PAD], [CLS], [unused0], ...
    is_common: Bools  # [piece]
    random: Int64  # the pieces that may replace another one: no single letters or signs
    cls: int
    sep: int
    pad: int
    mask: int


def pieces_of(names: Sequence[str], counts: Float64, common: int = COMMON) -> Pieces:
    """What the masks must know of a vocabulary: the names of its pieces, and how often each stands in the text."""
    is_common = np.zeros(len(names), bool)
    is_common[np.argsort(-counts, kind="stable")[:common]] = True
    begins_word = np.array([not name.startswith("##") for name in names])
    is_special = np.array([name.startswith("[") and name.endswith("]") for name in names])
    is_long = np.array([len(name.removeprefix("##")) > 1 for name in names])
    places = [names.index(name) for name in ("[CLS]", "[SEP]", "[PAD]", "[MASK]")]
    return Pieces(begins_word, is_special, is_common, np.flatnonzero(is_long & ~is_special), *places)


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts with masked words."""

    pieces: Tensor  # int64 [text, token]
    is_text: Tensor | None  # bool [text, token], false at padding; None where there is none
    places: Tensor  # int64 [guess]: text × tokens + token
    answers: Tensor  # int64 [guess], the pieces that stood there
    tokens: int  # without padding


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass through the units, each drawn by its weight, in batches of about one length in random order."""

    units: Units
    pieces: Pieces
    groups: tuple[Int64, ...]  # the units of each batch
    seed: int
    number: int

    def __len__(self) -> int:
        return len(self.groups)

    def batch(self, number: int) -> Batch:
        """A batch of this pass."""
        rng = np.random.default_rng([self.seed, self.number, number, _MASKS])
        return masked(padded(self.units, self.groups[number], self.pieces), self.pieces, rng)


def draw(units: Units, pieces: Pieces, seed: int, number: int, tokens: int = TOKENS) -> Pass:
    """The pass of this number: a weight of 2.3 draws a unit twice, and three times with probability 0.3."""
    rng = np.random.default_rng([seed, number, 0, _DRAW])
    whole = np.floor(units.weights)
    times = whole + (rng.random(len(units)) < units.weights - whole)
    drawn = rng.permutation(np.repeat(np.arange(len(units)), times.astype(np.int64)))
    lengths = units.lengths()
    groups: list[Int64] = []
    for start in range(0, len(drawn), SORTED_AT_ONCE):
        some = drawn[start : start + SORTED_AT_ONCE]
        some = some[np.argsort(lengths[some], kind="stable")]
        cut = _groups(some, lengths[some] + 2, tokens)
        groups.extend(cut[place] for place in rng.permutation(len(cut)))
    return Pass(units, pieces, tuple(groups), seed, number)


def _groups(numbers: Int64, lengths: Int64, tokens: int) -> list[Int64]:
    """Units in order of their lengths, cut where a batch with its padding would have more than `tokens`."""
    groups, start = [], 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or lengths[end] * (end + 1 - start) > tokens:
            groups.append(numbers[start:end])
            start = end
    return groups


def padded(units: Units, numbers: Int64, pieces: Pieces) -> Int64:
    """Units between [CLS] and [SEP], int64 [unit, token], filled with [PAD]."""
    lengths = units.lengths()[numbers]
    rows = np.full((len(numbers), int(lengths.max()) + 2), pieces.pad, np.int64)
    rows[:, 0] = pieces.cls
    for row, (unit, length) in enumerate(zip(numbers, lengths, strict=True)):
        rows[row, 1 : length + 1] = units.pieces[units.starts[unit] : units.starts[unit] + length]
        rows[row, length + 1] = pieces.sep
    return rows


def chosen_words(rows: Int64, pieces: Pieces, rng: np.random.Generator) -> Bools:
    """Which pieces are to be guessed, bool [text, token]: whole words, drawn at their first piece.

    rows: int64 [text, token], each with [CLS] first. A "##" piece without a word before it begins one.
    """
    is_ordinary = ~pieces.is_special[rows]
    begins = is_ordinary & pieces.begins_word[rows]
    begins[:, 1] |= is_ordinary[:, 1]
    words = np.cumsum(begins, axis=1, dtype=np.int64)  # the number of each piece's word in its text, from 1
    shares = np.where(pieces.is_common[rows], COMMON_SHARE, SHARE)
    texts, places = np.nonzero((rng.random(rows.shape) < shares) & begins)
    is_chosen = np.zeros((len(rows), rows.shape[1] + 1), bool)  # [text, word]
    is_chosen[texts, words[texts, places]] = True
    return np.take_along_axis(is_chosen, words, axis=1) & is_ordinary


def masked(rows: Int64, pieces: Pieces, rng: np.random.Generator) -> Batch:
    """Texts with some of their words hidden; of a few words it may be none."""
    chosen = chosen_words(rows, pieces, rng)
    answers = rows[chosen]
    kinds = rng.random(len(answers))
    random_pieces = rng.choice(pieces.random, len(answers))
    hidden = rows.copy()
    hidden[chosen] = np.where(
        kinds < AS_MASK, pieces.mask, np.where(kinds < AS_MASK + AS_RANDOM, random_pieces, answers)
    )
    is_text = rows != pieces.pad
    return Batch(
        torch.from_numpy(hidden),
        None if is_text.all() else torch.from_numpy(is_text),
        torch.from_numpy(np.flatnonzero(chosen)),
        torch.from_numpy(answers),
        int(is_text.sum()),
    )
