"""The embedding engine on a CUDA device: right, and near the chip's own speed (`make test-gpu`)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from components.model.backend import Backend
from components.model.trace import POOLINGS
from tests.support.tiny import dense_module, pooling_module, publish, save_tiny, wordpiece_tokenizer

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights of BERT base's size."""
    if not torch.cuda.is_available():
        pytest.fail("these tests need a CUDA device")
    folder = tmp_path_factory.mktemp("base")
    torch.manual_seed(0)
    tokenizer = wordpiece_tokenizer()
    tokenizer.model_max_length = 512
    BertModel(BertConfig(vocab_size=len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_the_cpu_gives_the_same(base: Path) -> None:
    texts = ["the cat sat on the mat", "a dog", "cat " * 40]
    vectors = []
    for device in ("cuda", "cpu"):
        backend = Backend.load(str(base), device_name=device)
        options = backend.embed_options((0, 6, 12), POOLINGS, precision="float32")
        vectors.append(backend.embed(texts, options=options))
    np.testing.assert_allclose(vectors[0], vectors[1], atol=2e-3)


def test_speed_beside_the_chip_and_sentence_transformers(base: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    texts = [" ".join(["cat", "dog", "mat"] * (4 + at % 12)) for at in range(20_000)]
    backend = Backend.load(str(base), device_name="cuda")
    options = backend.embed_options()
    assert options.precision == "bfloat16"
    backend.embed(texts[:2000], options=options)
    torch.cuda.synchronize()
    started = time.perf_counter()
    tokens = 0

    def count(rows: np.ndarray, _: np.ndarray) -> None:
        nonlocal tokens
        tokens += len(rows)

    result = backend.embed_into(texts, options, count)
    seconds = time.perf_counter() - started
    ours = len(texts) / seconds
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        left @ right
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(20):
        left @ right
    torch.cuda.synchronize()
    peak = 20 * 2 * 8192**3 / (time.perf_counter() - started)
    work = 2 * 12 * (4 * 768 * 768 + 2 * 768 * 3072) * result.tokens / seconds
    transformer = Transformer(str(base))
    theirs = SentenceTransformer(modules=[transformer, Pooling(768)], device="cuda")
    theirs.encode(texts[:1000])
    started = time.perf_counter()
    theirs.encode(texts)
    reference = len(texts) / (time.perf_counter() - started)
    sys.stdout.write(
        f"\n    {ours:,.0f} sentences a second, {100 * work / peak:.0f} % of {peak / 1e12:.0f} TFLOP/s; "
        f"sentence-transformers {reference:,.0f}\n"
    )
    assert tokens == len(texts)
    assert ours > reference


def test_the_models_own_vector_is_the_same(tmp_path: Path) -> None:
    folder = publish(save_tiny(tmp_path / "dense"), pooling_module(), dense_module(32, 48))
    vectors = []
    for device in ("cuda", "cpu"):
        backend = Backend.load(str(folder), device_name=device)
        options = backend.embed_options(range(4), backend.poolings, precision="float32")
        vectors.append(backend.embed(["the cat sat", "a dog"], options=options))
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-4)
