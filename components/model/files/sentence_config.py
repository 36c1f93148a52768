"""What a sentence encoder's own files say about its use: pooling, maximum length, normalisation, prompts.

sentence-transformers keeps these beside the weights (Reimers and Gurevych 2019; modules.json and its kin). A plain
BERT has none of them: then mean pooling over the model's whole length is the default, and no prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from components.model.trace import Pooling

Role = Literal["query", "document"]


@dataclass(frozen=True)
class SentenceConfig:
    """Settings a model was published with; None where its files do not say."""

    pooling: Pooling | None = None
    max_length: int | None = None  # tokens, special ones included
    normalise: bool = False  # its vectors are meant to be scaled to length 1
    prompts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # role to text that goes in front


def read_sentence_config(folder: Path | None) -> SentenceConfig:
    """The settings in a model's folder. A file that is missing, or no JSON, says nothing."""
    if folder is None:
        return SentenceConfig()
    pooling = _json(folder / "1_Pooling" / "config.json")
    chosen: Pooling | None = None
    for name, flag in (("cls", "cls_token"), ("max", "max_tokens"), ("mean", "mean_tokens")):
        if pooling.get(f"pooling_mode_{flag}") is True or pooling.get("pooling_mode") == name:
            chosen = name  # type: ignore[assignment]  # the three names of the loop are Poolings
    length = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    modules = _read(folder / "modules.json")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts")
    return SentenceConfig(
        pooling=chosen,
        max_length=length if isinstance(length, int) and length > 0 else None,
        normalise=isinstance(modules, list) and any("Normalize" in str(module) for module in modules),
        prompts=MappingProxyType(
            {str(key): text for key, text in prompts.items() if isinstance(text, str)}
            if isinstance(prompts, dict)
            else {}
        ),
    )


def prompt_for(published: SentenceConfig, role: Role | None) -> str:
    """The text the model wants in front of a query or a document; empty where it wants none."""
    names = {"query": ("query",), "document": ("document", "passage", "corpus"), None: ()}[role]
    return next((published.prompts[name] for name in names if name in published.prompts), "")


def _json(path: Path) -> dict[str, Any]:
    found = _read(path)
    return found if isinstance(found, dict) else {}


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
