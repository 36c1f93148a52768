"""The view “Guess the word”: a word of the sentence is hidden, and the model's head guesses it, layer by layer.

For a model without such a head it shows what any encoder can show of a hidden word: what hiding it changes.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.errors import InputError
from components.model.catalog import EMBEDDED_KEY
from components.model.guesses import included
from components.model.guesses.masks import typed_masks
from dashboard import state
from dashboard.ui import browser, controls, figures, messages
from dashboard.views.attention.guess.changes import most_depended_on, say_whose, what_changes
from dashboard.views.attention.guess.picture import KEY, draw_guesses
from dashboard.views.attention.guess.reading import read
from dashboard.views.attention.head_choice import AttentionInput, chosen_position, forget_of_other_texts

if TYPE_CHECKING:
    from components.model.tokenization import Tokenization
    from components.model.trace import TokenizedSentence

ONLY_LEFT_HELP = (
    "Each token sees only itself and those before it, as in GPT. This model was not trained so: what it guesses then is no "
    "measure of what a model that was would guess."
)


def intro() -> str:
    """What to do, and for the included model whose guesses these are."""
    whose = f" {included.IN_SHORT}" if state.get("model") == EMBEDDED_KEY else ""
    return f"Click a word to hide it, or type [MASK] or ___.{whose}"


def guess(model_input: AttentionInput, row: Any) -> None:
    """Hide a word: what the model guesses there, and how vectors and attention change."""
    backend, sentence = model_input.backend, model_input.sentence
    has_head = backend.spec.can_guess
    masks = typed_masks(sentence, backend.tokenization)
    with row:
        words = st.container(key="looks_tokens")  # as where one word looks
        if has_head:
            reason = backend.why_not_only_left()
            only_left = (
                controls.switch("only_left", "Only look left", reason or ONLY_LEFT_HELP, bool(reason)) and not reason
            )
        panel = controls.options()
    forget_of_other_texts("masked", model_input.pair)
    with panel:
        whole = bool(
            controls.bind(
                "mask_word",
                st.toggle,
                "Whole word",
                default=state.get("masked") is None,
                help="A word of several pieces becomes as many masks.",
            )
        )
    default = partial(to_begin_with, model_input, masks) if has_head else partial(most_depended_on, model_input, whole)
    target = chosen_position(model_input, "masked", default)
    is_typed = target in masks
    hidden = () if is_typed else sentence.word_positions(target) if whole else (target,)
    with words, st.container(key="few_rows"):
        _chips(model_input, hidden, target)
    if sentence.tokens[target].special:
        st.info("Special tokens cannot be hidden: choose a word of the text.")
        return
    if has_head:
        waiting = nullcontext() if KEY in st.session_state else st.spinner("The model guesses …")  # its first time
        with waiting:
            reading = read(model_input, target, hidden, only_left)
        draw_guesses(model_input, reading, partial(_hide, sentence))
        say_whose(backend)
        if is_typed:
            return
        figures.subheader("What hiding it changes")
    try:
        what_changes(model_input, target, whole, has_head=has_head)
    except InputError as problem:
        if not has_head:
            raise
        messages.explain(problem, "hiding the word")


def to_begin_with(model_input: AttentionInput, masks: tuple[int, ...]) -> int:
    """The token to guess before somebody chooses: a mask that was typed, else the first piece of the last content word.

    Of the content words one that is a single piece, where there is any; without a content word the last token of the text.
    """
    if masks:
        return masks[0]
    content = [word for word in model_input.words if word.is_content]
    single = [word for word in content if len(word.positions) == 1]
    for found in (single, content, list(model_input.words)):
        if found:
            return found[-1].positions[0]
    return next((token.position for token in reversed(model_input.sentence.tokens) if not token.special), 0)


def _chips(model_input: AttentionInput, hidden: tuple[int, ...], target: int) -> None:
    """The words, of which a click hides one; what is hidden has the mask in its place."""
    tokenization = model_input.backend.tokenization
    own = [token.position for token in model_input.sentence.tokens if not token.special]
    if not own:
        return
    shown = with_hidden(model_input.sentence, hidden, tokenization)
    browser.chips(
        [
            browser.ChipRow(
                0, shown, hidden or (target,), label="Words: click one to hide it", positions=range(own[0], own[-1] + 1)
            )
        ],
        key="chips_mask",
        on_click=lambda _, position: _hide(model_input.sentence, position),
        unknown_id=tokenization.unknown_id,
        scale=controls.scale(),
        fold=True,
    )


def with_hidden(sentence: TokenizedSentence, hidden: tuple[int, ...], tokenization: Tokenization) -> TokenizedSentence:
    """The sentence with the mask's piece in the place of what is hidden; as it is where the tokenizer has no mask."""
    if tokenization.mask_id is None:
        return sentence
    piece, number = tokenization.special_tokens["mask"]
    tokens = tuple(
        replace(token, piece=piece, id=number) if token.position in hidden else token for token in sentence.tokens
    )
    return replace(sentence, tokens=tokens)


def _hide(sentence: TokenizedSentence, position: int) -> None:
    """Hide the word of a token, with all its pieces; of a word that is hidden already, show the guesses for this piece."""
    if not 0 <= position < len(sentence):
        return
    controls.stop_playing()
    state.put("masked", position)
    if len(sentence.word_positions(position)) > 1:
        state.put("mask_word", True)
