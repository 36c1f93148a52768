"""A sentence encoder's published settings: pooling, maximum length, prompts, modules.

sentence-transformers stores these with the weights (Reimers and Gurevych 2019; modules.json and similar files). A plain
BERT has none of them; the default is then mean pooling over the model's whole length, without a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from components.model.files.decisions import CONFIG, ENCODER_FILES, MODULES, TOKENIZER, TOP
from components.model.files.encoder.settings import read_encoder_settings
from components.model.files.published import PublishedModule, read_json, read_modules
from components.model.trace import POOLINGS, Pooling

Role = Literal["query", "document"]
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
ANY = "any"  # the name of a prompt that a person chose for every text
_OF_VECTORS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
_OF_ENCODER = ("max_seq_length", "query_length", "document_length", "do_lower_case")
POOLING = "1_Pooling/config.json"  # where sentence-transformers writes it
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)


@dataclass(frozen=True)
class SentenceConfig:
    """Settings a model was published with; None if its files do not give them."""

    pooling: Pooling | None = None
    max_length: int | None = None  # tokens, special ones included; None: the tokenizer's own
    prompts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # name to the text put in front
    default_prompt: str | None = None  # the name of the prompt of a text that is neither a query nor a document
    modules: tuple[PublishedModule, ...] = ()  # the model's parts, in order; empty if not given
    published_as: str = ""  # "SentenceTransformer", "CrossEncoder", "SparseEncoder", ...; empty if not given
    similarity: Similarity = "cosine"  # by which its vectors are compared
    says_similarity: bool = False  # whether the files name it
    truncate_dim: int | None = None  # numbers of a vector that are kept, the first ones; None: all
    query_length: int | None = None  # tokens of a query, where it differs from max_length
    document_length: int | None = None  # tokens of a document, likewise
    gives_all_layers: bool = False  # the encoder passes all of its layers on, which WeightedLayerPooling needs
    not_read: tuple[str, ...] = ()  # files and keys that would change a vector, in a folder without modules.json


def read_sentence_config(folder: Path | None) -> SentenceConfig:
    """The settings in a model's folder. A file that is missing or not JSON gives none."""
    if folder is None:
        return SentenceConfig()
    modules = read_modules(folder)
    pooling = next((module.pooling_modes for module in modules if module.kind == "Pooling" and module.config), ())
    top = _json(folder / TOP)
    # Without modules.json sentence-transformers takes the encoder and the mean, and reads nothing else.
    published = top if (folder / MODULES).is_file() else {}
    prompts, similarity = published.get("prompts"), published.get("similarity_fn_name")
    default = published.get("default_prompt_name")
    settings = read_encoder_settings(folder)
    return SentenceConfig(
        pooling=pooling[0] if len(pooling) == 1 and pooling[0] in POOLINGS else None,
        max_length=settings.max_length,
        prompts=MappingProxyType(
            {str(key): text for key, text in prompts.items() if isinstance(text, str)}
            if isinstance(prompts, dict)
            else {}
        ),
        default_prompt=default if isinstance(default, str) else None,
        modules=modules,
        published_as=str(top.get("model_type", "")),
        similarity=cast("Similarity", similarity) if similarity in SIMILARITIES else "cosine",
        says_similarity=similarity in SIMILARITIES,
        truncate_dim=_positive(published.get("truncate_dim")),
        query_length=settings.query_length,
        document_length=settings.document_length,
        gives_all_layers=settings.gives_all_layers or _json(folder / CONFIG).get("output_hidden_states") is True,
        not_read=() if (folder / MODULES).is_file() else _not_read(folder, top),
    )


def _not_read(folder: Path, top: Mapping[str, Any]) -> tuple[str, ...]:
    """What the files beside an encoder say of its vectors, without modules.json."""
    keys = [f"{key} in {TOP}" for key in _OF_VECTORS if top.get(key)]
    for file in ENCODER_FILES:
        keys += [f"{key} in {file}" for key in _OF_ENCODER if _json(folder / file).get(key)]
    return tuple(keys + [POOLING] * (folder / POOLING).is_file())


def with_prompt(published: SentenceConfig, prompt: str) -> SentenceConfig:
    """The settings with one prompt for every text, which may be empty."""
    names = (*get_args(Role), ANY)
    return replace(published, prompts=MappingProxyType(dict.fromkeys(names, prompt)), default_prompt=ANY)


def with_prompts(published: SentenceConfig, prompts: Sequence[tuple[str, str]]) -> SentenceConfig:
    """The settings with these prompts (role, text), which a model's authors only describe, unless its files have some."""
    if any(published.prompts.values()) or not prompts:
        return published
    return replace(published, prompts=MappingProxyType(dict(prompts)))


def prompt_for(published: SentenceConfig, role: Role | None) -> str:
    """The text that the model's files put in front of a query, a document or, without a role, any text; mostly empty.

    As `encode_query`, `encode_document` and `encode` of sentence-transformers: the default prompt is that of texts without a
    role, and a model without a prompt for queries has none for them.
    """
    return published.prompts.get(role or published.default_prompt or "", "")


def length_for(published: SentenceConfig, role: Role | None) -> int | None:
    """The most tokens of a text in this role; None if the files do not say it for the role."""
    return {"query": published.query_length, "document": published.document_length, None: None}[role]


def longest_text(published: SentenceConfig) -> int:
    """The most tokens of a text in any role; 0 if the files say nothing."""
    return max(length or 0 for length in (published.max_length, published.query_length, published.document_length))


def _positive(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def length_file(folder: Path | None) -> str:
    """The file with the length of a text, if one says it."""
    settings = read_encoder_settings(folder)
    if settings.max_length is not None:
        return settings.file
    if folder is not None and _positive(_json(folder / TOKENIZER).get("model_max_length")) is not None:
        return TOKENIZER
    return ""


def _json(path: Path) -> dict[str, Any]:
    content = read_json(path)
    return content if isinstance(content, dict) else {}
