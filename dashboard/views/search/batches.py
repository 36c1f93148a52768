"""The Search page's two views of a whole corpus at once: many queries, and the most similar pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pandas as pd
import streamlit as st

from components.errors import InputError
from components.retrieval.corpora import corpus as reading
from components.retrieval.search.paraphrases import most_similar_pairs
from dashboard import caching
from dashboard.jobs import embedding
from dashboard.ui import figures, messages, wording
from dashboard.views.search.request import vectors_key
from dashboard.views.search.results import READY_QUERIES, SIMILARITY_NAMES, TIE

if TYPE_CHECKING:
    from components.model.trace import Pooling
    from dashboard.views.search.request import SearchRequest

MOST_QUERIES = 1_000


def queries(request: SearchRequest) -> None:
    """Many queries at once."""
    corpus, similarity = request.corpus, request.similarity
    index = embedding.index_of(request.backend, corpus, "queries")
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
    layer, pooling = request.cell(index)
    key = vectors_key(index.info)
    vectors = caching.many_query_vectors(key, tuple(lines), request.backend, index.info)[layer, pooling]
    hits = index.engine(layer, pooling).search(vectors, request.k, similarity)
    rows = [
        {
            "query": line,
            "rank": rank,
            "number": int(row),
            similarity: round(float(score), 5),
            "text": corpus.texts[row],
        }
        for line, best, scores in zip(lines, hits.indices, hits.scores, strict=True)
        for rank, (row, score) in enumerate(zip(best, scores, strict=True), start=1)
    ]
    table = pd.DataFrame(rows)
    st.markdown("**The best hit of each query**")
    st.caption(_as_chosen(layer, pooling, f"{SIMILARITY_NAMES[similarity].lower()}, k = {request.k}"))
    st.dataframe(
        table[table["rank"] == 1].drop(columns=["rank", "number"]),
        hide_index=True,
        key="queries_table",
        column_config={similarity: st.column_config.NumberColumn(width="small", format="%.3f")},
    )
    st.caption(f"All {request.k} hits of each are under “Data of this figure”.")
    figures.data("queries", lambda: table)


def _as_chosen(layer: int, pooling: Pooling, rest: str) -> str:
    return f"Layer {layer}, pooling {wording.POOLING_NAMES[pooling]}, {rest}: change them under “Hits”."


def pairs(request: SearchRequest) -> None:
    """The most similar pairs of the corpus."""
    corpus = request.corpus
    index = embedding.index_of(request.backend, corpus, "pairs")
    if index is None:
        return
    if len(corpus) < 2:
        st.info("One sentence has no other to be compared with.")
        return
    layer, pooling = request.cell(index)
    possible = len(corpus) * (len(corpus) - 1) // 2
    count = (
        possible
        if possible <= 10
        else st.slider("Pairs", 10, min(1_000, possible), min(100, possible), key="pair_count")
    )
    st.caption(_as_chosen(layer, pooling, "cosine"))
    key = (index.folder.name, layer, pooling, count)
    kept = caching.similar_pairs().find(str(key))
    if kept is None:
        blocks = -(-len(corpus) // 2048)
        if len(corpus) > 5_000 and not st.button(f"Compare all {possible:,} pairs", key="find_pairs", type="primary"):
            return
        bar = st.progress(0.0, text=f"Comparing {blocks * (blocks + 1) // 2} blocks. Any click elsewhere stops it.")
        engine = index.engine(layer, pooling)
        kept = most_similar_pairs(
            engine.vectors,
            count,
            corpus.texts,
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
                "first": corpus.texts[pair.first],
                "second": corpus.texts[pair.second],
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
