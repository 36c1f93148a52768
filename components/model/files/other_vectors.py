"""Models that were published for something else than one vector per text: SPLADE's weights, ColBERT's token vectors.

Which settings a model has stands in the files that sentence-transformers saves: modules.json, sentence_bert_config.json
and config_sentence_transformers.json. For late interaction there are two formats: that of MultiVectorEncoder, and the
older one of PyLate (model_type "ColBERT"), which names its marker tokens and its query expansion in
config_sentence_transformers.json and leaves out the last two modules. What the settings mean is defined by
sentence-transformers 6.2, which reads both; nothing of a folder is executed here.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from components.model.files.published import PublishedModule, read_json
from components.model.files.sentence_config import Role, SentenceConfig, prompt_for
from components.model.head import HeadNotApplied, Normalise, dense_layer

if TYPE_CHECKING:
    from components.model.tokenization import Tokenization

TOKENS = "token_embeddings"  # the library's name for what Dense and Normalize work on here
CONFIG = "config_sentence_transformers.json"
PYLATE = "ColBERT"  # the kind of model that PyLate's format names
_MARKERS = {"query": "query_prefix", "document": "document_prefix"}
# Each of them shows that PyLate wrote a configuration, whose queries are expanded unless it says otherwise.
_PYLATE_SETTINGS = {
    *_MARKERS.values(),
    "query_length",
    "document_length",
    "do_query_expansion",
    "attend_to_expansion_tokens",
    "attend_to_mask_tokens",
    "skiplist_words",
}
_EXPANDED_LENGTH = 32  # tokens; ColBERT's own
_SPARSE_POOLINGS = ("max", "sum")
_SPARSE_ACTIVATIONS = ("relu", "log1p_relu")
_DISTANCES = ("euclidean", "manhattan")  # similarities of SparseEncoder that are no sum over shared pieces


@dataclass(frozen=True)
class Splade:
    """How a sparse model pools the logits of its masked-LM head: see components.model.embedding.sparse_vectors."""

    pooling: str  # "max" or "sum"
    activation: str  # "relu" or "log1p_relu"
    most_weights: int | None = None  # of a text, the heaviest; None: all above 0
    similarity: str = "dot"  # or "cosine": of the weights of two texts


@dataclass(frozen=True)
class Expansion:
    """Query expansion: queries are filled up with one token, whose vectors count like all others."""

    length: int  # tokens of an expanded query, special tokens included
    is_fixed: bool  # longer queries are truncated to this length; else they keep theirs
    is_attended: bool  # whether the encoder's attention sees the added tokens
    token: int  # its id


@dataclass(frozen=True)
class RoleReading:
    """How the texts of one role are read."""

    prompt: str  # put in front
    marker: int | None  # the id of a token that stands after the first special tokens
    max_length: int  # tokens, special ones included
    expansion: Expansion | None
    left_out: tuple[int, ...]  # ids of tokens without a vector
    kept_only: tuple[int, ...]  # the only ids with a vector; empty: all others too


@dataclass(frozen=True, eq=False)
class LateInteraction:
    """A model that was trained to compare texts by the vectors of their tokens."""

    layers: torch.nn.Module  # from the last hidden states to the vectors, float32 on the CPU
    readings: Mapping[Role, RoleReading]
    is_mean: bool  # whether the score is divided by the number of the query's vectors


def read_splade(folder: Path | None, modules: Sequence[PublishedModule]) -> Splade | None:
    """How a model was published as SPLADE; None if it was not.

    Raises HeadNotApplied with the reason, the second half of a sentence, for a sparse model that cannot be applied.
    """
    kinds = [module.kind for module in modules]
    if not {"MLMTransformer", "SpladePooling"} & set(kinds):
        return None
    if kinds[1:] != ["SpladePooling"]:
        raise HeadNotApplied("a masked-LM head followed by SpladePooling alone was expected")
    config = modules[1].config or {}
    top = {} if folder is None else _mapping(read_json(folder / CONFIG))
    most = top.get("max_active_dims")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most <= 0):
        raise HeadNotApplied(f"the number of weights that it keeps is not valid ({str(most)[:40]})")
    similarity = top.get("similarity_fn_name")
    if similarity in _DISTANCES:
        raise HeadNotApplied(
            f"it compares texts by {similarity} distance, which is not a sum over the pieces they share"
        )
    found = Splade(
        str(config.get("pooling_strategy", "max")),
        str(config.get("activation_function", "relu")),
        most,
        "cosine" if similarity == "cosine" else "dot",
    )
    if found.pooling not in _SPARSE_POOLINGS or found.activation not in _SPARSE_ACTIVATIONS:
        raise HeadNotApplied(f"its pooling is unknown here ({found.pooling[:40]}, {found.activation[:40]})")
    return found


def read_late_interaction(
    folder: Path | None, published: SentenceConfig, tokenization: Tokenization, hidden_size: int
) -> LateInteraction | None:
    """How a model was published for late interaction in one of the two formats; None if it was not.

    Raises HeadNotApplied with the reason, the second half of a sentence, for such a model that cannot be applied.
    """
    kinds = [module.kind for module in published.modules]
    is_pylate = published.published_as == PYLATE
    if folder is None or not (is_pylate or "MultiVectorMask" in kinds):
        return None
    top = _mapping(read_json(folder / CONFIG))
    encoder = _mapping(read_json(folder / "sentence_bert_config.json"))
    settings = {**_pylate_settings(top), **encoder}  # what the encoder's own configuration says goes first
    layers = _layers(folder, published.modules, hidden_size)
    mask = next((_mapping(module.config) for module in published.modules if module.kind == "MultiVectorMask"), {})
    if is_pylate:
        words = top.get("skiplist_words")
        mask = {"skiplist_words": list(string.punctuation) if words is None else words}
        layers.append(Normalise())
    ids = {piece: number for number, piece in enumerate(tokenization.vocabulary) if piece}
    expansion = _expansion(settings.get("query_expansion"), tokenization, ids)
    readings: dict[Role, RoleReading] = {
        role: _reading(role, published, top, settings, mask, expansion if role == "query" else None, tokenization, ids)
        for role in ("query", "document")
    }
    similarity = str(top.get("similarity_fn_name", ""))
    return LateInteraction(
        torch.nn.Sequential(*layers).float().eval().requires_grad_(False), readings, similarity == "meanmaxsim"
    )


def _reading(
    role: Role,
    published: SentenceConfig,
    top: Mapping[str, Any],
    settings: Mapping[str, Any],
    mask: Mapping[str, Any],
    expansion: Expansion | None,
    tokenization: Tokenization,
    ids: Mapping[str, int],
) -> RoleReading:
    prompt, marker = prompt_for(published, role), None
    if _MARKERS[role] in top:
        named = top[_MARKERS[role]]
        prefix = named if isinstance(named, str) else ""  # null: no marker, and no prompt of another name either
        # The marker stands before the prompt. Where the vocabulary has it, with or without the space after it, it is one
        # token, which a tokenizer would not find in the text.
        prompt = prefix + published.prompts.get(role, "").removeprefix(prefix)
        for known in (prefix, *prefix.split()[:1]):
            if known in ids:
                prompt, marker = prompt[len(known) :], ids[known]
                break
    own = settings.get(f"{role}_length")
    length = own if isinstance(own, int) and own > 0 else published.max_length or tokenization.max_length
    tasks = mask.get("skiplist_tasks")
    words = mask.get("skiplist_words") if role in (["document"] if tasks is None else _texts(tasks)) else []
    left_out = list(words) if isinstance(words, str) else _texts(words)  # a text means its characters
    kept = mask.get("keep_only_token_ids") if role == "document" else None
    return RoleReading(
        prompt,
        marker,
        min(length, tokenization.max_length),
        expansion,
        tuple(ids[word] for word in left_out if word in ids),
        tuple(number for number in kept if isinstance(number, int)) if isinstance(kept, list) else (),
    )


def _layers(folder: Path, modules: Sequence[PublishedModule], size: int) -> list[torch.nn.Module]:
    """What follows the encoder. Raises HeadNotApplied."""
    layers: list[torch.nn.Module] = []
    for module in (module for module in modules if module.path):
        config = module.config or {}
        if module.kind == "Dense":
            layers.append(dense_layer(folder, module, size, TOKENS))
            size = int(config["out_features"])
        elif module.kind == "Normalize":
            if config.get("module_input_name") == TOKENS:  # else it scales a pooled vector, which there is none of
                layers.append(Normalise())
        elif module.kind != "MultiVectorMask":
            raise HeadNotApplied(f"it has a module that is not applied here ({module.kind[:40]})")
    return layers


def _pylate_settings(top: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the encoder that PyLate writes into config_sentence_transformers.json, under today's names."""
    settings = {key: top[key] for key in ("query_length", "document_length") if top.get(key) is not None}
    if "query_expansion" in top:
        return settings | {"query_expansion": top["query_expansion"]}
    if not _PYLATE_SETTINGS & set(top):
        return settings
    if top.get("do_query_expansion") is False:
        return settings | {"query_expansion": None}
    attended = top.get("attend_to_expansion_tokens", top.get("attend_to_mask_tokens"))
    length = settings.pop("query_length", None) or _EXPANDED_LENGTH
    return settings | {"query_expansion": {"strategy": "fixed", "attend": bool(attended), "length": length}}


def _expansion(content: Any, tokenization: Tokenization, ids: Mapping[str, int]) -> Expansion | None:
    """The query expansion of a configuration. Raises HeadNotApplied."""
    if content is None:
        return None
    expansion = _mapping(content)
    length, strategy, token = expansion.get("length"), expansion.get("strategy"), expansion.get("token")
    if strategy not in {"fixed", "min"} or not isinstance(length, int) or isinstance(length, bool):
        raise HeadNotApplied("the way it extends queries is unknown here")
    least = tokenization.frame_length + 2  # a marker and a token of the query
    if not least <= length <= tokenization.max_length:
        raise HeadNotApplied(
            f"it extends queries to {length} tokens, and {least} to {tokenization.max_length} are possible"
        )
    number = tokenization.mask_id if token is None else ids.get(str(token))
    if number is None:
        raise HeadNotApplied("it extends queries by a token that its tokenizer does not have")
    return Expansion(length, strategy == "fixed", expansion.get("attend") is True, number)


def _mapping(content: Any) -> Mapping[str, Any]:
    return content if isinstance(content, dict) else {}


def _texts(content: Any) -> list[str]:
    """The texts of a list, or the only one; none of anything else."""
    if isinstance(content, str):
        return [content]
    return [str(item) for item in content] if isinstance(content, list) else []
