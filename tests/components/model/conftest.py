"""What the tests of this package share."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(scope="package", autouse=True)
def _one_thread_for_a_pass():
    """Tiny models gain nothing from several threads, and lose much where threads of other work wait for the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
