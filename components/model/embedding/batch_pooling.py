"""Hidden states of a batch to one vector a sentence, on the model's own device: mean, weighted mean, maximum, [CLS].

The bulk path's pooling: it runs inside the batch, so that no hidden state outlives it. What is said of these poolings in
components.analysis.pooling, which works on traces, holds here too: special tokens count and padding does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from components.model.trace import Pooling


def weighted_shares(share: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Shares of a mean [sentence, token] turned into those of a weighted one; where all weights are 0 they stay."""
    parts = share * weights
    total = parts.sum(dim=1, keepdim=True)
    return torch.where(total > 0, parts / total, share)


def pooled_states(
    layers: Sequence[torch.Tensor],
    poolings: Sequence[Pooling],
    keep: torch.Tensor,
    lengths: torch.Tensor,
    share: torch.Tensor,
) -> torch.Tensor:
    """Hidden states [sentence, token, dim] of some layers to vectors, float32 [layer, pooling, sentence, dim].

    `keep` [sentence, token] is true for tokens and false for padding, `lengths` [sentence] counts the tokens, and `share`
    [sentence, token] is what each is worth in a mean: a mean is a product with these.
    """
    first = layers[0]
    result = torch.empty(
        (len(layers), len(poolings), first.shape[0], first.shape[2]), dtype=torch.float32, device=first.device
    )
    padding = None if bool((lengths == keep.shape[1]).all()) else ~keep[..., None]
    for at, state in enumerate(layers):
        # Once in float32, both the mean and the maximum are twice as quick as in bfloat16.
        hidden = state[:, 0][:, None] if poolings == ("cls",) else state.float()
        for place, pooling in enumerate(poolings):
            if pooling == "cls":
                result[at, place] = hidden[:, 0]
            elif pooling == "max":
                shown = hidden if padding is None else hidden.masked_fill(padding, -torch.inf)
                result[at, place] = shown.amax(dim=1)
            else:
                torch.bmm(share[:, None], hidden, out=result[at, place][:, None])
    return result
