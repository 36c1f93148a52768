"""Code for the heatmaps of tokens: before and after a block, and against each other at a layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.analysis.similarity.cka import MOST_TOKENS, cheaper, layer_cka
from components.analysis.similarity.cosines import cross_cosines
from components.arrays import cosine
from components.shown_code.code import AnyCode, Command
from components.shown_code.written import literal, places

if TYPE_CHECKING:
    from components.shown_code.arrays import Input

Tokens = tuple[int, int, Sequence[int]]  # a layer, a sentence, and positions of its tokens


def tokens_with_tokens(read: Input, rows: Tokens, columns: Tokens) -> AnyCode:
    """Tokens (rows) against tokens (columns), each at a layer."""
    first, second = (f"hidden_states[{layer}, {row}, {places(at)}]" for layer, row, at in (rows, columns))
    return read.states(
        (cross_cosines,),
        f"rows, columns = {first}, {second}  # [token, dim]",
        "values = cross_cosines(rows, columns)",
        "print(values)  # [row token, column token]",
    )


def layers_alike(read: Input, shape: tuple[int, ...]) -> AnyCode:
    """Linear CKA of all layers with all, over the tokens but special ones; `shape` is that of their vectors."""
    method = cheaper(shape, shape)
    if shape[1] > MOST_TOKENS:  # a sample of them is compared
        return Command(layer_cka)
    return read.states(
        (method, layer_cka),
        "tokens = hidden_states[:, ~special].astype(float)  # [layer, token, dim]",
        "tokens -= tokens.mean(axis=1, keepdims=True)",
        f"cross, lengths, _ = {method.__name__}(tokens, tokens)",
        "values = cross / np.outer(lengths, lengths)",
        "print(values)  # [layer, layer]",
    )


def blocks_change(read: Input, blocks: Sequence[int], positions: Sequence[int]) -> AnyCode:
    """The input tokens (rows) of some blocks against their output tokens (columns), and of each token by block."""
    return read.states(
        (cosine, cross_cosines),
        f"tokens = hidden_states[:, 0, {places(positions)}]  # [layer, token, dim]",
        f"values = np.array([cross_cosines(tokens[block], tokens[block + 1]) for block in {literal(list(blocks))}])",
        "print(values)  # [block, token before it, token after it]",
        "itself = cosine(tokens[:-1], tokens[1:])",
        "print(itself)  # [block, token]",
    )


def before_and_after(read: Input, positions: Sequence[int]) -> AnyCode:
    """The cosine of each token before and after every block."""
    return read.states(
        (cosine,),
        f"tokens = hidden_states[:, 0, {places(positions)}]  # [layer, token, dim]",
        "values = cosine(tokens[:-1], tokens[1:])",
        "print(values)  # [block, token]",
    )
