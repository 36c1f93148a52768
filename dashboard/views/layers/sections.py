"""The sections of the Layers page: words, and whole sentences."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.analysis.pooling import pool
from dashboard import caching
from dashboard.ui import controls, messages, word_choice
from dashboard.ui.layer_figures import MANY_THINGS, Compared, compare
from dashboard.ui.wording import POOLING_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.model.backend import Backend


def words(models: Sequence[Backend]) -> None:
    """The similarities of chosen words or tokens."""
    traces = [controls.current_trace(model) for model in models]
    sentences = traces[0].sentences
    messages.truncations(models, traces)
    choice = word_choice.choose(models[0], sentences)
    for model, trace in zip(models, traces, strict=True):
        for name in word_choice.missing(choice, sentences, trace):
            st.warning(
                f"{messages.escape(model.spec.title)} has no token for {messages.escape(name)}, so it has no curve for it."
            )
    controls.chip_legend()
    with st.container(horizontal=True):
        controls.switch("whole_word", "Whole words", "The vector of a word is the mean of the vectors of its pieces.")
        centred, baseline = controls.baseline_switches()
    compare(
        [
            Compared(
                model,
                word_choice.vectors(choice, sentences, trace),
                partial(caching.token_baseline, model),
            )
            for model, trace in zip(models, traces, strict=True)
        ],
        key="words",
        title=choice.title(sentences),
        names=choice.names(sentences),
        descriptions=choice.descriptions(sentences),
        pairs=choice.pairs,
        centred=centred,
        baseline="two unrelated tokens" if baseline else None,
    )


def whole_sentences(models: Sequence[Backend]) -> None:
    """The similarities of sentence vectors."""
    traces = [controls.current_trace(model) for model in models]
    texts = [sentence.text for sentence in traces[0].sentences]
    messages.truncations(models, traces)
    if messages.needs_second_sentence(texts):
        return
    few = len(texts) <= MANY_THINGS
    if few:
        st.markdown("\n".join(f"{number}. {messages.escape(text)}" for number, text in enumerate(texts, start=1)))
    messages.cross_encoder_note(models)
    pooling = controls.sentence_vector(models)
    with st.container(horizontal=True):
        special = controls.pooled_special_tokens(pooling)
        centred, baseline = controls.baseline_switches()
    if pooling == "cls":
        st.caption("At layer 0 [CLS] has the same vector in every sentence, so every curve starts at exactly 1.")
    messages.head_note(models, pooling)
    compare(
        [
            Compared(
                model,
                pool(trace, pooling, special),
                partial(caching.sentence_baseline, model, pooling, special),
            )
            for model, trace in zip(models, traces, strict=True)
        ],
        key="sentences",
        title=f"Sentence vectors ({POOLING_NAMES[pooling]})",
        names=[str(number) if few else text for number, text in enumerate(texts, start=1)],
        descriptions=[f"{number}: {text[:40]}" for number, text in enumerate(texts, start=1)],
        pairs=None,
        centred=centred,
        baseline="two unrelated sentences" if baseline else None,
    )
