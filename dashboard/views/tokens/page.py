"""Tokens: how text becomes the numbers a model reads."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dashboard.declared.view import (
    OF_PAIRS,
    OF_SENTENCES,
    PAIR,
    RIVER,
    SMALL_MODEL,
    Declared,
    View,
)
from dashboard.settings import choice, number, text

SETTINGS = (
    replace(
        text("vocabulary_query", "vq", words="vocabulary search"), default=None
    ),  # None: the chosen token's piece or id
    number("joint_token", "jt", None, 100_000, words="chosen token of the pair"),
    choice("vocabulary_mode", "mode", ("begins with", "contains", "id"), words="kind of vocabulary search"),
    replace(choice("other_tokenizer", "with", ("bytes", "characters", "model")), default=None),
)

shared_view = partial(View, stop="pieces", needs="tokens")

VIEWS = (
    shared_view(
        key="pieces",
        label="Pieces",
        question="How does text become numbers?",
        asks=(
            "Why is a long word chopped up into bits?",
            "How does a tokenizer cut a sentence into pieces?",
            "Which ids does my text get?",
        ),
        intro="A tokenizer splits text into pieces of its vocabulary. The model sees only their ids.",
        draw="dashboard.views.tokens.views:pieces",
        settings=(
            *OF_PAIRS,
            "reading",
            "tokens",
            "joint_token",
            "sentence",
        ),
        examples=({**PAIR, "tokens": (1, 2, 3), "reading": "together", "joint_token": 4},),
        figure="chips",
        needs_sentences=True,
    ),
    shared_view(
        key="input-tensors",
        label="Input tensors",
        question="What exactly does the model read?",
        asks=(
            "What is the attention mask?",
            "What are token types, padding and truncation?",
        ),
        intro="A tensor is a table of numbers: ids name pieces, token types tell the texts of a pair apart, the attention mask "
        "is 0 at padding.",
        draw="dashboard.views.tokens.views:tensors",
        settings=(
            *OF_PAIRS,
            "reading",
        ),
        examples=({"sentences": RIVER, "max_length": 7},),
        figure="grids",
        needs_sentences=True,
    ),
    shared_view(
        key="decoding",
        label="Back to text",
        question="Can the ids be turned back into the text?",
        asks=(
            "What is lost when text is tokenized?",
            "Can the ids be turned back into my text?",
        ),
        intro="What decoding returns, and what of the text is lost on the way.",
        draw="dashboard.views.tokens.views:decoding",
        settings=(
            *OF_PAIRS,
            "reading",
            "sentence",
        ),
        examples=({"sentences": RIVER, "sentence": 2},),
        figure="grids",
        needs_sentences=True,
    ),
    shared_view(
        key="vocabulary",
        label="Vocabulary",
        question="Which pieces does the tokenizer know?",
        asks=(
            "Is a word in the vocabulary?",
            "Which pieces begin with these letters?",
        ),
        intro="Everything that the model can read is built from these pieces.",
        draw="dashboard.views.tokens.views:vocabulary",
        settings=(
            *OF_SENTENCES,
            "sentence",
            "tokens",
            "vocabulary_query",
            "vocabulary_mode",
        ),
        examples=({"vocabulary_query": "bank", "vocabulary_mode": "contains"},),
        figure="grids",
    ),
    shared_view(
        key="two-tokenizers",
        label="Compare tokenizers",
        question="How do two tokenizers split the same text?",
        asks=(
            "How do the tokenizers of two models differ?",
            "Does GPT split words as BERT does?",
        ),
        intro="A blue frame is a word in one piece; what is split differently stands on grey.",
        draw="dashboard.views.tokens.views:two_tokenizers",
        settings=(
            *OF_SENTENCES,
            "model2",
            "sentence",
            "other_tokenizer",
        ),
        examples=({"sentences": RIVER, "other_tokenizer": "model", "model2": SMALL_MODEL, "sentence": 1},),
        figure="grids",
        needs_sentences=True,
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
