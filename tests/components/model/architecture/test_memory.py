"""The arithmetic of memory against the tensors that the library makes, which have shapes here and take no memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from components.model.architecture import memory
from components.model.architecture.record import block_memory
from components.model.catalog import CATALOG, EMBEDDED_KEY, catalog_spec
from components.model.embedding.batch_size import MOST_TOKENS
from tests.support.models_of_sizes import model_of
from tests.support.places import ROOT

BLOCKS = 2
# One model of each architecture in the catalogue.
KINDS = {spec.facts.architecture: spec for spec in reversed(CATALOG) if spec.facts is not None}
COUNTED = sorted(kind for kind in KINDS if block_memory(kind).is_whole)


class Sum(TorchDispatchMode):
    """The most bytes of the tensors that operators made and that were alive at once. Attention is fused where it can be."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = operator.name()
        if name in ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"):  # of what has no value
            return False
        if name == "aten::scaled_dot_product_attention":
            result = torch.empty_like(args[0])
        else:
            result = operator(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                reference = StorageWeakRef(tensor.untyped_storage())
                self._alive[reference.cdata] = (reference, tensor.untyped_storage().nbytes())
        self._alive = {key: kept for key, kept in self._alive.items() if not kept[0].expired()}
        self.most = max(self.most, sum(nbytes for _, nbytes in self._alive.values()))
        return result


def most_bytes(model: Any, sentences: int, tokens: int, **options: bool) -> int:
    with torch.inference_mode(), Sum() as total:
        model(input_ids=torch.zeros(sentences, tokens, dtype=torch.int64, device="meta"), **options)
    return total.most


@pytest.mark.parametrize("kind", COUNTED)
def test_what_is_counted_is_what_the_library_makes(kind: str) -> None:
    facts = KINDS[kind].facts
    assert facts is not None
    facts = replace(facts, layers=min(facts.layers, BLOCKS))
    sentences, tokens = memory.TRACE
    model = model_of(facts).eval()
    model.config.use_cache = False
    batches = {memory.FLOAT32: model} if kind == "static" else {memory.FLOAT32: model, memory.BFLOAT16: None}
    for number_bytes, of_batch in batches.items():
        bulk = of_batch or model_of(facts).eval().bfloat16()
        bulk.config.use_cache = False
        for every_layer in (False, True)[: 1 + (kind != "static")]:
            options = {"output_hidden_states": True} if every_layer else {}
            found = most_bytes(bulk, sentences, tokens, **options)
            expected = memory.batch_bytes(facts, sentences * tokens, number_bytes, every_layer)
            assert found == pytest.approx(expected, rel=0.1), (number_bytes, every_layer)
    if KINDS[kind].group == "decoder":  # its pages show no trace
        return
    if kind not in ("static", "mpnet"):
        model.set_attn_implementation("eager")
    options = {} if kind == "static" else {"output_hidden_states": True, "output_attentions": True}
    assert most_bytes(model, sentences, tokens, **options) == pytest.approx(
        memory.trace_bytes(facts, sentences, tokens), rel=0.1
    )


def test_the_weights_are_those_of_the_included_model(embedded: Any) -> None:
    spec = catalog_spec(EMBEDDED_KEY)
    assert spec is not None
    assert spec.facts is not None
    of_positions = 1.01  # buffers with their numbers
    assert memory.weight_bytes(spec.facts, with_half=False) <= embedded.weight_bytes
    assert embedded.weight_bytes <= of_positions * memory.weight_bytes(spec.facts, with_half=False)
    assert memory.weight_bytes(spec.facts, with_half=True) * 2 == memory.weight_bytes(spec.facts, with_half=False) * 3


def test_the_largest_batch_and_the_table_of_the_document() -> None:
    assert memory.BATCH == MOST_TOKENS
    written = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    assert f"\n\n{memory.table()}\n\n" in written, "python -m components.model.architecture.memory"
