"""Retrieve and re-rank: what changes, and what each stage costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from components.model.backend import Backend


def rerank(backend: Backend) -> None:
    """Draw the view."""
