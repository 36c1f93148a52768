"""What each view of the model draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.ui import controls, messages
from dashboard.views.model import architecture, inner_dimensions, sections

if TYPE_CHECKING:
    from components.model.backend import Backend


def facts(backend: Backend) -> None:
    """The model as a drawing to one scale, its sizes and parameters, and where it comes from."""
    architecture.draw(backend)
    sections.parameters(backend)
    sections.vector_way(backend)
    sections.provenance(backend)


def vectors(backend: Backend) -> None:
    """A token's vector at a layer, and the shapes of all outputs."""
    trace = controls.current_trace(backend)
    sections.vector(backend, trace)
    sections.outputs(backend, trace)
    messages.truncation(trace.sentences)


def layer_zero(backend: Backend) -> None:
    """The parts that make up layer 0."""
    trace = controls.current_trace(backend)
    sections.layer_zero(backend, trace)
    messages.truncation(trace.sentences)


def feed_forward(backend: Backend) -> None:
    """The inner dimensions that respond to a token."""
    sentences = controls.current_tokens(backend)
    inner_dimensions.feed_forward(backend, sentences)
    messages.truncation(sentences)


def catalog(_: Backend) -> None:
    """All models that can be opened."""
    sections.catalog()
