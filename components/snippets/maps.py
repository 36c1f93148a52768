"""Code for maps of tokens, and for how the senses of a word separate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from components.snippets import code
from components.snippets.code import Input, Snippet

if TYPE_CHECKING:
    from components.analysis.maps.projection import MapOptions
    from components.model.backend import Backend


@dataclass(frozen=True)
class Tokens:
    """The statements that give `vectors` [layer, token, dim] of the tokens of a map."""

    setup: tuple[str, ...]
    body: tuple[str, ...]


def of_input(read: Input, include_special: bool) -> Tokens:
    """The tokens of some sentences, or of a pair that is read as one input."""
    special = None if include_special else False
    tokens = code.call("of_trace", "trace", special=special)
    return Tokens(read.setup, (read.trace(), f"vectors = {tokens}.vectors  # [layer, token, dim]"))


def of_corpus(backend: Backend, corpus: Sequence[str], most: int, word: str = "") -> Tokens:
    """A sample of a corpus's tokens, or the occurrences of a word in it; `corpus` are the statements that read it."""
    found = code.call("backend.token_vectors", "corpus.texts", word=word or None, max_tokens=most)
    return Tokens(
        (code.model(backend), *corpus),
        (f"found = {found}", "vectors = np.asarray(found.vectors, np.float32)  # [layer, token, dim]"),
    )


def of_senses(backend: Backend, name: str | None, word: str, most: int) -> Tokens:
    """The occurrences of a word in labelled sentences: the included ones, or those of a person's file of this `name`."""
    if name is None:
        read: tuple[str, ...] = ('labelled = read_senses(ASSETS / "senses.jsonl", "senses.jsonl")',)
    else:
        read = (
            *code.file(name, "The sentences were those of"),
            "labelled = read_senses(file, file.name)",
        )
    found = code.call("backend.token_vectors", "[row.sentence for row in rows]", word=word, max_tokens=most)
    return Tokens(
        (code.model(backend), *read),
        (
            f"rows = labelled.of({code.literal(word)})",
            f"found = {found}",
            "meant, _ = meant_occurrences(rows, [(token.sentence, token.start, token.end) for token in found.tokens])",
            "senses = [rows[found.tokens[number].sentence].sense for number in meant]",
            "vectors = found.vectors[:, meant]  # [layer, occurrence, dim]",
        ),
    )


def layers(tokens: Tokens, options: MapOptions, shown: Sequence[int]) -> Snippet:
    """The maps of some layers, each aligned to the common start of all."""
    if len(shown) == 1:
        points = f"values = layer_map(vectors[{shown[0]}], options, start)"
        printed = "print(values)  # [token, axis]"
    else:
        points = f"values = [layer_map(vectors[layer], options, start) for layer in {code.literal(list(shown))}]"
        printed = "print(values)  # [token, axis] for each layer"
    return Snippet(
        tokens.setup,
        (*tokens.body, f"options = {_options(options)}", "start = start_map(vectors, options)", points, printed),
    )


def joint(tokens: Tokens, options: MapOptions, first: int, second: int) -> Snippet:
    """One map of the vectors of two layers."""
    return Snippet(
        tokens.setup,
        (
            *tokens.body,
            f"options = {_options(options)}",
            f"values = layer_map(np.concatenate([vectors[{first}], vectors[{second}]]), options, None)",
            f"print(values)  # [token at layer {first}, then at layer {second}; axis]",
        ),
    )


def _options(options: MapOptions) -> str:
    """The options of a map as code, without those that are the default."""
    chosen = options.effective()
    named = {
        field.name: getattr(chosen, field.name)
        for field in fields(chosen)
        if field.name != "method" and getattr(chosen, field.name) != field.default
    }
    return code.call("MapOptions", code.literal(chosen.method), **named)


def sense_curve(tokens: Tokens) -> Snippet:
    """How well the senses of a word separate at each layer."""
    return Snippet(
        tokens.setup,
        (
            *tokens.body,
            "curve = sense_curve(vectors, senses)",
            "print(curve.accuracy, by_chance(senses), curve.silhouette)  # by layer; by chance is one number",
        ),
    )
