"""What hiding a word changes in any encoder: how far the other vectors turn, and how much attention changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.analysis import mask_predictions
from components.charts import matrices
from components.errors import InputError
from components.model.catalog import CATALOG, EMBEDDED_KEY, spec_of
from components.model.guesses import included
from components.numbers import enumerated, percent
from components.shown_code import attention as shown_attention
from dashboard import navigation, state
from dashboard.ui import controls, figures, messages
from dashboard.ui.wording import quoted
from dashboard.views.attention.guess.findings import which
from dashboard.views.attention.head_choice import NOT_SHOWN, AttentionInput, choose_block, choose_head

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.trace import Trace
    from components.shown_code.code import AnyCode

TURNS = "0° is no change, 90° nothing in common"
MOST_MASKED = 32  # words that are masked to find the one to begin with
MASKED_TOKENS = 4_000  # of all masked texts together: a trace holds every layer of them
MOST_NAMED = 3  # tokens that turn as far
MOST_ABOVE = 190  # characters of the finding where it has to say first that the model guesses nothing


def what_changes(model_input: AttentionInput, target: int, whole: bool, *, has_head: bool) -> None:
    """The figures of what hiding the token at `target`, or its `whole` word, changes. Raises InputError where it cannot be."""
    backend = model_input.backend
    masked_text = mask_predictions.mask_token(backend.tokenization, model_input.sentence, target, whole_word=whole)
    masked = backend.trace(
        [masked_text.text], [masked_text.pair], attentions=True, max_length=controls.length_for(backend)
    )
    code = (model_input.pair.input(backend), masked_text)
    first = "" if has_head else "This model has no masked-LM head: it cannot guess. "
    _vector_change(model_input, masked, masked_text.positions, shown_attention.masked_vectors(*code), first)
    if not has_head:
        no_guesses(backend)
    with st.container(horizontal=True, vertical_alignment="bottom", key="guess_heads"):
        block, head = choose_block(model_input), choose_head(model_input)
    _attention_change(model_input, masked, block, head, partial(shown_attention.masked_attention, *code))


def most_depended_on(model_input: AttentionInput, whole: bool) -> int:
    """The token to hide before somebody chooses: of the content words, the one without which the others' vectors turn most.

    They are read with a mask in one pass, of a long text only as many as stay within MASKED_TOKENS. Without a content word
    that can be masked, or where the model cannot read them at once, the first token that can.
    """
    tokenization, sentence = model_input.backend.tokenization, model_input.sentence
    content = [word.positions[0] if whole else word.last for word in model_input.words if word.is_content]
    plain = [token.position for token in sentence.tokens if not token.special]
    most = min(MOST_MASKED, max(1, MASKED_TOKENS // len(sentence)))
    for candidates in (content[:most], plain[:most]):
        masked = {}
        for position in candidates:
            with suppress(InputError):
                masked[position] = mask_predictions.mask_token(tokenization, sentence, position, whole_word=whole)
        if masked:
            texts = list(masked.values())
            try:
                trace = model_input.backend.trace(
                    [text.text for text in texts],
                    [text.pair for text in texts],
                    max_length=controls.length_for(model_input.backend),
                )
            except InputError:  # too much at once for this model: which token comes first is no reason to show nothing
                return next(iter(masked))
            turns = mask_predictions.mean_turns(model_input.trace, trace, [text.positions for text in texts])
            return list(masked)[int(np.argmax(turns))]
    return plain[0] if plain else 0


def _vector_change(
    model_input: AttentionInput, masked: Trace, hidden: Sequence[int], code: AnyCode, first: str
) -> None:
    """How far each token's last vector turns when the `hidden` tokens are masked; `first` begins the finding."""
    kept = mask_predictions.kept_similarity(model_input.trace, masked)
    angles, mean = np.degrees(np.arccos(kept.tokens[-1])), float(np.degrees(np.arccos(kept.mean[-1])))
    is_hidden = np.isin(np.arange(len(angles)), hidden)
    pieces = model_input.pieces
    typed = "".join(model_input.sentence.surface(position) for position in hidden).strip()
    own = np.flatnonzero(~model_input.special)
    name = f"“{messages.escape(typed)}”"
    if len(hidden) == 1:
        name = which([pieces[place] for place in own], int(np.flatnonzero(own == hidden[0])[0]))
    others = np.flatnonzero(~is_hidden & ~model_input.special)
    beginning = messages.escape(pieces[0])  # [CLS], whose vector can stand for the whole text as the mean can
    message = (
        f"Without {name} the sentence vector (the mean of all token vectors) turns by {mean:.0f}°, and {beginning} by "
        f"{angles[0]:.0f}°."
    )
    words = np.array([at for at in others if any(map(str.isalnum, pieces[at]))], int)
    if len(others):
        among, kind = (words, "words") if len(words) else (others, "tokens")
        most = among[np.argmax(angles[among])]
        level = [
            at for at in among if round(float(angles[at])) == round(float(angles[most]))
        ]  # as far, as it is written
        named = [which([pieces[place] for place in own], int(np.flatnonzero(own == at)[0])) for at in level]
        depend = f"{enumerated(named)} depends" if len(level) == 1 else f"{together(named)} depend"
        message = (
            f"Of the {kind}, {depend} most on {name}: {'its vector turns' if len(level) == 1 else 'their vectors turn'} by "
            f"{angles[most]:.0f}° ({TURNS}){_further(pieces, angles, is_hidden, int(most), kind)}. "
            f"{message}"
        )
    last = len(kept.tokens) - 1
    figures.part_bars(
        {"other tokens": np.where(is_hidden, np.nan, angles), "hidden token": np.where(is_hidden, angles, np.nan)},
        pieces,
        f"Which vectors depend on “{typed[:20]}”?",
        quantity="turn in degrees",
        decimals=0,
        unit="°",
        mark=(90.0, "nothing in common"),
        chosen=("hidden token", "hidden"),
        digits=3,
        key="mask_vectors",
        code=code,
        alt=f"Bars: degrees by which the mask turns each token's vector at layer {last}",
        message=f"{first}{message}",
        most_above=MOST_ABOVE,
        read=f"The model reads the text twice: as typed, and with the mask. Each bar is the angle between a token's two "
        f"vectors after the last block (layer {last}). 0° means that the token's vector does not depend on the hidden token; "
        "90°, a quarter turn, that nothing of its direction is left: such vectors have nothing in common (their cosine is 0).",
        not_shown="Why a vector changes. A vector that changes little may still use the hidden token, if the words around it "
        "give the same information.",
    )


def _further(pieces: Sequence[str], angles: np.ndarray, is_hidden: np.ndarray, most: int, kind: str) -> str:
    """That a token which is no word turns further than the word named, as the end of a sentence; empty where none does."""
    at = int(np.argmax(np.where(is_hidden, -1.0, angles)))
    if kind != "words" or round(float(angles[at])) <= round(float(angles[most])):
        return ""
    return f"; {quoted(pieces[at])}, which is no word, turns by {angles[at]:.0f}°"


def together(named: Sequence[str]) -> str:
    """Several tokens that turn as far, of one kind that is said."""
    return enumerated(named) if len(named) <= MOST_NAMED else f"{len(named)}"


def say_whose(backend: Backend) -> None:
    """Below guesses of the included model: how good they are, and that another encoder than that of the other pages guesses."""
    if not backend.spec.masked_lm:
        st.caption(included.said())


def no_guesses(backend: Backend) -> None:
    """Say that the model guesses no word, which models do, and lead to their list."""
    included_model = spec_of(EMBEDDED_KEY)
    others = ", ".join(spec.title for spec in CATALOG if spec.can_guess and spec.key != EMBEDDED_KEY)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f":material/help: To guess the hidden token, a model needs a masked-LM head. {messages.escape(backend.spec.title)} "
            f"was published without one. The included model, {included_model.title}, has one; to be loaded from the Hugging "
            f"Face Hub: {others}."
        )
        st.button(
            "Guess with the included model",
            key="guess_with_included",
            icon=":material/help:",
            type="primary",
            on_click=state.put,
            args=("model", EMBEDDED_KEY),
        )
        if st.button("See all available models", key="see_models", icon=":material/layers:"):
            navigation.go_to("available-models")


def _attention_change(
    model_input: AttentionInput, masked: Trace, block: int, head: int, code: Callable[[int, int], AnyCode]
) -> None:
    assert masked.attentions is not None  # the caller requested them
    change = masked.attentions[block, 0, head] - model_input.attentions[block, head]
    query, key = np.unravel_index(int(np.argmax(np.abs(change))), change.shape)
    before, after = (float(trace.attentions[block, 0, head][query, key]) for trace in (model_input.trace, masked))  # type: ignore[index]
    names = [f"“{messages.escape(model_input.pieces[int(position)])}”" for position in (query, key)]
    labels = matrices.axis_labels(model_input.pieces)
    limit = max(float(np.abs(change).max()), 1e-6)
    figures.matrix(
        change,
        labels,
        labels,
        f"Change of attention, block {block}, head {head}",
        key="mask_change",
        code=code(block, head),
        alt=f"Attention with the mask minus attention without it, block {block}, head {head}",
        rows="query",
        columns="key",
        value="change",
        limits=(-limit, limit),
        diverging=True,
        message=f"In block {block}, head {head}, what changes most is how much {names[0]} looks at the place of {names[1]}: "
        f"from {percent(before)} to {percent(after)}.",
        read="A row is a token that looks (its query), a column one that is looked at (its key). Orange means more attention "
        "than before the token was masked, blue means less.",
        not_shown=NOT_SHOWN,
    )
