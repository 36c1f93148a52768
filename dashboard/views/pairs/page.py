"""Pairs: how a cross-encoder reads two texts together, what re-ranking changes and costs, and a ranking learnt here."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from components.analysis.pair_scales import SCALES
from components.model.tokenization import TRUNCATIONS
from components.retrieval.learnt.learnt_vectors import READINGS
from dashboard.declared.view import (
    OF_MODELS,
    SMALL_CORPUS,
    SMALL_MODEL,
    Declared,
    View,
)
from dashboard.settings import DEFAULT_TRIPLE, LEARNT_CS, LEAST_LENGTH, Setting, choice, number, text, thousandths

SETTINGS = (
    text("pair_query", "pq", DEFAULT_TRIPLE[0], 4_000, words="query of the pairs"),
    text("pair_relevant", "pr", DEFAULT_TRIPLE[1], 4_000, words="relevant document"),
    text("pair_other", "po", DEFAULT_TRIPLE[2], 4_000, words="other document"),
    choice("truncation", "cut", TRUNCATIONS),
    number("pair_length", "pl", None, 100_000, least=LEAST_LENGTH, words="maximum length of a pair"),
    choice("score_scale", "sc", SCALES, words="scale of the scores"),
    number("scored_documents", "nd", 200, 5_000, least=50, words="number of documents"),
    choice("relevant_by", "rel", ("topic", "own", "marks"), words="relevant documents"),
    replace(text("relevant_topic", "top", words="topic"), default=None),  # None: the likely one
    number("sample_seed", "seed", 0, 9_999, words="seed"),
    Setting(
        "threshold",
        "th",
        None,
        lambda values: thousandths(values),
        lambda value: [str(value)],
    ),  # thousandths of the scale's unit
    replace(choice("second_stage", "by", ("maxsim", "rerank"), words="second stage"), always=True),
    number("disagreement_queries", "nq", 20, 100, least=5, words="number of queries"),
    number("disagreement", "dis", 0, 1_000, words="pair"),
    number("learnt_layer", "ll", None, 1_000, words="layer"),
    choice("learnt_pooling", "lp", ("cls", "mean"), words="pooling"),
    choice("learnt_reading", "lr", READINGS, words="reading"),
    replace(choice("learnt_c", "lc", LEARNT_CS, words="C"), default="0.001"),
    number("learnt_queries", "lq", 200, 2_000, least=20, words="number of queries"),
)

OF_SCORES = (
    *OF_MODELS,
    "corpus",
    "cross_encoder",
    "score_label",
)  # a corpus, and what scores it

shared_view = partial(View, needs="blocks")

VIEWS = (
    shared_view(
        key="one-input",
        label="One input of two texts",
        question="What is a cross-encoder given?",
        asks=("What does a cross-encoder read?",),
        intro="Both texts become one input: [CLS] query [SEP] document [SEP]. Under each piece: position, id and token type.",
        draw="dashboard.views.pairs.given:given",
        settings=(
            *OF_SCORES,
            "pair_query",
            "pair_relevant",
            "pair_other",
            "truncation",
            "pair_length",
            "score_scale",
        ),
        examples=(
            {
                "pair_query": "who <b>won</b>?",
                "pair_relevant": "She won.",
                "pair_other": "It rained.",
                "pair_length": 12,
                "truncation": "only_second",
                "score_scale": "sigmoid",
            },
        ),
        figure="chips",
    ),
    shared_view(
        key="pair-scores",
        label="Scores of pairs",
        question="What do the scores of a query's documents mean?",
        asks=("Which threshold separates relevant from other documents?",),
        intro="A cross-encoder reads one query together with each of many documents, and gives one score for each.",
        draw="dashboard.views.pairs.scores:scores",
        settings=(
            *OF_SCORES,
            "query",
            "query_column",
            "score_scale",
            "scored_documents",
            "relevant_by",
            "relevant_topic",
            "sample_seed",
            "threshold",
        ),
        examples=(
            {
                "corpus": SMALL_CORPUS,
                "query": "storm",
                "scored_documents": 50,
                "relevant_by": "topic",
                "relevant_topic": "storm",
                "sample_seed": 7,
                "threshold": 250,
                "score_scale": "sigmoid",
            },
        ),
    ),
    shared_view(
        key="retrieve-rerank",
        label="Re-ranking and its cost",
        question="What does re-ranking change and cost?",
        asks=("Is re-ranking by a cross-encoder worth its time?", "Does MaxSim find more than one vector a text?"),
        intro="dashboard.views.pairs.rerank:intro",
        draw="dashboard.views.pairs.rerank:rerank",
        settings=(
            *OF_SCORES,
            "k",
            "model2",
            "query",
            "query_column",
            "texts_searched",
            "second_stage",
        ),
        examples=({"corpus": SMALL_CORPUS, "query": "storm", "k": 7, "second_stage": "maxsim"},),
        figure="lists",
    ),
    shared_view(
        key="disagreement",
        label="Cross-encoder beside vectors",
        question="Where do the two models disagree, and over which words?",
        asks=(
            "Where do a bi-encoder and a cross-encoder disagree?",
            "Does the included cross-encoder rank better than the vectors?",
        ),
        intro="dashboard.views.pairs.disagreement:intro",
        draw="dashboard.views.pairs.disagreement:disagreement",
        settings=(
            *OF_SCORES,
            "k",
            "query",
            "query_column",
            "score_scale",
            "disagreement_queries",
            "disagreement",
        ),
        examples=({"corpus": SMALL_CORPUS, "disagreement_queries": 5, "disagreement": 1},),
        figure="lists",
    ),
    shared_view(
        key="learnt-ranking",
        label="Learnt from [CLS]",
        question="Can a ranking be learnt from [CLS] vectors alone?",
        asks=("Can I train a ranking on top of the [CLS] vector?",),
        intro="The [CLS] vectors are multiplied number by number; each product has a weight, learnt from examples, and the "
        "sum ranks.",
        draw="dashboard.views.pairs.learnt:learnt",
        settings=(
            *OF_MODELS,
            "cross_encoder",
            "graded_document_fields",
            "graded_query_field",
            "graded_source",
            "model2",
            "score_label",
            "learnt_layer",
            "learnt_pooling",
            "learnt_reading",
            "learnt_c",
            "learnt_queries",
        ),
        examples=(
            {
                "model": SMALL_MODEL,
                "learnt_layer": 2,
                "learnt_pooling": "mean",
                "learnt_reading": "together",
                "learnt_c": "1",
                "learnt_queries": 20,
            },
        ),
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
