"""What a person chooses before long work begins, with what it costs: the layers of a large corpus, the start of SPLADE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.retrieval.corpora.facts import corpus_facts, estimate
from components.retrieval.evaluation import pair_runs
from components.retrieval.index.build import needed_bytes
from components.retrieval.index.folder import FLOAT32_BYTES, resolve_dtype
from components.sizes import in_words
from dashboard import caching
from dashboard.jobs import embedding, splade
from dashboard.jobs.requests import NotReady
from dashboard.ui import controls, messages
from dashboard.ui.waiting import progress
from dashboard.ui.wording import POOLING_NAMES, duration

if TYPE_CHECKING:
    from components.retrieval.corpora.texts import Texts
    from dashboard.jobs.embedding import EmbedRequest
    from dashboard.jobs.splade import NeedsStart

_ASKING = "_index_asking"  # session key: the corpora for which a person wants to choose other layers or poolings


def other_layers(request: EmbedRequest, corpus: Texts, where: str) -> None:
    """Another choice of layers and poolings, for corpora that are not embedded with all of them; nothing for others.

    `where` is that of `embedding.index_of`, which has given the index.
    """
    if len(corpus.texts) <= embedding.AT_ONCE:
        return
    asking = st.session_state.setdefault(_ASKING, set())
    key = request.key(corpus)
    if key in asking:
        layers(request, corpus, f"more_{where}")
        st.button("Keep these", key=f"enough_{where}", on_click=asking.discard, args=(key,))
    else:
        st.button(
            "Other layers or poolings", key=f"more_{where}", icon=":material/layers:", on_click=asking.add, args=(key,)
        )


def _choose(key: tuple[str, str, bool], layers: Sequence[int], poolings: Sequence[str]) -> None:
    embedding.choose(key, layers, poolings)
    st.session_state.setdefault(_ASKING, set()).discard(key)


def layers(request: EmbedRequest, corpus: Texts, where: str) -> None:
    """The choice of layers and poolings, and what embedding with them costs, before anything runs."""
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
        chosen_layers = controls.checked(
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
        if not chosen_layers or not poolings:
            st.info("Choose at least one layer and one pooling.")
            return
        options = request.document_options(chosen_layers, poolings)
        dim = backend.vector_size(options.poolings)
        dtype = resolve_dtype(request.dtype, count, dim, options)
        try:
            lengths = embedding.token_counts(backend, corpus, f"costs_{where}", options.prompt)
            # Not beside each other: the counting would lengthen the time.
            per_second, was_alone = embedding.speed(backend, options.precision, where)
        except NotReady as problem:
            if problem.awaited is not None:
                progress.draw(problem.awaited)
            return
        facts = corpus_facts(corpus, lengths, options.max_length)
        costs = estimate(
            count,
            facts.mean_tokens,
            dim,
            len(chosen_layers),
            len(poolings),
            4 if dtype == "float32" else 2,
            per_second * min(2.0, embedding.TRIAL_TOKENS / facts.mean_tokens),
        )
        ranking = pair_runs.ranking_seconds(count, dim, len(chosen_layers) * len(poolings))
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
            args=(request.key(corpus), chosen_layers, poolings),  # no model: a widget keeps its arguments
        )


def start_of_splade(missing: NeedsStart) -> None:
    """The button that begins to compute SPLADE's weights of a large corpus; once in a view."""
    if progress.is_said(missing.key, "SPLADE's weights"):
        return
    st.button(
        f"Compute SPLADE's weights of {missing.sentences:,} sentences",
        key=f"splade_{missing.where}",
        type="primary",
        on_click=splade.begin,
        args=(missing.key,),
        help="Each sentence goes through the model and its masked-LM head. The weights stay in memory, not on disk: "
        "stopped, it begins again.",
    )
