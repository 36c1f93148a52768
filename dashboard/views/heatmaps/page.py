"""Heatmaps: what a block does to each token, and which tokens, layers and sentences are similar."""

from __future__ import annotations

from functools import partial

from components.model.tokenization import MAX_SENTENCES
from dashboard.declared.view import (
    OF_PAIRS,
    OF_SENTENCES,
    PAIR,
    RIVER,
    Declared,
    View,
)
from dashboard.settings import choice, flag, number, positions

SETTINGS = (
    number("first_block", "b1", None, 1_000, words="left block"),
    number("second_block", "b2", None, 1_000, words="right block"),
    number("against", "ag", None, MAX_SENTENCES, words="sentence to compare with"),
    number("also_against", "ag2", None, MAX_SENTENCES, words="second sentence to compare with"),
    positions("partners", "pb", unique=True, words="sentences read with A"),
    flag("own_scale", "own", False, words="separate colour scales"),
    choice("one_side", "side", ("left", "right"), words="picture shown"),
    flag("clustered", "clu", False, words="clustered order"),
)

shared_view = partial(View, needs="blocks", needs_sentences=True)

VIEWS = (
    shared_view(
        key="block",
        label="Input and output",
        stop="blocks",
        question="What does a block do to each token?",
        asks=(
            "How much of itself does a token keep in a block?",
            "What goes into a layer and what comes out?",
        ),
        intro="Blue: a token before and after (1: unchanged). Orange: a token and another one (cosine).",
        draw="dashboard.views.heatmaps.blocks:input_and_output",
        settings=(
            *OF_PAIRS,
            "include_special",
            "first_block",
            "second_block",
            "own_scale",
            "one_side",
        ),
        examples=({**PAIR, "first_block": 3, "second_block": 0, "own_scale": True, "one_side": "right"},),
    ),
    shared_view(
        key="inside-block",
        label="What its parts add",
        stop="take",
        question="Which part of a block changes a token most?",
        asks=("What do attention and feed-forward add to a token?",),
        intro="Two steps turn each token's vector: 0° is unchanged, 90° has nothing in common with before.",
        draw="dashboard.views.heatmaps.blocks:inside",
        settings=(
            *OF_PAIRS,
            "first_block",
            "second_block",
        ),
        examples=({"sentences": RIVER, "sentence_a": 1, "first_block": 2, "second_block": 1},),
    ),
    shared_view(
        key="token-pairs",
        label="Pairs of tokens",
        stop="compare",
        question="Which tokens are similar?",
        asks=("Which words of two sentences are similar?",),
        intro="The stronger a cell's blue, the more similar the two vectors (cosine).",
        draw="dashboard.views.heatmaps.blocks:tokens",
        settings=(
            *OF_SENTENCES,
            "include_special",
            "layer",
            "percentiles",
            "sentence_a",
            "against",
            "also_against",
        ),
        examples=(
            {"sentences": RIVER, "sentence_a": 1, "against": 0, "also_against": 3, "layer": 4, "percentiles": True},
        ),
    ),
    shared_view(
        key="read-together",
        label="Pairs read together",
        question="Which tokens are similar in a pair that is read together?",
        asks=("What changes if two texts are read as one input?",),
        intro="Two sentences are read as one input. Stronger blue: more similar tokens (cosine).",
        draw="dashboard.views.heatmaps.together:pairs",
        settings=(
            *OF_PAIRS,
            "include_special",
            "layer",
            "partners",
        ),
        examples=({"sentences": RIVER, "sentence_a": 1, "partners": (2, 0), "layer": 3},),
    ),
    shared_view(
        key="layer-pairs",
        label="Layers against layers",
        question="Which layers give similar vectors?",
        asks=("Which layers are alike by CKA?",),
        intro="Each cell compares two layers. CKA 1: the same tokens are alike at both. CKA 0: no linear relation.",
        draw="dashboard.views.heatmaps.similarity:layers",
        settings=(
            *OF_SENTENCES,
            "model2",
        ),
        examples=({"sentences": RIVER},),
        has_two_models=True,
    ),
    shared_view(
        key="sentence-pairs",
        label="Pairs of sentences",
        stop="compare",
        question="Which sentences are similar?",
        asks=("How similar are my sentences to each other?",),
        intro="The stronger a cell's blue, the more similar the two sentence vectors (cosine).",
        draw="dashboard.views.heatmaps.similarity:sentences",
        settings=(
            *OF_SENTENCES,
            "include_special",
            "layer",
            "model2",
            "percentiles",
            "pooling",
            "clustered",
        ),
        examples=({"sentences": RIVER, "layer": 3, "pooling": "cls", "clustered": True},),
        has_two_models=True,
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
