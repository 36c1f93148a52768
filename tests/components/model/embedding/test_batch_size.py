"""The size of batches on a device whose speed is measured: within a tenth of a second, once, and kept."""

from __future__ import annotations

import pytest

from components.errors import ModelError
from components.model.embedding import batch_size
from components.model.embedding.batch_size import LEAST_TOKENS, MOST_TOKENS, measured_tokens


def _chip(seconds_per_token, memory=10**9):
    """A device of this speed, and the batches that were tried on it."""
    tried = []

    def seconds_of(tokens):
        tried.append(tokens)
        if tokens > memory:
            raise ModelError("memory", "There is too little.", "It needs more.", "Shorten it.")
        return tokens * seconds_per_token

    return seconds_of, tried


@pytest.mark.parametrize(
    ("seconds_per_token", "memory", "tokens"),
    [
        (1e-5, 10**9, 8_192),  # the next size would take 0.16 seconds
        (1e-7, 10**9, MOST_TOKENS),
        (1.0, 10**9, LEAST_TOKENS),
        (1e-7, 5_000, 4_096),
    ],
)
def test_a_batch_takes_a_tenth_of_a_second_and_fits(tmp_path, monkeypatch, seconds_per_token, memory, tokens):
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))
    seconds_of, tried = _chip(seconds_per_token, memory)
    assert measured_tokens("A card", "model", "float32", seconds_of) == tokens
    assert tried == [LEAST_TOKENS * 2**step for step in range(len(tried))]
    assert tokens == LEAST_TOKENS or tokens * seconds_per_token <= batch_size.MOST_SECONDS
    # Memory that another program has is no property of the device: the next start measures again.
    assert (tmp_path / "batches").exists() == (memory > MOST_TOKENS)


def test_it_is_measured_once_for_a_device_a_model_and_a_precision(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))
    slow, fast = _chip(1e-5)[0], _chip(1e-7)[0]
    assert measured_tokens("A card", "model", "float32", slow) == 8_192
    assert measured_tokens("A card", "model", "float32", fast) == 8_192
    for other in (("B card", "model", "float32"), ("A card", "other", "float32"), ("A card", "model", "bfloat16")):
        assert measured_tokens(*other, fast) == MOST_TOKENS
    for path in (tmp_path / "batches").iterdir():
        path.write_text('{"tokens_per_batch": 999999999}')
    assert measured_tokens("A card", "model", "float32", fast) == MOST_TOKENS


def test_another_failure_of_the_device_is_not_hidden(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_INTERNALS_CACHE", str(tmp_path))

    def failing(tokens):
        raise ModelError("device", "It has failed.", "It must work.", "Start it again.")

    with pytest.raises(ModelError, match="has failed"):
        measured_tokens("A card", "model", "float32", failing)
    assert not (tmp_path / "batches").exists()
