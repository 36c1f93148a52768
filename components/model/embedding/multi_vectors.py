"""ColBERT: a vector for every token of a text, which late interaction compares (Khattab and Zaharia 2020).

A model that was trained for it turns the hidden states of the last layer into shorter vectors by a Dense layer, and scales
them to length 1. The score of a query and a document is MaxSim, the sum over the query's tokens of the largest dot
product with a token of the document: see components.analysis.similarity.late_interaction. Tokens of the document that
the model was published to leave out (punctuation marks, as a rule) have no vector.

Folders are those that sentence-transformers' MultiVectorEncoder saves. As for SPLADE (see sparse_vectors.py there), its
class is not used to read them, because a Dense layer without model.safetensors would be read from a pickle.

What it does not do: extend queries by [MASK] tokens (query expansion), put marker tokens in front (as PyLate's and
Stanford's own formats do), and pool tokens. A model that needs one of these is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from components.arrays import Float32
from components.errors import ModelError
from components.jobs import IsCancelled, ReportProgress
from components.model.embedding.embedder import Embedder
from components.model.embedding.options import SENTENCES_PER_BLOCK
from components.model.files.published import read_json
from components.model.files.sentence_config import Role, prompt_for
from components.model.head import HeadNotApplied, Normalise, dense_layer
from components.model.loaded import LoadedModel

TOKENS = "token_embeddings"  # the library's name for what Dense and Normalize work on here
_MARKERS = ("query_prefix", "document_prefix", "do_query_expansion", "attend_to_expansion_tokens")


def multi_vectors(
    embedder: Embedder,
    texts: Sequence[str],
    role: Role,
    *,
    max_length: int | None = None,
    token_budget: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_cancelled: IsCancelled = lambda: False,
) -> list[Float32]:
    """The token vectors of each text, each float32 [token, dim], as encode_query and encode_document give.

    `role` decides on the prompt, the published length and the tokens that are left out. `progress(done, total)` counts
    texts. Raises ModelError for a model that was not published for late interaction or needs what is not done here,
    InputError for an impossible length, Cancelled.
    """
    model = embedder.model
    layers, left_out, kept_only, length = _published(model, role)
    length = length if max_length is None else max_length
    prompt = prompt_for(model.sentence_config, role)
    result: list[Float32] = [np.empty((0, 0), np.float32)] * len(texts)
    done = 0
    for start in range(0, len(texts), SENTENCES_PER_BLOCK):
        block = [prompt + text for text in texts[start : start + SENTENCES_PER_BLOCK]]
        rows_ids = model.tokenization.encode_many(block, length)[0]
        for rows, vectors in embedder.in_batches(
            rows_ids,
            [len(ids) for ids in rows_ids],
            lambda batch: _vectors(model, layers, batch),
            token_budget,
            is_cancelled,
        ):
            for row, of_text in zip(rows.tolist(), vectors, strict=True):
                ids = np.array(rows_ids[row])
                is_kept = ~np.isin(ids, left_out) & (np.isin(ids, kept_only) if kept_only else True)
                result[start + row] = of_text[: len(ids)][is_kept]
            done += len(rows)
            progress(done, len(texts))
    return result


def _vectors(model: LoadedModel, layers: torch.nn.Module, rows_ids: Sequence[Sequence[int]]) -> Float32:
    """The vectors of one batch, padding included, float32 [text, token, dim]."""
    ids, mask, segments = model.tokenization.padded(rows_ids, [[0] * len(row) for row in rows_ids])
    with model.forward_pass():
        last = model.encoder(**model.tensors(ids, mask, segments)).last_hidden_state
        result: Float32 = layers.to(last.device)(last.float()).cpu().numpy()
    return result


def _published(model: LoadedModel, role: Role) -> tuple[torch.nn.Module, list[int], list[int], int]:
    """(the layers after the encoder, ids without a vector, ids that alone have one or none, tokens) for a role."""
    modules = [module for module in model.sentence_config.modules if module.path]
    kinds = [module.kind for module in modules]
    if model.folder is None or kinds[-1:] != ["MultiVectorMask"]:
        raise _refused(model, "it was not published for late interaction in this format")
    encoder_config = _mapping(read_json(model.folder / "sentence_bert_config.json"))
    published = _mapping(read_json(model.folder / "config_sentence_transformers.json"))
    if encoder_config.get("query_expansion") is not None or any(name in published for name in _MARKERS):
        raise _refused(model, "it extends queries by further tokens, or marks them, which is not done here")
    layers: list[torch.nn.Module] = []
    size = model.facts.hidden_size
    for module in modules[:-1]:
        config = module.config or {}
        if module.kind == "Dense":
            try:
                layers.append(dense_layer(model.folder, module, size, TOKENS))
            except HeadNotApplied as problem:
                raise _refused(model, str(problem)) from problem
            size = int(config["out_features"])
        elif module.kind == "Normalize":
            if config.get("module_input_name") == TOKENS:  # else it scales a pooled vector, which there is none of
                layers.append(Normalise())
        else:
            raise _refused(model, f"it has a module that is not applied here ({module.kind[:40]})")
    mask = modules[-1].config or {}
    tasks = mask.get("skiplist_tasks")
    words = _texts(mask.get("skiplist_words")) if role in (["document"] if tasks is None else _texts(tasks)) else []
    numbers = {piece: number for number, piece in enumerate(model.tokenization.vocabulary)}
    kept = mask.get("keep_only_token_ids") if role == "document" else None
    own = encoder_config.get(f"{role}_length")
    length = own if isinstance(own, int) and own > 0 else model.own_max_length
    return (
        torch.nn.Sequential(*layers).float().eval().requires_grad_(False),
        [numbers[word] for word in words if word in numbers],
        [number for number in kept if isinstance(number, int)] if isinstance(kept, list) else [],
        min(length, model.tokenization.max_length),
    )


def _mapping(content: Any) -> dict[str, Any]:
    return content if isinstance(content, dict) else {}


def _texts(content: Any) -> list[str]:
    return [str(item) for item in content] if isinstance(content, list) else [content] if content else []


def _refused(model: LoadedModel, reason: str) -> ModelError:
    return ModelError(
        "unsupported",
        f"{model.spec.title} gives no vectors for late interaction, because {reason}.",
        "A model that sentence-transformers' MultiVectorEncoder saved was expected, without query expansion.",
        "Choose such a model, or compare the hidden states of this one.",
    )
