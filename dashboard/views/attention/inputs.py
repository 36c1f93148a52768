"""What all views of attention begin with: the choice of the texts, and the model's attentions for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from components.analysis.attention.weights import of_sentence
from dashboard import state
from dashboard.ui import controls, pair_choice
from dashboard.views.attention import long_texts
from dashboard.views.attention.head_choice import AttentionInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from components.model.backend import Backend


def with_input(draw: Callable[[AttentionInput, Any], None], backend: Backend) -> None:
    """Draw a view of the chosen texts; of texts too long for all heads at once, one head in its place.

    `draw` gets the input with its attentions, and the row of controls. It draws the picker of the second text among its
    options (`head_choice.options`).
    """
    row = controls.row()
    with row:
        pair_choice.choose_first()
    _refuse_missing_second()
    pair = pair_choice.chosen()
    sentence = pair.tokens(backend)
    if not backend.fits(len(sentence)) and not backend.structure.adds_to_scores:
        pair.tell_truncation(sentence)
        long_texts.one_head(backend, pair, sentence, row)
        return
    trace = pair.trace(backend, attentions=True)
    pair.tell_truncation(trace.sentences[0])
    draw(AttentionInput(backend, pair, trace, trace.sentences[0], of_sentence(trace, 0)), row)


def _refuse_missing_second() -> None:
    """As its picker would, which is drawn later: without a second sentence that a link names and that there is not."""
    chosen, count = state.get("sentence_b"), len(state.get("sentences"))
    if chosen is not None and not 0 <= chosen <= count:
        there_are = f"There {'is 1 sentence' if count == 1 else f'are {count} sentences'}."
        state.refuse("sentence_b", None, f"Sentence B {chosen} is not available here. {there_are}")
