"""Code for the heatmaps: tokens before and after a block, tokens and sentences at a layer, layers against layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.snippets import code
from components.snippets.code import Input, Snippet
from components.snippets.layers import UNRELATED_TOKENS, pooled, unrelated_sentences

if TYPE_CHECKING:
    from components.model.trace import Pooling


def blocks_change(read: Input, blocks: Sequence[int], include_special: bool) -> Snippet:
    """The input tokens (rows) of some blocks against their output tokens (columns), and of each token by block."""
    special = None if include_special else False
    call = code.call("block_change", "trace", "sentence=0", "block=block", include_special=special)
    return read.snippet(
        read.trace(),
        f"values = np.array([{call}.matrix for block in {code.literal(tuple(blocks))}])",
        "print(values)  # [block, token before it, token after it]",
        f"itself = {code.call('diagonal', 'trace', sentence=0, include_special=special)}.values",
        "print(itself)  # [block, token]",
    )


def kept_by_blocks(read: Input, include_special: bool) -> Snippet:
    """The cosine of each token before and after every block."""
    special = None if include_special else False
    return read.snippet(
        read.trace(),
        f"values = {code.call('diagonal', 'trace', sentence=0, include_special=special)}.values",
        "print(values)  # [block, token]",
    )


def turns(read: Input, blocks: Sequence[int]) -> Snippet:
    """The angles by which the two steps of some blocks turn each token."""
    return read.snippet(
        read.inside(),
        f"blocks = {code.literal(list(blocks))}",
        "layers, between = inside.hidden_states, inside.after_attention",
        "attention = [turn(layers[block], between[block]) for block in blocks]",
        "feed_forward = [turn(between[block], layers[block + 1]) for block in blocks]",
        "print(attention, feed_forward)  # [block, token] each, in degrees",
    )


def lengths(read: Input, blocks: Sequence[int]) -> Snippet:
    """The lengths of what the two steps of some blocks add to the tokens' vectors, and of what it is added to."""
    return read.snippet(
        read.inside(),
        f"blocks = {code.literal(list(blocks))}",
        "added = np.array([inside.attention_output[blocks], inside.feed_forward_output[blocks]], np.float64)",
        "values = np.linalg.norm(added, axis=-1)",
        "print(values)  # [part, block, token]: added by attention, added by feed-forward",
        "before = np.array([inside.hidden_states[blocks], inside.after_attention[blocks]], np.float64)",
        "marks = np.linalg.norm(before, axis=-1)",
        "print(marks)  # [part, block, token]: what each of the two is added to",
    )


def tokens(
    read: Input, layer: int, sentence: int, other: int, *, include_special: bool, percentiles: bool = False
) -> Snippet:
    """Tokens of a sentence against those of another, or its own, at a layer; also of a pair that is read as one input."""
    similarity = code.call(
        "token_similarity",
        "trace",
        layer=layer,
        sentence=sentence,
        other=None if other == sentence else other,
        include_special=None if include_special else False,
    )
    body = [read.trace(), f"values = {similarity}.matrix"]
    if percentiles:
        body += [
            f"unrelated = {UNRELATED_TOKENS}",
            f"values = 100 * unrelated.calibration({layer}).shares(values)",
        ]
    return read.snippet(*body, "print(values)  # [row token, column token]")


def sentences(
    read: Input,
    layer: int,
    pooling: Pooling,
    *,
    include_special: bool,
    order: tuple[int, ...],
    percentiles: bool = False,
) -> Snippet:
    """Sentences against sentences at a layer, in an order."""
    body = [
        read.trace(),
        f"vectors = {pooled(pooling, include_special)}  # [layer, sentence, dim]",
        f"similarity = sentence_similarity(vectors[{layer}])",
        f"values = similarity.ordered({code.literal(order)})",
    ]
    if percentiles:
        body += [
            f"unrelated = {unrelated_sentences(pooling, include_special)}",
            f"values = 100 * unrelated.calibration({layer}).shares(values)",
        ]
    return read.snippet(*body, "print(values)  # [sentence, sentence]")


def layers(read: Input) -> Snippet:
    """The similarity (CKA) of all layers of a model with each other."""
    return read.snippet(
        read.trace(),
        "tokens = trace.hidden_states[:, ~trace.special_mask]  # [layer, token, dim]",
        "compared = layer_cka(tokens)",
        "values = compared.matrix",
        "print(values, compared.chance)  # [layer, layer] each: the similarity, and what chance would give",
    )


def layers_of_two_models(read: Input, read_by_second: Input) -> Snippet:
    """The similarity (CKA) of the layers of one model with those of another, over the words that both have."""
    return Snippet(
        (*read.setup, code.model(read_by_second.backend, "second")),
        (
            read.trace(),
            read_by_second.trace().replace("trace = backend", "second_trace = second", 1),
            "words = matched_words(trace.sentences, second_trace.sentences)",
            "first = word_vectors(trace, [(word.sentence, word.first) for word in words])",
            "other = word_vectors(second_trace, [(word.sentence, word.second) for word in words])",
            "compared = layer_cka(first, other)",
            "values = compared.matrix",
            "print(values, compared.chance)  # [layer, layer of the second model] each",
        ),
    )
