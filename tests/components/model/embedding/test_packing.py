"""Packed linear layers compute what torch's own do."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from components.model.embedding import packing
from tests.support.processors import packs_bfloat16

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


@pytest.fixture(autouse=True)
def _nothing_measured_before():
    packing._measured.cache_clear()
    yield
    packing._measured.cache_clear()


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
@pytest.mark.parametrize("count", [0, 1, 32, 33, 256, 257, 700])
def test_added_rows_change_nothing(count):
    """Whatever lies behind the vectors in memory, such as not a number, stays out of the result."""
    torch.manual_seed(1)
    linear = torch.nn.Linear(48, 80)
    packed = packing.PackedLinear(linear)
    beyond = torch.full((1024, 48), torch.nan)
    beyond[:count] = torch.randn(count, 48)
    with torch.inference_mode():
        inputs = {
            "rows of their own": beyond[:count].clone(),
            "the first of more": beyond[:count],
            "every second column": beyond.repeat_interleave(2, dim=1)[:count, ::2],
        }
        for name, vectors in inputs.items():
            result = packed(vectors)
            assert result.shape == (count, 80), name
            torch.testing.assert_close(result, linear(vectors), atol=1e-5, rtol=1e-5, msg=name)


@needs_onednn
@pytest.mark.parametrize("kind", ["gelu", "gelu_new", "relu"])
def test_gelu_is_computed_with_the_product_and_no_other_activation(kind):
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertIntermediate

    torch.manual_seed(1)
    layer = BertIntermediate(BertConfig(hidden_size=48, intermediate_size=80, hidden_act=kind)).eval()
    packed = packing.packed_copy(layer)
    assert (type(packed.intermediate_act_fn) is torch.nn.Identity) == (kind == "gelu")
    assert type(layer.intermediate_act_fn) is not torch.nn.Identity
    vectors = 3 * torch.randn(5, 7, 48)
    with torch.inference_mode():
        torch.testing.assert_close(packed(vectors), layer(vectors), atol=1e-5, rtol=1e-5)


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


def test_a_trial_is_measured_once_so_that_models_of_one_size_decide_alike():
    both_ask = threading.Barrier(2)

    def ask(_):
        both_ask.wait(10)
        return packing.trial(16, 32, torch.float32)

    with ThreadPoolExecutor(2) as models:  # two that are loaded at once
        first, second = models.map(ask, range(2))
    assert first is second
    assert packing.trial(16, 32, torch.float32) is not packing.trial(16, 48, torch.float32)
