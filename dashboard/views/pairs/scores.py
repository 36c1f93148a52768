"""One query against many documents: what the scores are, and what a threshold does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from components.model.backend import Backend


def scores(backend: Backend) -> None:
    """Draw the view."""
