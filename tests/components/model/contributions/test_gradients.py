"""Gradient x input against plain torch on every architecture, and that nothing of it is left in the model."""

from __future__ import annotations

import shutil
import threading
from functools import cache

import numpy as np
import pytest
import torch
from transformers import AutoModel

from components.model.backend import Backend
from components.model.store import TraceStore
from tests.support import tiny
from tests.support.closeness import FLOAT32
from tests.support.hooks import hooks_of
from tests.support.shared_models import shared_backend

TEXT, OTHER = "The cat sat on the bank.", "we will put money in the bank"


@pytest.fixture(params=tiny.ARCHITECTURES)
def backend(request, tiny_folder):
    return shared_backend(tiny_folder(request.param))


@cache
def plain_model(folder):
    """The weights of this folder as transformers loads them, in float64."""
    return AutoModel.from_pretrained(folder).eval().double()


def pooled(state, pooling):
    """Plain torch: one text's vector [dim] from its hidden states [token, dim]."""
    return {"mean": lambda: state.mean(0), "cls": lambda: state[0], "max": lambda: state.max(0).values}[pooling]()


def reference(plain, backend, pooling, layer):
    """The scores of TEXT's tokens by autograd through `inputs_embeds`, in float64, and OTHER's vector."""
    sentences = backend.tokenize([TEXT, OTHER])
    ids = [torch.tensor([[token.id for token in sentence.tokens]]) for sentence in sentences]
    with torch.no_grad():
        other = pooled(plain(input_ids=ids[1], output_hidden_states=True).hidden_states[layer][0], pooling)
    words = plain.get_input_embeddings()(ids[0]).detach().requires_grad_()
    states = plain(inputs_embeds=words, attention_mask=torch.ones_like(ids[0]), output_hidden_states=True)
    first = pooled(states.hidden_states[layer][0], pooling)
    (first @ other / (first.norm() * other.norm())).backward()
    return (words.grad * words).sum(-1)[0].detach().numpy(), other.float().numpy()


@pytest.mark.parametrize(("architecture", "case"), tiny.with_cases([("mean", 3), ("max", 2), ("cls", 3), ("mean", 0)]))
def test_the_scores_are_those_of_plain_torch(tiny_folder, architecture, case):
    folder, (pooling, layer) = tiny_folder(architecture), case
    backend, plain = shared_backend(folder), plain_model(folder)
    expected, other = reference(plain, backend, pooling, layer)
    backend.trace([TEXT], attentions=True)  # whatever a pass in inference mode leaves behind must not be in the way
    (sentence,) = backend.tokenize([TEXT])
    scores = backend.gradient_times_input(sentence, other, layer, pooling)
    assert scores.dtype == np.float32
    if backend.structure.ignores_word_lengths:  # 0 but for the epsilon of the norm
        assert np.abs(expected).max() < 1e-3
    else:
        assert np.abs(expected).max() > 1e-6
    np.testing.assert_allclose(scores, expected, atol=2e-6, rtol=2e-4)


def test_nothing_is_left_in_the_model(backend):
    before = {name: (item.requires_grad, item.detach().clone()) for name, item in backend.encoder.named_parameters()}
    trace = backend.run([TEXT])  # a model's first pass places hooks of transformers' own, which stay
    hooks, passes = hooks_of(backend.encoder), backend.forward_passes
    (sentence,) = backend.tokenize([TEXT])
    backend.gradient_times_input(sentence, np.ones(32, np.float32), 3, "mean")
    assert backend.forward_passes == passes + 1
    assert hooks_of(backend.encoder) == hooks
    for name, item in backend.encoder.named_parameters():
        assert item.grad is None, name
        assert item.requires_grad == before[name][0]
        assert torch.equal(item, before[name][1])
    np.testing.assert_array_equal(backend.run([TEXT]).hidden_states, trace.hidden_states)


@pytest.fixture(scope="module")
def bert(tiny_folder):
    return Backend.load(str(tiny_folder("bert")), store=TraceStore(8 << 20), device_name="cpu")


def test_a_failed_pass_leaves_no_hook(bert, monkeypatch):
    hooks = hooks_of(bert.encoder)
    (sentence,) = bert.tokenize([TEXT])
    with monkeypatch.context() as patch:
        patch.setattr(bert.encoder, "forward", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bert.gradient_times_input(sentence, np.ones(32, np.float32), 3, "mean")
    assert hooks_of(bert.encoder) == hooks


def test_frozen_weights_and_inference_mode_of_the_caller_change_nothing(bert):
    (sentence,) = bert.tokenize([TEXT])
    other = np.linspace(-1, 1, 32, dtype=np.float32)
    expected = bert.gradient_times_input(sentence, other, 2, "mean")
    bert.encoder.requires_grad_(False)
    try:
        with torch.inference_mode():
            np.testing.assert_array_equal(bert.gradient_times_input(sentence, other, 2, "mean"), expected)
            assert torch.is_inference_mode_enabled()
        assert not any(item.requires_grad for item in bert.encoder.parameters())
    finally:
        bert.encoder.requires_grad_(True)


def test_the_models_own_vector_goes_through_its_dense_layers(tiny_folder, tmp_path):
    shutil.copytree(tiny_folder("bert"), tmp_path / "model")
    folder = tiny.publish(tmp_path / "model", tiny.pooling_module(), tiny.dense_module(32, 5))
    backend = Backend.load(str(folder), device_name="cpu")
    plain = AutoModel.from_pretrained(folder).eval()
    (sentence,) = backend.tokenize([TEXT])
    other = backend.embed([OTHER], [3], ["mean", "own"])[0, -1, 0]
    assert not other[5:].any()  # filled with zeros up to the length of the mean
    words = plain.get_input_embeddings()(torch.tensor([[token.id for token in sentence.tokens]]))
    words = words.detach().requires_grad_()
    head = backend.loaded.head.layers
    own = head(plain(inputs_embeds=words).last_hidden_state[0].mean(0).double())
    torch.nn.functional.cosine_similarity(own, torch.tensor(other[:5]).double(), dim=0).backward()
    expected = (words.grad * words).sum(-1)[0].detach().numpy()
    np.testing.assert_allclose(backend.gradient_times_input(sentence, other, 3, "own"), expected, atol=2e-6, rtol=2e-4)


def test_what_the_model_does_not_have_is_refused(bert):
    (sentence,) = bert.tokenize([TEXT])
    with pytest.raises(ValueError, match=r"layer 4 is not within 0\.\.3"):
        bert.gradient_times_input(sentence, np.ones(32, np.float32), 4, "mean")
    with pytest.raises(ValueError, match="unknown pooling 'own'"):
        bert.gradient_times_input(sentence, np.ones(32, np.float32), 3, "own")


def test_threads_do_not_disturb_each_other(bert):
    texts = [TEXT, OTHER, "the red hat"]
    sentences, other = bert.tokenize(texts), np.linspace(-1, 1, 32, dtype=np.float32)
    expected = [bert.gradient_times_input(item, other, 3, "mean") for item in sentences]
    vectors = bert.embed(texts, [3], ["mean"])
    problems: list[str] = []

    def work(row: int) -> None:
        for _ in range(5):
            if not np.array_equal(bert.gradient_times_input(sentences[row], other, 3, "mean"), expected[row]):
                problems.append(f"gradient of {texts[row]}")
            if not np.allclose(bert.embed(texts, [3], ["mean"]), vectors, atol=FLOAT32):
                problems.append("vectors")

    threads = [threading.Thread(target=work, args=(row,)) for row in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
