"""Forward mode: each rule, and whole models, against torch's own forward mode."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from torch.nn import functional

from components.model.backend import Backend
from components.model.contributions import forward_mode
from components.model.contributions.forward_mode import directional_derivatives
from components.model.contributions.path_products import _encoder, _word_vectors, path_products
from components.model.store import TraceStore
from tests.support import tiny
from tests.support.shared_models import shared_backend

SHAPE = (2, 4, 6)  # of the place


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))  # float64


def by_torch(function, place, directions):
    return torch.func.vmap(lambda direction: torch.func.jvp(function, (place,), (direction,))[1])(directions)


@pytest.fixture
def used(monkeypatch):
    """The functions that had no rule of their own."""
    found, by_jvp = [], forward_mode._by_jvp

    def record(function, *more):
        found.append(function.__name__)
        return by_jvp(function, *more)

    monkeypatch.setattr(forward_mode, "_by_jvp", record)
    return found


def in_place(x):
    y = x * 2.0
    y += numbers(4, 6, seed=5)
    return y


def written_into(y, values=0.0):
    y[0] = values
    return y


WITH_A_RULE = {
    "a matrix": lambda x: functional.linear(x, numbers(3, 6, seed=1), numbers(3, seed=2)),
    "views": lambda x: x.transpose(1, 2).contiguous().view(2, 3, -1).permute(2, 0, 1).reshape(8, 6)[1:, ::2],
    "expand": lambda x: x[:1].expand(5, -1, -1),
    "mean": lambda x: x.mean(dim=1) / 3.0,
    "type": lambda x: x.to(torch.float64),
    "sum of both": lambda x: x + x[:1, :, :1] + x[0],
    "sum with a number": lambda x: 2.0 + x + 1,
    "sum that broadcasts": lambda x: x[0] + numbers(3, 4, 6, seed=3),
    "sum in place": in_place,
    "product of both": lambda x: x * x[:, :1],
    "product with a number": lambda x: 3 * x * numbers(6, seed=4),
    "matrix product of both": lambda x: torch.matmul(x, x.transpose(1, 2)),
    "matrix product with a left one": lambda x: torch.matmul(numbers(3, 4, seed=6), x),
    "matrix product with a right one": lambda x: torch.matmul(x[0], numbers(2, 6, 3, seed=7)),
    "dropout that is off": lambda x: functional.dropout(x, 0.5, training=False),
    "gelu": functional.gelu,
    "gelu by tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "tanh": torch.tanh,
    "powers": lambda x: torch.pow(x, 3.0) + x.pow(2),
    "inverse root": lambda x: torch.rsqrt(x * x + 1),
    "negative": lambda x: -x.float(),
    "softmax": lambda x: functional.softmax(x, dim=-1),
    "softmax of another axis": lambda x: functional.softmax(x, dim=1),
    "chunks": lambda x: functional.gelu(x.chunk(2, dim=-1)[0]) * x.chunk(2, dim=-1)[1],
    "parts": lambda x: x.split([1, 3], 1)[1] + torch.split(x, 1, 1)[0],
    "slices": lambda x: x.unbind(-1)[2] * torch.unbind(x, 2)[0],
    "joined with a constant": lambda x: torch.cat([x, numbers(2, 4, 6, seed=11), 2 * x], dim=1),
    "joined from the end": lambda x: torch.cat((x, x * x), -1),
    "layer norm": lambda x: functional.layer_norm(x, (6,), numbers(6, seed=8), numbers(6, seed=9), 1e-5),
}
BY_TORCH = {
    "exponential": torch.exp,
    "largest": lambda x: x.amax(dim=1),
    "division by another": lambda x: x / (x * x).sum(dim=-1, keepdim=True),
    "a layer norm of two axes": lambda x: functional.layer_norm(x, (4, 6)),
    "a matrix that moves": lambda x: functional.linear(x, x[0]),
    "a vector": lambda x: torch.matmul(x, x[0, 0]),
}


@pytest.mark.parametrize("name", [*WITH_A_RULE, *BY_TORCH])
def test_each_function_has_the_derivatives_of_torch(name, used):
    function = {**WITH_A_RULE, **BY_TORCH}[name]
    place, directions = numbers(*SHAPE), numbers(7, *SHAPE, seed=10)
    with torch.no_grad():
        found = directional_derivatives(function, place, directions)
        expected = by_torch(function, place, directions)
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected)
    assert bool(used) == (name in BY_TORCH)


def test_what_does_not_depend_on_the_place_has_no_derivative():
    with torch.no_grad():
        assert not directional_derivatives(lambda x: numbers(3), numbers(*SHAPE), numbers(2, *SHAPE)).any()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.stack([x, x]),
        lambda x: x.clone().mul_(2),
        lambda x: x.clone().add_(x),
        lambda x: x.max(dim=1).values,
        lambda x: written_into(x),
        lambda x: written_into(torch.zeros(SHAPE, dtype=x.dtype), x[0]),
    ],
    ids=[
        "in a list",
        "in place",
        "a sum in place with what moves",
        "of several results",
        "written",
        "written elsewhere",
    ],
)
def test_what_has_no_rule_is_refused_and_not_wrong(function):
    with torch.no_grad(), pytest.raises(NotImplementedError, match="no rule"):
        directional_derivatives(function, numbers(*SHAPE), numbers(2, *SHAPE))


def test_dropout_is_refused_while_it_is_on():
    with torch.no_grad(), pytest.raises(ValueError, match="evaluation mode"):
        directional_derivatives(lambda x: functional.dropout(x, 0.5), numbers(*SHAPE), numbers(2, *SHAPE))


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_every_architecture_has_rules_for_all_it_does(architecture, tiny_folder, used):
    backend = shared_backend(tiny_folder(architecture))
    sentence = backend.tokenize(["a bank sat"])[0]
    run = _encoder(backend.loaded, sentence, backend.facts.layers, "mean")._run
    place = _word_vectors(backend.loaded, sentence, None)
    directions = numbers(5, *place.shape).float()
    if backend.structure.has_disentangled_terms:  # it adds in place: `path_products` goes through torch alone
        with torch.no_grad(), pytest.raises(NotImplementedError, match="add_"):
            directional_derivatives(run, place, directions)
        return
    with torch.no_grad():
        found, expected = directional_derivatives(run, place, directions), by_torch(run, place, directions)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert not used


@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert"])
def test_a_feed_forward_part_that_works_in_chunks_keeps_its_derivatives(architecture, tiny_folder, tmp_path):
    """Published configurations may set it: then the tokens go through it one by one, and are joined again."""
    folder = tmp_path / architecture
    shutil.copytree(tiny_folder(architecture), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "chunk_size_feed_forward": 1}))
    found = []
    for name in (tiny_folder(architecture), folder):
        backend = Backend.load(str(name), store=TraceStore(1 << 20), device_name="cpu")
        sentence = backend.tokenize(["a bank sat"])[0]
        found.append(path_products(backend.loaded, sentence, "unknown", backend.facts.layers, "mean", 4).contributions)
    assert np.abs(found[0]).max() > 0.01
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)
