"""How much memory an encoder takes on a device, from its sizes alone: its weights, a trace, a batch of bulk work.

Counted are the tensors at the moment when they take most. That is in the last block, in one of two places: the inner vectors of
the feed-forward part stand beside what is made of them, or queries, keys and values beside the copies that are multiplied, or
beside two tables of scores. A trace has all earlier layers and attentions by then. In bulk work attention is fused, as PyTorch
does it on accelerators: there is no table of scores. A family says how many vectors stand beside each other (BlockMemory).

What it leaves out: what a driver and its libraries take for themselves (some hundred megabytes), what an allocator rounds up or
keeps for later, and heads (one of guesses gives a number for each token and piece of the vocabulary). DeBERTa takes more: the
scores of its own attention for every distance are not counted.

A test compares it with the tensors that the library makes, for each kind of model in the catalogue but DeBERTa, and
`python -m tests.pretend_gpu` with the allocator of a pretend device. On a card it was not measured.
`python -m components.model.architecture.memory` writes the table in docs/deployment.md.
"""

from __future__ import annotations

import sys

from components.model.architecture.record import block_memory
from components.model.catalog import CATALOG, ModelFacts
from components.sizes import in_words

FLOAT32, BFLOAT16 = 4, 2  # bytes of a number
TRACE = (64, 64)  # sentences, and tokens of each, of the trace in the table
BATCH = 65_536  # tokens of the largest batch (components.model.embedding.batch_size)
_IDS = 32  # bytes of a token's id, mask, segment and position


def weight_bytes(facts: ModelFacts, with_half: bool) -> int:
    """The weights in float32, with the copy in bfloat16 that bulk work uses or without."""
    return facts.parameters * (FLOAT32 + BFLOAT16 * with_half)


def trace_bytes(facts: ModelFacts, sentences: int, tokens: int) -> int:
    """What a trace with attentions of so many sentences of this length takes besides the weights."""
    dim, scores = facts.hidden_size, facts.heads * tokens
    kept = (facts.layers + 1) * dim + facts.layers * scores
    attention = block_memory(facts.architecture).attention
    of_block = max(_inner(facts), attention * dim, 2 * dim + scores) if facts.layers else 0
    return sentences * tokens * (FLOAT32 * (kept + of_block) + _IDS)


def batch_bytes(facts: ModelFacts, tokens: int, number_bytes: int, every_layer: bool = False) -> int:
    """What a batch of bulk work of so many tokens takes besides the weights.

    `number_bytes` is FLOAT32 or BFLOAT16. Unless vectors of `every_layer` are wanted, only the last one is kept.
    """
    dim, states = facts.hidden_size, facts.layers + 1 if every_layer else 1
    of_block = block_memory(facts.architecture)
    of_attention = of_block.attention if number_bytes == FLOAT32 else of_block.attention_in_half
    in_block = (
        max(max(states, 3) * dim + _inner(facts), (max(states - 1, 1) + of_attention) * dim) if facts.layers else dim
    )
    return tokens * (number_bytes * in_block + _IDS)


def _inner(facts: ModelFacts) -> int:
    of_block = block_memory(facts.architecture)
    return of_block.inner * facts.feed_forward_size + of_block.hidden * facts.hidden_size


def table() -> str:
    """The catalogue's models in Markdown, each with its weights, a trace of TRACE and batches of BATCH in bfloat16."""
    sentences, tokens = TRACE
    lines = [
        "| model | weights | with the copy in bfloat16 | "
        f"a trace of {sentences} sentences of {tokens} tokens, with attentions | a batch of {BATCH:,} tokens "
        "in bfloat16, last layer | every layer |",
        "|---|---|---|---|---|---|",
    ]
    for spec in CATALOG:
        facts = spec.facts
        if facts is None:
            continue
        has_blocks, is_counted = facts.layers > 0, block_memory(facts.architecture).is_whole
        cells = [weight_bytes(facts, with_half=False), weight_bytes(facts, with_half=has_blocks)]
        if is_counted:
            cells.append(trace_bytes(facts, sentences, tokens) if spec.group != "decoder" else 0)
            size = BFLOAT16 if has_blocks else FLOAT32
            cells += [batch_bytes(facts, BATCH, size), batch_bytes(facts, BATCH, size, every_layer=True)]
        said = [in_words(each, binary=True) if each else "–" for each in cells] + ["more"] * (5 - len(cells))
        lines.append(f"| {spec.title} | {' | '.join(said)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
