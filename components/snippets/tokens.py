"""Code for tokens and for the model itself: input tensors, parameters, one vector, the parts of layer 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from components.snippets import code
from components.snippets.code import Input, Snippet

if TYPE_CHECKING:
    from components.model.backend import Backend


def tensors(read: Input) -> Snippet:
    """The tensors that a model gets."""
    return read.snippet(
        read.tokens(),
        "input_ids, attention_mask, token_type_ids = backend.tokenization.arrays(sentences)",
        "print([[token.piece for token in sentence.tokens] for sentence in sentences])",
        "print(input_ids, token_type_ids, attention_mask)  # [sentence, token] each",
    )


def parameters(backend: Backend) -> Snippet:
    """The number of parameters of each part of a model."""
    return Snippet(
        (code.model(backend),),
        (
            "values = [part.count for part in backend.parameter_parts]",
            "print([(part.group, part.part) for part in backend.parameter_parts], values)",
        ),
    )


def parameters_of(models: Mapping[str, Backend]) -> Snippet:
    """The number of parameters of some models by kind of part, by the names that the figure gives them."""
    loaded, names = code.models(list(models.values()))
    values = (
        f"values[{code.literal(title)}] = totals_by_part({name}.parameter_parts)"
        for title, name in zip(models, names, strict=True)
    )
    return Snippet(loaded, ("values = {}", *values, "print(values)"))


def pieces_of(reads: Mapping[str, Input], sentence: int) -> Snippet:
    """The pieces of one of the texts by some models' tokenizers; all of them read the same texts."""
    loaded, names = code.models([read.backend for read in reads.values()])
    text = next(iter(reads.values())).texts[sentence]
    body = ["values = {}"]
    for (title, read), name in zip(reads.items(), names, strict=True):
        tokenized = code.call(f"{name}.tokenize", "[text]", max_length=read.max_length)
        body.append(f"values[{code.literal(title)}] = [token.piece for token in {tokenized}[0].tokens]")
    return Snippet((*loaded, f"text = {code.literal(text)}"), (*body, "print(values)"))


def vector(read: Input, sentence: int, position: int, layer: int) -> Snippet:
    """The values of one token's vector at a layer."""
    return read.snippet(
        read.trace(),
        f"values = trace.hidden_states[{layer}, {sentence}, {position}]  # [layer, sentence, token, dim]",
        "print(values, np.linalg.norm(values))  # [dim], and the length",
    )


def part_norms(read: Input, sentence: int) -> Snippet:
    """The lengths of the parts of layer 0."""
    return read.snippet(
        read.trace(),
        f"norms = part_norms(trace, {sentence})",
        "values = dict(zip(norms.names, norms.values))",
        "print(values)  # [token] each",
    )


def part_cosines(read: Input, positions: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Snippet:
    """The cosines of the parts of layer 0 of chosen tokens, one in each sentence."""
    return read.snippet(
        read.trace(),
        f"positions = {code.literal(list(positions))}  # of the chosen token in each sentence",
        f"cosines = part_cosines(trace, positions, pairs={code.literal(list(pairs))})",
        "values = cosines.values",
        "print(cosines.names, values)  # [part, pair of sentences]",
    )


def _feed_forward(read: Input, sentence: int, block: int) -> str:
    return "inner = " + code.call("backend.feed_forward", f"texts[{sentence}]", max_length=read.max_length, block=block)


def inner_dimensions(read: Input, sentence: int, block: int, position: int) -> Snippet:
    """The activations of one token's inner dimensions in a block, or their gates, and the share that is nearly closed."""
    return read.snippet(
        _feed_forward(read, sentence, block),
        f"values = inner.activations_of({block})[{position}]  # [inner]",
        "counts, edges = np.histogram(values, bins=60)",
        "print(closed_share(values), counts, edges)",
    )


def strongest_dimensions(read: Input, sentence: int, block: int, position: int, count: int) -> Snippet:
    """The inner dimensions that give most for one token in a block."""
    return read.snippet(
        _feed_forward(read, sentence, block),
        f"products = inner.products({block})[{position}]  # [inner]",
        f"dimensions = list(strongest(products, {count}))",
        "values = products[dimensions]",
        "print(dimensions, values)",
    )


def closed_shares(read: Input, sentence: int, block: int) -> Snippet:
    """The share of nearly closed inner dimensions by block and token."""
    return read.snippet(
        _feed_forward(read, sentence, block),
        "values = 100 * inner.closed_shares",
        "print(values)  # [block, token], in per cent",
    )
