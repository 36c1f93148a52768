"""Which hits a person marked as relevant, and the precision of the rankings on screen that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.numbers import number
from components.retrieval.search.relevance import Judgements
from components.shown_code.search import judged_precision
from dashboard import caching
from dashboard.corpora import marks
from dashboard.ui import figures
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.rankings.ranking import Ranking
    from components.retrieval.search.relevance import Judgements
    from dashboard.views.search.request import SearchRequest


def precision(rankings: Sequence[Ranking], request: SearchRequest) -> None:
    """P@5 and P@10 of every judged query. `rankings` are those on screen."""
    corpus, query = request.corpus, request.query
    judged = marks.judgements(corpus)
    if query in judged.marks:
        marks.keep_rankings(
            corpus, query, tuple((ranking.name, tuple(map(int, ranking.first_ten))) for ranking in rankings)
        )
    kept = marks.rankings(corpus)
    rows, shown_hits = [], []
    for judged_query in judged.marks:
        for title, hits in kept.get(judged_query, ()):
            shown_hits.append((judged_query, title, hits))
            five, ten = (judged.precision(judged_query, hits, k) for k in (5, 10))
            row = {"query": judged_query, "ranking": title, "P@5": five.value, "P@10": ten.value}
            rows.append(row | {"not judged of 10": ten.unjudged})
    without = len(judged.marks) - len({row["query"] for row in rows})
    not_counted = f"Not counted: {counted(without, 'query', 'queries')} with marks, whose hits were not on screen."
    if not rows:
        st.caption(
            not_counted if without else "Mark hits with ✓ and ✗: the precision of your queries then appears here."
        )
        return
    table = pd.DataFrame(rows)
    with st.container(border=True):
        count = table["query"].nunique()
        figures.note(f"**Precision of {count} judged {'query' if count == 1 else 'queries'}**")
        means = table.groupby("ranking", sort=False).agg({"query": "size", "P@5": "mean", "P@10": "mean"})
        shown = means.reset_index().rename(columns={"query": "queries"})
        figures.plain_table(
            shown.assign(**{name: [number(value, 2) for value in shown[name]] for name in ("P@5", "P@10")})
        )
        st.caption(
            f"{caching.glossary()['precision at k']} "
            "The rankings are those that were last on screen with each query. "
            "Judge the first ten hits of both lists before you compare them." + (f" {not_counted}" if without else "")
        )
        code = judged_precision(judged.marks, shown_hits, (5, 10))
        figures.data("precision", lambda: _marks_table(judged, corpus, table), code, "Precision of the judged queries")


def _marks_table(judged: Judgements, corpus: Corpus, table: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {"query": query, "number": row, "relevant": relevant, "text": corpus.texts[row]}
        for query, own in judged.marks.items()
        for row, relevant in sorted(own.items())
    ]
    return pd.DataFrame(rows).merge(table, on="query", how="left")
