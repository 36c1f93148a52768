"""The records of what a masked-LM head guesses. Frozen, with read-only arrays, so that sessions can share them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from components.arrays import ArrayRecord, Float64, Int64
from components.model.trace import TokenizedSentence


@dataclass(frozen=True, eq=False)
class LayerGuesses(ArrayRecord):
    """The pieces that a model's masked-LM head guesses at the tokens of one sentence or pair, layer by layer.

    At layer l the head reads the vectors of that layer, as if it were the last one: the logit lens (nostalgebraist 2020,
    "interpreting GPT: the logit lens"; used on feed-forward parts by Geva et al. 2022). Where a norm follows the last block
    (ModernBERT and others: `Structure.has_final_norm`), the vectors of the layers below get that norm too. The head was trained
    on the last layer alone: what it reads in the middle is biased, and may differ from what a layer knows (Belrose et al. 2023,
    who train a "tuned lens" for each layer instead).

    Axes: `layers` and `positions` name the first two of the arrays. By default they are all layers 0..L and all tokens, so that
    a layer or a position is its own index.
    """

    sentence: TokenizedSentence  # as typed; of masks that were written in another way, with the model's own
    hidden: tuple[
        int, ...
    ]  # the positions whose tokens were hidden; with `in_turn` those that were hidden one at a time
    masks: tuple[int, ...]  # the positions of masks in the text itself, where nothing is known of the truth
    layers: tuple[int, ...]
    positions: tuple[int, ...]
    ids: Int64  # [layer, token, k]: the best pieces, most probable first; on a tie the lower id first
    probabilities: Float64  # [layer, token, k]: 0..1; over the whole vocabulary they sum to 1
    true_ids: Int64  # [token]: what is typed; -1 for a typed mask
    true_ranks: (
        Int64  # [layer, token]: of what is typed among all pieces, 1 is first; a tie counts against it; 0 if unknown
    )
    true_probabilities: Float64  # [layer, token]; NaN if unknown
    true_bits: Float64  # [layer, token]: -log2 of them; NaN if unknown
    asked: tuple[int, ...]  # ids that were asked for besides; -1 for one that is not in the vocabulary
    asked_ranks: Int64  # [layer, token, asked]; 0 for -1
    asked_probabilities: Float64  # [layer, token, asked]; NaN for -1
    only_left: bool = False  # no token could look at those after it; the model was not trained so
    in_turn: bool = False  # at each position the guess is that of a pass in which this token alone was hidden

    def token(self, position: int) -> int:
        """Where a position is on the arrays' token axis. Raises IndexError for one that was not read."""
        if position not in self.positions:
            raise IndexError(f"position {position} was not read")
        return self.positions.index(position)


@dataclass(frozen=True, eq=False)
class TextGuesses:
    """The guesses at the masks of several texts, in their order: computed and kept together."""

    of_texts: tuple[LayerGuesses, ...]

    @property
    def nbytes(self) -> int:
        """The size of all arrays, as the store of records counts it."""
        return sum(one.nbytes for one in self.of_texts)


@dataclass(frozen=True)
class WordSurprise:
    """How surprised a model is by a word: the sum over its pieces, each hidden alone."""

    text: str  # as typed
    positions: tuple[int, ...]
    bits: float


@dataclass(frozen=True, eq=False)
class Surprises(ArrayRecord):
    """How surprised a model is by each token of a text, when it is hidden and all others are seen.

    bits = -log2 of the probability that the head gives to what is typed. Their sum is the pseudo-log-likelihood of Salazar et
    al. 2020, "Masked Language Model Scoring", in bits and with its sign changed; their mean gives the pseudo-perplexity. As
    there, the pieces of a word are hidden one at a time, and each is easy to guess from the others: a rare word of many pieces
    can look less surprising than it is (Kauf and Ivanova 2023).
    """

    sentence: TokenizedSentence
    bits: Float64  # [token]: NaN for special tokens, and for masks in the text, of which nothing is known
    probabilities: Float64  # [token]: of what is typed; NaN as above
    ranks: Int64  # [token]: of what is typed, 1 is first; a tie counts against it; 0 where bits are NaN
    first_ids: Int64  # [token]: the piece that is guessed first; -1 for special tokens
    first_probabilities: Float64  # [token]; NaN for special tokens
    only_left: bool = False
    words: tuple[WordSurprise, ...] = field(init=False)  # in reading order, without those of which nothing is known

    def __post_init__(self) -> None:
        super().__post_init__()
        found = {}
        for token in self.sentence.tokens:
            positions = self.sentence.word_positions(token.position)
            if token.word is not None and not np.isnan(self.bits[list(positions)]).any():
                text = self.sentence.word_text(token.position)
                found[positions] = WordSurprise(text, positions, float(self.bits[list(positions)].sum()))
        object.__setattr__(self, "words", tuple(found.values()))

    @property
    def pseudo_perplexity(self) -> float:
        """2 to the mean of the bits (Salazar et al. 2020), of this one text; NaN without a token that is known.

        1 is a text without any surprise; N, as if the model threw a die with N faces at each token.
        """
        known = self.bits[~np.isnan(self.bits)]
        return float(2 ** known.mean()) if len(known) else float("nan")
