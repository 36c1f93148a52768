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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from components.analysis.attention.weights import second_text
from components.analysis.similarity.cosines import cross_cosines
from components.arrays import Float64, cosine, read_only
from components.model.trace import Trace

FAR = 4  # times as long as all others


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


@dataclass(frozen=True)
class BlockMeans:
    """What a block does to the tokens of a text, in a few numbers: cosines of its input with its output."""

    block: int
    tokens: int
    itself: float  # mean cosine of a token with itself; NaN without a token
    another: float  # mean cosine of a token with another one; NaN for one token
    nearest: int  # tokens that come out more like what they were than like any other token


@dataclass(frozen=True)
class LeastLikeItself:
    """The token that comes out of a block least like what went in. Tokens are numbers of rows and columns."""

    token: int
    itself: float
    other: int | None  # the token whose input is most like what came out; None if there is no other
    like_other: float  # NaN if there is no other


def block_change(trace: Trace, sentence: int, block: int, include_special: bool = True) -> TokenSimilarity:
    """Tokens of a sentence before a block (rows, layer b) against its tokens after it (columns, layer b+1).

    A pair that the model read as one input is one sentence here. Raises ValueError for a block, or IndexError for a
    sentence, that does not exist.
    """
    if not 0 <= block < trace.n_layers:
        raise ValueError(f"block {block} is not within 0..{trace.n_layers - 1}")
    return _cosines(trace, (sentence, sentence), (block, block + 1), include_special)


def means_of(change: TokenSimilarity, block: int) -> BlockMeans:
    """The means of a block's cosines, of a matrix that `block_change` gave."""
    matrix = change.matrix
    tokens, own = len(matrix), np.diagonal(matrix)
    others = matrix[~np.eye(tokens, dtype=bool)]
    # A tie counts as nearest: two equal vectors cannot be told apart.
    nearest = int((own >= matrix.max(axis=0, initial=-1.0) - 1e-9).sum())
    return BlockMeans(
        block,
        tokens,
        float(own.mean()) if tokens else float("nan"),
        float(others.mean()) if others.size else float("nan"),
        nearest,
    )


def least_like_itself(change: TokenSimilarity, among: Sequence[bool]) -> LeastLikeItself | None:
    """Of the tokens `among` these (one value for each row), the one with the lowest cosine with itself; None without any.

    The other token is one of them too. Of equal ones, the first.
    """
    kept = np.flatnonzero(np.asarray(among, bool))
    if not kept.size:
        return None
    own = np.diagonal(change.matrix)[kept]
    token = int(kept[own.argmin()])
    others = kept[kept != token]
    if not others.size:
        return LeastLikeItself(token, float(own.min()), None, float("nan"))
    like = change.matrix[others, token]
    return LeastLikeItself(token, float(own.min()), int(others[like.argmax()]), float(like.max()))


@dataclass(frozen=True)
class FarAbove:
    """A few tokens whose lengths are far above those of all others."""

    tokens: tuple[int, ...]  # the longest first
    limit: float  # where an axis ends that leaves room for all other tokens: longer bars do not fit


def far_above(lengths: np.ndarray) -> FarAbove | None:
    """The tokens that have a length more than FAR times as long as any of the others: `lengths` [row, token]; None without.

    Rows are what is drawn on one axis, such as the parts of two blocks. A few tokens are one, or an eighth of them.
    """
    longest = lengths.max(axis=0)  # [token]
    order = np.argsort(-longest, kind="stable")
    ordered = longest[order]
    for count in range(1, min(len(ordered), max(1, len(ordered) // 8) + 1)):
        if ordered[count] > 0 and ordered[count - 1] > FAR * ordered[count]:
            return FarAbove(tuple(order[:count].tolist()), 1.06 * float(ordered[count]))
    return None


def strongest_others(change: TokenSimilarity, count: int) -> tuple[tuple[int, int], ...]:
    """The cells (row, column) off the diagonal with the highest cosines, `count` of them at most, the highest first."""
    matrix = np.array(change.matrix)
    np.fill_diagonal(matrix, -np.inf)
    order = np.argsort(-matrix, axis=None, kind="stable")[: min(count, matrix.size - len(matrix))]
    return tuple((int(cell // len(matrix)), int(cell % len(matrix))) for cell in order)


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


def between_texts(trace: Trace, layer: int, sentence: int, include_special: bool = False) -> TokenSimilarity:
    """The tokens of a pair's first text (rows) against those of its second (columns), read as one input.

    Raises ValueError for a layer, or IndexError for a sentence, that does not exist.
    """
    similarity = token_similarity(trace, layer, sentence, include_special=include_special)
    positions = np.array(similarity.positions, np.int64)
    in_second = second_text(trace.sentences[sentence])[positions]
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
        trace.hidden_states[layer, number, list(tokens)]  # [token, dim]
        for layer, number, tokens in zip(layers, sentences, positions, strict=True)
    )
    return TokenSimilarity(read_only(cross_cosines(rows, columns)), positions[0], positions[1])
