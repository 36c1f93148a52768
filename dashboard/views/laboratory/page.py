"""Laboratory: what stands behind no door, and a field that finds a view by the question it answers."""

from __future__ import annotations

from dashboard.declared.view import OF_MODELS, Declared, View
from dashboard.settings import text

DECLARED = Declared(
    settings=(text("asked", "ask", most=200, words="question"),),
    views=(
        View(
            key="laboratory",
            label="Overview",
            question="What do you want to know?",
            intro="Ask in your own words, and get the views that answer.",
            draw="dashboard.views.laboratory.overview:draw",
            settings=(*OF_MODELS, "asked"),
            examples=({"asked": "does [CLS] attend to itself?"},),
            figure="text",
        ),
    ),
)
