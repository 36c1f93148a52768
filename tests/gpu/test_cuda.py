"""On a CUDA device: the same numbers as on the CPU, in float32, and the memory that the sidebar shows.

Left out of `make test` by its marker; run with `make test-gpu`. Without a device it fails, it does not skip.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from components.model.backend import Backend
from components.model.device import choose_device, memory
from tests.support.tiny import save_tiny

pytestmark = pytest.mark.gpu
TEXTS = ["We will rob a bank next week!", "I put money in the bank.", "bank"]


@pytest.fixture(scope="module", autouse=True)
def _device() -> None:
    if not torch.cuda.is_available():
        pytest.fail("these tests need a CUDA device")


def test_cuda_is_chosen_first() -> None:
    assert choose_device().type == "cuda"
    shown = memory(choose_device())
    assert shown.device_total is not None
    assert 0 < (shown.device_used or 0) <= shown.device_total


def test_the_embedded_model_gives_the_cpus_numbers() -> None:
    on_cpu = Backend.load("embedded", device_name="cpu").trace(TEXTS, attentions=True)
    on_gpu = Backend.load("embedded", device_name="cuda").trace(TEXTS, attentions=True)
    kept = on_cpu.attention_mask.astype(bool)
    np.testing.assert_allclose(on_gpu.hidden_states[:, kept], on_cpu.hidden_states[:, kept], atol=2e-4)
    assert on_cpu.attentions is not None
    assert on_gpu.attentions is not None
    np.testing.assert_allclose(on_gpu.attentions[0], on_cpu.attentions[0], atol=1e-4)


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "roberta", "electra", "mpnet"])
def test_every_architecture_runs_there(tmp_path: Path, architecture: str) -> None:
    folder = str(save_tiny(tmp_path / architecture, architecture))
    on_cpu = Backend.load(folder, device_name="cpu").trace(["the cat sat", "a dog"])
    on_gpu = Backend.load(folder, device_name="cuda").trace(["the cat sat", "a dog"])
    kept = on_cpu.attention_mask.astype(bool)
    np.testing.assert_allclose(on_gpu.hidden_states[:, kept], on_cpu.hidden_states[:, kept], atol=1e-3)
