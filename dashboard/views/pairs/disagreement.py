"""Where bi-encoder and cross-encoder disagree most, with the token evidence of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from components.model.backend import Backend


def disagreement(backend: Backend) -> None:
    """Draw the view."""
