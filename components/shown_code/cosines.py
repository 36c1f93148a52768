"""Code for the heatmaps of tokens: before and after a block, and against each other at a layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from components.analysis.similarity.cka import MOST_TOKENS, SEED, cheaper, layer_cka
from components.analysis.similarity.cosines import cosine_matrix, cross_cosines
from components.arrays import cosine, unit
from components.shown_code.arrays import both, of_watch
from components.shown_code.code import AnyCode, Code
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


def layers_changed(run: str, steps: Sequence[int], shape: tuple[int, ...]) -> Code:
    """How much each layer's tokens changed between two steps of a training run; `shape` is that of their vectors."""
    method = cheaper(shape, shape)
    return of_watch(
        run,
        steps,
        (unit, method),
        "before, after = (unit(each.astype(float)) for each in tokens)",
        "turned = 1 - (before * after).sum(axis=-1).mean(axis=1)",
        *(
            line.replace("tokens[:, rows]", "[each[:, rows] for each in tokens]")
            for line in _sample(shape[1], "tokens")
        ),
        "before, after = (each - each.astype(float).mean(axis=1, keepdims=True) for each in tokens)",
        f"cross, first, second = {method.__name__}(before, after)",
        "values = np.array([1 - np.diagonal(cross / np.outer(first, second)), turned])",
        "print(values)  # [1 - CKA or 1 - cosine, layer]",
    )


def word_changed(run: str, step: int, pairs: Mapping[str, Sequence[tuple[int, int]]]) -> Code:
    """The mean cosine of pairs of tokens at a step of a training run, over the layers."""
    return of_watch(
        run,
        [step],
        (cosine,),
        f"pairs = {literal(list(pairs.values()))}  # the numbers of the tokens in watch/tokens.json, for each curve",
        "(tokens,) = tokens",
        "values = [np.mean([cosine(tokens[:, a], tokens[:, b]) for a, b in curve], axis=0) for curve in pairs]",
        "print(values)  # [curve, layer]",
    )


def watched(run: str, step: int, layer: int) -> Code:
    """The cosines of the watch sentences at a step of a training run."""
    of_layer = f"values = cosine_matrix(sentences[0][{layer}:{layer + 1}])[0]"
    return of_watch(run, [step], (cosine_matrix,), of_layer, "print(values)  # [sentence, sentence]")


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
