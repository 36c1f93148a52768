"""From a corpus to its index: at once where it is small or known, else after a look at the costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.model.embedding.embedder import EmbedOptions, working_bytes
from components.retrieval.corpora.facts import corpus_facts, estimate
from components.retrieval.evaluation import pair_runs
from components.retrieval.index.build import needed_bytes
from components.retrieval.index.folder import FLOAT32_BYTES, resolve_dtype
from dashboard import caching
from dashboard.jobs import progress
from dashboard.ui import controls, messages
from dashboard.ui.wording import POOLING_NAMES, duration, size

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.index.folder import IndexInfo, VectorIndex

AT_ONCE = 2_000  # sentences that are embedded without asking, at every layer and pooling
EXACT_AT_ONCE = 3_000  # on a page that is there to measure
TRIAL_TOKENS = 18  # of the sentences that the speed was measured on, on average


def index_of(backend: Backend, corpus: Texts, where: str, exact: bool = False) -> VectorIndex | None:
    """The index of a corpus by a model, if it is there; else its progress or its costs are drawn. `where` keys them.

    `exact` is for measurements: computed and stored in float32, whatever is faster.
    """
    dtype = "float32" if exact else "auto"
    wanted = _wanted(backend, corpus, exact)
    if wanted is None:
        wanted = document_options(
            backend, [backend.facts.layers], [backend.own_pooling], controls.length_for(backend), exact
        )
        if caching.indexes().find(backend, corpus, wanted, dtype) is None:
            _costs(backend, corpus, where, exact)
            return None
    index = _requested(backend, corpus, wanted, dtype, where)
    if index is not None and len(corpus.texts) > AT_ONCE:
        _other_choice(backend, corpus, where, exact)
    return index


def queries_of(backend: Backend, queries: Texts, documents: IndexInfo, where: str) -> VectorIndex | None:
    """The queries' own float32 index, at the layers and poolings of the documents'; else its progress is drawn."""
    return _requested(backend, queries, query_options(backend, documents.options), "float32", f"{where}_queries")


def document_options(
    backend: Backend,
    layers: Sequence[int] | None = None,
    poolings: Sequence[str] | None = None,
    max_length: int | None = None,
    exact: bool = False,
) -> EmbedOptions:
    """How a corpus is embedded: every layer and every pooling of the model where none is named."""
    return backend.embed_options(
        range(backend.facts.layers + 1) if layers is None else layers,
        backend.poolings if poolings is None else poolings,
        max_length,
        "float32" if exact else "auto",
        role="document",
    )


def query_options(backend: Backend, documents: EmbedOptions) -> EmbedOptions:
    """How queries are embedded that are ranked against these documents."""
    return backend.embed_options(documents.layers, documents.poolings, documents.max_length, "float32", role="query")


def _requested(backend: Backend, texts: Texts, wanted: EmbedOptions, dtype: str, where: str) -> VectorIndex | None:
    indexes = caching.indexes()
    job = indexes.request(backend, texts, wanted, dtype, person=caching.person())
    is_there = progress.ready(
        indexes.jobs,
        job,
        doing="embedding the corpus",
        stop_key=f"stop_{where}",
        again_key=f"go_on_{where}",
        unit="sentences",
        resumes=True,
    )
    return job.result if is_there else None


def _other_choice(backend: Backend, corpus: Texts, where: str, exact: bool) -> None:
    """A way back to the choice of layers and poolings, for corpora that are not embedded with all of them."""
    asking = st.session_state.setdefault("_index_asking", set())
    key = _key(backend, corpus, exact)
    if key in asking:
        _costs(backend, corpus, f"more_{where}", exact)
        st.button("Cancel", key=f"enough_{where}", on_click=asking.discard, args=(key,))
    else:
        st.button(
            "Other layers or poolings", key=f"more_{where}", icon=":material/layers:", on_click=asking.add, args=(key,)
        )


def _key(backend: Backend, corpus: Texts, exact: bool) -> tuple[str, str, bool]:
    return backend.spec.key, corpus.content_hash, exact


def _wanted(backend: Backend, corpus: Texts, exact: bool) -> EmbedOptions | None:
    """Layers and poolings that were chosen, or all for a small corpus; None where nobody has chosen yet."""
    chosen = st.session_state.setdefault("_index_choices", {}).get(_key(backend, corpus, exact))
    if chosen is None and len(corpus.texts) > (EXACT_AT_ONCE if exact else AT_ONCE):
        return None
    layers, poolings = (None, None) if chosen is None else chosen
    return document_options(backend, layers, poolings, controls.length_for(backend), exact)


def choose(key: tuple[str, str, bool], layers: Sequence[int], poolings: Sequence[str]) -> None:
    """Ask for these layers and poolings of a model and corpus from now on."""
    st.session_state.setdefault("_index_choices", {})[key] = (tuple(layers), tuple(poolings))
    st.session_state.setdefault("_index_asking", set()).discard(key)


def _costs(backend: Backend, corpus: Texts, where: str, exact: bool) -> None:
    """What embedding takes, before anything runs."""
    with st.container(border=True):
        st.markdown(
            f"**{messages.escape(corpus.name)} has {len(corpus.texts):,} sentences.** Choose which layers and poolings of "
            f"{messages.escape(backend.spec.title)} to embed; it is done once and kept on disk."
        )
        last = backend.facts.layers
        every = backend.embed_options(range(last + 1), backend.poolings, precision="float32")
        # Measuring is for comparing: all of them where there is room, since the time is nearly the same.
        whole = (
            exact
            and needed_bytes(len(corpus.texts), backend.vector_size(every.poolings), every, "float32") <= FLOAT32_BYTES
        )
        left, right = st.columns(2)
        layers = left.multiselect(
            "Layers",
            range(last + 1),
            default=list(range(last + 1)) if whole else [last],
            key=f"layers_{where}",
            help=caching.glossary()["layer"],
        )
        poolings = right.multiselect(
            "Poolings",
            list(backend.poolings),
            default=list(backend.poolings) if whole else [backend.own_pooling],
            format_func=POOLING_NAMES.__getitem__,
            key=f"poolings_{where}",
            help=caching.glossary()["pooling"],
        )
        if not layers or not poolings:
            st.info("Choose at least one layer and one pooling.")
            return
        options = document_options(backend, layers, poolings, controls.length_for(backend), exact)
        dim = backend.vector_size(options.poolings)
        dtype = resolve_dtype("float32" if exact else "auto", len(corpus.texts), dim, options)
        speed = caching.embedding_speed(
            backend.spec.key, backend.revision, str(backend.device), options.precision, backend
        )
        lengths = caching.corpus_lengths(corpus.content_hash, backend.spec.key, backend.revision, corpus, backend)
        facts = corpus_facts(corpus, lengths, options.max_length)
        costs = estimate(
            len(corpus.texts),
            facts.mean_tokens,
            dim,
            len(layers),
            len(poolings),
            4 if dtype == "float32" else 2,
            speed * min(2.0, TRIAL_TOKENS / facts.mean_tokens),
        )
        ranking = pair_runs.ranking_seconds(len(corpus.texts), dim, len(layers) * len(poolings))
        st.markdown(
            f"About **{duration(costs.seconds)}** on this machine, **{size(costs.disk_bytes)}** on disk ({dtype}), "
            f"{working_bytes(backend.loaded, options) / 1e6:,.0f} MB of memory while it runs, and up to "
            f"{costs.memory_bytes / 1e6:,.0f} MB to search. {facts.truncated:,} sentences are longer than "
            f"{options.max_length} tokens and will be truncated."
            + (f" The queries come on top, and ranking takes about {duration(ranking)} more." if exact else "")
        )
        st.button(
            "Embed the corpus",
            type="primary",
            key=f"embed_{where}",
            icon=":material/play_arrow:",
            on_click=choose,
            args=(_key(backend, corpus, exact), layers, poolings),  # no model: a widget keeps its arguments
        )
