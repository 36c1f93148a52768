"""The failure clinic: minimal pairs whose meaning differs while their cosine stays high."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from components.model.backend import Backend


def draw(backend: Backend) -> None:
    """Draw the view."""
    st.info(backend.spec.title)
