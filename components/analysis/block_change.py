"""How a block changes its tokens: cosines between its input vectors and its output vectors.

Block b turns layer b into layer b+1. The residual passes each vector on, so that layers share one space
and their cosines are meaningful (Brunner et al. 2020, "On Identifiability in Transformers": tokens can be identified
in later layers, but less well in deeper ones). A high diagonal means that tokens hardly change; a bright column means
that all tokens moved towards the new vector of this token.

What it does not show: a change of length (a cosine ignores it), why the block changes a token, or whether that
matters. Cosines of unrelated tokens are far above 0 in some layers (Ethayarajh 2019): compare them with
components.analysis.similarity.baseline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.arrays import Float64, cosine, read_only, unit
from components.model.trace import Trace


@dataclass(frozen=True, eq=False)
class TokenSimilarity:
    """Cosines of tokens with tokens."""

    matrix: Float64  # [row token, column token]
    positions: tuple[int, ...]  # of the rows' tokens, in their sentence
    column_positions: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """How much of each token's direction is kept by every block."""

    values: Float64  # [block, token]: cosine of the token at layer b and at layer b+1
    positions: tuple[int, ...]  # of the tokens in their sentence


def block_change(trace: Trace, sentence: int, block: int, include_special: bool = True) -> TokenSimilarity:
    """Tokens of a sentence before a block (rows, layer b) against its tokens after it (columns, layer b+1).

    A pair that the model read as one input is one sentence here. Raises ValueError for a block, or IndexError for a
    sentence, that does not exist.
    """
    if not 0 <= block < trace.n_layers:
        raise ValueError(f"block {block} is not within 0..{trace.n_layers - 1}")
    return _cosines(trace, (sentence, sentence), (block, block + 1), include_special)


def diagonal(trace: Trace, sentence: int, include_special: bool = True) -> BlockDiagonal:
    """Cosine of each token with itself across every block. Raises IndexError for a sentence that does not exist."""
    positions = positions_of(trace, sentence, include_special)
    vectors = trace.hidden_states[:, sentence, list(positions)]  # [layer, token, dim]
    return BlockDiagonal(read_only(cosine(vectors[:-1], vectors[1:])), positions)


def token_similarity(
    trace: Trace, layer: int, sentence: int, other: int | None = None, include_special: bool = True
) -> TokenSimilarity:
    """Tokens of a sentence against its own tokens, or those of an `other` sentence, at one layer.

    Raises ValueError for a layer, or IndexError for a sentence, that does not exist.
    """
    if not 0 <= layer <= trace.n_layers:
        raise ValueError(f"layer {layer} is not within 0..{trace.n_layers}")
    return _cosines(trace, (sentence, sentence if other is None else other), (layer, layer), include_special)


def between_texts(trace: Trace, layer: int, sentence: int) -> TokenSimilarity:
    """The text's own tokens of a pair's first text (rows) against those of its second (columns), read as one input.

    Raises ValueError for a layer, or IndexError for a sentence, that does not exist.
    """
    similarity = token_similarity(trace, layer, sentence, include_special=False)
    in_second = np.array(
        [trace.sentences[sentence].tokens[position].in_pair for position in similarity.positions], bool
    )
    positions = np.array(similarity.positions, np.int64)
    return TokenSimilarity(
        read_only(similarity.matrix[~in_second][:, in_second]),
        tuple(positions[~in_second].tolist()),
        tuple(positions[in_second].tolist()),
    )


def positions_of(trace: Trace, sentence: int, include_special: bool = True) -> tuple[int, ...]:
    """Positions of a sentence's tokens, all or only those of its text; never padding."""
    if not 0 <= sentence < len(trace.sentences):
        raise IndexError(f"sentence {sentence} is not within 0..{len(trace.sentences) - 1}")
    tokens = trace.sentences[sentence].tokens
    return tuple(token.position for token in tokens if include_special or not token.special)


def _cosines(
    trace: Trace, sentences: tuple[int, int], layers: tuple[int, int], include_special: bool
) -> TokenSimilarity:
    """Cosines of the tokens of one sentence at one layer (rows) and of another at another (columns)."""
    positions = [positions_of(trace, number, include_special) for number in sentences]
    rows, columns = (
        unit(trace.hidden_states[layer, number, list(tokens)].astype(np.float64))  # [token, dim]
        for layer, number, tokens in zip(layers, sentences, positions, strict=True)
    )
    return TokenSimilarity(read_only(np.clip(rows @ columns.T, -1.0, 1.0)), positions[0], positions[1])
