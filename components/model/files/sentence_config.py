"""What a sentence encoder's own files say about its use: pooling, maximum length, normalisation, prompts.

sentence-transformers keeps these beside the weights (Reimers and Gurevych 2019; modules.json and its kin). A plain
BERT has none of them: then mean pooling over the model's whole length is the default, and no prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from components.model.files.published import PublishedModule, read_json, read_modules
from components.model.trace import POOLINGS, Pooling

Role = Literal["query", "document"]


@dataclass(frozen=True)
class SentenceConfig:
    """Settings a model was published with; None where its files do not say."""

    pooling: Pooling | None = None
    max_length: int | None = None  # tokens, special ones included
    normalise: bool = False  # its vectors are meant to be scaled to length 1
    prompts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # role to text that goes in front
    modules: tuple[PublishedModule, ...] = ()  # what the model is made of, in order; empty where no file says
    published_as: str = ""  # "SentenceTransformer", "CrossEncoder", "SparseEncoder", ...; empty where no file says


def read_sentence_config(folder: Path | None) -> SentenceConfig:
    """The settings in a model's folder. A file that is missing, or no JSON, says nothing."""
    if folder is None:
        return SentenceConfig()
    modules = read_modules(folder)
    pooling = next((module.pooling_modes for module in modules if module.kind == "Pooling" and module.config), ())
    length = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    published = _json(folder / "config_sentence_transformers.json")
    prompts = published.get("prompts")
    return SentenceConfig(
        pooling=pooling[0] if len(pooling) == 1 and pooling[0] in POOLINGS else None,
        max_length=length if isinstance(length, int) and length > 0 else None,
        normalise=any(module.kind == "Normalize" for module in modules),
        prompts=MappingProxyType(
            {str(key): text for key, text in prompts.items() if isinstance(text, str)}
            if isinstance(prompts, dict)
            else {}
        ),
        modules=modules,
        published_as=str(published.get("model_type", "")),
    )


def prompt_for(published: SentenceConfig, role: Role | None) -> str:
    """The text the model wants in front of a query or a document; empty where it wants none."""
    names = {"query": ("query",), "document": ("document", "passage", "corpus"), None: ()}[role]
    return next((published.prompts[name] for name in names if name in published.prompts), "")


def _json(path: Path) -> dict[str, Any]:
    found = read_json(path)
    return found if isinstance(found, dict) else {}
