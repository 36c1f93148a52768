"""Model: its sizes and parameters, and the vectors it gives for the current sentences."""

from __future__ import annotations

from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from components.model.tokenization import MAX_SENTENCES
from dashboard.declared.view import (
    A_RUN,
    OF_SENTENCES,
    RIVER,
    SMALL_MODEL,
    Declared,
    View,
)
from dashboard.settings import Setting, choice, flag, number, parse_models

SETTINGS = (
    number("inner_block", "fb", 0, 1_000, words="block"),
    # None: the second model, or else an included one
    Setting(
        "compared_models",
        "with",
        None,
        parse_models,
        lambda value: list(value) or [""],
        words="compared models",
    ),
    choice("depth_curve", "cv", ("tokens", "words", "sentences", "steps"), words="curve"),
    number("depth_first_word", "w1", None, 100_000, words="first word"),  # counted from 0 in its sentence
    number("depth_second_word", "w2", None, 100_000, words="second word"),
    number("depth_other_sentence", "n2", None, MAX_SENTENCES - 1, words="second sentence"),
    flag("compare_measured", "meas", False, words="measurements"),
    choice("cka_pair", "cka", ("0-1", "0-2", "0-3", "1-2", "1-3", "2-3"), words="compared layers"),
)

VIEWS = (
    View(
        key="model-facts",
        label="Architecture",
        stop="blocks",
        question="What is inside the model?",
        asks=(
            "How many parameters and weights does the model have?",
            "How large is the model, and how many layers and heads has it?",
        ),
        intro="An encoder is a table of word vectors and a stack of blocks that all have the same structure.",
        draw="dashboard.views.model.views:facts",
        settings=(*OF_SENTENCES, "sentence", "tokens"),
        examples=({"sentences": RIVER, "model": SMALL_MODEL, "sentence": 2, "tokens": (2, 3, 1)},),
        figure="architecture",
        without_blocks=(
            "What is inside the model?",
            "A table of word vectors and, unless the model is static, a stack of blocks.",
        ),
    ),
    View(
        key="output-vectors",
        label="Outputs and vectors",
        question="Which of a vector's numbers stand out?",
        asks=(
            "What are the numbers in a hidden state?",
            "What shape have the outputs?",
        ),
        intro="The model returns one vector per token and layer. A single number seldom has a meaning by itself.",
        draw="dashboard.views.model.views:vectors",
        settings=(
            *OF_SENTENCES,
            "layer",
            "sentence",
            "tokens",
        ),
        examples=({"sentences": RIVER, "tokens": (2, 3, 1), "sentence": 1, "layer": 2},),
        needs="tokens",
        needs_sentences=True,
    ),
    View(
        key="layer-zero",
        label="Parts of layer 0",
        stop="zero",
        question="What is a token before the first block?",
        asks=(
            "What do position and segment embeddings add?",
            "What are the word embeddings before the first block?",
        ),
        intro="Layer 0 is what the first block reads: the vector of each piece, and whatever the model adds to it.",
        draw="dashboard.views.model.views:layer_zero",
        settings=(
            *OF_SENTENCES,
            "sentence",
            "tokens",
        ),
        examples=({"sentences": RIVER, "tokens": (2, 3, 1), "sentence": 2},),
        needs="blocks",
        needs_sentences=True,
    ),
    View(
        key="feed-forward",
        label="Feed-forward",
        stop="alone",
        question="Which inner dimensions respond to a token?",
        asks=("What do the neurons of the feed-forward part do?",),
        intro="A block's feed-forward part widens each token's vector to many inner dimensions, and adds up what they give.",
        draw="dashboard.views.model.views:feed_forward",
        settings=(
            *OF_SENTENCES,
            "sentence",
            "tokens",
            "inner_block",
        ),
        examples=({"sentences": RIVER, "tokens": (2, 3, 1), "sentence": 1, "inner_block": 3},),
        needs="blocks",
        needs_sentences=True,
    ),
    View(
        key="compare-models",
        label="Models beside each other",
        question="How do models differ?",
        asks=(
            "Which of two models is better, larger or faster?",
            "How do several models differ in size and speed?",
        ),
        intro="The same sentence in two to four models: depth is the layer divided by the number of layers, "
        "so that all of them go "
        "from 0 to 1.",
        draw="dashboard.views.model.compare:draw",
        settings=(
            *OF_SENTENCES,
            "percentiles",
            "sentence",
            "compared_models",
            "depth_curve",
            "depth_first_word",
            "depth_second_word",
            "depth_other_sentence",
            "compare_measured",
            "cka_pair",
        ),
        examples=(
            {
                "sentences": RIVER,
                "model": SMALL_MODEL,
                "compared_models": (f"run:{A_RUN}", f"run:{A_RUN}:start"),
                "sentence": 1,
                "depth_curve": "sentences",
                "depth_other_sentence": 2,
                "percentiles": True,
                "cka_pair": "1-2",
                "compare_measured": True,
            },
            {
                "sentences": RIVER,
                "model": SMALL_MODEL,
                "compared_models": (f"run:{A_RUN}",),
                "depth_curve": "words",
                "sentence": 2,
                "depth_first_word": 4,
                "depth_second_word": 2,
            },
        ),
    ),
    View(
        key="available-models",
        label="All available models",
        question="Which models can this dashboard open?",
        asks=("Which models can I download and choose?",),
        intro="Sizes and licences, and whether a model is stored on this machine.",
        draw="dashboard.views.model.views:catalog",
        settings=(*OF_SENTENCES,),
        examples=({"sentences": RIVER, "model": EMBEDDED_CROSS_ENCODER_KEY},),
        figure="table",
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
