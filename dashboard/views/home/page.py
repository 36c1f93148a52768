"""Home: what the dashboard is, one live figure, and a link to every page."""

from __future__ import annotations

from dashboard.declared.view import OF_SENTENCES, RIVER, SMALL_MODEL, Declared, View

DECLARED = Declared(
    (
        View(
            key="home",
            label="Start",
            question="",
            intro="",
            draw="dashboard.views.home.start:render",
            settings=OF_SENTENCES,
            examples=({"sentences": RIVER, "max_length": 12, "model": SMALL_MODEL, "projector": True},),
            is_framed=False,
        ),
    )
)
