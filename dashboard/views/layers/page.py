"""Layers: how a word's vector, or a sentence's, changes from layer to layer."""

from __future__ import annotations

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

VIEWS = (
    View(
        key="one-word",
        label="One word",
        stop="blocks",
        question="How does a word's vector change?",
        asks=(
            "How does a word change from layer to layer?",
            "How much does the context change a word?",
        ),
        intro="At layer 0 a word has one vector, or nearly, where a vector for its position is added; "
        "blocks mix in other words.",
        draw="dashboard.views.layers.sections:one_word",
        settings=(
            *OF_SENTENCES,
            "model2",
            "percentiles",
            "tokens",
            "sentence",
            "whole_word",
            "centred",
            "show_baseline",
            "layer",
            "second_token",
            "layers_sentence",
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
        needs="blocks",
        has_two_models=True,
        needs_sentences=True,
    ),
    View(
        key="two-tokens",
        label="Two tokens",
        question="How similar do two tokens become?",
        asks=(
            "Is one word nearer to a second than to a third?",
            "How similar are two words of one sentence, layer by layer?",
        ),
        intro="The cosine of two tokens of one sentence at every layer. Each block lets both take in their context.",
        draw="dashboard.views.layers.sections:two_tokens",
        settings=(
            *OF_SENTENCES,
            "model2",
            "percentiles",
            "tokens",
            "sentence",
            "second_token",
            "layers_sentence",
            "whole_word",
            "centred",
            "show_baseline",
            "layer",
        ),
        examples=(
            {"sentences": RIVER, "tokens": (2, 3, 1), "second_token": 4, "layers_sentence": 1, "percentiles": True},
        ),
        needs="blocks",
        has_two_models=True,
        needs_sentences=True,
    ),
    View(
        key="one-against-all",
        label="One against all",
        stop="blocks",
        question="Which tokens is a token like?",
        asks=("How similar is one token to all others?",),
        intro="The cosine of the chosen token to every other token of its sentence, at every layer.",
        draw="dashboard.views.layers.sections:one_against_all",
        settings=(
            *OF_SENTENCES,
            "model2",
            "percentiles",
            "tokens",
            "sentence",
            "layers_sentence",
            "whole_word",
            "centred",
            "show_baseline",
            "layer",
        ),
        examples=({"sentences": RIVER, "tokens": (2, 3, 1), "layers_sentence": 2},),
        needs="blocks",
        has_two_models=True,
        needs_sentences=True,
    ),
    View(
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
        needs="blocks",
        has_two_models=True,
        needs_sentences=True,
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
