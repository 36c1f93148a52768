"""From a corpus to its index: at once where it is small or indexed already, else after a person has chosen what to embed."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.arrays import Int64, read_only
from components.jobs import part_of
from components.model.embedding.options import EmbedOptions
from components.retrieval.corpora.demo import demo_sentences
from dashboard import caching, state
from dashboard.jobs import requests
from dashboard.jobs.requests import NeedsChoice

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.embedding.options import Resolved
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.index.folder import IndexInfo, VectorIndex

AT_ONCE = 2_000  # sentences that are embedded without asking, at every layer and pooling
EXACT_AT_ONCE = 3_000  # the same on a page whose purpose is to measure
COUNTED_TOGETHER = 4_096  # sentences
MOST_TURNS, ENOUGH_SECONDS = 5, 2.0  # the speed is the best of some turns: a small model takes milliseconds for one
TRIAL_TOKENS = 18  # mean length of the sentences that the speed was measured on
_CHOSEN = "_index_choices"  # session key: the layers and poolings that a person chose, by EmbedRequest.key


@dataclass(frozen=True, eq=False)
class EmbedRequest:
    """A model and how it embeds texts: the one place where the options are made."""

    backend: Backend
    max_length: int | None = None  # tokens; None: the model's own
    exact: bool = False  # for measurements: computed and stored in float32, even where float16 is faster

    @classmethod
    def of_session(cls, backend: Backend, exact: bool = False) -> EmbedRequest:
        """With the session's maximum length."""
        return cls(backend, state.length_within(backend.tokenization.max_length, backend.own_max_length), exact)

    @property
    def dtype(self) -> str:
        """How vectors are stored."""
        return "float32" if self.exact else "auto"

    def document_options(
        self, layers: Sequence[int] | None = None, poolings: Sequence[str] | None = None
    ) -> EmbedOptions:
        """How documents are embedded: at every layer and pooling of the model where none are given."""
        backend = self.backend
        return backend.embed_options(
            backend.text_layers if layers is None else layers,
            backend.poolings if poolings is None else poolings,
            self.max_length,
            "float32" if self.exact else "auto",
            role="document",
        )

    def query_options(self, documents: EmbedOptions) -> EmbedOptions:
        """How the queries for these documents are embedded."""
        layers, poolings = documents.layers, documents.poolings
        # Without a length that a person chose, queries have the one that they were published with.
        length = None if self.max_length is None else documents.max_length
        return self.backend.embed_options(layers, poolings, length, "float32", role="query")

    def pair_options(self) -> EmbedOptions:
        """How texts that are neither queries nor documents are embedded, at every layer and pooling."""
        backend = self.backend
        return backend.embed_options(backend.text_layers, backend.poolings, self.max_length, precision="float32")

    def key(self, corpus: Texts) -> tuple[str, str, bool]:
        """Names the session's choice of layers and poolings for a corpus."""
        return self.backend.spec.key, corpus.content_hash, self.exact


class NeedsLayers(NeedsChoice):
    """A person has to choose at which layers and poolings a large corpus is embedded. `where` keys the widgets."""

    def __init__(self, request: EmbedRequest, corpus: Texts, where: str) -> None:
        super().__init__()
        self.request, self.corpus, self.where = request, corpus, where


def index_of(request: EmbedRequest, corpus: Texts, where: str) -> VectorIndex:
    """The index of a corpus. Raises NotReady; NeedsLayers where a person chooses first. `where` keys the widgets."""
    chosen = st.session_state.setdefault(_CHOSEN, {}).get(request.key(corpus))
    if chosen is not None or len(corpus.texts) <= (EXACT_AT_ONCE if request.exact else AT_ONCE):
        options = request.document_options(*(chosen or ()))
    else:
        backend = request.backend
        options = request.document_options([backend.facts.layers], [backend.own_pooling])
        if caching.indexes().find(backend, corpus, options, request.dtype) is None:
            raise NeedsLayers(request, corpus, where)
    return _requested(request.backend, corpus, options, request.dtype, where)


def choose(key: tuple[str, str, bool], layers: Sequence[int], poolings: Sequence[str]) -> None:
    """Embed at these layers and poolings of a model and corpus from now on; `key` is EmbedRequest's."""
    st.session_state.setdefault(_CHOSEN, {})[key] = (tuple(layers), tuple(poolings))


def queries_of(request: EmbedRequest, queries: Texts, documents: IndexInfo, where: str) -> VectorIndex:
    """The queries' own float32 index, at the documents' layers and poolings. Raises NotReady."""
    options = request.query_options(documents.options)
    return _requested(request.backend, queries, options, "float32", f"{where}_queries")


def _requested(backend: Backend, texts: Texts, options: EmbedOptions, dtype: str, where: str) -> VectorIndex:
    indexes = caching.indexes()
    index: VectorIndex = requests.result_of(
        indexes.jobs,
        indexes.request(backend, texts, options, dtype, person=caching.person()),
        doing="embedding the corpus",
        stop_key=f"stop_{where}",
        again_key=f"go_on_{where}",
        unit="sentences",
        resumes=True,
    )
    return index


def token_counts(backend: Backend, corpus: Texts, where: str, prompt: str = "") -> Int64:
    """The number of tokens of every sentence, special tokens included, before truncation, int64 [sentence].

    With those of a `prompt` that the model puts before each. Raises NotReady; `where` keys the widgets.
    """
    tokenization, texts = backend.tokenization, corpus.texts

    def count(report_progress: ReportProgress, is_stopped: IsStopped) -> Int64:
        lengths: list[int] = []
        for start in range(0, len(texts), COUNTED_TOGETHER):
            some = [prompt + text for text in texts[start : start + COUNTED_TOGETHER]]
            lengths += tokenization.lengths(some, is_stopped)
            report_progress(len(lengths), len(texts))
        return read_only(np.array(lengths, np.int64))

    key = ("token counts", corpus.content_hash, backend.spec.key, backend.revision, prompt)
    return requests.prepared(key, f"Counting the tokens of {len(texts):,} sentences", count, f"count_{where}")


def speed(backend: Backend, precision: Resolved, where: str) -> tuple[float, bool]:
    """Sentences per second, for sentences of about 20 tokens, measured on those of the demo. Raises NotReady.

    Also whether nothing else was at work. Else the speed is too low: it is measured again once nothing is under way.
    """
    queue = caching.queue()

    def measure(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[float, bool]:
        texts, options = demo_sentences()[:96], backend.embed_options(precision=precision)
        was_alone, best, begun = queue.works_on_one(), math.inf, time.perf_counter()
        for turn in range(1 + MOST_TURNS):
            progress_of_turn = part_of(report_progress, min(turn, 1) * len(texts), 2 * len(texts))
            started = time.perf_counter()
            backend.embed(texts, options=options, progress=progress_of_turn, is_stopped=is_stopped)
            ended = time.perf_counter()
            if turn:  # the first one warms up: products of a new size are prepared in it
                best = min(best, ended - started)
            if turn and ended - begun > ENOUGH_SECONDS:
                break
        return len(texts) / best, was_alone and queue.works_on_one()

    key = ("embedding speed", backend.spec.key, backend.revision, str(backend.device), precision)
    before = caching.preparations().find(key)
    if before is not None and before.result is not None and not before.result[1] and not queue.under_way():
        caching.preparations().drop([before])
    return requests.prepared(key, f"Measuring the speed of {backend.spec.title}", measure, f"speed_{where}")
