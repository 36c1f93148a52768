"""What first visits would wait for, done before: included texts are read and embedded, and a slow library is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components import operator_settings
from components.model.catalog import EMBEDDED_KEY
from components.retrieval.corpora.demo import demo_corpus
from components.retrieval.evaluation import pair_runs
from dashboard import caching
from dashboard.jobs import verification
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.stored import included_words

if TYPE_CHECKING:
    from components.model.backend import Backend

LANE = "background"


def follow_models() -> None:
    """Let them follow each model that is loaded, whoever asks for the first: a session or an orchestrator."""
    caching.after_load["included words"] = read_included  # first: Start needs them
    caching.after_load["demo corpus"] = embed_demo
    caching.after_load["library"] = import_library  # after it, because the corpus takes longer
    caching.after_load["verification"] = verification.request


def import_library(_: Backend) -> None:
    """Import scikit-learn, which takes a second or two: the first map and the first sense word would wait for it."""
    if not operator_settings.WARM_UP.value():
        return
    import sklearn.decomposition
    import sklearn.metrics  # noqa: F401


def read_included(backend: Backend) -> None:
    """Request what Start compares a typed word with, if this is the default model. It gives way as `embed_demo` does."""
    if operator_settings.WARM_UP.value() and backend.spec.key == EMBEDDED_KEY:
        included_words.request(backend, lane=LANE)


def embed_demo(backend: Backend) -> None:
    """Request the indexes that the pages use by default, if this is the default model.

    While nobody waits for them, they give way to all other work; once somebody does, they run at full pace.
    """
    if not operator_settings.WARM_UP.value() or backend.spec.key != EMBEDDED_KEY:
        return
    indexes, demo = caching.indexes(), demo_corpus()
    indexes.request(backend, demo, EmbedRequest(backend).document_options(), lane=LANE)
    pairs, exact = pair_runs.pairs_of_corpus(demo, pair_runs.QUERY_COLUMN), EmbedRequest(backend, exact=True)
    documents = exact.document_options()
    indexes.request(backend, pairs.documents, documents, exact.dtype, lane=LANE)
    indexes.request(backend, pairs.queries, exact.query_options(documents), exact.dtype, lane=LANE)
