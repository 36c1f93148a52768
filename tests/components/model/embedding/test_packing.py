"""Packed linear layers compute what torch's own do."""

from __future__ import annotations

import copy

import pytest
import torch

from components.model.embedding import packing

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


def packs_bfloat16() -> bool:
    """Whether this chip has oneDNN's products in bfloat16, by torch's own answer: a fault of the packing cannot hide here."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


@needs_onednn
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
@pytest.mark.parametrize("shape", [(1, 48), (5, 7, 48), (4000, 48)])
def test_a_packed_layer_equals_the_plain_one(shape, kind, tolerance, bias):
    if kind is torch.bfloat16 and not packs_bfloat16():
        assert packing.trial(48, 80, kind)[1] is False  # such a chip goes on with the plain layers
        return
    torch.manual_seed(1)
    linear = torch.nn.Linear(48, 80, bias=bias, dtype=kind)
    vectors = torch.randn(shape, dtype=kind)
    with torch.inference_mode():
        torch.testing.assert_close(
            packing.PackedLinear(linear)(vectors), linear(vectors), atol=tolerance, rtol=tolerance
        )


@needs_onednn
def test_a_packed_copy_leaves_the_model_as_it_is():
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.Sequential(torch.nn.Linear(4, 2))
    )
    packed = packing.packed_copy(model)
    assert [type(layer) for layer in packed.modules() if not list(layer.children())] == [
        packing.PackedLinear,
        torch.nn.LayerNorm,
        packing.PackedLinear,
    ]
    assert type(model[0]) is torch.nn.Linear
    assert packed[1].weight is model[1].weight
    again = copy.deepcopy(packed)
    assert again[0] is packed[0]  # nothing in it can change, so it is not doubled


def test_the_trial_leaves_the_random_numbers_of_others_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    seconds, _ = packing.trial(16, 32, torch.float32)
    assert seconds > 0
    assert torch.equal(torch.rand(3), expected)


def test_a_torch_without_these_operations_goes_on_with_the_plain_layers(monkeypatch):
    def missing(*_):
        raise AttributeError("no such operation")

    monkeypatch.setattr(packing, "PackedLinear", missing)
    seconds, worth_it = packing.trial(16, 32, torch.float32)
    assert seconds > 0
    assert not worth_it
