"""What guessing promises: every position and layer of a sentence within a second, at BERT base's size (`make bench -s`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForMaskedLM

from components.model.backend import Backend
from components.model.store import TraceStore
from tests.support.measurements import report

SENTENCE = "The trophy does not fit in the suitcase because it is too big, and it is."  # 20 tokens with [CLS] and [SEP]
TRIES = 5


def median_seconds(work: Callable[[], Any]) -> float:
    """The median of some tries, after one that is not counted."""
    taken = []
    for _ in range(TRIES + 1):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return sorted(taken[1:])[TRIES // 2]


def test_all_positions_and_layers_of_twenty_tokens(embedded: Backend, tmp_path: Path) -> None:
    """A ratio of one run: against the library's own pass with its head, which is the last layer alone.

    The head reads thirteen layers instead of one; all that is kept of them may cost as much again.
    """
    torch.manual_seed(0)
    BertForMaskedLM(BertConfig()).eval().save_pretrained(tmp_path)  # BERT base, with weights of chance
    for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        source = (embedded.loaded.folder or tmp_path) / file
        if source.is_file():
            (tmp_path / file).write_bytes(source.read_bytes())
    backend = Backend.load(str(tmp_path), store=TraceStore(1 << 24), device_name="cpu")
    (sentence,) = backend.tokenize([SENTENCE])
    assert len(sentence) == 20
    plain = backend.loaded.masked_lm()
    tensors = backend.loaded.tensors(*backend.tokenization.arrays([sentence]))

    def trivial() -> None:
        with torch.inference_mode():
            plain(**tensors)

    def guess() -> None:
        backend.store.clear()
        backend.guesses(SENTENCE, hidden=(2,))

    whole, pass_alone = median_seconds(guess), median_seconds(trivial)
    layers = backend.facts.layers + 1
    report(
        f"guesses at 20 tokens x {layers} layers, BERT base: {1000 * whole:.0f} ms; the library's pass "
        f"{1000 * pass_alone:.0f} ms; ratio {whole / pass_alone:.1f}"
    )
    assert whole <= 1
    assert whole <= 2 * layers * pass_alone
