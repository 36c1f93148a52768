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
from dashboard.ui import controls, messages

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.model.embedding.embedder import Precision
    from components.retrieval.index.build import HasTexts
    from components.retrieval.index.cache import IndexJob
    from components.retrieval.index.folder import IndexInfo, VectorIndex

from dashboard.ui.wording import POOLING_NAMES, duration, size

AT_ONCE = 2_000  # sentences that are embedded without asking, at every layer and pooling
EXACT_AT_ONCE = 3_000  # on a page that is there to measure
TRIAL_TOKENS = 18  # of the sentences that the speed was measured on, on average


def index_of(backend: Backend, corpus: HasTexts, where: str, exact: bool = False) -> VectorIndex | None:
    """The index of a corpus by a model, if it is there; else its progress or its costs are drawn. `where` keys them.

    `exact` is for measurements: computed and stored in float32, whatever is faster.
    """
    shelf = caching.index_shelf()
    dtype = "float32" if exact else "auto"
    wanted = _wanted(backend, corpus, exact)
    if wanted is None:
        default = backend.embed_options(
            max_length=controls.length_for(backend), precision=_precision(exact), role="document"
        )
        job = shelf.find(backend, corpus, default, dtype)
        if job is None:
            _costs(backend, corpus, where, exact)
            return None
        wanted = default
    index = _had(shelf.request(backend, corpus, wanted, dtype), where)
    if index is not None and len(corpus.texts) > AT_ONCE:
        _other_choice(backend, corpus, where, exact)
    return index


def queries_of(backend: Backend, queries: HasTexts, documents: IndexInfo, where: str) -> VectorIndex | None:
    """The queries' own float32 index, at the layers and poolings of the documents'; else its progress is drawn."""
    have = documents.options
    options = backend.embed_options(have.layers, have.poolings, have.max_length, "float32", role="query")
    return _had(caching.index_shelf().request(backend, queries, options, "float32"), f"{where}_queries")


def _had(job: IndexJob, where: str) -> VectorIndex | None:
    job.finished.wait(0.5)
    if job.index is not None:
        return job.index
    if job.finished.is_set():
        _failed(job, where)
    else:
        _progress(job, where)
    return None


def _other_choice(backend: Backend, corpus: HasTexts, where: str, exact: bool) -> None:
    """A way back to the choice of layers and poolings, for corpora that are not embedded with all of them."""
    asking = st.session_state.setdefault("_index_asking", set())
    key = _key(backend, corpus, exact)
    if key in asking:
        _costs(backend, corpus, f"more_{where}", exact)
        st.button("Leave it as it is", key=f"enough_{where}", on_click=asking.discard, args=(key,))
    else:
        st.button(
            "Other layers or poolings", key=f"more_{where}", icon=":material/layers:", on_click=asking.add, args=(key,)
        )


def _key(backend: Backend, corpus: HasTexts, exact: bool) -> tuple[str, str, bool]:
    return backend.spec.key, corpus.content_hash, exact


def _precision(exact: bool) -> Precision:
    return "float32" if exact else "auto"


def _wanted(backend: Backend, corpus: HasTexts, exact: bool) -> EmbedOptions | None:
    """Layers and poolings that were chosen, or all for a small corpus; None where nobody has chosen yet."""
    chosen = st.session_state.setdefault("_index_choices", {}).get(_key(backend, corpus, exact))
    if chosen is not None:
        return backend.embed_options(
            chosen[0], chosen[1], max_length=controls.length_for(backend), precision=_precision(exact), role="document"
        )
    if len(corpus.texts) <= (EXACT_AT_ONCE if exact else AT_ONCE):
        every = range(backend.facts.layers + 1)
        return backend.embed_options(
            every,
            backend.poolings,
            max_length=controls.length_for(backend),
            precision=_precision(exact),
            role="document",
        )
    return None


def choose(key: tuple[str, str, bool], layers: Sequence[int], poolings: Sequence[str]) -> None:
    """Ask for these layers and poolings of a model and corpus from now on."""
    st.session_state.setdefault("_index_choices", {})[key] = (tuple(layers), tuple(poolings))
    st.session_state.setdefault("_index_asking", set()).discard(key)


def _costs(backend: Backend, corpus: HasTexts, where: str, exact: bool) -> None:
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
        options = backend.embed_options(
            layers, poolings, max_length=controls.length_for(backend), precision=_precision(exact), role="document"
        )
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


def _progress(job: IndexJob, where: str) -> None:
    """The bar, drawn again twice a second; the rest of the page stays as it is."""

    @st.fragment(run_every=0.5)
    def bar() -> None:
        if job.finished.is_set():
            st.rerun()
        left = job.seconds_left
        text = f"Embedding {messages.escape(job.corpus)}: {job.done:,} of {job.total:,} sentences"
        if left is not None:
            text += f" · {job.sentences_per_second:,.0f} a second · {duration(left)} left"
        st.progress(min(1.0, job.done / max(1, job.total)), text=text)
        st.button("Stop", key=f"stop_{where}", icon=":material/stop:", on_click=job.cancel.set)

    bar()
    st.caption("You can look at other pages meanwhile. What is done is kept, also if you stop.")


def _failed(job: IndexJob, where: str) -> None:
    if job.cancelled:
        st.info(f"Stopped after {job.done:,} of {job.total:,} sentences. What was done is kept.")
    else:
        messages.explain(job.error or RuntimeError("no error given"), "embedding the corpus")
    st.button(
        "Go on",
        key=f"go_on_{where}",
        type="primary",
        icon=":material/play_arrow:",
        on_click=caching.index_shelf().forget,
        args=(job,),
    )
