"""The Search page's two views of a whole corpus: many queries at once, and the most similar pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.errors import InputError
from components.retrieval.corpora import corpus as reading
from components.retrieval.search.paraphrases import most_similar_pairs
from dashboard import caching
from dashboard.ui import figures, messages, wording
from dashboard.views.search.results import READY_QUERIES, SIMILARITY_NAMES, TIE

if TYPE_CHECKING:
    from components.model.trace import Pooling
    from dashboard.views.search.request import SearchRequest

MOST_QUERIES = 1_000


def queries(request: SearchRequest) -> None:
    """The hits of many queries at once."""
    corpus, similarity = request.corpus, request.similarity
    index = request.index("queries")
    st.session_state.setdefault("w_queries_text", st.session_state.get("_queries_text", "\n".join(READY_QUERIES)))
    st.text_area("Queries, one per line", key="w_queries_text", height=180)
    st.session_state["_queries_text"] = st.session_state["w_queries_text"]
    file = st.file_uploader("Or a file with one query per line", type=["txt"], key="queries_file")
    if file is not None:  # read like a corpus of lines, so that its encoding is detected in the same way
        lines = [text.strip() for text in reading.read_corpus(file.getvalue(), "queries.txt").texts]
    else:
        lines = [line.strip() for line in st.session_state["w_queries_text"].splitlines() if line.strip()]
    if len(lines) > MOST_QUERIES:
        raise InputError(
            f"There are {len(lines):,} queries.", f"At most {MOST_QUERIES:,} were expected.", "Remove some of them."
        )
    if index is None or not lines:
        return
    layer, pooling = request.cell(index)
    vectors = caching.query_vectors(request.backend, tuple(lines), index.info)[layer, pooling]
    hits = index.engine(layer, pooling).search(vectors, request.k, similarity)
    rows = [
        {
            "query": line,
            "rank": rank,
            "number": int(row),
            similarity: round(float(score), 9),
            "text": corpus.texts[row],
            "tied with the last hit": int(tied),
        }
        for line, best, scores, tied in zip(lines, hits.indices, hits.scores, hits.tied, strict=True)
        for rank, (row, score) in enumerate(zip(best, scores, strict=True), start=1)
    ]
    table = pd.DataFrame(rows)
    st.markdown("**The best hit of each query**")
    unshown = int(np.count_nonzero(hits.tied > hits.tied_shown))
    if unshown:
        st.warning(
            f"For {unshown:,} of {len(lines):,} queries, more sentences have the same score as the last hit than are shown. "
            "They are in the order of the corpus: which of them are shown, and in which order, means nothing."
        )
    st.caption(_settings(layer, pooling, f"{SIMILARITY_NAMES[similarity].lower()}, k = {request.k}"))
    st.dataframe(
        table[table["rank"] == 1].drop(columns=["rank", "number", "tied with the last hit"]),
        hide_index=True,
        key="queries_table",
        column_config={similarity: st.column_config.NumberColumn(width="small", format="%.3f")},
    )
    st.caption(f"All {request.k} hits of each query are under “Data of this figure”.")
    figures.data("queries", lambda: table)


def _settings(layer: int, pooling: Pooling, rest: str) -> str:
    return f"Layer {layer}, pooling {wording.POOLING_NAMES[pooling]}, {rest}. Change these settings under “Hits”."


def pairs(request: SearchRequest) -> None:
    """The most similar pairs of the corpus."""
    corpus = request.corpus
    index = request.index("pairs")
    if index is None:
        return
    if len(corpus) < 2:
        st.info("The corpus has one sentence: there is no pair to compare.")
        return
    layer, pooling = request.cell(index)
    possible = len(corpus) * (len(corpus) - 1) // 2
    most = min(1_000, possible)
    count = most if most <= 10 else st.slider("Pairs", 10, most, min(100, most), key="pair_count")
    st.caption(_settings(layer, pooling, "cosine"))
    key = (index.folder.name, layer, pooling, count)
    similar = caching.similar_pairs().find(key)
    if similar is None:
        blocks = -(-len(corpus) // 2048)
        if len(corpus) > 5_000 and not st.button(f"Compare all {possible:,} pairs", key="find_pairs", type="primary"):
            return
        bar = st.progress(0.0, text=f"Comparing {blocks * (blocks + 1) // 2} blocks. Any click elsewhere stops this.")

        def report_progress(done: int, total: int) -> None:
            bar.progress(done / total, text=f"Compared {done} of {total} blocks")

        vectors = index.engine(layer, pooling).vectors
        similar = most_similar_pairs(vectors, count, corpus.texts, progress=report_progress)
        bar.empty()
        caching.similar_pairs().put(key, similar)
    table = pd.DataFrame(
        [
            {
                "cosine": f"{pair.cosine:.4f}",
                "numbers": f"{pair.first} – {pair.second}",
                "first": corpus.texts[pair.first],
                "second": corpus.texts[pair.second],
            }
            for pair in similar
        ]
    )
    if len(similar) > 1 and similar[0].cosine - similar[-1].cosine < TIE:
        st.warning("All of these pairs have the same cosine: the choice of these pairs and their order mean nothing.")
    with st.container(height=640 if len(table) > 10 else "content", key="pairs_box"):
        # A plain table shows long sentences on several lines. It renders Markdown, which has to be escaped.
        st.table(
            table.assign(**{name: table[name].map(messages.escape) for name in ("first", "second")}), hide_index=True
        )
    figures.reading(
        f"Pairs of sentences by the cosine of their vectors (layer {layer}, {wording.POOLING_NAMES[pooling]}), "
        "the highest first. Identical sentences are left out.",
        "Whether two sentences mean the same: shared names, a similar length and the same topic also raise the cosine.",
    )
    figures.data("pairs", lambda: table)
