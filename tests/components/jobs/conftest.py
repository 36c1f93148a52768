"""The time that jobs read."""

from __future__ import annotations

import types

import pytest


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """The time that jobs read, set by the test."""
    clock = types.SimpleNamespace(now=100.0)
    for module in ("job", "presence"):
        monkeypatch.setattr(f"components.jobs.{module}.time", types.SimpleNamespace(monotonic=lambda: clock.now))
    return clock
