"""Code for the heatmaps of tokens: before and after a block, and against each other at a layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.analysis.similarity.cka import MOST_TOKENS, SEED, cheaper, layer_cka
from components.analysis.similarity.cosines import cross_cosines
from components.arrays import cosine
from components.shown_code.arrays import both
from components.shown_code.code import AnyCode
from components.shown_code.vectors import of_words
from components.shown_code.written import literal, places

if TYPE_CHECKING:
    from components.shown_code.arrays import Input

Words = Sequence[tuple[int, Sequence[int]]]  # of each its sentence, and the positions of its tokens
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
    return read.states(
        (method, layer_cka),
        "tokens = hidden_states[:, ~special].astype(float)  # [layer, token, dim]",
        *_sample(shape[1], "tokens"),
        "tokens -= tokens.mean(axis=1, keepdims=True)",
        f"cross, lengths, _ = {method.__name__}(tokens, tokens)",
        "values = cross / np.outer(lengths, lengths)",
        "print(values)  # [layer, layer]",
    )


def models_alike(first: Input, second: Input, words: tuple[Words, Words]) -> AnyCode:
    """Linear CKA of all layers of a model (rows) with all of another, over the words that both have."""
    return both(
        of_words(first, words[0]).code((layer_cka,)),
        of_words(second, words[1]).code(
            (layer_cka,),
            *_sample(len(words[0]), "first", "vectors"),
            "first, second = (each - each.astype(float).mean(axis=1, keepdims=True) for each in (first, vectors))",
            "# All similarities of the words at each layer: [layer, word * word]",
            "first, second = ((each @ each.transpose(0, 2, 1)).reshape(len(each), -1) for each in (first, second))",
            "values = first @ second.T / np.outer(np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1))",
            "print(values)  # [layer of the first, layer of the second]",
        ),
        "first = vectors",
    )


def _sample(count: int, *names: str) -> list[str]:
    """The statements that keep a sample of `count` things, [layer, thing, dim], of which there are too many."""
    if count <= MOST_TOKENS:
        return []
    drawn = f"rows = np.sort(np.random.default_rng({SEED}).choice({count}, {MOST_TOKENS}, replace=False))"
    return [drawn, *(f"{name} = {name}[:, rows]" for name in names)]


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
