"""Which models can be read, and why others cannot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from components.errors import ModelError
from components.model.architecture.families import albert, bert, deberta, decoder, modernbert, norms_first, rotary
from components.model.architecture.family import Family
from components.model.files.static_files import MODEL2VEC

FAMILIES: dict[str, Family] = {  # by type
    kind: module.FAMILY
    for module in (bert, norms_first, albert, modernbert, deberta, rotary)
    for kind in module.FAMILY.titles
}
SUPPORTED = tuple(FAMILIES)

# What people may try, by the beginning of the type, and why it cannot be read.
_DECODERS = ("gpt", "llama", "mistral", "qwen", "gemma", "phi", "opt", "bloom", "falcon", "olmo", "modernbert-decoder")
_ENCODER_DECODERS = ("t5", "mt5", "umt5", "bart", "mbart", "marian", "pegasus", "m2m_100", "encoder-decoder")


def check_supported(config: Any, name: str, is_for_texts: bool = False) -> None:
    """Raise ModelError unless the configuration belongs to a supported encoder.

    `is_for_texts`: the model was published for text vectors by its last token, or may have been: then it may be a decoder.
    """
    kind = config.model_type
    if kind in tuple(decoder.TITLES) and is_for_texts:
        _check_direction(config, name, is_decoder=True)
        return
    if kind not in SUPPORTED or getattr(config, "is_decoder", False):
        raise ModelError(
            "unsupported",
            f"{name} is a {str(kind)[:40]!r} model{_why_not(config)}.",
            f"The dashboard reads encoders of the BERT family ({', '.join(SUPPORTED)}) and static vectors ({MODEL2VEC}).",
            "Pick a model from the list, or another encoder, such as answerdotai/ModernBERT-base or BAAI/bge-small-en-v1.5.",
        )
    _check_direction(config, name, is_decoder=False)
    positions = getattr(config, "position_embedding_type", "absolute") or "absolute"
    family = FAMILIES[kind]
    if positions != "absolute" and family.has_position_table:
        raise ModelError(
            "unsupported",
            f"{name} uses {positions!r} positions.",
            "Absolute position embeddings are needed in this architecture, because layer 0 is split into its parts.",
            "Pick another model.",
        )
    part = family.unsupported(config)
    if part:
        raise ModelError(
            "unsupported",
            f"{name} has {part}.",
            "What happens inside it can only be shown without that.",
            family.instead,
        )


def _check_direction(config: Any, name: str, is_decoder: bool) -> None:
    """Raise ModelError where config.json changes which tokens are seen: in the library, only some ways of attention read it."""
    is_causal = getattr(config, "is_causal", is_decoder)
    if bool(is_causal) is not is_decoder:
        seen, expected = ("only those before it", "all others") if is_causal else ("all others", "only those before it")
        raise ModelError(
            "unsupported",
            f"{name} says in config.json that a token sees {seen} (is_causal).",
            f"In this architecture a token sees {expected}.",
            "Pick another model.",
        )


def _why_not(config: Any) -> str:
    """The reason why a type cannot be read, as the end of a sentence; empty if there is nothing to add."""
    kind = str(config.model_type)
    if getattr(config, "is_encoder_decoder", False) or kind in _ENCODER_DECODERS:
        return ", a kind with an encoder and a decoder, which is not read, also where only its encoder was published"
    sees_all = getattr(config, "use_bidirectional_attention", False) or getattr(config, "is_causal", True) is False
    if sees_all and (kind in decoder.TITLES or kind.startswith(_DECODERS)):
        return ", built as a decoder, in which a token sees all others: a kind that is not read"
    if kind in decoder.TITLES:
        return (
            ", a decoder, in which a token sees only those before it. It is read where modules.json lists last-token "
            "pooling, with or without Normalize, and nothing else"
        )
    if getattr(config, "is_decoder", False) or kind.startswith(_DECODERS):
        return ", a decoder, in which a token sees only those before it"
    if kind == "luke":
        return ", whose blocks read words together with entities of a knowledge base, which no page has"
    if getattr(config, "auto_map", None):
        return ", which needs code from its repository, and such code is never run"
    return ""


def check_supported_file(values: dict[str, Any], name: str, is_for_texts: bool = False) -> None:
    """`check_supported` on the plain values of a config.json, before transformers reads it or the weights are fetched.

    For a type that it does not know, or that needs its own code, transformers only says that the file is invalid.
    """
    if "model_type" in values and values["model_type"] != MODEL2VEC:
        check_supported(SimpleNamespace(**values), name, is_for_texts)
