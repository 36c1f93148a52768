"""A sentence encoder's published settings: pooling, maximum length, prompts, modules.

sentence-transformers stores these with the weights (Reimers and Gurevych 2019; modules.json and similar files). A plain
BERT has none of them; the default is then mean pooling over the model's whole length, without a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from components.model.files.encoder.settings import read_encoder_settings
from components.model.files.published import PublishedModule, read_json, read_modules
from components.model.trace import POOLINGS, Pooling

Role = Literal["query", "document"]


@dataclass(frozen=True)
class SentenceConfig:
    """Settings a model was published with; None if its files do not give them."""

    pooling: Pooling | None = None
    max_length: int | None = None  # tokens, special ones included; None: the tokenizer's own
    prompts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # role to the text put in front
    modules: tuple[PublishedModule, ...] = ()  # the model's parts, in order; empty if not given
    published_as: str = ""  # "SentenceTransformer", "CrossEncoder", "SparseEncoder", ...; empty if not given


def read_sentence_config(folder: Path | None) -> SentenceConfig:
    """The settings in a model's folder. A file that is missing or not JSON gives none."""
    if folder is None:
        return SentenceConfig()
    modules = read_modules(folder)
    pooling = next((module.pooling_modes for module in modules if module.kind == "Pooling" and module.config), ())
    published = _json(folder / "config_sentence_transformers.json")
    prompts = published.get("prompts")
    return SentenceConfig(
        pooling=pooling[0] if len(pooling) == 1 and pooling[0] in POOLINGS else None,
        max_length=read_encoder_settings(folder).max_length,
        prompts=MappingProxyType(
            {str(key): text for key, text in prompts.items() if isinstance(text, str)}
            if isinstance(prompts, dict)
            else {}
        ),
        modules=modules,
        published_as=str(published.get("model_type", "")),
    )


def with_prompts(published: SentenceConfig, prompts: Sequence[tuple[str, str]]) -> SentenceConfig:
    """The settings with these prompts (role, text), which a model's authors only describe, unless its files have some."""
    if any(published.prompts.values()) or not prompts:
        return published
    return replace(published, prompts=MappingProxyType(dict(prompts)))


def prompt_for(published: SentenceConfig, role: Role | None) -> str:
    """The text that the model expects in front of a query or a document; empty if it expects none."""
    names = {"query": ("query",), "document": ("document", "passage", "corpus"), None: ()}[role]
    return next((published.prompts[name] for name in names if name in published.prompts), "")


def _json(path: Path) -> dict[str, Any]:
    content = read_json(path)
    return content if isinstance(content, dict) else {}
