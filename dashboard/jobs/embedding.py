"""From a corpus to its index: at once where it is small or indexed already, else after the costs were shown."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.arrays import Int64, read_only
from components.jobs import Cancelled, part_of
from components.model.embedding.options import EmbedOptions
from components.retrieval.corpora.demo import demo_sentences
from components.retrieval.corpora.facts import corpus_facts, estimate
from components.retrieval.evaluation import pair_runs
from components.retrieval.index.build import needed_bytes
from components.retrieval.index.folder import FLOAT32_BYTES, resolve_dtype
from components.sizes import in_words
from dashboard import caching
from dashboard.jobs import progress
from dashboard.ui import controls, messages
from dashboard.ui.wording import POOLING_NAMES, duration

if TYPE_CHECKING:
    from components.jobs import IsCancelled, ReportProgress
    from components.model.backend import Backend
    from components.model.embedding.options import Resolved
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.index.folder import IndexInfo, VectorIndex

AT_ONCE = 2_000  # sentences that are embedded without asking, at every layer and pooling
EXACT_AT_ONCE = 3_000  # the same on a page whose purpose is to measure
COUNTED_TOGETHER = 4_096  # sentences
MOST_TURNS, ENOUGH_SECONDS = 5, 2.0  # the speed is the best of some turns: a small model takes milliseconds for one
TRIAL_TOKENS = 18  # mean length of the sentences that the speed was measured on


@dataclass(frozen=True, eq=False)
class EmbedRequest:
    """A model and how it embeds texts: the one place where the options are made."""

    backend: Backend
    max_length: int | None = None  # tokens; None: the model's own
    exact: bool = False  # for measurements: computed and stored in float32, even where float16 is faster

    @classmethod
    def of_session(cls, backend: Backend, exact: bool = False) -> EmbedRequest:
        """With the session's maximum length."""
        return cls(backend, controls.length_for(backend), exact)

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
        layers, poolings, length = documents.layers, documents.poolings, documents.max_length
        return self.backend.embed_options(layers, poolings, length, "float32", role="query")

    def pair_options(self) -> EmbedOptions:
        """How texts that are neither queries nor documents are embedded, at every layer and pooling."""
        backend = self.backend
        return backend.embed_options(backend.text_layers, backend.poolings, self.max_length, precision="float32")

    def key(self, corpus: Texts) -> tuple[str, str, bool]:
        """Names the session's choice of layers and poolings for a corpus."""
        return self.backend.spec.key, corpus.content_hash, self.exact


def index_of(request: EmbedRequest, corpus: Texts, where: str) -> VectorIndex | None:
    """The index of a corpus, if it is ready; else its progress or its costs are drawn. `where` keys the widgets."""
    chosen = st.session_state.setdefault("_index_choices", {}).get(request.key(corpus))
    if chosen is not None or len(corpus.texts) <= (EXACT_AT_ONCE if request.exact else AT_ONCE):
        options = request.document_options(*(chosen or ()))
    else:
        backend = request.backend
        options = request.document_options([backend.facts.layers], [backend.own_pooling])
        if caching.indexes().find(backend, corpus, options, request.dtype) is None:
            _costs(request, corpus, where)
            return None
    index = _requested(request.backend, corpus, options, request.dtype, where)
    if index is not None and len(corpus.texts) > AT_ONCE:
        _other_choice(request, corpus, where)
    return index


def queries_of(request: EmbedRequest, queries: Texts, documents: IndexInfo, where: str) -> VectorIndex | None:
    """The queries' own float32 index, at the documents' layers and poolings; else its progress is drawn."""
    options = request.query_options(documents.options)
    return _requested(request.backend, queries, options, "float32", f"{where}_queries")


def _requested(backend: Backend, texts: Texts, options: EmbedOptions, dtype: str, where: str) -> VectorIndex | None:
    indexes = caching.indexes()
    job = indexes.request(backend, texts, options, dtype, person=caching.person())
    is_ready = progress.ready(
        indexes.jobs,
        job,
        doing="embedding the corpus",
        stop_key=f"stop_{where}",
        again_key=f"go_on_{where}",
        unit="sentences",
        resumes=True,
    )
    return job.result if is_ready else None


def token_counts(backend: Backend, corpus: Texts, where: str, prompt: str = "") -> Int64 | None:
    """The number of tokens of every sentence, special tokens included, before truncation, int64 [sentence].

    With those of a `prompt` that the model puts before each. None while they are counted, with the progress drawn; `where`
    keys the widgets.
    """
    tokenization, texts = backend.tokenization, corpus.texts

    def count(report_progress: ReportProgress, is_cancelled: IsCancelled) -> Int64:
        lengths: list[int] = []
        for start in range(0, len(texts), COUNTED_TOGETHER):
            if is_cancelled():
                raise Cancelled
            lengths += tokenization.lengths([prompt + text for text in texts[start : start + COUNTED_TOGETHER]])
            report_progress(len(lengths), len(texts))
        return read_only(np.array(lengths, np.int64))

    key = ("token counts", corpus.content_hash, backend.spec.key, backend.revision, prompt)
    return progress.prepared(key, f"Counting the tokens of {len(texts):,} sentences", count, f"count_{where}")


def speed(backend: Backend, precision: Resolved, where: str) -> tuple[float, bool] | None:
    """Sentences per second, for sentences of about 20 tokens, measured on those of the demo; None until then.

    Also whether nothing else was at work. Else the speed is too low: it is measured again once nothing is under way.
    """
    queue = caching.queue()

    def measure(report_progress: ReportProgress, is_cancelled: IsCancelled) -> tuple[float, bool]:
        texts, options = demo_sentences()[:96], backend.embed_options(precision=precision)
        was_alone, best, begun = queue.works_on_one(), math.inf, time.perf_counter()
        for turn in range(1 + MOST_TURNS):
            progress_of_turn = part_of(report_progress, min(turn, 1) * len(texts), 2 * len(texts))
            started = time.perf_counter()
            backend.embed(texts, options=options, progress=progress_of_turn, is_cancelled=is_cancelled)
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
    return progress.prepared(key, f"Measuring the speed of {backend.spec.title}", measure, f"speed_{where}")


def _other_choice(request: EmbedRequest, corpus: Texts, where: str) -> None:
    """Another choice of layers and poolings, for corpora that are not embedded with all of them."""
    asking = st.session_state.setdefault("_index_asking", set())
    key = request.key(corpus)
    if key in asking:
        _costs(request, corpus, f"more_{where}")
        st.button("Cancel", key=f"enough_{where}", on_click=asking.discard, args=(key,))
    else:
        st.button(
            "Other layers or poolings", key=f"more_{where}", icon=":material/layers:", on_click=asking.add, args=(key,)
        )


def _choose(key: tuple[str, str, bool], layers: Sequence[int], poolings: Sequence[str]) -> None:
    """Ask for these layers and poolings of a model and corpus from now on."""
    st.session_state.setdefault("_index_choices", {})[key] = (tuple(layers), tuple(poolings))
    st.session_state.setdefault("_index_asking", set()).discard(key)


def _costs(request: EmbedRequest, corpus: Texts, where: str) -> None:
    """What embedding costs, before anything runs."""
    backend, count = request.backend, len(corpus.texts)
    with st.container(border=True):
        st.markdown(
            f"**{messages.escape(corpus.name)} has {count:,} sentences.** Choose which layers and poolings of "
            f"{messages.escape(backend.spec.title)} to embed. This is done once; the vectors are kept on disk."
        )
        all_layers, last = backend.text_layers, backend.facts.layers
        # A measurement compares layers and poolings: all of them where they fit, since the time is nearly the same.
        all_bytes = needed_bytes(count, backend.vector_size(backend.poolings), request.pair_options(), "float32")
        is_whole = request.exact and all_bytes <= FLOAT32_BYTES
        left, right = st.columns(2)
        layers = controls.checked(
            left.multiselect,
            "Layers",
            options=all_layers,
            default=list(all_layers) if is_whole else [last],
            key=f"layers_{where}",
            help=caching.glossary()["layer"],
        )
        poolings = controls.checked(
            right.multiselect,
            "Poolings",
            options=backend.poolings,
            default=list(backend.poolings) if is_whole else [backend.own_pooling],
            format_func=POOLING_NAMES.__getitem__,
            key=f"poolings_{where}",
            help=caching.glossary()["pooling"],
        )
        if not layers or not poolings:
            st.info("Choose at least one layer and one pooling.")
            return
        options = request.document_options(layers, poolings)
        dim = backend.vector_size(options.poolings)
        dtype = resolve_dtype(request.dtype, count, dim, options)
        lengths = token_counts(backend, corpus, f"costs_{where}", options.prompt)
        measured = None if lengths is None else speed(backend, options.precision, where)  # not beside each other
        if lengths is None or measured is None:
            return
        per_second, was_alone = measured
        facts = corpus_facts(corpus, lengths, options.max_length)
        costs = estimate(
            count,
            facts.mean_tokens,
            dim,
            len(layers),
            len(poolings),
            4 if dtype == "float32" else 2,
            per_second * min(2.0, TRIAL_TOKENS / facts.mean_tokens),
        )
        ranking = pair_runs.ranking_seconds(count, dim, len(layers) * len(poolings))
        st.markdown(
            f"About **{duration(costs.seconds)}** on this machine, **{in_words(costs.disk_bytes)}** on disk ({dtype}), "
            f"{in_words(backend.embedder.working_bytes(options))} of memory while it runs, and up to "
            f"{in_words(costs.memory_bytes)} to search. {facts.truncated:,} sentences are longer than "
            f"{options.max_length} tokens and will be truncated."
            + (f" Embedding the queries and ranking (about {duration(ranking)}) come on top." if request.exact else "")
            + ("" if was_alone else " The time was estimated beside other work, and will be again without it.")
        )
        st.button(
            "Embed the corpus",
            type="primary",
            key=f"embed_{where}",
            icon=":material/play_arrow:",
            on_click=_choose,
            args=(request.key(corpus), layers, poolings),  # no model: a widget keeps its arguments
        )
