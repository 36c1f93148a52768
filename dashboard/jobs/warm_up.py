"""The demo corpus, embedded before anybody asks: Search and Evaluate have their hits at once on a first visit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from components.model.catalog import EMBEDDED_KEY
from components.retrieval.evaluation import pair_runs
from dashboard import caching
from dashboard.corpora import current
from dashboard.jobs import embedding

if TYPE_CHECKING:
    from components.model.backend import Backend

VARIABLE = "BERT_INTERNALS_WARM_UP"
LANE = "background"


def embed_demo(backend: Backend) -> None:
    """Ask for the indexes that the pages ask for by default, if this is the default model.

    Nobody waits for them, so they give way to everything else; who asks for the same one gets the job at full pace.
    """
    if os.environ.get(VARIABLE) == "0" or backend.spec.key != EMBEDDED_KEY:
        return
    indexes, demo = caching.indexes(), current.demo()
    indexes.request(backend, demo, embedding.document_options(backend), lane=LANE)
    pairs = pair_runs.pairs_of_corpus(demo, pair_runs.QUERY_COLUMN)
    exact = embedding.document_options(backend, exact=True)
    indexes.request(backend, pairs.documents, exact, "float32", lane=LANE)
    indexes.request(backend, pairs.queries, embedding.query_options(backend, exact), "float32", lane=LANE)
