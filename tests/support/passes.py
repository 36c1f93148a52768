"""What the included model computes of the same texts: once for all tests of a process that draw pages."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from components.jobs import Cache
from components.model.backend import Backend
from components.model.catalog import EMBEDDED_KEY
from components.model.embedding.embedder import Embedder, EmbedOptions
from components.model.loaded import LoadedModel
from components.model.trace import TraceOptions

VECTORS = 64 << 20  # bytes of pooled vectors that are kept
STATES = 256 << 20  # and of whole passes that no page keeps


@contextmanager
def computed_once() -> Iterator[None]:
    """Within it a batch that has gone through the included model is not multiplied a second time: pages embed the demo, the
    queries of its chance level and the words of hits again in every test, and get the very vectors of before.

    Only the product is kept: a pass still waits for its turn and is counted, is split into batches, and fails where it fails.
    Nothing is kept of other models, nor where a weight has changed since the model was loaded.
    """
    pooled, states = Embedder._pooled, Backend._arrays
    vectors: Cache[torch.Tensor] = Cache(VECTORS, lambda kept: kept.nbytes)
    passes: Cache[dict[str, Any]] = Cache(STATES, _bytes_of)

    def pooled_once(
        self: Embedder, module: Any, inputs: dict[str, torch.Tensor], is_full: bool, options: EmbedOptions, weights: Any
    ) -> torch.Tensor:
        def computed() -> torch.Tensor:
            return pooled(self, module, inputs, is_full, options, weights)

        if weights is not None or not _is_included(self.model):
            return computed()
        key = ("pooled", self.model.revision, options, type(module), is_full, _content(inputs))
        return vectors.get(key, computed).clone()

    def states_once(
        self: Backend, module: Any, tensors: dict[str, torch.Tensor], options: TraceOptions, ids: Any
    ) -> dict[str, Any]:
        if not _is_included(self.loaded):
            return states(self, module, tensors, options, ids)
        key = (self.revision, options, _content(tensors))
        return dict(passes.get(key, lambda: states(self, module, tensors, options, ids)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Embedder, "_pooled", pooled_once)
        patch.setattr(Backend, "_arrays", states_once)
        yield


def _is_included(model: LoadedModel) -> bool:
    return model.spec.key == EMBEDDED_KEY and not any(weight._version for weight in model.encoder.parameters())


def _content(tensors: Mapping[str, torch.Tensor]) -> Hashable:
    return tuple((name, tensor.shape, tensor.numpy().tobytes()) for name, tensor in sorted(tensors.items()))


def _bytes_of(arrays: Mapping[str, Any]) -> int:
    every = [*arrays.values(), *vars(arrays["embedding_parts"]).values()]
    return sum(getattr(array, "nbytes", 0) for array in every)
