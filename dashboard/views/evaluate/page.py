"""Evaluate: which model, layer and pooling retrieves best, whether that is significant, and where it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.jobs import progress
from dashboard.jobs.evaluation import NoResult
from dashboard.ui import messages
from dashboard.views.evaluate import approximation, choices, compare, graded, grid, kinds, lab, sts

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "grid": navigation.View(
        "Layers",
        "Which layer and pooling retrieve best?",
        "Share of queries whose correct answer each layer and pooling ranks first.",
        without_blocks=(
            "How well does the model retrieve?",
            "Share of queries with a correct answer among the first k.",
        ),
    ),
    "compare": navigation.View(
        "Compare",
        "Which run is better, and on which queries?",
        "Differences with intervals, and the queries on which runs disagree.",
    ),
    "kinds": navigation.View(
        "Kinds of search",
        "Questions or paraphrases: what does a run find better?",
        "Asymmetric search finds the answer to a question. Symmetric search finds another sentence with the same meaning.",
    ),
    "graded": navigation.View(
        "Graded relevance",
        "Which run ranks better answers higher?",
        "Each query has several correct answers. A grade says how relevant each is: 2 is better than 1, and 0 is not relevant.",
    ),
    "similarity": navigation.View(
        "Similarity",
        "Do cosines agree with people?",
        "People scored how similar pairs of sentences are. Do the cosines order the pairs in the same way?",
    ),
    "lab": navigation.View(
        "Pooling lab",
        "What do other ways of pooling change?",
        "How tokens become one vector (columns), and what is done to it then (rows): which finds most correct answers?",
        "blocks",
    ),
    "approximation": navigation.View(
        "Approximation",
        "What does approximation lose?",
        "Smaller vectors and graphs search large collections faster. How many of the 10 nearest sentences do they still find?",
    ),
    "pairs": navigation.View(
        "Data",
        "What are the queries, and what should they find?",
        "Choose the pairs that the other views measure.",
    ),
}
DRAW = {
    "grid": grid.grid,
    "compare": compare.compare,
    "kinds": kinds.kinds,
    "graded": graded.relevance,
    "similarity": sts.similarity,
    "lab": lab.lab,
    "approximation": approximation.approximation,
    "pairs": choices.data,
}


def _view(backend: Backend, view: str) -> None:
    if view != "pairs":
        messages.cross_encoder_note([backend])
    try:
        with progress.one_bar():
            DRAW[view](backend)
    except NoResult:
        return  # the reason has been drawn


navigation.show(
    "evaluate",
    VIEWS,
    _view,
    "evaluating",
)
