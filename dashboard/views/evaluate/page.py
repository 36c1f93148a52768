"""Evaluate: which model, layer and pooling retrieves best, whether that is significant, and where it fails."""

from __future__ import annotations

from dataclasses import replace

from components.retrieval.rankings.run_code import LEAST_CANDIDATES, MOST_CANDIDATES
from dashboard.declared.view import (
    OF_MODELS,
    SMALL_CORPUS,
    SMALL_MODEL,
    Declared,
    View,
)
from dashboard.settings import (
    APPROXIMATIONS,
    LAB_POOLINGS,
    Setting,
    choice,
    flag,
    number,
    parse_runs,
    text,
)

SETTINGS = (
    choice("measure", "by", ("r1", "r5", "r10", "r20", "r50", "mrr", "ndcg")),
    Setting("runs", "r", None, parse_runs, lambda value: list(value) or [""]),
    number("candidates", "kc", 20, MOST_CANDIDATES, least=LEAST_CANDIDATES, words="number of candidates"),
    text("reference", "ref", words="run to compare with"),
    text("other_run", "vs", words="run whose queries are shown"),
    choice("compare_figure", "fig", ("curves", "precision", "cost", "similarities", "weights"), words="figure"),
    number("right_at", "at", 1, 50, least=1, words="number of first hits"),
    choice("query_filter", "f", ("all", "wrong", "disagree", "right"), words="kind of queries"),
    number("opened", "oq", None, 100_000_000, words="opened query"),
    choice("searched_kind", "kind", ("questions", "paraphrases"), words="kind of search"),
    choice("graded_measure", "gm", ("ndcg", "mrr", "p10", "r10", "r100", "map"), words="measure"),
    flag("all_measures", "am", False, words="all measures"),
    choice("sts_source", "src", ("demo", "file"), words="pairs"),
    choice("correlation", "cor", ("spearman", "pearson"), words="agreement"),
    text("sts_run", "run", words="run"),
    number("lab_dims", "d", None, 4_096, least=2, words="dimensions"),
    number("lab_seed", "seed", 0, 9_999, words="seed"),
    choice("lab_pooling", "lp", LAB_POOLINGS, words="pooling"),
    replace(choice("approximation", "way", APPROXIMATIONS, words="way to search"), default="bits-4"),
)

VIEWS = (
    View(
        key="layer-grid",
        label="Layers and poolings",
        question="Which layer and pooling retrieve best?",
        asks=("Which layer and pooling should I use for search?",),
        intro="Share of queries whose correct answer each layer and pooling ranks first.",
        draw="dashboard.views.evaluate.grid:grid",
        settings=(
            *OF_MODELS,
            "corpus",
            "layer",
            "pooling",
            "query_column",
            "measure",
        ),
        examples=({"corpus": SMALL_CORPUS, "model": SMALL_MODEL, "measure": "ndcg", "layer": 1, "pooling": "max"},),
        without_blocks=(
            "How well does the model retrieve?",
            "Share of queries with a correct answer among the first k.",
        ),
        inside="dashboard.views.evaluate.choices:measuring_by_cosine",
    ),
    View(
        key="compare-runs",
        label="Compare",
        question="Which run is better, and on which queries?",
        asks=(
            "Is BM25 better than the model?",
            "Which method finds more, and is the difference significant?",
        ),
        intro="A run is one way to search. Differences with intervals, and the queries on which runs disagree.",
        draw="dashboard.views.evaluate.compare:compare",
        settings=(
            *OF_MODELS,
            "corpus",
            "cross_encoder",
            "model2",
            "query_column",
            "score_label",
            "similarity",
            "measure",
            "runs",
            "candidates",
            "reference",
            "other_run",
            "compare_figure",
            "right_at",
            "query_filter",
            "opened",
            "all_measures",
        ),
        examples=(
            {
                "corpus": SMALL_CORPUS,
                "runs": ("m.3.mean", "bm25", "tfidf"),
                "reference": "bm25",
                "measure": "mrr",
                "query_filter": "right",
                "opened": 5,
                "right_at": 5,
                "all_measures": True,
                "candidates": 10,
                "compare_figure": "precision",
            },
            {"corpus": SMALL_CORPUS, "runs": ("m.6.mean", "bm25", "tfidf"), "other_run": "tfidf"},
            {
                "corpus": SMALL_CORPUS,
                "runs": ("fr.bm25.m.6.mean", "f25.tfidf.m.6.mean", "m.6.mean"),
                "compare_figure": "weights",
                "opened": 3,
            },
        ),
        figure="plot or table",
        inside="dashboard.views.evaluate.choices:measuring_by_cosine",
    ),
    View(
        key="search-kinds",
        label="Kinds of search",
        question="Questions or paraphrases: what does a run find better?",
        asks=("Are questions harder than paraphrases?",),
        intro=(
            "Asymmetric search finds the answer to a question. Symmetric search finds another sentence with "
            "the same meaning."
        ),
        draw="dashboard.views.evaluate.kinds:kinds",
        settings=(
            *OF_MODELS,
            "model2",
            "similarity",
            "measure",
            "searched_kind",
        ),
        examples=({"model": SMALL_MODEL, "searched_kind": "paraphrases", "similarity": "dot"},),
        inside="dashboard.views.evaluate.choices:measuring",
    ),
    View(
        key="graded-relevance",
        label="Graded relevance",
        question="Which run ranks better answers higher?",
        asks=(
            "How good is the ranking on a collection with judgements?",
            "What is nDCG on my test collection?",
        ),
        intro=(
            "Each query has several correct answers. A grade says how relevant each is: 2 is better than 1, "
            "and 0 is not relevant."
        ),
        draw="dashboard.views.evaluate.graded:relevance",
        settings=(
            *OF_MODELS,
            "cross_encoder",
            "graded_document_fields",
            "graded_query_field",
            "graded_source",
            "model2",
            "score_label",
            "measure",
            "runs",
            "candidates",
            "reference",
            "graded_measure",
            "all_measures",
        ),
        examples=({"model": SMALL_MODEL, "runs": ("m.2.mean", "bm25"), "graded_measure": "r100"},),
        figure="plot or table",
        inside="dashboard.views.evaluate.choices:measuring_by_cosine",
    ),
    View(
        key="sentence-similarity",
        label="Similarity",
        question="Do cosines agree with people?",
        asks=(
            "Do cosines agree with what people say?",
            "What is Spearman's correlation on STS?",
        ),
        intro="People scored how similar pairs of sentences are. Do the cosines order the pairs in the same way?",
        draw="dashboard.views.evaluate.sts:similarity",
        settings=(
            *OF_MODELS,
            "sts_source",
            "correlation",
            "sts_run",
        ),
        examples=({"model": SMALL_MODEL, "correlation": "pearson", "sts_run": "m.0.max"},),
        figure="plot or table",
        inside="dashboard.views.evaluate.choices:measuring",
    ),
    View(
        key="pooling-lab",
        label="Pooling lab",
        question="What do other ways of pooling change?",
        asks=(
            "Which way of averaging token vectors is best?",
            "Does whitening or normalising vectors help?",
        ),
        intro="How tokens become one vector (columns), and what is done to it then (rows): which finds most correct answers?",
        draw="dashboard.views.evaluate.lab:lab",
        settings=(
            *OF_MODELS,
            "corpus",
            "layer",
            "query_column",
            "lab_dims",
            "lab_seed",
            "lab_pooling",
        ),
        examples=(
            {
                "corpus": SMALL_CORPUS,
                "model": SMALL_MODEL,
                "layer": 2,
                "lab_dims": 16,
                "lab_pooling": "max",
                "lab_seed": 7,
            },
        ),
        needs="blocks",
        inside="dashboard.views.evaluate.choices:measuring",
    ),
    View(
        key="approximation",
        label="Approximation",
        question="What does approximation lose?",
        asks=(
            "How much do smaller or quantised vectors lose?",
            "Is an approximate index faster?",
        ),
        intro=(
            "Smaller vectors and graphs search large collections faster. How many of the 10 nearest "
            "sentences do they still find?"
        ),
        draw="dashboard.views.evaluate.approximation:approximation",
        settings=(
            *OF_MODELS,
            "corpus",
            "layer",
            "pooling",
            "query_column",
            "similarity",
            "approximation",
        ),
        examples=(
            {
                "corpus": SMALL_CORPUS,
                "model": SMALL_MODEL,
                "layer": 1,
                "pooling": "max",
                "similarity": "dot",
                "approximation": "first-4",
            },
        ),
        inside="dashboard.views.evaluate.choices:measuring",
    ),
    View(
        key="evaluated-data",
        label="Data",
        question="What are the queries, and what should they find?",
        asks=("Which questions and answers are measured?",),
        intro="The pairs that Compare, Layers and poolings and Re-ranking measure. Another corpus is chosen at the top.",
        draw="dashboard.views.evaluate.choices:data",
        settings=(
            *OF_MODELS,
            "corpus",
            "query_column",
        ),
        examples=({"corpus": SMALL_CORPUS, "query_column": "topic"},),
        figure="pairs",
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
