"""Search: which sentences of a corpus come closest to a query, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard import navigation
from dashboard.corpora import current
from dashboard.ui import messages
from dashboard.views.search import batches, corpus, results
from dashboard.views.search.request import SearchRequest

if TYPE_CHECKING:
    from components.model.backend import Backend

VIEWS = {
    "results": navigation.View(
        "Hits",
        "Which sentences come closest?",
        "Query and sentences become vectors; the nearest sentences are the hits.",
    ),
    "queries": navigation.View(
        "Many queries",
        "What does each of many queries find?",
        "The best hits of each query in a list; the settings are those of “Hits”.",
    ),
    "pairs": navigation.View(
        "Similar pairs",
        "Which sentences of the corpus are most similar?",
        "All pairs are compared, with the settings of “Hits”.",
    ),
    "corpus": navigation.View(
        "Corpus",
        "What is searched?",
        "Choose the demo corpus, a file of your own, or a dataset.",
    ),
}


def _view(backend: Backend, view: str) -> None:
    if view == "corpus":
        corpus.corpus(backend)
        return
    messages.cross_encoder_note([backend])
    searched = current.corpus()
    if view == "results":
        panel = results.query_controls()
        results.results(SearchRequest.of_session(backend, searched), panel)
        return
    draw = {"queries": batches.queries, "pairs": batches.pairs}[view]
    draw(SearchRequest.of_vectors(backend, searched, is_search=view == "queries"))


navigation.show(
    "search",
    VIEWS,
    _view,
    "searching",
)
