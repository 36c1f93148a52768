"""`predict TEXT`: what a model guesses at masks, or at every token when it is hidden."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from components.command_line import options as shared
from components.errors import InputError
from components.model.catalog import typed_model

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.guesses.record import LayerGuesses

NAME = "predict"
HELP = "guess the word at a [MASK], or each token of a text in turn, by a model's masked-LM head"
LAYERS = ("all", "last")
DIGITS = 9
MOST_GUESSES = 1_000
EXAMPLE = 'python -m components predict "The capital of France is [MASK]."'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text",
        metavar="TEXT",
        help="a text with [MASK] or ___ in it, or without: then each of its tokens is hidden alone, in turn",
    )
    parser.add_argument(
        "--model",
        type=typed_model,
        help="a hub id, a folder, or embedded; it needs a masked-LM head (default: the included model)",
    )
    parser.add_argument(
        "--layers",
        default="last",
        metavar="|".join(LAYERS),
        help="all: the head also reads the vectors of every layer below, for which it was not trained (default: last)",
    )
    parser.add_argument("-k", type=int, default=5, help="the number of guesses (default: 5)")
    parser.add_argument(
        "--max-length", type=int, help="truncate the text to this many tokens (default: the model's own maximum)"
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    _check(options)
    from components.model.guesses import included

    backend = _load(options)
    for sentence in backend.not_applied:
        shared.note(f"{backend.spec.title}: {sentence}")
    guesses = _guesses(backend, options)
    if not backend.spec.masked_lm:
        shared.note(included.said())
    for item in guesses.sentence.dropped:
        shared.note(f"{item.tokens:,} tokens of the text are truncated.")
    if len(guesses.masks) > 1 and not guesses.in_turn:
        shared.note("Each mask is guessed by itself: the guesses need not fit together.")
    predictions = [
        _prediction(backend, guesses, layer, token)
        for token in range(len(guesses.positions))
        for layer in range(len(guesses.layers))
    ]
    if options.json != "-":
        for prediction in predictions:
            _say(guesses, prediction)
    return {"model": backend.spec.key, "predictions": predictions, "not_applied": list(backend.not_applied)}


def default_model() -> str:
    """The model that guesses where --model names none."""
    from components.model.catalog import EMBEDDED_KEY

    return EMBEDDED_KEY


def _check(options: argparse.Namespace) -> None:
    """Raise InputError for options that no model could serve."""
    if not options.text.strip():
        raise InputError("The text has no word.", "It needs one, or a mask.", f"Write for example {EXAMPLE}")
    if options.layers not in LAYERS:
        raise InputError(
            f"--layers {options.layers[:40]} is not possible.",
            f"It is one of {', '.join(LAYERS)}.",
            "Write for example --layers all",
        )
    if not 1 <= options.k <= MOST_GUESSES:
        raise InputError(
            f"-k is {options.k}.", f"It is a number of guesses from 1 to {MOST_GUESSES:,}.", "Write for example -k 5"
        )


def _load(options: argparse.Namespace) -> Backend:
    """The model. Raises InputError for one without a masked-LM head, and names some that have one."""
    from components.model.backend import Backend
    from components.model.catalog import CATALOG

    backend = Backend.load(options.model or default_model())
    if not backend.spec.can_guess:
        having = [f"{spec.title} (--model {spec.key})" for spec in CATALOG if spec.can_guess]
        raise InputError(
            f"{backend.spec.title} was published without a masked-LM head, so that it cannot guess words.",
            f"Models with one: {', '.join(having)}.",
            "Name one of them, or a folder that holds one.",
        )
    return backend


def _guesses(backend: Backend, options: argparse.Namespace) -> LayerGuesses:
    """The guesses at the text's masks, in one pass, or without a mask at each of its tokens in turn."""
    from components.model.guesses.masks import typed_masks, with_masks
    from components.model.guesses.passes import text_positions

    layers = None if options.layers == "all" else (backend.facts.layers,)
    text = with_masks(options.text, backend.tokenization)
    (sentence,) = backend.tokenize([text], max_length=options.max_length)
    masks = typed_masks(sentence, backend.tokenization)
    if masks:
        return backend.guesses(text, max_length=options.max_length, k=options.k, positions=masks, layers=layers)
    if not text_positions(sentence):
        raise InputError(
            f"The tokenizer of {backend.spec.title} reads no token in the text.",
            "It drops characters that it does not know.",
            f"Write for example {EXAMPLE}",
        )
    with shared.progress_bar("Hiding each token in turn", unit=" tokens") as report_progress:
        return backend.guesses_in_turn(
            text,
            max_length=options.max_length,
            k=options.k,
            layers=layers,
            progress=report_progress if backend.surprises_take_long(len(sentence)) else lambda done, total: None,
        )


def _prediction(backend: Backend, guesses: LayerGuesses, layer: int, token: int) -> dict[str, Any]:
    from components.analysis.mask_predictions import piece_of

    vocabulary = backend.tokenization.vocabulary
    rank = int(guesses.true_ranks[layer, token])
    return {
        "position": guesses.positions[token],
        "layer": guesses.layers[layer],
        "pieces": [
            {"piece": piece_of(vocabulary, number), "probability": round(probability, DIGITS)}
            for number, probability in zip(
                guesses.ids[layer, token].tolist(), guesses.probabilities[layer, token].tolist(), strict=True
            )
        ],
        "true_rank": rank or None,  # nothing is known of what stands behind a mask
    }


def _say(guesses: LayerGuesses, prediction: dict[str, Any]) -> None:
    position, rank = prediction["position"], prediction["true_rank"]
    typed = guesses.sentence.tokens[position].piece
    place = "" if rank is None else f", itself in place {rank:,}"
    shared.say(f"{typed} (position {position}), layer {prediction['layer']}{place}:")
    for guess in prediction["pieces"]:
        shared.say(f"{guess['probability']:9.4f}  {guess['piece']}")
