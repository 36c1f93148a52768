"""A ranking learnt from [CLS] vectors by logistic regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from components.model.backend import Backend


def learnt(backend: Backend) -> None:
    """Draw the view."""
