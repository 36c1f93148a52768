"""Linear layers whose weights are arranged for the chip once, not again in each call.

torch.nn.functional.linear passes its weights to oneDNN row by row, and oneDNN reorders them for its kernels in each
call; in float32 torch uses MKL instead, which is slow on other makers' chips. Weights in oneDNN's own order took
0.82 of the time in bfloat16 and 0.43 in float32 for [3072, 384] times [384, 1536] (AMD EPYC with AVX512-BF16).
The operations are those that torch.compile itself uses for frozen linear layers on a CPU.

What it does not keep: float32 results to the last bit, because sums are computed in another order (differences of
about 1e-6 of the result). Therefore only the bulk path uses it, never a page that shows the numbers of one sentence.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import torch

_TOKENS = 2048  # the number of rows for which the order is chosen; others work too
_MIN_SPEEDUP = 1.05  # how much faster packed weights must be


class PackedLinear(torch.nn.Module):
    """Computes the same as a torch.nn.Linear: input [.., in] to [.., out]. For inference only."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        # Plain attributes: an opaque weight cannot be saved or moved like a parameter.
        with torch.inference_mode():
            self._weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), _TOKENS)
        self._bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(vectors, self._weight, self._bias, "none", [], "")

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedLinear:
        return self  # it never changes, so that copies of a model can share it


def pack(model: Any) -> Any:
    """Replace each plain linear layer of a module tree by its packed form, in place; the tree is returned."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear:
                setattr(parent, name, PackedLinear(child))
    return model


def trial(width: int, inner: int, kind: torch.dtype) -> tuple[float, bool]:
    """Seconds for a product [2048, width] times [width, inner] on this CPU, and whether packed weights were faster."""
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
