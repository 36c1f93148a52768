"""The Search page's two views of a whole corpus at once: many queries, and the most similar pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pandas as pd
import streamlit as st

from components.errors import InputError
from components.model.trace import Pooling
from components.retrieval.corpora import corpus as reading
from components.retrieval.search.paraphrases import most_similar_pairs
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.jobs import embedding
from dashboard.ui import figures, messages, wording
from dashboard.views.search.results import READY_QUERIES, SIMILARITY_NAMES, TIE

if TYPE_CHECKING:
    from components.model.backend import Backend

MOST_QUERIES = 1_000


def queries(backend: Backend) -> None:
    """Many queries at once."""
    found = current.corpus()
    index = embedding.index_of(backend, found, "queries")
    st.session_state.setdefault("w_queries_text", st.session_state.get("_queries_text", "\n".join(READY_QUERIES)))
    st.text_area("Queries, one a line", key="w_queries_text", height=180)
    st.session_state["_queries_text"] = st.session_state["w_queries_text"]
    file = st.file_uploader("Or a file with a query a line", type=["txt"], key="queries_file")
    if file is not None:  # read like a corpus of lines: the encoding is found out in the same way
        lines = [text.strip() for text in reading.read_corpus(file.getvalue(), "queries.txt").texts]
    else:
        lines = [line.strip() for line in st.session_state["w_queries_text"].splitlines() if line.strip()]
    if len(lines) > MOST_QUERIES:
        raise InputError(
            f"There are {len(lines):,} queries.", f"At most {MOST_QUERIES:,} are run at once.", "Remove some."
        )
    if index is None or not lines:
        return
    layer, pooling = _place(index.info.options.layers, index.info.options.poolings)
    info = index.info
    key = (info.model, info.revision, info.options.layers, info.options.poolings, info.options.max_length)
    vectors = caching.many_query_vectors(key, tuple(lines), backend, info)[layer, pooling]
    hits = index.engine(layer, pooling).search(vectors, state.get("k"), state.get("similarity"))
    rows = [
        {
            "query": line,
            "rank": rank,
            "number": int(at),
            state.get("similarity"): round(float(score), 5),
            "text": found.texts[at],
        }
        for line, best, scores in zip(lines, hits.indices, hits.scores, strict=True)
        for rank, (at, score) in enumerate(zip(best, scores, strict=True), start=1)
    ]
    table = pd.DataFrame(rows)
    st.markdown("**The best hit of each query**")
    st.caption(_as_chosen(layer, pooling, similarity=True))
    st.dataframe(
        table[table["rank"] == 1].drop(columns=["rank", "number"]),
        hide_index=True,
        key="queries_table",
        column_config={state.get("similarity"): st.column_config.NumberColumn(width="small", format="%.3f")},
    )
    st.caption(f"All {state.get('k')} hits of each are under “Data of this figure”.")
    figures.data("queries", lambda: table)


def _as_chosen(layer: int, pooling: Pooling, similarity: bool) -> str:
    by = f", {SIMILARITY_NAMES[state.get('similarity')].lower()}, k = {state.get('k')}" if similarity else ", cosine"
    return f"Layer {layer}, pooling {wording.POOLING_NAMES[pooling]}{by}: change them under “Hits”."


def _place(layers: tuple[int, ...], poolings: tuple[Pooling, ...]) -> tuple[int, Pooling]:
    """The layer and pooling of the results view, where the index has them."""
    layer, pooling = state.get("layer"), state.get("pooling")
    return (
        int(layer) if layer in layers else layers[-1],
        cast(Pooling, pooling if pooling in poolings else poolings[0]),
    )


def pairs(backend: Backend) -> None:
    """The most similar pairs of the corpus."""
    found = current.corpus()
    index = embedding.index_of(backend, found, "pairs")
    if index is None:
        return
    if len(found) < 2:
        st.info("One sentence has no other to be compared with.")
        return
    layer, pooling = _place(index.info.options.layers, index.info.options.poolings)
    possible = len(found) * (len(found) - 1) // 2
    count = (
        possible
        if possible <= 10
        else st.slider("Pairs", 10, min(1_000, possible), min(100, possible), key="pair_count")
    )
    st.caption(_as_chosen(layer, pooling, similarity=False))
    key = (index.folder.name, layer, pooling, count)
    kept = caching.similar_pairs().find(str(key))
    if kept is None:
        blocks = -(-len(found) // 2048)
        if len(found) > 5_000 and not st.button(
            f"Compare all {len(found) * (len(found) - 1) // 2:,} pairs", key="find_pairs", type="primary"
        ):
            return
        bar = st.progress(0.0, text=f"Comparing {blocks * (blocks + 1) // 2} blocks. Any click elsewhere stops it.")
        engine = index.engine(layer, pooling)
        kept = most_similar_pairs(
            engine.vectors,
            engine.norms,
            count,
            found.texts,
            progress=lambda done, total: cast(
                None, bar.progress(done / total, text=f"Compared {done} of {total} blocks")
            ),
        )
        bar.empty()
        caching.similar_pairs().put(str(key), kept)
    table = pd.DataFrame(
        [
            {
                "cosine": f"{pair.cosine:.4f}",
                "numbers": f"{pair.first} – {pair.second}",
                "first": found.texts[pair.first],
                "second": found.texts[pair.second],
            }
            for pair in kept
        ]
    )
    if len(kept) > 1 and kept[0].cosine - kept[-1].cosine < TIE:
        st.warning("All of these pairs have the same cosine: which of them are shown, and their order, mean nothing.")
    with st.container(height=640 if len(table) > 10 else "content", key="pairs_box"):
        # A plain table: its sentences are whole, on several lines. It reads Markdown, which no sentence may be.
        st.table(
            table.assign(**{name: table[name].map(messages.escape) for name in ("first", "second")}), hide_index=True
        )
    figures.reading(
        f"Pairs of sentences by the cosine of their vectors (layer {layer}, {wording.POOLING_NAMES[pooling]}), "
        "the closest first. Sentences that are letter by letter the same are left out.",
        "Whether two sentences mean the same: names, length and topic bring vectors together too.",
    )
    figures.data("pairs", lambda: table)
