"""Which hits a person took for relevant, and what precision follows for the rankings on screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.retrieval.search.relevance import Judgements
from dashboard import caching
from dashboard.ui import figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from components.retrieval.corpora.corpus import Corpus
    from dashboard.views.search.request import SearchRequest


def judgements(corpus: Corpus) -> Judgements:
    """What the session's person said of this corpus's sentences."""
    return st.session_state.get("_judgements", {}).get(corpus.content_hash) or Judgements()


def mark(corpus_hash: str, query: str, index: int, relevant: bool | None) -> None:
    kept = st.session_state.setdefault("_judgements", {})
    kept[corpus_hash] = kept.get(corpus_hash, Judgements()).mark(query, index, relevant)


def precision(rankings: Sequence[tuple[str, np.ndarray]], request: SearchRequest) -> None:
    """P@5 and P@10 of every judged query, of each ranking on screen: its title and its first ten hits."""
    corpus, query = request.corpus, request.query
    judged_so_far = judgements(corpus)
    kept = st.session_state.setdefault("_judged_rankings", {}).setdefault(corpus.content_hash, {})
    if query in judged_so_far.marks:
        kept[query] = tuple((title, tuple(map(int, hits))) for title, hits in rankings)
    rows = [
        {"query": asked, "ranking": title, "P@5": five.value, "P@10": ten.value, "not judged of 10": ten.unjudged}
        for asked in judged_so_far.marks
        for title, best in kept.get(asked, ())
        for five, ten in [tuple(judged_so_far.precision(asked, best, k) for k in (5, 10))]
    ]
    if not rows:
        st.caption("Mark hits with ✓ and ✗: precision of your queries is counted here.")
        return
    table = pd.DataFrame(rows)
    with st.container(border=True):
        judged = table["query"].nunique()
        st.markdown(f"**Precision of {judged} judged {'query' if judged == 1 else 'queries'}**")
        means = table.groupby("ranking", sort=False).agg({"query": "size", "P@5": "mean", "P@10": "mean"})
        shown = means.reset_index().rename(columns={"query": "queries"})
        st.table(shown.assign(**{name: shown[name].map("{:.2f}".format) for name in ("P@5", "P@10")}), hide_index=True)
        st.caption(
            f"{caching.glossary()['precision at k']} "
            "Of the rankings that were on screen with each query last: "
            "judge the first ten of both lists before you compare them."
        )
        figures.data("precision", lambda: _judged(judged_so_far, corpus, table))


def _judged(judged_so_far: Judgements, corpus: Corpus, table: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {"query": query, "number": row, "relevant": relevant, "text": corpus.texts[row]}
        for query, marks in judged_so_far.marks.items()
        for row, relevant in sorted(marks.items())
    ]
    return pd.DataFrame(rows).merge(table, on="query", how="left")
