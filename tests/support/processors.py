"""What the processor of this machine can do."""

from __future__ import annotations

import torch


def packs_bfloat16() -> bool:
    """Whether this chip has oneDNN's products in bfloat16, by torch's own answer: a fault of the packing cannot hide here."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
