"""The failed queries of a corpus by cause: the share of each cause, its rule, and the queries, each of which can be opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.retrieval.failures.causes import CAUSES
from dashboard import state
from dashboard.jobs import failures
from dashboard.ui import controls, figures
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from components.retrieval.failures.causes import Causes
    from components.retrieval.failures.failed_queries import Failures, Placing
    from dashboard.jobs.failures import Searched

MOST_ROWS = 2_000


def failed_queries(searched: Searched, found: Failures, order: str) -> None:
    """Draw the causes of all failed queries, and the queries of a chosen cause."""
    st.subheader("All failed queries, by cause", anchor=False)
    hubs = failures.occurrences(searched, "hubness_of_all")
    both = None if hubs is None else failures.causes_of(searched, found, hubs)
    if both is None:
        return
    causes, of_others = both
    counts = {name: int(causes.of(name).sum()) for name in causes.names}
    st.markdown(
        f":material/insights: {counted(len(found), 'query', 'queries')} of {found.queries:,} "
        f"({100 * len(found) / found.queries:.1f} %) {'fails' if len(found) == 1 else 'fail'}. A query can have several "
        "causes, so that the shares sum to more than 100 %."
    )
    frame = pd.DataFrame(
        [
            {
                "cause": name,
                "queries": counts[name],
                "share of the failures": f"{100 * counts[name] / len(found):.0f} %",
                "of the other queries": f"{100 * float(of_others.of(name).mean()):.0f} %" if found.successes else "–",
                "rule": CAUSES[name],
            }
            for name in causes.names
        ]
    )
    figures.plain_table(frame)
    st.caption(
        f"Of the {found.queries - len(found):,} queries that do not fail, {len(found.successes):,} are compared here. Their "
        "rival is the text after the right one."
    )
    figures.data("failure_causes", lambda: frame)
    names = {"all": f"All ({len(found):,})"} | {
        name.replace(" ", "-"): f"{name[0].upper()}{name[1:]} ({count:,})" for name, count in counts.items()
    }
    chosen = controls.choice("failure_cause", "Cause", names, show_label=False).replace("-", " ")
    kept = np.ones(len(found), bool) if chosen == "all" else causes.of(chosen)
    if not kept.any():
        st.info("No failed query has this cause.")
        return
    numbers = {item.row: number for number, item in enumerate(found.placings)}
    listed = [item for item in found.in_order(order) if kept[numbers[item.row]]]
    _queries(searched, listed, causes, numbers)


def _queries(searched: Searched, listed: Sequence[Placing], causes: Causes, numbers: dict[int, int]) -> None:
    corpus = searched.corpus

    def rows(items: Sequence[Placing]) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "rank": [item.rank for item in items],
                "lead of the rival": [round(item.lead, 4) for item in items],
                "query": [corpus.queries.texts[corpus.number_of[item.row]] for item in items],
                "right text": [corpus.documents.texts[item.row] for item in items],
                "rival": [corpus.documents.texts[item.rival] for item in items],
                "causes": [", ".join(causes.of_failure(numbers[item.row])) for item in items],
            }
        )

    first = [item.row for item in listed[:MOST_ROWS]]
    st.dataframe(
        rows(listed[:MOST_ROWS]),
        hide_index=True,
        key="failed_queries",
        on_select=lambda: _open(first),
        selection_mode="single-row",
        height=min(420, 80 + 36 * len(first)),
        column_config={
            "rank": st.column_config.NumberColumn(width=60, help="The rank of the right text"),
            "lead of the rival": st.column_config.NumberColumn(width=120, format="%.3f"),
            "query": st.column_config.TextColumn(width=260),
            "right text": st.column_config.TextColumn(width=300),
            "rival": st.column_config.TextColumn(width=300),
        },
    )
    more = f" These are the first {MOST_ROWS:,} of {len(listed):,}." if len(listed) > MOST_ROWS else ""
    st.caption(f"Click the box left of a query to open it at the top of the page.{more}")
    figures.data("failed_queries_all", lambda: rows(listed))


def _open(rows: Sequence[int]) -> None:
    """Open the clicked query above."""
    clicked = st.session_state["failed_queries"].selection.rows
    if clicked and clicked[0] < len(rows):
        state.put("failed_query", rows[clicked[0]])
        state.put("typed_query", "")
