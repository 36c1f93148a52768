"""Pairs: how a cross-encoder reads two texts together, what re-ranking changes and costs, and a ranking learnt here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.views.pairs import disagreement, given, learnt, rerank, scores

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "given": navigation.View(
        "One input",
        "What is a cross-encoder given?",
        "Both texts become one input: [CLS] query [SEP] document [SEP].",
    ),
    "scores": navigation.View(
        "Scores",
        "What do the scores of a query's documents mean?",
        "One query, many documents: one score for each.",
    ),
    "rerank": navigation.View(
        "Retrieve and re-rank",
        "What does re-ranking change and cost?",
        "A fast model finds some documents; a slower one sorts these again.",
    ),
    "disagree": navigation.View(
        "Where they disagree",
        "Where do the two models disagree, and over which words?",
        "The documents whose rank differs most between the model's vectors and the cross-encoder.",
    ),
    "learnt": navigation.View(
        "Learnt from [CLS]",
        "Can a ranking be learnt from [CLS] vectors alone?",
        "From examples, one weight for each number of [CLS] is learnt; the weighted sum ranks.",
    ),
}
DRAW = {
    "given": given.given,
    "scores": scores.scores,
    "rerank": rerank.rerank,
    "disagree": disagreement.disagreement,
    "learnt": learnt.learnt,
}


def _view(backend: Backend, view: str) -> None:
    DRAW[view](backend)


navigation.show("pairs", VIEWS, _view, "drawing the pairs")
