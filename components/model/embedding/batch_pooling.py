"""Hidden states of a batch to one vector per sentence, on the model's own device: mean, maximum, [CLS], last token.

The bulk path's pooling: it runs inside the batch, so that no hidden state is kept longer. The rules of
components.analysis.pooling, which works on traces, apply here too: special tokens count and padding does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from components.model.trace import Pooling


def weighted_shares(share: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The tokens' shares of a mean, [sentence, token], changed to those of a weighted mean, unless all weights are 0."""
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
    [sentence, token] is the share of each token in a mean: the mean is the product with these.
    """
    first = layers[0]
    result = torch.empty(
        (len(layers), len(poolings), first.shape[0], first.shape[2]), dtype=torch.float32, device=first.device
    )
    padding = None if bool((lengths == keep.shape[1]).all()) else ~keep[..., None]
    for row, state in enumerate(layers):
        # Converted to float32 once, both the mean and the maximum are twice as fast as in bfloat16.
        hidden = state[:, 0][:, None] if poolings == ("cls",) else state.float()
        for column, pooling in enumerate(poolings):
            if pooling == "cls":
                result[row, column] = hidden[:, 0]
            elif pooling == "last":
                rows = torch.arange(len(lengths), device=first.device)
                result[row, column] = hidden[rows, lengths - 1]
            elif pooling == "max":
                shown = hidden if padding is None else hidden.masked_fill(padding, -torch.inf)
                result[row, column] = shown.amax(dim=1)
            else:
                torch.bmm(share[:, None], hidden, out=result[row, column][:, None])
    return result
