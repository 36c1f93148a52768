"""What a cross-encoder is given: query and document as one input."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from components.model.backend import Backend


def given(backend: Backend) -> None:
    """Draw the view."""
