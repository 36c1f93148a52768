"""`why TEXT_A TEXT_B`: the similarity of two texts as a sum of contributions."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from components.command_line import options as shared
from components.errors import InputError
from components.model.catalog import typed_model

if TYPE_CHECKING:
    from components.analysis.why.ledger import Ledger, LedgerPart
    from components.model.backend import Backend
    from components.model.contributions.path_products import Reference
    from components.model.trace import Pooling

NAME = "why"
HELP = "split the cosine of two texts into contributions that sum to it"
SPLITS = ("tokens", "words", "blocks")
DIGITS = 9
SHOWN = 10  # contributions that are written for people


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="TEXT_A", help="a text")
    parser.add_argument("second", metavar="TEXT_B", help="the text that it is compared with")
    parser.add_argument(
        "--to",
        default="tokens",
        metavar="|".join(SPLITS),
        help="what the cosine is split into: pairs of tokens at the layer (default), pairs of words as typed (integrated "
        "Jacobians, some seconds), or what each block and head adds to TEXT_A",
    )
    parser.add_argument(
        "--model",
        type=typed_model,
        default="embedded",
        help="a hub id, a folder, or embedded (all-MiniLM-L6-v2, the default)",
    )
    shared.add_prompt(parser)
    parser.add_argument("--layer", type=int, help="of the vectors that are compared (default: the last)")
    parser.add_argument(
        "--pooling", help="mean, cls, max, or own (default: the pooling that the model was published with)"
    )
    parser.add_argument(
        "--max-length", type=int, help="truncate texts to this many tokens (default: the model's own maximum)"
    )
    parser.add_argument(
        "--reference",
        help="with --to words, where the split begins: unknown, mask, padding or mean (default: the one whose own terms are "
        "smallest)",
    )
    parser.add_argument("--steps", type=int, help="with --to words: steps of the integral (default: 20)")


def run(options: argparse.Namespace) -> dict[str, Any]:
    if options.to not in SPLITS:
        raise InputError(
            f"--to {options.to[:40]} is not possible.",
            f"It is one of {', '.join(SPLITS)}.",
            "Write for example --to words",
        )
    if options.to != "words" and (options.reference is not None or options.steps is not None):
        raise InputError(
            f"--reference and --steps do not belong to --to {options.to}.",
            "They say how the words as typed are followed.",
            "Leave them out, or add --to words",
        )
    if not options.first.strip() or not options.second.strip():
        raise InputError("One of the two texts is empty.", "Both need a word.", "Write each text in quotation marks.")
    backend = shared.load(options)
    layer = backend.facts.layers if options.layer is None else options.layer
    pooling = cast("Pooling", options.pooling or backend.own_pooling)
    if not 0 <= layer <= backend.facts.layers or pooling not in backend.poolings:
        raise InputError(
            f"Layer {layer} with pooling {pooling[:20]} is not available.",
            f"{backend.spec.title} has layers 0 to {backend.facts.layers} and the poolings {', '.join(backend.poolings)}.",
            "Correct --layer or --pooling.",
        )
    sentences = backend.tokenize([options.first, options.second], max_length=options.max_length)
    for name, sentence in zip(("TEXT_A", "TEXT_B"), sentences, strict=True):
        for item in sentence.dropped:
            shared.note(f"{item.tokens:,} tokens of {name} are truncated.")
    result: dict[str, Any] = {"model": backend.spec.key, "revision": backend.revision, "to": options.to}
    result["not_applied"] = list(backend.not_applied)
    result["unknown_language"] = shared.unknown_languages(
        backend, {"TEXT_A": [options.first], "TEXT_B": [options.second]}
    )
    if options.to == "blocks":
        return result | _blocks(backend, options, layer, pooling)
    if options.to == "words":
        return result | _words(backend, options, layer, pooling)
    from components.analysis.why.token_ledger import token_ledger

    trace = backend.trace([options.first, options.second], max_length=options.max_length)
    ledger = token_ledger(trace, layer, pooling)
    return result | _pairs(ledger, options)


def _words(backend: Backend, options: argparse.Namespace, layer: int, pooling: Pooling) -> dict[str, Any]:
    from components.analysis.why.integrated_jacobians import split_to_words
    from components.model.contributions.path_products import DEFAULT_STEPS

    first, second = backend.tokenize([options.first, options.second], max_length=options.max_length)
    with shared.progress_bar("Following both texts", unit=" steps") as report_progress:
        split = split_to_words(
            backend,
            first,
            second,
            layer,
            pooling,
            cast("Reference | None", options.reference),
            DEFAULT_STEPS if options.steps is None else options.steps,
            report_progress,
        )
    return _pairs(split.ledger, options) | {"reference": split.reference, "steps": split.steps}


def _pairs(ledger: Ledger, options: argparse.Namespace) -> dict[str, Any]:
    """The result of a split into pairs; the largest are written for people."""
    if options.json != "-":
        _say_start(ledger.cosine, ledger.layer, ledger.pooling)
        cells = [
            (float(value), first, second)
            for first, row in zip(ledger.first, ledger.contributions, strict=True)
            for second, value in zip(ledger.second, row, strict=True)
        ]
        _say_largest([(value, f"{_label(first)} with {_label(second)}") for value, first, second in cells])
        for term in ledger.terms:
            shared.say(f"{term.value:+9.4f}  {term.name}")
        shared.say(f"{ledger.left_over:+9.1e}  error of the sum")
    return {
        "cosine": ledger.cosine,
        "dot_product": ledger.dot_product,
        "layer": ledger.layer,
        "pooling": ledger.pooling,
        "tokens_a": [part.text for part in ledger.first],
        "tokens_b": [part.text for part in ledger.second],
        "contributions": ledger.contributions.round(DIGITS).tolist(),  # [token of A][token of B]
        # What belongs to no pair. It is part of left_over, so that contributions and left_over are the cosine.
        "terms": {term.name: term.value for term in ledger.terms},
        "error": ledger.left_over,  # what neither contributions nor terms explain
        "left_over": ledger.cosine - float(ledger.contributions.round(DIGITS).sum()),
    }


def _blocks(backend: Backend, options: argparse.Namespace, layer: int, pooling: Pooling) -> dict[str, Any]:
    from components.analysis.why.residual_split import split_of_texts

    split = split_of_texts(backend, options.first, options.second, layer, pooling, options.max_length)
    if options.json != "-":
        _say_start(split.cosine, layer, pooling)
        columns = split.columns()
        parts = [(split.embeddings, "embeddings")]
        parts += [
            (float(value), f"block {block}, {name}")
            for block, row in enumerate(split.matrix)
            for value, name in zip(row, columns, strict=True)
        ]
        _say_largest(parts)
        shared.say(f"{split.left_over:+9.1e}  error of the sum")
    contributions = np.zeros((layer + 1, 1 + split.matrix.shape[1]))
    contributions[0, 0] = split.embeddings
    contributions[1:, 1:] = split.matrix
    contributions = contributions.round(DIGITS)
    return {
        "cosine": split.cosine,
        "layer": layer,
        "pooling": pooling,
        "rows": ["embeddings", *(f"block {block}" for block in range(layer))],
        "columns": ["embeddings", *split.columns()],
        "contributions": contributions.tolist(),  # [row][column], 0 where there is no such part
        "terms": {term.name: term.value for term in split.terms},
        "error": split.left_over,
        "left_over": split.cosine - float(contributions.sum()),
    }


def _say_start(cosine: float, layer: int, pooling: str) -> None:
    shared.say(f"{cosine:9.4f}  cosine at layer {layer}, pooling {pooling}; its largest parts:")


def _say_largest(parts: Sequence[tuple[float, str]]) -> None:
    """The parts that are largest in size, and the sum of all others."""
    ordered = sorted(parts, key=lambda part: -abs(part[0]))
    for value, name in ordered[:SHOWN]:
        shared.say(f"{value:+9.4f}  {name}")
    if others := ordered[SHOWN:]:
        shared.say(f"{sum(value for value, _ in others):+9.4f}  {len(others)} others")


def _label(part: LedgerPart) -> str:
    return f"“{part.text}” ({part.positions[0]})"
