"""Start: a sentence field, and what a word of the sentence looks at, becomes, and is near to."""

from __future__ import annotations

from dataclasses import replace

from dashboard.declared.view import OF_SENTENCES, RIVER, SMALL_MODEL, Declared, View
from dashboard.settings import flag

SETTINGS = (
    # None: as nobody has typed or cleared anything here, the session's sentences are shown if they are not those it began with
    replace(flag("looked", "look", False, words="sentences on Start"), default=None),
)

DECLARED = Declared(
    (
        View(
            key="home",
            label="Start",
            question="",
            intro="",
            draw="dashboard.views.home.start:render",
            settings=(*OF_SENTENCES, "looked", "sentence", "tokens"),
            examples=(
                {"sentences": RIVER, "max_length": 12, "model": SMALL_MODEL, "projector": True},
                {"sentences": RIVER, "looked": True, "sentence": 1, "tokens": (4, 4, 5)},
            ),
            figure="start",
            is_framed=False,
            requests_model=True,
        ),
    ),
    SETTINGS,
)
