"""The pickers of sentence A and an optional sentence B, on Heatmaps and Attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard import ready_made, state
from dashboard.ui import controls

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Trace


@dataclass(frozen=True)
class Pair:
    """Sentence A, and sentence B if the model reads both as one input."""

    first: str
    second: str | None

    def trace(self, backend: Backend, attentions: bool = False) -> Trace:
        """One forward pass over this input alone."""
        return backend.trace(
            [self.first], [self.second], attentions=attentions, max_length=controls.length_for(backend)
        )


def choose() -> Pair:
    """Draw two pickers. B starts as none, or as the second sentence if the ready-made set is a pair."""
    texts = state.get("sentences")
    first = controls.sentence_of(texts, "sentence_a", "Sentence A", 0)
    default = 2 if ready_made.is_pair(texts) else 0
    second = controls.sentence_of(texts, "sentence_b", "Sentence B", default, none="none: A alone")
    return Pair(texts[first], texts[second - 1] if second else None)
