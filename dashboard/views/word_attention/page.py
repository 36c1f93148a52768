"""One word's attention: where one word looks, over all heads."""

from __future__ import annotations

from dashboard.declared.view import OF_SENTENCES, RIVER, SMALL_MODEL, Declared, View

VIEWS = (
    View(
        key="one-word-attention",
        label="One word's attention",
        stop="look",
        question="What does a word look at?",
        asks=(
            "Where does “it” look?",
            "Which heads look from a pronoun at the noun that it stands for?",
            "How many heads look at [CLS] or [SEP]?",
        ),
        intro="Left: one head. Right: a column for each head, bluer for more attention.",
        draw="dashboard.views.word_attention.picture:draw",
        settings=(*OF_SENTENCES, "sentence", "tokens", "block", "head"),
        examples=(
            {"sentences": RIVER, "tokens": (4, 5, 6), "sentence": 2, "block": 1, "head": 3},
            {"sentences": RIVER, "model": SMALL_MODEL, "sentence": 1},
        ),
        figure="looks",
        needs="blocks",
        needs_sentences=True,
    ),
)
DECLARED = Declared(VIEWS)
