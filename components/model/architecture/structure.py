"""What an encoder is, in plain values: what it has, and in which order it computes.

Pages and analyses ask it for capabilities (`has_position_vectors`, `normalises_first`), never for the name of a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# How a model knows the order of its tokens. "absolute": a vector for each position, added at layer 0. "relative": a number
# for each distance, added to the scores of attention (MPNet). "rotary": queries and keys are rotated by an angle that grows
# with the position (Su et al. 2021). "disentangled": a vector for each distance, whose products with queries and keys are
# added to the scores (He et al. 2021, DeBERTa).
Positions = Literal["absolute", "relative", "rotary", "disentangled"]
# What of a model can be looked at: what its blocks do, the vectors of single tokens, those of whole texts.
Offer = Literal["blocks", "tokens", "texts"]


@dataclass(frozen=True)
class Structure:
    """The properties of an encoder. Blocks count from 0."""

    architecture: str  # config.model_type
    title: str  # what people call it: "BERT", "ModernBERT"
    positions: tuple[Positions, ...]
    layer_zero_parts: tuple[str, ...]  # what layer 0 is summed from, of "word", "position", "segment", "task"
    layer_zero_steps: tuple[str, ...]  # what happens to that sum, of "norm", "projection", in this order
    normalises_first: bool = False  # each part of a block normalises its input, and its output is added as it is
    norm: Literal["LayerNorm", "RMSNorm"] = "LayerNorm"  # the second neither subtracts the mean nor adds a shift
    has_final_norm: bool = False  # a norm after the last block: the last layer is its output
    has_fused_projections: bool = False  # one matrix gives queries, keys and values
    has_projection_biases: bool = True  # the matrices of attention add a constant
    has_gated_feed_forward: bool = False  # one matrix's output is multiplied by another's
    windows: tuple[int | None, ...] = ()  # by block: the furthest distance at which tokens attend; None: any
    block_weights: tuple[int, ...] = ()  # by block: the number of the weights that it uses
    heads_per_key: int = 1  # how many heads share their keys and values
    has_own_attention_code: bool = False  # it takes no attention function from outside, only those of the library
    is_causal: bool = (
        False  # a token sees only those before it: a decoder, of which only the vectors of texts are shown
    )
    scores_from_pooler: bool = False  # the head of its cross-encoders reads the pooler's output
    scoring_head: tuple[str, ...] = ("classifier.", "pre_classifier.")  # how the names of that head's weights begin

    @property
    def has_blocks(self) -> bool:
        """Whether there is anything after layer 0; not so for static vectors."""
        return bool(self.block_weights)

    @property
    def offered(self) -> tuple[Offer, ...]:
        """What of the model the pages can show."""
        if self.is_causal:
            return ("texts",)
        return ("blocks", "tokens", "texts") if self.has_blocks else ("tokens", "texts")

    def why_not(self, offer: Offer) -> str:
        """Why this cannot be shown, as the end of "the model ..."; empty if it can."""
        if offer in self.offered:
            return ""
        if self.is_causal:
            return (
                "is a decoder, in which a token sees only those before it: only its last token at its last layer was trained "
                "to stand for a text"
            )
        return "has no blocks: it is a table with one vector for each piece of its vocabulary"

    @property
    def has_position_vectors(self) -> bool:
        """Whether a vector for each position is added at layer 0."""
        return "position" in self.layer_zero_parts

    @property
    def ignores_word_lengths(self) -> bool:
        """Whether a norm undoes any scaling of a word vector at once: then the gradient along the vector itself is 0."""
        return self.layer_zero_parts == ("word",) and "norm" in self.layer_zero_steps

    @property
    def adds_to_scores(self) -> bool:
        """Whether attention is more than the softmax of queries times keys: a term for the tokens' distance is added."""
        return "relative" in self.positions or "disentangled" in self.positions

    @property
    def has_disentangled_terms(self) -> bool:
        """Whether products with the vectors of distances are added to the scores (DeBERTa)."""
        return "disentangled" in self.positions

    @property
    def rotates(self) -> bool:
        """Whether positions enter by rotating queries and keys."""
        return "rotary" in self.positions

    @property
    def shares_blocks(self) -> bool:
        """Whether several blocks use the same weights."""
        return len(set(self.block_weights)) < len(self.block_weights)
