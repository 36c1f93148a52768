"""Activation patching: an activation of one sentence is put into another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from components.model.backend import Backend


def draw(backend: Backend) -> None:
    """Draw the view."""
    st.info(backend.spec.title)
