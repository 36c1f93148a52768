"""Diagnosis: what failed queries share, and which remedy helps by how much."""

from __future__ import annotations

from dashboard.declared.view import OF_MODELS, SMALL_CORPUS, SMALL_MODEL, Declared, View
from dashboard.settings import number

DECLARED = Declared(
    settings=(number("halves_seed", "seed", 0, 9_999, words="seed of the halves"),),
    views=(
        View(
            key="what-helps",
            label="What helps",
            question="What helps with the failed queries?",
            asks=(
                "Which remedy repairs my failed searches?",
                "Would hybrid search or re-ranking help on my queries?",
                "What do failed queries have in common?",
            ),
            intro="Each remedy is chosen on one half of the queries and measured on the other.",
            draw="dashboard.views.diagnosis.helps:draw",
            inside="dashboard.views.evaluate.choices:measuring_by_cosine",
            settings=(*OF_MODELS, "corpus", "layer", "pooling", "query_column", "halves_seed"),
            examples=({"corpus": SMALL_CORPUS, "model": SMALL_MODEL, "layer": 1, "pooling": "max", "halves_seed": 7},),
        ),
    ),
)
