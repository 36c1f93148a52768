"""Token vectors to one vector per sentence: mean, [CLS], max, and the model's own if that is another.

Mean and max use the attention mask, so that padding never counts; special tokens count by default, as in
sentence-transformers (Reimers and Gurevych 2019, section 3). [CLS] is the vector of the first token, special or not,
before any pooler. "own" is the model's own vector, made as it was published (components.model.head).
"""

from __future__ import annotations

import numpy as np

from components.arrays import Float32
from components.model.trace import POOLINGS, Pooling, SentenceHead, Trace


def pool(trace: Trace, pooling: Pooling, include_special: bool = True) -> Float32:
    """Sentence vectors at every layer, float32 [layer, sentence, dim]; for "own" dim is the head's size.

    In the model's own vector special tokens always count, as in its training. A sentence without tokens (only special
    ones, and these left out) gives NaN.
    Raises ValueError for an unknown pooling.
    """
    if pooling == "own" and trace.head is not None:
        return trace.head.apply(pooled_for_head(trace, trace.head))
    hidden = trace.hidden_states  # [layer, sentence, token, dim]
    if pooling == "cls":
        return np.array(hidden[:, :, 0])
    keep = trace.attention_mask.astype(bool) if include_special else ~trace.special_mask  # [sentence, token]
    empty = ~keep.any(axis=1)
    if pooling == "mean":
        pooled = mean_of(hidden, keep)
    elif pooling == "max":
        pooled = max_of(hidden, keep)
    else:
        raise ValueError(f"unknown pooling {pooling!r}; expected one of {', '.join(trace.poolings)}")
    pooled = pooled.astype(np.float32)
    pooled[:, empty] = np.nan
    return pooled


def mean_of(hidden: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """The mean of the tokens of `hidden` [layer, sentence, token, dim] that `keep` [sentence, token] marks; 0 without any."""
    weights = keep.astype(np.float32)
    total = np.einsum("lstd,st->lsd", hidden, weights)
    return np.asarray(total / np.maximum(weights.sum(axis=1), 1)[None, :, None])


def max_of(hidden: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """The largest number in each dimension of the tokens of `hidden` that `keep` marks: [layer, sentence, dim]."""
    # Layer by layer: a masked copy of all of them would be as large as the trace.
    return np.stack([np.where(keep[..., None], layer, -np.inf).max(axis=1) for layer in hidden])


def pooled_for_head(trace: Trace, head: SentenceHead) -> Float32:
    """What the layers of a head get: pooled vectors at every layer, float32 [layer, sentence, pooled]."""
    if head.pooling in POOLINGS:
        return pool(trace, head.pooling)
    prompts = [sentence.prompt_tokens for sentence in trace.sentences]
    return head.pooled(trace.hidden_states, trace.attention_mask.astype(bool), prompts)
