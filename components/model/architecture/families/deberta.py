"""DeBERTa v2 and v3 (He et al. 2021): attention with vectors for distances ("disentangled").

Layer 0 is the LayerNorm of the word vectors, as a rule without positions. The score of a query i and a key j is the sum of
three products, divided by the root of three times head_dim:

    content to content     q_i . k_j
    content to position    q_i . p(i - j)      p: the vector of their distance, projected like a key
    position to content    r(i - j) . k_j      r: the same vector, projected like a query

Large distances share a vector, the more the larger they are. Blocks have the structure of BERT's. Models with a convolution
behind the first block (DeBERTa v2 XL) and those that lack one of the three products are refused.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch

from components.model.architecture.families.bert import Names, block_with_norms_after, tables_of
from components.model.architecture.family import BlockMemory, Family
from components.model.architecture.modules import EncoderModules, Place
from components.model.architecture.structure import Structure

TITLES = {"deberta-v2": "DeBERTa"}
_NAMES = Names("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj")


def unsupported(config: Any) -> str:
    """What of a DeBERTa cannot be read here, as the end of "it has ..."; empty if all can."""
    if getattr(config, "conv_kernel_size", 0):
        return "a convolution after its first block (conv_kernel_size)"
    kinds = getattr(config, "pos_att_type", None) or ()
    kinds = kinds.split("|") if isinstance(kinds, str) else kinds if isinstance(kinds, list | tuple) else ()
    if not getattr(config, "relative_attention", False) or sorted(map(str, kinds)) != ["c2p", "p2c"]:
        return "attention without both products of content and position (relative_attention, pos_att_type)"
    return ""


def modules_of(model: Any) -> EncoderModules:
    """The record of a DeBERTa."""
    embeddings = model.embeddings
    blocks = tuple(block_with_norms_after(layer, _NAMES) for layer in model.encoder.layer)
    tables = tables_of(embeddings)
    head_dim = int(model.encoder.layer[0].attention.self.attention_head_size)
    projection = embeddings.embed_proj
    return EncoderModules(
        Structure(
            "deberta-v2",
            TITLES["deberta-v2"],
            ("absolute", "disentangled") if "position" in tables else ("disentangled",),
            tuple(tables),
            ("norm",) if projection is None else ("projection", "norm"),
            windows=(None,) * len(blocks),
            block_weights=tuple(range(len(blocks))),
            has_own_attention_code=True,
            scoring_head=("pooler.", "classifier."),
        ),
        blocks,
        "encoder.layer",
        Place(embeddings),
        tables,
        (embeddings.LayerNorm,) if projection is None else (projection, embeddings.LayerNorm),
        score_terms=lambda block, queries, keys: _score_terms(model.encoder, block, queries, keys),
        score_scale=1 / math.sqrt(3 * head_dim),
        first_blocks=lambda count: _first_blocks(model, count),
        mask_reader=model.encoder,  # the embeddings before it read only one number for each token
    )


def _score_terms(encoder: Any, block: int, queries: torch.Tensor, keys: torch.Tensor) -> dict[str, torch.Tensor]:
    """The two terms with positions of a block, each [head, query, key], from its queries and keys [head, token, head_dim]."""
    attention = encoder.layer[block].attention.self
    span = int(attention.pos_ebd_size)
    heads, tokens, head_dim = queries.shape
    vectors = encoder.get_rel_embedding()[: 2 * span]  # one for each distance -span .. span - 1

    def by_head(projection: Any) -> torch.Tensor:
        projected: torch.Tensor = projection(vectors).view(2 * span, heads, head_dim).transpose(0, 1)
        return projected  # [head, distance, head_dim]

    shared = attention.share_att_key
    like_keys = by_head(attention.key_proj if shared else attention.pos_key_proj)
    like_queries = by_head(attention.query_proj if shared else attention.pos_query_proj)
    positions = torch.arange(tokens, device=queries.device)
    # The number of the distance of each query and key, [query, key].
    distances = _buckets(positions[:, None] - positions, attention.position_buckets, attention.max_relative_positions)
    scale = 1 / math.sqrt(3 * head_dim)
    rows = (distances + span).clamp(0, 2 * span - 1).expand(heads, -1, -1)  # [head, query, key]
    # All products with distances are computed, and of these each query and key get that of their own.
    to_position = (queries @ like_keys.transpose(1, 2)).gather(2, rows)
    to_content = (keys @ like_queries.transpose(1, 2)).gather(2, rows.transpose(1, 2)).transpose(1, 2)
    return {"content_to_position": to_position * scale, "position_to_content": to_content * scale}


def _buckets(distances: torch.Tensor, buckets: int, longest: int) -> torch.Tensor:
    """The number of the vector of each distance: up to half the buckets it is the distance, then it grows as its logarithm."""
    if buckets <= 0:
        return distances
    middle = buckets // 2
    sizes = distances.abs()
    # As the library computes it, to the last bit: the result is rounded up.
    far = torch.log(sizes.clamp(min=middle) / middle) / torch.log(torch.tensor((longest - 1) / middle)) * (middle - 1)
    numbers = torch.where(sizes <= middle, sizes, torch.ceil(far).long() + middle)
    return numbers * distances.sign()


def _first_blocks(model: Any, count: int) -> Any:
    """A DeBERTa that ends after its first blocks; the library's encoder cannot be one of none."""
    shortened = copy.copy(model)
    shortened._modules = dict(model._modules)
    if not count:
        shortened._modules["encoder"] = _NoBlocks()
        return shortened
    encoder = copy.copy(model.encoder)
    encoder._modules = dict(model.encoder._modules)
    encoder._modules["layer"] = torch.nn.ModuleList(list(model.encoder.layer)[:count])
    shortened._modules["encoder"] = encoder
    return shortened


class _NoBlocks(torch.nn.Module):
    """An encoder that gives back what it gets, as the library's do."""

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutput

        return BaseModelOutput(last_hidden_state=hidden_states, hidden_states=(hidden_states,))


FAMILY = Family(
    TITLES,
    modules_of,
    unsupported,
    "Pick another model, such as DeBERTa v3 base.",
    memory=BlockMemory(is_whole=False),  # the scores for every distance are not counted
)
