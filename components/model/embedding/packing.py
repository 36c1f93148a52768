"""Linear layers whose weights are arranged for the chip once, not again in each call.

torch.nn.functional.linear passes its weights to oneDNN row by row, and oneDNN reorders them for its kernels in each
call; in float32 torch uses MKL instead, which is slow on other makers' chips. Weights in oneDNN's own order took
0.82 of the time in bfloat16 and 0.43 in float32 for [3072, 384] times [384, 1536] (AMD EPYC with AVX512-BF16).
The operations are those that torch.compile itself uses for frozen linear layers on a CPU.

oneDNN prepares a product for each number of rows, and every batch has another: 5 ms for one new shape, where the product
itself takes 1 ms (a chip with AMX). So rows are added up to a multiple of 256 (of 32 for a query), and few shapes are left.
A GELU that follows is computed with the product, from float32 sums. Together with the fused attention
(components.model.embedding.embedder) this took the included model from 980 to 1,350 sentences a second.

What it does not keep: float32 results to the last bit, because sums are computed in another order (differences of
about 1e-6 of the result). Therefore only the bulk path uses it, never a page that shows the numbers of one sentence.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

_TOKENS = 2048  # the number of rows for which the order is chosen; others work too
_ROWS, _FEW_ROWS = 256, 32  # the rows of a product are filled up to a multiple of 256; those of a query to one of 32
_MIN_SPEEDUP = 1.05  # how much faster packed weights must be
_measuring = threading.Lock()


class PackedLinear(torch.nn.Module):
    """Computes the same as a torch.nn.Linear, and GELU after it if asked: input [.., in] to [.., out]. For inference only."""

    def __init__(self, linear: torch.nn.Linear, with_gelu: bool = False) -> None:
        super().__init__()
        # Plain attributes: an opaque weight cannot be saved or moved like a parameter.
        with torch.inference_mode():
            self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _TOKENS)
        self._bias = None if linear.bias is None else linear.bias.detach()
        # Its name, numbers and way of computing it; "none" here: without the approximation by tanh.
        self._activation: tuple[str, list[Any], str] = ("gelu", [], "none") if with_gelu else ("none", [], "")

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        rows, count = _filled(vectors)
        result = torch.ops.mkldnn._linear_pointwise(rows, self._weight, self._bias, *self._activation)
        return result[:count].view(*vectors.shape[:-1], result.shape[-1])

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedLinear:
        return self  # it never changes, so that copies of a model can share it


def _filled(vectors: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Vectors [.., dim] as rows [row, dim], their number a multiple of _ROWS or _FEW_ROWS, and how many of them are real.

    Where the memory goes on behind them, as that of a packed layer's own result does, nothing is copied: a row does not
    depend on the others, so it does not matter what the added ones hold.
    """
    count, dim = vectors.shape[:-1].numel(), vectors.shape[-1]
    full = count + -count % (_ROWS if count > _ROWS else _FEW_ROWS)
    room = vectors.untyped_storage().nbytes() // vectors.element_size() - vectors.storage_offset()
    if vectors.is_contiguous() and room >= full * dim:
        return vectors.as_strided((full, dim), (dim, 1)), count
    rows = vectors.new_empty((full, dim))
    rows[:count] = vectors.reshape(count, dim)
    rows[count:] = 0
    return rows, count


def pack(model: Any) -> Any:
    """Replace each plain linear layer of a module tree by its packed form, in place; the tree is returned."""
    for parent in list(model.modules()):
        has_gelu = _has_gelu(parent)
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear:
                setattr(parent, name, PackedLinear(child, with_gelu=has_gelu))
        if has_gelu:
            parent.intermediate_act_fn = torch.nn.Identity()
    return model


def _has_gelu(module: Any) -> bool:
    """Whether a module is a linear layer followed by GELU, as the first half of a feed-forward network is in BERT."""
    from transformers.activations import GELUActivation

    activation: Any = getattr(module, "intermediate_act_fn", None)
    is_exact = type(activation) is GELUActivation and activation.act is torch.nn.functional.gelu
    return is_exact and type(getattr(module, "dense", None)) is torch.nn.Linear and len(list(module.children())) == 2


def trial(width: int, inner: int, kind: torch.dtype) -> tuple[float, bool]:
    """Seconds for a product [2048, width] times [width, inner] on this CPU, and whether packed weights were faster.

    Measured once in a process, one size at a time: models of one size decide alike, and no trial slows another.
    """
    with _measuring:
        return _measured(width, inner, kind)


@cache
def _measured(width: int, inner: int, kind: torch.dtype) -> tuple[float, bool]:
    with torch.inference_mode():
        linear = torch.nn.Linear(width, inner, dtype=kind, device="meta").to_empty(device="cpu")
        numbers = torch.Generator().manual_seed(0)  # its own generator: no other random numbers change
        for parameter in linear.parameters():
            parameter.normal_(std=width**-0.5, generator=numbers)
        vectors = torch.randn(_TOKENS, width, dtype=kind, generator=numbers)
        plain = _best_of(lambda: linear(vectors))
        try:
            packed = PackedLinear(linear)
            difference = (packed(vectors).float() - linear(vectors).float()).abs().max()
        except (AttributeError, NotImplementedError, RuntimeError):  # torch without oneDNN, or an unknown chip
            return plain, False
        if not difference < 0.05:
            return plain, False
        packed_seconds = _best_of(lambda: packed(vectors))
    return min(plain, packed_seconds), packed_seconds * _MIN_SPEEDUP < plain


def _best_of(action: Callable[[], Any], times: int = 4) -> float:
    best = float("inf")
    for _ in range(times):  # the first one warms up
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best


def packed_copy(model: Any) -> Any:
    """A copy of a model with packed linear layers; all its other parameters and buffers are the same tensors."""
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    return pack(copy.deepcopy(model, shared))
