"""Options that commands of this project share, for figures whose numbers take more than 30 lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from components.model.catalog import EMBEDDED_KEY
from components.model.files.sentence_config import prompt_for
from components.retrieval.fusion.scores import RRF_K

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.fusion.settings import FusionSettings


def of_model(backend: Backend, max_length: int | None = None) -> tuple[str, ...]:
    """The options that name a model, unless it is the included one, and a length that is not its own."""
    model = () if backend.spec.key == EMBEDDED_KEY else ("--model", backend.spec.key)
    return (*model, *(() if max_length is None else ("--max-length", str(max_length))))


def why(
    backend: Backend,
    texts: tuple[str, str],
    layer: int,
    pooling: str,
    max_length: int,
    prompts: tuple[str, str] = ("", ""),
) -> tuple[str, ...]:
    """The command that splits the cosine of two texts by pairs of their tokens.

    Empty where the texts have other `prompts` before them than the command puts there, and for an empty text.
    """
    if set(prompts) != {prompt_for(backend.sentence_config, None)} or not all(map(str.strip, texts)):
        return ()
    is_own = max_length == backend.embed_options().max_length
    cell = ("--layer", str(layer), "--pooling", pooling)
    return ("why", *cell, *of_model(backend, None if is_own else max_length), "--json", "-", "--", *texts)


def of_fusion(words: Sequence[str], settings: FusionSettings) -> tuple[str, ...]:
    """The options that put rankings by words together with the one by vectors."""
    options: tuple[str, ...] = ("--fuse", ",".join(words))
    if settings.weight is not None:
        options += ("--weights", f"{settings.weight / 100:g}")
        options += () if settings.normalised == "minmax" else ("--normalise", settings.normalised)
    if (settings.weight is None or settings.normalised == "rrf") and settings.rank_constant != RRF_K:
        options += ("--rrf-k", str(settings.rank_constant))
    return options if settings.depth is None else (*options, "--depth", str(settings.depth))


def measured(
    command: str,
    file: Sequence[str],
    backend: Backend,
    layers: Sequence[int],
    poolings: Sequence[str],
    max_length: int | None,
    *options: str,
) -> tuple[str, ...]:
    """A command that reads a `file`, given with the options that say how, and measures layers and poolings of a model.

    Empty where there is no such file, and for a model that the commands refuse or rank by another similarity than the pages'
    cosine.
    """
    if not file or backend.is_cross_encoder or backend.sentence_config.similarity != "cosine":
        return ()
    name, *reading = file
    cells = ("--layers", ",".join(map(str, layers)), "--poolings", ",".join(poolings))
    return (command, *of_model(backend, max_length), *cells, *options, *reading, "--json", "-", "--", name)
