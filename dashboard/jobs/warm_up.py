"""What first visits would wait for, done before: included texts are read and embedded, and a slow library is imported.

And what they would wait for needlessly, done after: the first model is loaded once the first picture has been drawn.
"""

from __future__ import annotations

import sys
import threading
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
    from components.model.catalog import ModelSpec

LANE = "background"
DRAWN_SECONDS = 2.0  # the longest that the first model waits for a browser that draws


def is_torch_imported() -> bool:
    """Whether the import of torch, which slows all else for seconds, is over or under way."""
    return "torch" in sys.modules


def load_after_picture(spec: ModelSpec, person: str, is_drawn: bool) -> None:
    """Request a model for a page whose picture needs none and has been sent.

    The first model of the process waits until a browser says that it has drawn the picture (`is_drawn`), or for
    DRAWN_SECONDS. The included one is then loaded for nobody, so that no list of jobs appears beside the picture.
    """
    if is_torch_imported():
        caching.models().request(spec, person)
        return
    waits_for_it = None if spec.key == EMBEDDED_KEY else person

    def load() -> None:
        if not is_torch_imported():
            caching.models().request(spec, waits_for_it)

    if is_drawn:
        load()
        return
    timer = threading.Timer(DRAWN_SECONDS, load)
    timer.daemon = True
    timer.start()


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
