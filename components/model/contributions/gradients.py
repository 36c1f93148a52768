"""How a similarity depends on each token's word vector: its gradient times the vector itself.

Gradient x input (Denil, Demiraj and de Freitas 2014, "Extraction of Salient Sentences from Labelled Documents"; for images
Shrikumar et al. 2016): the cosine c of a text's pooled vector with a fixed vector is a function of the word vectors x_i
that the text's tokens are looked up as. To first order, scaling x_i by 1 + e changes c by e times

    score_i = sum over dim of (dc / dx_i) * x_i

What it does not show: what happens far from here. The gradient is that of an infinitely small change, while a removed
word changes the whole text; where the model is saturated, the gradient is small although the word matters.

No weight is changed: `torch.autograd.grad` computes the derivative with respect to the word vectors alone, and leaves the
parameters' `.grad` and `requires_grad` as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from components.arrays import Float32
from components.model.device import on_device
from components.model.loaded import LoadedModel, numpy_of
from components.model.trace import Pooling, TokenizedSentence


def gradient_times_input(
    model: LoadedModel, sentence: TokenizedSentence, other: Float32, layer: int, pooling: Pooling
) -> Float32:
    """The gradient of a text's cosine with `other` [dim], times its word vectors: float32 [token], the sum over dim.

    The text's vector is pooled at `layer`, and `other` is a vector of the same pooling, longer only if it ends in zeros.
    One forward and one backward pass, of this text alone. Raises ValueError for a layer that the model does not have,
    or a pooling that it does not offer, ModelError for a model without blocks.
    """
    model.need("blocks")
    if not 0 <= layer <= model.facts.layers:
        raise ValueError(f"layer {layer} is not within 0..{model.facts.layers}")
    if pooling not in model.poolings:
        raise ValueError(f"unknown pooling {pooling!r}; expected one of {', '.join(model.poolings)}")
    looked_up: list[torch.Tensor] = []

    def start_here(module: Any, arguments: Any, output: torch.Tensor) -> torch.Tensor:
        """Word vectors [1, token, dim] that depend on no parameter, in place of the table's."""
        looked_up.append(output.detach().requires_grad_())
        return looked_up[-1]

    def compute() -> Float32:
        hook = model.encoder.get_input_embeddings().register_forward_hook(start_here)
        try:
            states = model.encoder(**tensors, output_hidden_states=True).hidden_states
        finally:
            hook.remove()
        pooled = _pooled(model, states, layer, pooling, sentence.prompt_tokens)  # [dim]
        (fixed,) = on_device([torch.tensor(np.asarray(other[: len(pooled)]), dtype=pooled.dtype)], model.device)
        cosine = torch.nn.functional.cosine_similarity(pooled, fixed, dim=0)
        word_vectors = looked_up.pop()
        (gradient,) = torch.autograd.grad(cosine, word_vectors)
        return numpy_of((gradient * word_vectors).sum(dim=-1)[0])

    tensors = model.tensors(*model.tokenization.arrays([sentence]))
    # `forward_pass` enters inference mode, in which nothing can be differentiated; both switches are thread-local.
    with model.forward_pass(), torch.inference_mode(False), torch.enable_grad():
        return compute()


def _pooled(
    model: LoadedModel, states: Sequence[torch.Tensor], layer: int, pooling: Pooling, prompt_tokens: int
) -> torch.Tensor:
    """Hidden states of one text without padding, [1, token, dim] each, to its vector [dim]."""
    state = states[layer]
    if pooling == "own" and model.head is not None:
        keep = torch.ones(state.shape[:2], dtype=torch.bool, device=state.device)
        first = torch.full((1,), prompt_tokens, device=state.device)
        return model.head.vectors(state, keep, first, states if layer == model.facts.layers else None)[0]
    if pooling == "cls":
        return state[0, 0]
    return state[0].amax(dim=0) if pooling == "max" else state[0].mean(dim=0)
