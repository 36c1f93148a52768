"""Diagnosis: what failed queries share, and which remedy helps by how much."""

from __future__ import annotations

from dataclasses import replace

from components.model.catalog import EMBEDDED_KEY
from dashboard.declared.view import OF_MODELS, SMALL_CORPUS, SMALL_MODEL, Declared, View
from dashboard.settings import FAILURE_CAUSES, choice, model, number, text

DECLARED = Declared(
    settings=(
        number("halves_seed", "seed", 0, 9_999, words="seed of the halves"),
        number("failed_query", "fq", None, 100_000_000),  # the row of its own text; None: the first of the list
        choice("failed_order", "fo", ("worst", "nearest"), words="order of the failed queries"),
        text("typed_query", "dq", "", 1_000),
        number("right_row", "dr", None, 100_000_000, words="right text"),  # of the typed query
        choice("failure_cause", "fc", ("all", *FAILURE_CAUSES), words="trait"),
        text("failed_trait", "ft", "", 40, words="trait of the failed queries"),  # "" for all
        text("failed_only", "only", "", 200, words="part of the queries"),  # a column, = and its value
        text("abbreviations", "abbr", "", 1_000),  # as in kb=knowledge base,pw=password
        # The second models that What helps measures; "" for none
        replace(model("tried_cross_encoder", "tc", ""), shared=False),
        replace(model("tried_model", "tm", ""), shared=False),
    ),
    views=(
        View(
            key="failed-search",
            label="Failed queries",
            question="Which queries fail, and what do they share?",
            asks=(
                "Which words made the search choose the wrong document?",
                "Why did my query not find the right text?",
                "What do failed queries have in common?",
            ),
            intro="The queries whose right text is not first; for one of them, the words that put another text there.",
            draw="dashboard.views.diagnosis.debugger:draw",
            figure="hits",
            settings=(
                *OF_MODELS,
                "corpus",
                "cross_encoder",
                "layer",
                "pooling",
                "query_column",
                "texts_searched",
                "failed_query",
                "failed_order",
                "typed_query",
                "right_row",
                "failure_cause",
                "failed_trait",
                "failed_only",
                "abbreviations",
            ),
            examples=(
                {
                    "corpus": SMALL_CORPUS,
                    "failed_order": "nearest",
                    "typed_query": "storm at sea",
                    "right_row": 17,
                    "failure_cause": "no-shared-word",
                    "query_column": "topic",
                    "failed_query": 5,
                    "failed_trait": "negation",
                    "failed_only": "kind=short",
                    "abbreviations": "kb=knowledge base",
                },
            ),
            needs="blocks",
            inside="dashboard.views.why.context:one_at_a_time",
        ),
        View(
            key="what-helps",
            label="What helps",
            question="What helps with the failed queries?",
            asks=(
                "Which remedy repairs my failed searches?",
                "Would hybrid search or re-ranking help on my queries?",
            ),
            intro="Each remedy is chosen on one half of the queries and measured on the other.",
            draw="dashboard.views.diagnosis.helps:draw",
            inside="dashboard.views.evaluate.choices:measuring_by_cosine",
            settings=(
                *OF_MODELS,
                *("corpus", "layer", "pooling", "query_column", "texts_searched", "failed_only"),
                *("halves_seed", "abbreviations", "tried_cross_encoder", "tried_model"),
            ),
            examples=(
                {
                    "corpus": SMALL_CORPUS,
                    "model": SMALL_MODEL,
                    "layer": 1,
                    "pooling": "max",
                    "halves_seed": 7,
                    "abbreviations": "kb=knowledge base",
                    "tried_model": EMBEDDED_KEY,
                },
            ),
        ),
    ),
)
