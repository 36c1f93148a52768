"""What a block does to its tokens: cosines between the vectors that go in and those that come out.

Block b turns layer b into layer b+1. The residual carries each vector through, so that layers share one space
and their cosines mean something (Brunner et al. 2020, "On Identifiability in Transformers": tokens can be found
again in later layers, less so the deeper). A high diagonal says that tokens stay what they were; a bright column
that all tokens were moved towards what this one became.

What it does not show: a change of length (a cosine has none), why the block changes a token, or whether that
matters. Cosines of unrelated tokens are far above 0 in some layers (Ethayarajh 2019): read them against
components.analysis.baseline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.arrays import Float32, Float64, cosine, read_only, unit
from components.model.trace import Trace


@dataclass(frozen=True, eq=False)
class TokenSimilarity:
    """Cosines of tokens with tokens."""

    matrix: Float64  # [row token, column token]
    positions: tuple[int, ...]  # of the rows' tokens, in their sentence
    column_positions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BlockChange(TokenSimilarity):
    """Tokens before a block (rows, layer b) against tokens after it (columns, layer b+1)."""

    block: int


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """How much of each token's direction every block keeps."""

    values: Float64  # [block, token]: cosine of the token at layer b and at layer b+1
    positions: tuple[int, ...]  # of the tokens in their sentence


def block_change(
    trace: Trace, sentence: int, block: int, other: int | None = None, include_special: bool = True
) -> BlockChange:
    """Tokens of a sentence at layer b against its tokens at layer b+1, or against those of an `other` sentence.

    A pair that the model read as one input is one sentence here. Without special tokens, rows and columns are
    those that stand for text. Raises ValueError for a block, or IndexError for a sentence, that is not there.
    """
    if not 0 <= block < trace.n_layers:
        raise ValueError(f"block {block} is not within 0..{trace.n_layers - 1}")
    rows = positions_of(trace, sentence, include_special)
    target = sentence if other is None else other
    columns = positions_of(trace, target, include_special)
    matrix = _cosines(_vectors(trace, block, sentence, rows), _vectors(trace, block + 1, target, columns))
    return BlockChange(matrix, rows, columns, block)


def diagonal(trace: Trace, sentence: int, include_special: bool = True) -> BlockDiagonal:
    """Cosine of each token with itself across every block. Raises IndexError for a sentence that is not there."""
    positions = positions_of(trace, sentence, include_special)
    vectors = trace.hidden_states[:, sentence, list(positions)]  # [layer, token, dim]
    return BlockDiagonal(read_only(cosine(vectors[:-1], vectors[1:])), positions)


def token_similarity(
    trace: Trace, layer: int, sentence: int, other: int | None = None, include_special: bool = True
) -> TokenSimilarity:
    """Tokens of a sentence against its own tokens, or those of an `other` sentence, at one layer.

    Raises ValueError for a layer, or IndexError for a sentence, that is not there.
    """
    if not 0 <= layer <= trace.n_layers:
        raise ValueError(f"layer {layer} is not within 0..{trace.n_layers}")
    rows = positions_of(trace, sentence, include_special)
    target = sentence if other is None else other
    columns = positions_of(trace, target, include_special)
    matrix = _cosines(_vectors(trace, layer, sentence, rows), _vectors(trace, layer, target, columns))
    return TokenSimilarity(matrix, rows, columns)


def positions_of(trace: Trace, sentence: int, include_special: bool = True) -> tuple[int, ...]:
    """Places of a sentence's tokens, all or only those that stand for text; never padding."""
    if not 0 <= sentence < len(trace.sentences):
        raise IndexError(f"sentence {sentence} is not within 0..{len(trace.sentences) - 1}")
    tokens = trace.sentences[sentence].tokens
    return tuple(token.position for token in tokens if include_special or not token.special)


def _vectors(trace: Trace, layer: int, sentence: int, positions: tuple[int, ...]) -> Float32:
    return trace.hidden_states[layer, sentence, list(positions)]  # [token, dim]


def _cosines(first: Float32, second: Float32) -> Float64:
    """[n, dim] and [m, dim] to [n, m]."""
    directions = [unit(vectors.astype(np.float64)) for vectors in (first, second)]
    return read_only(np.clip(directions[0] @ directions[1].T, -1.0, 1.0))
