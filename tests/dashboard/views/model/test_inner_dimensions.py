"""The inner dimensions of a token in words, also where the activation function gives it nothing but small numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dashboard.views.model import inner_dimensions


@pytest.mark.parametrize(
    ("activations", "said"),
    [
        ([-0.17, 0.02, 0.05], "To “bank”, dimension 2 responds most (0.05);"),  # −0.17 is the least that GELU gives
        ([0.4, 2.5, -0.1], "To “bank”, dimension 1 responds most (2.50);"),
    ],
)
def test_the_dimension_that_responds_most_has_the_highest_activation(
    monkeypatch: pytest.MonkeyPatch, activations: list[float], said: str
) -> None:
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(inner_dimensions.figures, "figure", lambda chart, **words: drawn.update(words))
    record: Any = SimpleNamespace(
        activations_of=lambda block: np.array([activations], np.float32),
        values_of=lambda block: None,
        sentence=SimpleNamespace(tokens=[SimpleNamespace(piece="bank")]),
    )
    backend: Any = SimpleNamespace(structure=SimpleNamespace(has_gated_feed_forward=False))
    code: Any = SimpleNamespace(inner=lambda *lines: None)
    inner_dimensions._distribution(backend, record, 0, 0, code)
    assert drawn["message"].startswith(said)
