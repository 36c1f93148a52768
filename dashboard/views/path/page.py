"""The whole path: every step from a sentence to its vector, for one token, with the numbers of each."""

from __future__ import annotations

from dashboard.declared.stops import STOPS, VIEW
from dashboard.declared.view import OF_SENTENCES, RIVER, SMALL_MODEL, Declared, View
from dashboard.settings import choice, flag

SETTINGS = (
    choice("path_stop", "stop", tuple(STOPS), words="stop"),
    flag("only_left", "left", False, words="only look left"),
)

VIEWS = (
    View(
        key=VIEW,
        label="The whole path",
        question="What happens between your words and a vector?",
        asks=(
            "How does BERT work, from the text to the vector?",
            "What are a head, a residual and a pooled vector?",
            "What is the difference between BERT and GPT?",
        ),
        intro="Each piece of the text on its way to the sentence's vector, stop by stop. Press Play to follow one.",
        draw="dashboard.views.path.whole:draw",
        settings=(*OF_SENTENCES, "sentence_a", "sentence_b", "tokens", "block", "head", "path_stop", "only_left"),
        examples=(
            {
                "sentences": RIVER,
                "tokens": (4, 5, 6),
                "sentence_a": 2,
                "sentence_b": 1,
                "path_stop": "look",
                "block": 1,
            },
            {"sentences": RIVER, "model": SMALL_MODEL, "path_stop": "take", "block": 0, "head": 1, "only_left": True},
            {"sentences": ("Hello!",), "path_stop": "compare"},
        ),
        figure="path",
        needs="tokens",
        needs_sentences=True,
    ),
)
DECLARED = Declared(VIEWS, SETTINGS)
