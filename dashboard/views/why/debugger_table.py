"""The failed queries of a corpus: a list, in which each can be opened, and what they share, with the rule of each trait.

A trait that most other queries have too is no cause of a failure, so its share among these stands beside it everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts.theme import number
from components.retrieval.corpora.corpus import PAIR_COLUMN
from components.retrieval.failures.causes import CAUSES, telling
from components.snippets import why as snippets
from dashboard import state
from dashboard.corpora import current
from dashboard.jobs import failures
from dashboard.ui import browser, controls, figures
from dashboard.ui.waiting import frame
from dashboard.ui.wording import counted
from dashboard.views.why.rivals import code_of

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.retrieval.failures.causes import Causes
    from components.retrieval.failures.failed_queries import Failures, Placing
    from components.snippets.code import Snippet
    from dashboard.jobs.failures import Searched

ON_PAGE = 20  # queries of the list
LIST_HEIGHT = 480  # pixels of it: the query that is open stands beside it on the first screen
MOST_CHARACTERS = 300  # of a query there; it is whole beside the list


def count_in_words(found: Failures) -> str:
    """How many queries fail, in a sentence."""
    return (
        f"{counted(len(found), 'query', 'queries')} of {found.queries:,} ({100 * len(found) / found.queries:.1f} %) "
        f"{'fails' if len(found) == 1 else 'fail'}: another text comes before the right one."
    )


def listed(
    searched: Searched, found: Failures, order: str, opened: int | None, panel: DeltaGenerator
) -> tuple[Causes, Causes] | None:
    """Draw the failed queries, of a chosen trait once the traits are known; `opened` is the row of the one beside them.

    The choice of the trait stands in the `panel`. Returns the traits of the failed queries and of the others, if known. That
    they are being sought stands below the list, which does not wait for them.
    """
    place = st.container()
    both: tuple[Causes, Causes] | None = None
    with frame.figure("failed_queries"):
        both = failures.causes_of(searched, found, failures.occurrences(searched, "hubness_of_all"))
    kept = np.ones(len(found), bool)
    if both is not None:
        counts = {name: int(both[0].of(name).sum()) for name in both[0].names}
        names = {"all": f"All ({len(found):,})"} | {
            name.replace(" ", "-"): f"{name[0].upper()}{name[1:]} ({count:,})" for name, count in counts.items()
        }
        with panel:
            chosen = controls.pick("failure_cause", "Failed queries with the trait", names).replace("-", " ")
        kept = kept if chosen == "all" else both[0].of(chosen)
    with place:
        if not kept.any():
            st.info("No failed query has this trait.")
            return both
        numbers = {item.row: number for number, item in enumerate(found.placings)}
        of_trait = [item for item in found.in_order(order) if kept[numbers[item.row]]]
        column = current.query_column(current.in_use()) or PAIR_COLUMN
        _queries(searched, of_trait, both, numbers, opened, snippets.failures(code_of(searched), column, order))
    return both


def traits(searched: Searched, found: Failures, both: tuple[Causes, Causes]) -> None:
    """Draw the share of each trait among the failed queries and among the others; `both` are their traits."""
    causes, of_others = both
    counts = {name: int(causes.of(name).sum()) for name in causes.names}
    st.markdown(f":material/insights: {traits_in_words(causes, of_others)}")
    table = pd.DataFrame(
        [
            {
                "trait": name,
                "failed queries": counts[name],
                "share of the failures": f"{100 * counts[name] / len(found):.0f} %",
                "of the queries that do not fail": _share(of_others, name),
            }
            for name in causes.names
        ]
    )
    figures.plain_table(table, key="failure_causes")
    st.caption(
        f"Of the {found.queries - len(found):,} queries that do not fail, {len(found.successes):,} are compared here. Their "
        "rival is the text after the right one. A query can have several traits, so that the shares can sum to more than 100 %."
    )
    with st.expander("The rule of each trait", icon=":material/rule:"):
        st.markdown("\n".join(f"- **{name[0].upper()}{name[1:]}**: {CAUSES[name]}" for name in causes.names))
    column = current.query_column(current.in_use()) or PAIR_COLUMN
    code = snippets.failure_causes(code_of(searched), column, failures.MOST_QUERIES)
    figures.data("failure_causes", lambda: table, code, "Why queries fail")


def traits_in_words(failed: Causes, others: Causes) -> str:
    """Which trait sets failed queries apart from those that do not fail, or that none does, in a sentence."""
    found = telling(failed, others)
    if found is None:
        return "There is no trait to compare with queries that do not fail." if failed.holds.shape[1] else ""
    best, is_clear = found
    shares = f"{best.failed} of {best.failures} failed {'query has' if best.failures == 1 else 'queries have'} it"
    shares += f", and {100 * best.others:.0f} % of those found"
    if is_clear:
        return f"The trait that sets them apart most is “{best.name}”: {shares}."
    return f"No trait sets them apart by more than chance; the nearest is “{best.name}”: {shares} too."


def _share(others: Causes, name: str) -> str:
    """The share of queries that do not fail and have a trait; "–" without such queries."""
    return f"{100 * float(others.of(name).mean()):.0f} %" if others.holds.shape[1] else "–"


def _queries(
    searched: Searched,
    listed: Sequence[Placing],
    both: tuple[Causes, Causes] | None,
    numbers: dict[int, int],
    opened: int | None,
    code: Snippet,
) -> None:
    """The queries as a list in pages; a click opens one. `both` are the traits of failures, and of the others, once known."""
    corpus = searched.corpus

    def query(item: Placing) -> str:
        return corpus.queries.texts[corpus.number_of[item.row]]

    def own_traits(item: Placing) -> tuple[str, ...]:
        return () if both is None else both[0].of_failure(numbers[item.row])

    def tag(item: Placing) -> str:
        if both is None:
            return ""
        of_others = both[1]
        also = "" if not of_others.holds.shape[1] else " ({} of those found)"
        return "trait: " + ", ".join(name + also.format(_share(of_others, name)) for name in own_traits(item))

    def table() -> pd.DataFrame:
        return pd.DataFrame(
            {
                "rank": [item.rank for item in listed],
                "lead of the rival": [round(item.lead, 4) for item in listed],
                "query": [query(item) for item in listed],
                "right text": [corpus.documents.texts[item.row] for item in listed],
                "rival": [corpus.documents.texts[item.rival] for item in listed],
                "traits": [", ".join(own_traits(item)) for item in listed],
            }
        )

    pages = -(-len(listed) // ON_PAGE)
    list_slot = st.container(height=round(LIST_HEIGHT * controls.scale()), key="failed_list_box")
    page = 1
    if pages > 1:
        page = min(max(1, st.pagination(pages, key="failed_page")), pages)  # a browser may send any number
    shown = listed[ON_PAGE * (page - 1) : ON_PAGE * page]
    most = max((item.lead for item in listed), default=0.0) or 1.0
    drawn = frozenset(item.row for item in shown)

    def picked() -> None:
        row = browser.sent_by("failed_queries", "picked")
        if type(row) is int and row in drawn:
            _open(row)

    with list_slot:
        browser.hits_component()(
            key="failed_queries",
            data={
                "scale": controls.scale(),
                "markable": False,
                "pickHint": "Why is its text not first?",
                "pickedLabel": "Shown here",
                "answer": ".bi-case",
                "rows": [
                    {
                        "index": item.row,
                        "rank": f"{item.rank:,}",
                        "parts": [{"text": query(item)[:MOST_CHARACTERS], "shared": False}],
                        "bar": round(item.lead / most, 4),
                        "score": f"rival leads by {_lead(item)}",
                        "tag": tag(item),
                        "picked": item.row == opened,
                    }
                    for item in shown
                ],
            },
            on_picked_change=picked,
        )
    st.caption(
        "The number before a query is the rank of its right text. A full bar is the largest lead of a rival here, "
        f"{number(max((item.lead for item in listed), default=0.0))}, however small that is."
    )
    figures.data("failed_queries_all", table, code, "All failed queries")


def _lead(item: Placing) -> str:
    """A lead with as many digits as it takes to tell it from none, at most six."""
    return next((text for digits in range(3, 7) if float(text := f"{item.lead:.{digits}f}")), "less than 0.000001")


def _open(row: int) -> None:
    """Open a query beside the list."""
    state.put("failed_query", row)
    state.put("typed_query", "")
