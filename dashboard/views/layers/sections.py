"""What is similar from layer to layer: words, and whole sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.analysis.first_look.telling import telling_words
from components.analysis.first_look.words import places_of
from components.analysis.similarity import cosines
from components.words.unicode_words import place_of_word
from dashboard import state
from dashboard.sharing import lecture
from dashboard.ui import controls, messages, wording
from dashboard.views.layers import findings, in_words, layer_figures, word_choice
from dashboard.views.layers.layer_figures import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.model.backend import Backend
    from components.model.trace import Trace

HARDLY_APART = 0.99  # the cosine of vectors that a figure shows as one
POOLINGS_BESIDE = ("mean", "cls", "max")  # drawn small beside the chosen one
MOST_SENTENCES = 5  # that a lecture writes below the picture


def one_word(models: Sequence[Backend]) -> None:
    """A word's occurrences, or a word with others of its sentence, and the nearest words to it."""
    traces = [controls.current_trace(model) for model in models]
    sentences = traces[0].sentences
    with controls.row():
        choice, scale = word_choice.across(traces[0], sentences, models[0])
    figure = st.container()
    # The words of a matrix are those of its layer, which it has a control of its own for.
    is_matrix = choice.pairs is None and len(choice.picks) > word_choice.MANY_THINGS
    layer = _layer(traces[0].n_layers)

    def beside() -> None:
        shown = layer if is_matrix else in_words.choose_layer(traces[0].n_layers)
        in_words.draw(models[0], traces[0], choice, sentences, shown)

    words = Words(models, traces, choice, sentences)
    layer_figures.compare_words(words, key="words", scale=scale, place=figure, layer=layer, beside=beside)
    if lecture.is_given() and choice.mode == "across":  # where the sentences do not stand beside the picture
        named = list(zip(choice.short_names(sentences), choice.picks, strict=True))[:MOST_SENTENCES]
        with st.container(key="explains_sentences"):
            st.caption(
                "  \n".join(
                    f"**{messages.escape(name)}**: {messages.escape(sentences[row].text)}" for name, (row, _) in named
                )
            )
    _notes(words, "across")
    for model in models:
        if not model.structure.has_position_vectors:
            st.caption(
                f"{wording.how_positions_enter(model.structure)} So at layer 0 a word has one vector everywhere."
            )


def _layer(last: int) -> int:
    """The layer that is chosen, before its control is drawn; the last one before a person chooses."""
    chosen = state.get("layer")
    return last if chosen is None or not 0 <= chosen <= last else int(chosen)


def two_tokens(models: Sequence[Backend]) -> None:
    """Two tokens of one sentence."""
    traces = [controls.current_trace(model) for model in models]
    with controls.row():
        choice, scale = word_choice.within(traces[0].sentences, models[0])
    words = Words(models, traces, choice, traces[0].sentences)
    layer_figures.compare_words(words, key="words", scale=scale, place=st.container())
    _notes(words, "within")


def one_against_all(models: Sequence[Backend]) -> None:
    """A token with every other token of its sentence."""
    traces = [controls.current_trace(model) for model in models]
    with controls.row():
        choice, scale = word_choice.against(traces[0].sentences, models[0])
    words = Words(models, traces, choice, traces[0].sentences)
    row, position = choice.picks[0]
    rows = {other for other, _ in places_of(traces[0].sentences, row, position)}
    name = choice.quoted_names(traces[0].sentences)[0]
    layer_figures.compare_with_all(
        words,
        key="words",
        scale=scale,
        place=st.container(),
        called=f"{name} of sentence {row + 1}" if len(rows) > 1 else "",
    )
    _notes(words, "against")


def _notes(words: Words, view: str) -> None:
    """What is said below the figures: a ready-made set's hint, words that a model does not have, texts that were cut."""
    messages.hint(view)
    for model, trace in zip(words.models, words.traces, strict=True):
        for name in word_choice.missing(words.choice, words.sentences, trace):
            st.warning(
                f"{messages.escape(model.spec.title)} has no token for {messages.escape(name)}, so it has no curve for it."
            )
    messages.truncations(words.models, words.traces)


def named_sentences(trace: Trace) -> list[str]:
    """The sentences, as Markdown, each with the word or the number in bold by which the figures call it."""
    lines = []
    for number, (item, word) in enumerate(zip(trace.sentences, telling_words(trace), strict=True), start=1):
        found = place_of_word(item.text, word)
        if found:
            before, after = item.text[: found[0]], item.text[found[1] :]
            lines.append(f"{messages.escape(before)}**{messages.escape(word)}**{messages.escape(after)}")
        else:
            lines.append(f"**{number}** {messages.escape(item.text)}")
    return lines


def starts_at_one(traces: Sequence[Trace]) -> bool:
    """Whether the first token has the same vector at layer 0 in all sentences of each trace, up to rounding."""
    first = [trace.hidden_states[0, :, 0] for trace in traces]  # [sentence, dim] each
    return all(np.allclose(vectors, vectors[:1], rtol=0, atol=1e-5) for vectors in first)


def why_at_one(traces: Sequence[Trace]) -> str:
    """Why the curves of [CLS] start at 1, and of one model how long they stay near it; empty where they do not."""
    if not starts_at_one(traces):
        return ""
    said = "At layer 0 [CLS] has the same vector in every sentence, so every curve of [CLS] starts at exactly 1."
    alike = cosines.cosine_matrix(traces[0].hidden_states[:, :, 0])  # [layer, sentence, sentence]
    until = findings.equal_until(alike.reshape(len(alike), -1).T, HARDLY_APART)
    if len(traces) > 1 or not until:
        return said
    return (
        f"{said} Up to layer {until} they stay above {HARDLY_APART}: the blocks change [CLS] in nearly the same way in every "
        f"sentence, until block {until} tells the sentences apart."
    )


def whole_sentences(models: Sequence[Backend]) -> None:
    """The similarities of sentence vectors."""
    traces = [controls.current_trace(model) for model in models]
    if messages.needs_second_sentence([sentence.text for sentence in traces[0].sentences]):
        return
    are_few = len(traces[0].sentences) <= word_choice.MANY_THINGS
    with st.container(key="sentence_row"), controls.row():
        has_small = len(models) == 1 and are_few
        pooling = controls.sentence_vector(
            models, "Large picture" if has_small else "Sentence vector", wording.POOLING_NAMES
        )
        with controls.options():
            special = controls.pooled_special_tokens(pooling)
            scale = controls.cosine_scale()
    others = [name for name in POOLINGS_BESIDE if name != pooling and name in models[0].poolings]
    figure = st.container()
    if are_few:
        st.caption("  \n".join(named_sentences(traces[0])))
    messages.hint("sentences")
    has_cls = pooling == "cls" or ("cls" in others and len(models) == 1 and are_few)
    if has_cls and not scale.centred and not scale.percentiles and (why := why_at_one(traces)):
        st.caption(why)
    messages.head_note(models, pooling)
    messages.cross_encoder_note(models)
    messages.truncations(models, traces)
    layer_figures.compare_sentences(
        models, traces, pooling, special, key="sentences", scale=scale, place=figure, others=others
    )
