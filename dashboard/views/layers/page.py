"""Layers: how a word's vector, or a sentence's, changes from layer to layer."""

from __future__ import annotations

from functools import partial

from components.model.tokenization import MAX_SENTENCES
from dashboard.declared.view import (
    OF_SENTENCES,
    RIVER,
    SMALL_MODEL,
    Declared,
    View,
)
from dashboard.settings import flag, number

SETTINGS = (
    number("second_token", "t2", None, 100_000),
    number("layers_sentence", "ls", None, MAX_SENTENCES - 1, words="sentence"),
    flag("whole_word", "word", True, words="whole words"),
    flag("centred", "c", False, words="centred vectors"),
    flag("show_baseline", "b", True, words="baseline"),
)

OF_WORDS = (
    *OF_SENTENCES,
    "centred",
    "layer",
    "layers_sentence",
    "model2",
    "percentiles",
    "sentence",
    "show_baseline",
    "tokens",
    "whole_word",
)  # words, and how their curves are drawn

shared_view = partial(View, needs="blocks", needs_sentences=True, has_two_models=True)

VIEWS = (
    shared_view(
        key="one-word",
        label="One word",
        stop="blocks",
        question="How does a word's vector change?",
        asks=(
            "How does a word change from layer to layer?",
            "How much does the context change a word?",
        ),
        intro="At layer 0 a word's vector is the same in every sentence, but for its position; blocks mix in other words.",
        draw="dashboard.views.layers.sections:one_word",
        settings=(
            *OF_WORDS,
            "second_token",
        ),
        examples=(
            {
                "sentences": RIVER,
                "tokens": (1, 2, 3),
                "whole_word": False,
                "layer": 2,
                "centred": True,
                "show_baseline": False,
            },
            {"sentences": RIVER, "tokens": (2, 3, 1), "sentence": 1},
        ),
    ),
    shared_view(
        key="two-tokens",
        label="Two tokens",
        question="How similar do two tokens become?",
        asks=(
            "Is one word nearer to a second than to a third?",
            "How similar are two words of one sentence, layer by layer?",
        ),
        intro="The cosine of two tokens at every layer. A click on a third one replaces the one that was chosen first.",
        draw="dashboard.views.layers.sections:two_tokens",
        settings=(
            *OF_WORDS,
            "second_token",
        ),
        examples=(
            {"sentences": RIVER, "tokens": (2, 3, 1), "second_token": 4, "layers_sentence": 1, "percentiles": True},
        ),
    ),
    shared_view(
        key="one-against-all",
        label="One against all",
        stop="blocks",
        question="What is a token most like?",
        asks=("How similar is one token to all others?",),
        intro="The cosine of the chosen token to every other token of its sentence, at every layer.",
        draw="dashboard.views.layers.sections:one_against_all",
        settings=OF_WORDS,
        examples=({"sentences": RIVER, "tokens": (2, 3, 1), "layers_sentence": 2},),
    ),
    shared_view(
        key="sentence-curves",
        label="Whole sentences",
        stop="pool",
        question="How do sentence vectors change?",
        asks=(
            "How are token vectors averaged into one?",
            "At which layer are two sentences most similar?",
            "What does pooling by mean, [CLS] or maximum change?",
        ),
        intro="Each curve shows how similar two sentence vectors are at each layer.",
        draw="dashboard.views.layers.sections:whole_sentences",
        settings=(
            *OF_SENTENCES,
            "include_special",
            "model2",
            "percentiles",
            "pooling",
            "centred",
            "show_baseline",
            "layer",
        ),
        examples=(
            {"sentences": RIVER, "pooling": "max", "include_special": False, "centred": True, "model2": SMALL_MODEL},
        ),
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
