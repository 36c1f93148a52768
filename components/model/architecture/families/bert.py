"""BERT and the encoders that only train it differently, or change the embeddings: RoBERTa, ELECTRA, MPNet, DistilBERT, ...

Layer 0 is LayerNorm(word + position [+ segment]); in ELECTRA a projection follows if the sizes differ, and ERNIE may add a
vector for the task. All blocks have the structure of BERT's (Devlin et al. 2019), with norms after each part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from components.model.architecture.family import Family
from components.model.architecture.modules import BlockModules, EncoderModules, Gate, Place, whole
from components.model.architecture.structure import Positions, Structure

TITLES = {
    "bert": "BERT",
    "distilbert": "DistilBERT",
    "roberta": "RoBERTa",
    "xlm-roberta": "XLM-RoBERTa",
    "camembert": "CamemBERT",
    "electra": "ELECTRA",
    "mpnet": "MPNet",
    "data2vec-text": "data2vec",
    "ernie": "ERNIE",
}


@dataclass(frozen=True)
class Names:
    """The names of a block's modules."""

    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    attention_dense: str = "attention.output.dense"
    attention_norm: str = "attention.output.LayerNorm"
    feed_forward_dense: str = "output.dense"
    feed_forward_norm: str = "output.LayerNorm"


_BLOCKS = {"distilbert": "transformer.layer"}
_NAMES = {
    "distilbert": Names(
        *("attention.q_lin", "attention.k_lin", "attention.v_lin"),
        *("attention.out_lin", "sa_layer_norm", "ffn.lin2", "output_layer_norm"),
    ),
    "mpnet": Names(
        *("attention.attn.q", "attention.attn.k", "attention.attn.v"),
        *("attention.attn.o", "attention.LayerNorm", "output.dense", "output.LayerNorm"),
    ),
}


def block_with_norms_after(block: Any, names: Names, gate: Gate | None = None) -> BlockModules:
    """The modules of a block as in BERT."""
    query, key, value = (whole(block.get_submodule(name)) for name in (names.query, names.key, names.value))
    attention_norm, feed_forward_norm = (
        block.get_submodule(name) for name in (names.attention_norm, names.feed_forward_norm)
    )
    return BlockModules(
        query,
        key,
        value,
        block.get_submodule(names.attention_dense),
        attention_norm,
        block.get_submodule(names.feed_forward_dense),
        feed_forward_norm,
        after_attention=Place(attention_norm),
        output=Place(feed_forward_norm),
        gate=gate,
    )


def tables_of(embeddings: Any) -> dict[str, Any]:
    """The tables whose vectors are summed, by the name of the part; those that the model lacks are left out."""
    names = {
        "word": "word_embeddings",
        "position": "position_embeddings",
        "segment": "token_type_embeddings",
        "task": "task_type_embeddings",
    }
    found = {part: getattr(embeddings, name, None) for part, name in names.items()}
    return {part: table for part, table in found.items() if table is not None}


def modules_of(model: Any) -> EncoderModules:
    """The record of such an encoder."""
    kind = model.config.model_type
    path, names = _BLOCKS.get(kind, "encoder.layer"), _NAMES.get(kind, Names())
    blocks = tuple(block_with_norms_after(block, names) for block in model.get_submodule(path))
    tables = tables_of(model.embeddings)
    projection = getattr(model, "embeddings_project", None)
    positions: tuple[Positions, ...] = ("absolute", "relative") if kind == "mpnet" else ("absolute",)
    return EncoderModules(
        Structure(
            kind,
            TITLES[kind],
            positions,
            tuple(tables),
            ("norm",) if projection is None else ("norm", "projection"),
            windows=(None,) * len(blocks),
            block_weights=tuple(range(len(blocks))),
            has_own_attention_code=kind == "mpnet",
            scores_from_pooler=kind in {"bert", "ernie"},
        ),
        blocks,
        path,
        Place(model.embeddings if projection is None else projection),
        tables,
        (model.embeddings.LayerNorm,) if projection is None else (model.embeddings.LayerNorm, projection),
        score_terms=(lambda _, queries, __: _distance_terms(model.encoder, queries)) if kind == "mpnet" else None,
        pool=getattr(model, "pooler", None),
    )


def _distance_terms(encoder: Any, queries: torch.Tensor) -> dict[str, torch.Tensor]:
    """What MPNet adds to the scores of every block: a number for each head and distance, [head, query, key]."""
    return {"distance": encoder.compute_position_bias(queries.new_zeros(1, queries.shape[1], 1))[0]}


FAMILY = Family(
    TITLES,
    modules_of,
    counts_from_padding=frozenset({"roberta", "xlm-roberta", "camembert", "mpnet", "data2vec-text"}),
    inner_size={"distilbert": "hidden_dim"},
    padding_row={"mpnet": 1},
)
