"""One word's attention: where one word looks, over all heads."""

from __future__ import annotations

from dashboard.declared.view import OF_SENTENCES, RIVER, SMALL_MODEL, Declared, View
from dashboard.settings import choice

SETTINGS = (choice("look_direction", "dir", ("from", "to"), words="who looks"),)
VIEWS = (
    View(
        key="one-word-attention",
        label="One word's attention",
        stop="look",
        question="What does a word look at?",
        asks=(
            "Where does “it” look?",
            "Who looks at “it”?",
            "Which heads look from a pronoun at the noun that it stands for?",
            "How many heads look at [CLS] or [SEP]?",
        ),
        intro="dashboard.views.word_attention.picture:intro",
        draw="dashboard.views.word_attention.picture:draw",
        settings=(*OF_SENTENCES, "sentence", "tokens", "block", "head", "look_direction"),
        examples=(
            {"sentences": RIVER, "tokens": (4, 5, 6), "sentence": 2, "block": 1, "head": 3, "look_direction": "to"},
            {"sentences": RIVER, "model": SMALL_MODEL, "sentence": 1},
        ),
        figure="looks",
        needs="blocks",
        needs_sentences=True,
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
