"""Which models can be read, and why others cannot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from components.errors import ModelError
from components.model.architecture.families import albert, bert, modernbert, norms_first

SUPPORTED = (*bert.TITLES, *norms_first.TITLES, *albert.TITLES, *modernbert.TITLES)
MOST_LAYERS = 1_000  # the modules of a model are created before its weights are read


def check_supported(config: Any, name: str) -> None:
    """Raise ModelError unless the configuration belongs to a supported encoder."""
    if config.model_type not in SUPPORTED or getattr(config, "is_decoder", False):
        raise ModelError(
            "unsupported",
            f"{name} is a {config.model_type!r} model.",
            f"The dashboard reads encoders of the BERT family: {', '.join(SUPPORTED)}.",
            "Pick a model from the list, or another encoder.",
        )
    for name_of_layers in ("num_hidden_layers", "n_layers"):  # DistilBERT's files have the second
        layers = getattr(config, name_of_layers, 1)
        if type(layers) is not int or not 1 <= layers <= MOST_LAYERS:
            raise ModelError(
                "unsupported",
                f"{name} has {str(layers)[:40]} layers according to its config.json ({name_of_layers}).",
                f"An encoder can have 1 to {MOST_LAYERS:,} blocks.",
                "Correct config.json, or pick another model.",
            )
    positions = getattr(config, "position_embedding_type", "absolute") or "absolute"
    if positions != "absolute":
        raise ModelError(
            "unsupported",
            f"{name} uses {positions!r} positions.",
            "Absolute position embeddings are needed, because layer 0 is split into its parts.",
            "Pick another model.",
        )


def check_supported_file(values: dict[str, Any], name: str) -> None:
    """`check_supported` on the plain values of a config.json, before transformers reads it or the weights are fetched.

    For a type that it does not know, or that needs its own code, transformers only says that the file is invalid.
    """
    if "model_type" in values:
        check_supported(SimpleNamespace(**values), name)
