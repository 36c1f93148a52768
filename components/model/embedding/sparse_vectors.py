"""SPLADE: a text as weights of pieces of the vocabulary, most of them 0 (Formal et al. 2021).

The masked-LM head gives each position a logit for each piece of the vocabulary. With "max" pooling (SPLADE v2,
arXiv:2109.10086) the weight of piece v is

    w_v = max over positions i of log(1 + relu(logit_iv))

and with "sum" (the first SPLADE, arXiv:2107.05720) the sum over the positions. Pieces that the text does not contain
get weights too: the text is expanded. The score of a query and a document is the dot product of their weights, or their
cosine where the model was published with it (`Splade.similarity`). Where it was published with a number of weights
(max_active_dims), only the heaviest of a text are kept.

Folders are those that sentence-transformers' SparseEncoder saves. Its class is not used to read them: the option that
refuses pickles (model_kwargs={"use_safetensors": True}) covers only the transformer. Another module whose
model.safetensors is missing is read from pytorch_model.bin (torch.load with weights_only=True), and the classes that
modules.json names are imported. Both options local_files_only=True and trust_remote_code=False exist and hold.

What it does not give: weights for a model without SPLADE's pooling, whose logits were not trained to be weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from components.arrays import Float32, Int64
from components.errors import InputError, ModelError
from components.jobs import IsStopped, ReportProgress
from components.model.embedding.embedder import Embedder
from components.model.embedding.options import SENTENCES_PER_BLOCK
from components.model.files.other_vectors import Splade
from components.model.files.sentence_config import Role, prompt_for
from components.model.loaded import LoadedModel
from components.model.tokenization import clean_text

BATCH_TOKENS = 512  # logits of a batch: 512 x 30,522 pieces are 60 MiB, and as many again while they are pooled
MOST_WEIGHTS = 32_000_000  # of all texts together: 256 MB, some 200,000 texts of a model that gives 150 to each


@dataclass(frozen=True, eq=False)
class ExpandedPieces:
    """The pieces with a weight above 0, the heaviest first."""

    ids: Int64  # [piece]
    weights: Float32  # [piece]
    pieces: tuple[str, ...]  # as the vocabulary spells them
    in_text: tuple[bool, ...]  # whether the text itself has it, without prompt and special tokens; the others expand it


def expanded_pieces(
    embedder: Embedder,
    text: str,
    *,
    role: Role | None = None,
    max_length: int | None = None,
    weights: Float32 | None = None,
) -> ExpandedPieces:
    """The weights of one text. `weights` [vocabulary] are those already known: no pass is then needed.

    Raises as `sparse_matrix` does.
    """
    model = embedder.model
    if weights is None:
        weights = sparse_vectors(embedder, [text], role=role, max_length=max_length)[0]
    order = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights > 0)]
    own = _own_ids(model, text, role, max_length)
    vocabulary = model.tokenization.vocabulary
    return ExpandedPieces(
        order,
        weights[order],
        tuple(vocabulary[number] if number < len(vocabulary) else "" for number in order.tolist()),
        tuple(number in own for number in order.tolist()),
    )


def sparse_vectors(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    role: Role | None = None,
    max_length: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> Float32:
    """As `sparse_matrix`, with the zeros: float32 [text, vocabulary]. For few texts."""
    matrix = sparse_matrix(embedder, texts, role=role, max_length=max_length, progress=progress, is_stopped=is_stopped)
    result: Float32 = matrix.toarray()
    return result


def sparse_matrix(
    embedder: Embedder,
    texts: Sequence[str],
    *,
    role: Role | None = None,
    max_length: int | None = None,
    progress: ReportProgress = lambda done, total: None,
    is_stopped: IsStopped = lambda: False,
) -> sparse.csr_matrix:
    """The weight of each piece for each text, float32 [text, vocabulary], none negative, as SparseEncoder.encode gives.

    `role` puts the model's own prompt in front. `progress(done, total)` counts texts. Raises ModelError for a model that
    was not published as SPLADE, InputError for an impossible length and for more than MOST_WEIGHTS weights above 0,
    Stopped.
    """
    model = embedder.model
    splade = _splade(model)
    size = int(model.encoder.get_input_embeddings().num_embeddings)
    parts: list[tuple[NDArray[np.int32], NDArray[np.int32], Float32]] = []  # rows, columns and weights of a batch
    done = count = 0
    for start in range(0, len(texts), SENTENCES_PER_BLOCK):
        rows_ids = _ids(model, texts[start : start + SENTENCES_PER_BLOCK], role, max_length, is_stopped)
        for rows, weights in embedder.in_batches(
            rows_ids,
            [len(ids) for ids in rows_ids],
            lambda batch: _weights(model, batch, splade),
            BATCH_TOKENS,
            is_stopped,
        ):
            own, columns = np.nonzero(weights)
            parts.append(((rows[own] + start).astype(np.int32), columns.astype(np.int32), weights[own, columns]))
            done, count = done + len(rows), count + len(own)
            if count > MOST_WEIGHTS:
                raise InputError(
                    f"{done:,} texts have {count:,} weights in {model.spec.title}.",
                    f"At most {MOST_WEIGHTS:,} are kept in memory.",
                    "Choose a smaller corpus, or a model that gives fewer weights.",
                )
            progress(done, len(texts))
    joined = [np.concatenate(items) for items in zip(*parts, strict=True)] if parts else [np.empty(0, np.int32)] * 3
    result = sparse.csr_matrix((joined[2].astype(np.float32), (joined[0], joined[1])), (len(texts), size))
    result.sort_indices()
    return result


def _ids(
    model: LoadedModel, texts: Sequence[str], role: Role | None, max_length: int | None, is_stopped: IsStopped
) -> list[list[int]]:
    """The ids of texts behind the model's own prompt, truncated to its own maximum length by default. Raises Stopped."""
    prompt = prompt_for(model.sentence_config, role)
    length = model.own_length(role) if max_length is None else max_length
    return model.tokenization.encode_many((prompt + text for text in texts), length, is_stopped)[0]


def _own_ids(model: LoadedModel, text: str, role: Role | None, max_length: int | None) -> set[int]:
    """The ids of a text's own pieces, as far as the model reads it: neither of the prompt nor special tokens."""
    prompt = clean_text(prompt_for(model.sentence_config, role))
    length = model.own_length(role) if max_length is None else max_length
    tokenization = model.tokenization
    read = tokenization.tokenize(tokenization.beginning(prompt + clean_text(text), length), max_length=length)
    return {token.id for token in read.tokens if not token.special and token.end > len(prompt)}


def _splade(model: LoadedModel) -> Splade:
    """How the model was published to pool. Raises ModelError."""
    if model.splade is not None:
        return model.splade
    raise ModelError(
        "unsupported",
        f"{model.spec.title} does not give weights to the pieces of its vocabulary"
        + (f": {model.not_given}." if model.not_given else "."),
        "A model that was published as SPLADE was expected: a masked-LM head followed by SpladePooling alone, with "
        "max or sum pooling.",
        "Choose a SPLADE model.",
    )


def _weights(model: LoadedModel, rows_ids: Sequence[Sequence[int]], splade: Splade) -> Float32:
    """The weights of one batch, float32 [text, vocabulary]."""
    module = model.masked_lm()
    inputs = model.tensors(*model.tokenization.padded(rows_ids))
    with model.forward_pass():
        return _pooled(module, inputs, splade)


def _pooled(module: Any, inputs: dict[str, torch.Tensor], splade: Splade) -> Float32:
    logits = module(**inputs).logits.float()  # [text, token, vocabulary]
    weights = torch.log1p(torch.relu(logits * inputs["attention_mask"].unsqueeze(-1)))
    if splade.activation == "log1p_relu":  # arXiv:2504.14839
        weights = torch.log1p(weights)
    pooled = weights.amax(dim=1) if splade.pooling == "max" else weights.sum(dim=1)
    if splade.most_weights is not None and splade.most_weights < pooled.shape[1]:
        kept = torch.topk(pooled, splade.most_weights, dim=1)
        pooled = torch.zeros_like(pooled).scatter_(1, kept.indices, kept.values)
    return pooled.cpu().numpy()
