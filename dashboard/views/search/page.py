"""Search: which sentences of a corpus come closest to a query, and why."""

from __future__ import annotations

from dataclasses import replace

from components.model.trace import EVERY_POOLING
from components.retrieval.search.exact import SIMILARITIES
from dashboard.declared.view import (
    OF_MODELS,
    SMALL_CORPUS,
    SMALL_MODEL,
    Declared,
    View,
)
from dashboard.settings import (
    COMPARISONS,
    ENGINES,
    LEAST_COSINE,
    LEAST_PAIRS,
    MOST_PAIRS,
    Setting,
    choice,
    flag,
    number,
    parse_hybrid,
    parse_queries,
)

SETTINGS = (
    flag("blind", "blind", False, words="blind comparison"),
    choice("compare_with", "vs", COMPARISONS, words="comparison"),
    Setting(
        "hybrid_with", "hy", ("bm25",), parse_hybrid, lambda value: list(value) or [""], words="rankings put together"
    ),
    number("reranked_hits", "cand", 100, 100, least=10, words="number of candidates"),
    number("layer2", "l2", None, 1_000, words="layer of the comparison"),
    replace(
        choice("pooling2", "pool2", EVERY_POOLING, words="pooling of the comparison"), default=None
    ),  # None: the model's own pooling
    choice("similarity2", "sim2", SIMILARITIES, words="similarity of the comparison"),
    choice("engine", "eng", ENGINES),
    number("why", "why", None, 100_000_000, words="explained hit"),
    choice("why_by", "wb", ("first", "second", "maxsim"), words="explained score"),
    Setting(  # None: the ready-made ones
        "typed_queries", "qs", None, parse_queries, lambda value: list(value) or [""], words="list of queries"
    ),
    number("least_cosine", "mc", 90, 100, least=LEAST_COSINE, words="cosine of near duplicates"),  # in hundredths
    # Which sentences are compared where no corpus was chosen; a person's own corpus is compared in any case.
    replace(choice("compared_texts", "of", ("included", "corpus"), words="compared sentences"), always=True),
    number("shown_pairs", "np", None, MOST_PAIRS, least=LEAST_PAIRS, words="number of pairs"),
)

OF_VECTORS = (
    *OF_MODELS,
    "corpus",
    "layer",
    "pooling",
    "similarity",
)  # a corpus by its vectors

VIEWS = (
    View(
        key="hits",
        label="Hits",
        question="Which sentences come closest?",
        asks=(
            "Which texts are like my query?",
            "How do I search by meaning?",
        ),
        intro="Query and sentences become vectors; the nearest sentences are the hits.",
        draw="dashboard.views.search.results:hits",
        settings=(
            *OF_VECTORS,
            "cross_encoder",
            "k",
            "model2",
            "percentiles",
            "query",
            "query_column",
            "score_label",
            "blind",
            "compare_with",
            "hybrid_with",
            "fusion_by",
            "fusion_depth",
            "fusion_k",
            "fusion_weight",
            "reranked_hits",
            "layer2",
            "pooling2",
            "similarity2",
            "engine",
            "why",
            "why_by",
        ),
        examples=(
            {
                "corpus": SMALL_CORPUS,
                "model": SMALL_MODEL,
                "query": "actor wins <b>award</b>",
                "layer": 1,
                "pooling": "max",
                "similarity": "dot",
                "k": 5,
                "compare_with": "setting",
                "layer2": 2,
                "pooling2": "cls",
                "similarity2": "dot",
                "why": 17,
                "why_by": "second",
                "reranked_hits": 10,
                "percentiles": True,
            },
            {
                "corpus": SMALL_CORPUS,
                "query": "storm",
                "k": 5,
                "compare_with": "tfidf",
                "blind": True,
                "class_code": "7b",
            },
            {"corpus": SMALL_CORPUS, "query": "storm", "k": 5, "engine": "usearch"},
            {"corpus": SMALL_CORPUS, "query": "storm", "k": 5, "compare_with": "fused", "layer": 3},
            {"query": "storm", "corpus": SMALL_CORPUS, "compare_with": "fused", "hybrid_with": ("maxsim", "m.3.mean")},
            {
                "query": "storm",
                "corpus": SMALL_CORPUS,
                "compare_with": "fused",
                "fusion_by": "z",
                "fusion_weight": 30,
                "fusion_depth": 20,
            },
            {"query": "storm", "corpus": SMALL_CORPUS, "compare_with": "fused", "fusion_k": 10},
        ),
        figure="hits",
    ),
    View(
        key="many-queries",
        label="Many queries",
        question="What does each of many queries find?",
        asks=("What is found for a list of queries?",),
        intro="The best hit of each query, with the settings of “Hits”.",
        draw="dashboard.views.search.batches:many_queries",
        settings=(
            *OF_VECTORS,
            "k",
            "query",
            "query_column",
            "typed_queries",
        ),
        examples=({"corpus": SMALL_CORPUS, "layer": 3, "k": 5, "typed_queries": ("storm & <b>sea</b>", "who won?")},),
        figure="found",
    ),
    View(
        key="similar-pairs",
        label="Near duplicates",
        question="Which sentences say almost the same?",
        asks=(
            "Do two rows of my file say the same?",
            "Which texts of my collection are duplicates?",
        ),
        intro="All pairs are compared, with the settings of “Hits”; exact repeats are listed separately.",
        draw="dashboard.views.search.whole_corpus.duplicates:similar_pairs",
        settings=(
            *OF_VECTORS,
            "compared_texts",
            "least_cosine",
            "shown_pairs",
        ),
        examples=(
            {
                "corpus": SMALL_CORPUS,
                "layer": 3,
                "pooling": "max",
                "compared_texts": "corpus",
                "least_cosine": 50,
                "shown_pairs": 12,
            },
            {"compared_texts": "corpus", "least_cosine": 55},
        ),
        figure="pairs",
    ),
    View(
        key="corpus",
        label="Corpus",
        question="What is searched?",
        asks=("How do I use a file of my own?",),
        intro="The sentences that a search goes through, and how long they are. The menu “Corpus” at the top has others.",
        draw="dashboard.views.search.whole_corpus.contents:corpus",
        settings=(
            *OF_MODELS,
            "corpus",
        ),
        examples=({"corpus": SMALL_CORPUS},),
        figure="text",
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
