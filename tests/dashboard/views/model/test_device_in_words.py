"""What Model says of the device: of a GPU its name, and how much of its memory is in use and free."""

from __future__ import annotations

import pytest
import torch

from dashboard.views.model import sections


def test_a_gpus_memory_is_shown_and_a_cpu_has_none_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (20 << 30, 24 << 30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 1 << 30)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A card")
    assert sections._device_in_words(torch.device("cpu")) == {"Runs on": "cpu"}
    assert sections._device_in_words(torch.device("cuda:1")) == {
        "Runs on": "cuda:1 (A card)",
        "Memory of the device": "4.00 GiB of 24.0 GiB in use, 1.00 GiB of it by this server; 20.0 GiB free",
    }
