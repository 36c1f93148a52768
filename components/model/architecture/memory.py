"""How much memory an encoder takes on a device, from its sizes alone: its weights, a trace, a batch of bulk work.

Counted is what tensors take at the moment when they take most, in one of two places of a block: the inner vectors of its
feed-forward part stand beside what the activation function makes of them (gates and what they are multiplied with too), or
queries, keys and values stand beside the copies that are multiplied, and two tables of scores. Before the last block ends, a
trace has all earlier layers and attentions. For bulk work attention is fused, as PyTorch's own for accelerators is: it keeps no
table of scores.

What it leaves out: what a driver and its libraries take for themselves (some hundred megabytes), what an allocator rounds up or
keeps for later, heads (a masked-LM head gives a number for each piece of the vocabulary and token), and tables for distances.
`python -m tests.pretend_gpu` compares it with the sums of tensors that were really made, on the CPU: on a card it was not
measured. `python -m components.model.architecture.memory` writes the table in docs/deployment.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from components.model.catalog import CATALOG, ModelFacts
from components.sizes import in_words

FLOAT32, BFLOAT16 = 4, 2  # bytes of a number
IDS = 32  # bytes of a token's id, mask, segment and position
# How many vectors of the feed-forward part's inner size a block has at once, where there are not two.
_INNER = {"modernbert": 4, "nomic_bert": 3, "eurobert": 3, "qwen3": 3}
_OF_ATTENTION = 6  # vectors of the hidden size that attention has at once
TRACE = (64, 64)  # sentences and tokens of the trace in the table: as many as a page shows, equally long
BATCH = 65_536  # tokens of the largest batch (components.model.embedding.batch_size)


def weight_bytes(facts: ModelFacts, with_half: bool) -> int:
    """The weights in float32, and the copy in bfloat16 that bulk work uses."""
    return facts.parameters * (FLOAT32 + BFLOAT16 * with_half)


def trace_bytes(facts: ModelFacts, sentences: int, tokens: int, attentions: bool) -> int:
    """What a trace of so many sentences of this length takes besides the weights, padding included."""
    dim, scores = facts.hidden_size, facts.heads * tokens
    kept = (facts.layers + 1) * dim + facts.layers * scores * attentions
    of_block = max(_inner(facts), _OF_ATTENTION * dim, 2 * dim + scores * attentions) if facts.layers else 0
    return sentences * tokens * (FLOAT32 * (kept + of_block) + IDS)


def batch_bytes(facts: ModelFacts, tokens: int, number_bytes: int) -> int:
    """What a batch of bulk work of so many tokens takes besides the weights, for vectors of the last layer alone."""
    of_block = max(3 * facts.hidden_size + _inner(facts), (1 + _OF_ATTENTION) * facts.hidden_size)
    return tokens * (number_bytes * (of_block if facts.layers else 2 * facts.hidden_size) + IDS)


def _inner(facts: ModelFacts) -> int:
    return _INNER.get(facts.architecture, 2) * facts.feed_forward_size
