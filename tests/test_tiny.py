"""The tests' own models have the same weights whatever other threads do."""

from __future__ import annotations

import torch

from tests.support.tiny import tiny_model, undisturbed


def test_a_thread_that_draws_in_between_does_not_change_the_weights() -> None:
    draws = iter([1, 0, 1, 0, 0])  # numbers that another thread takes while each is made

    def make() -> torch.nn.Linear:
        torch.manual_seed(0)
        torch.rand(next(draws))
        return torch.nn.Linear(3, 2)

    made = undisturbed(make)
    torch.manual_seed(0)
    torch.testing.assert_close(made.weight, torch.nn.Linear(3, 2).weight, rtol=0, atol=0)
    assert list(draws) == []


def test_the_seed_decides() -> None:
    first, again, other = (tiny_model("bert", seed)[0].embeddings.word_embeddings.weight for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
