"""What the tests of the commands share."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from components.model.backend import Backend
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY, EMBEDDED_KEY

_load = Backend.load


@cache
def _scorer() -> Backend:
    return _load(EMBEDDED_CROSS_ENCODER_KEY, device_name="cpu")


@pytest.fixture(scope="session")
def scorer() -> Backend:
    """The included cross-encoder."""
    return _scorer()


@pytest.fixture
def loaded_once(monkeypatch: pytest.MonkeyPatch, embedded: Backend) -> None:
    """The included models are at hand when a command loads them; test_commands.py holds that commands load one themselves."""

    def at_hand(model: Any = EMBEDDED_KEY, *more: Any, **options: Any) -> Backend:
        if model == EMBEDDED_CROSS_ENCODER_KEY:
            return _scorer()
        return embedded if model == EMBEDDED_KEY else _load(model, *more, **options)

    monkeypatch.setattr(Backend, "load", at_hand)
