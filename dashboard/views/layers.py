"""Layers: how a word's vector, or a sentence's, changes from layer to layer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import streamlit as st

from components.analysis.pooling import Pooling, pool
from dashboard import caching, controls, feedback, state, word_choice
from dashboard.layer_figures import Compared, compare

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {"tokens": "A word", "sentences": "A whole sentence"}
POOLINGS = {"mean": "Mean of all tokens", "cls": "[CLS], the first token", "max": "Maximum in each dimension"}


def render() -> None:
    feedback.needs_sentences()
    st.title("How does a word's vector change?")
    st.markdown(
        "A word starts with nearly the same vector wherever it stands. Block by block, the words around it change "
        "that vector. Each curve shows how similar two vectors still are at each layer."
    )
    models = feedback.chosen_models()

    @st.fragment
    def body() -> None:
        view = controls.choice("layers_view", "Look at", VIEWS)
        feedback.guarded(partial(_words if view == "tokens" else _sentences, models), "drawing the layers")
        state.write_address("layers")

    body()
    feedback.next_step("layers")


def _words(models: list[Backend]) -> None:
    sentences = controls.current_trace(models[0]).sentences
    feedback.truncation(sentences)
    choice = word_choice.choose(models[0], sentences)
    controls.chip_legend()
    with st.container(horizontal=True):
        controls.switch("whole_word", "Whole words", "A word of several pieces is taken as the mean of its pieces.")
        centred, baseline = controls.yardstick_switches()
    compare(
        [
            Compared(
                model,
                word_choice.vectors(choice, sentences, controls.current_trace(model)),
                partial(caching.token_yardstick, model),
            )
            for model in models
        ],
        key="words",
        title=choice.title(sentences),
        names=choice.names(sentences),
        descriptions=choice.descriptions(sentences),
        pairs=choice.pairs,
        centred=centred,
        baseline="two unrelated tokens" if baseline else None,
    )


def _sentences(models: list[Backend]) -> None:
    traces = [controls.current_trace(model) for model in models]
    sentences = traces[0].sentences
    feedback.truncation(sentences)
    if len(sentences) == 1:
        st.info("One sentence has no other to compare with. Add a second one in the sidebar.")
        return
    pooling = cast(Pooling, controls.choice("pooling", "Sentence vector", POOLINGS, caching.glossary()["pooling"]))
    with st.container(horizontal=True):
        special = controls.switch(
            "include_special", "Special tokens count", caching.glossary()["special token"], disabled=pooling == "cls"
        )
        centred, baseline = controls.yardstick_switches()
    if pooling == "cls":
        st.caption("At layer 0 [CLS] has the same vector in every sentence, so every curve starts at exactly 1.")
    compare(
        [
            Compared(
                model,
                pool(trace, pooling, special),
                partial(caching.sentence_yardstick, model, pooling, special),
            )
            for model, trace in zip(models, traces, strict=True)
        ],
        key="sentences",
        title=f"Sentence vectors ({pooling if pooling != 'cls' else '[CLS]'})",
        names=[str(number) for number in range(1, len(sentences) + 1)],
        descriptions=[f"{number}: {item.text[:40]}" for number, item in enumerate(sentences, start=1)],
        pairs=None,
        centred=centred,
        baseline="two unrelated sentences" if baseline else None,
    )
