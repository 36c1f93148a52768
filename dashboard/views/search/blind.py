"""Two rankings side by side without their names: people vote on each query, and see only then which is which."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.retrieval.search import blind_votes
from components.retrieval.search.blind_votes import ALIKE, FIRST, SECOND, QueryVotes
from dashboard import caching, state
from dashboard.lessons import panel
from dashboard.ui import figures, messages, wording
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from components.retrieval.corpora.corpus import Corpus
    from dashboard.views.search.request import SearchRequest

SHOWN_CHARACTERS = 300  # of a hit
SECONDS = 2.0  # between two looks at the votes of others
NAMES = ("Left list", "Right list")


def compare(request: SearchRequest, rankings: Sequence[tuple[str, np.ndarray]]) -> None:
    """Draw two rankings (title and hits) without their names, the vote, and what the votes say once it is revealed."""
    corpus, query = request.corpus, request.query
    titles = (rankings[0][0], rankings[1][0])
    named = " / ".join((request.backend.spec.key, *titles))
    comparison = (state.get("class_code"), corpus.content_hash, named)
    is_first_left = blind_votes.is_first_left(named, query)
    count = min(len(hits) for _, hits in rankings)  # a shorter list would be known by its length
    if not count:
        st.info(
            "One of the two rankings finds nothing for this query, so they cannot be compared blindly. Ask another one."
        )
        return
    shown = rankings if is_first_left else tuple(reversed(rankings))
    st.markdown("**Which list is better for this query?**")
    st.caption(
        "Two settings of Search, without their names. The sides are drawn by lot for each query, the same for all."
    )
    _vote(comparison, query, is_first_left)
    for number, (column, (_, hits)) in enumerate(zip(st.columns(2), shown, strict=True)):
        with column.container(gap="xsmall"):
            st.markdown(f"**{NAMES[number]}**")
            # Without scores and marked words, which would give the ranking away.
            st.markdown("\n".join(f"{rank}. {_text(corpus, row)}" for rank, row in enumerate(hits[:count], start=1)))
    _result(comparison, titles, is_first_left)


def _text(corpus: Corpus, row: int) -> str:
    """A sentence in one line, cut if it is very long; nothing in it acts as markup."""
    return messages.escape(wording.shortened(corpus.texts[row], SHOWN_CHARACTERS))


def _vote(comparison: tuple[str, str, str], query: str, is_first_left: bool) -> None:
    votes, person = caching.blind_votes(), caching.person()
    own = votes.of_person(comparison, query, person)
    left, right = (FIRST, SECOND) if is_first_left else (SECOND, FIRST)
    choices = (("left", "Left is better", left), ("alike", "Both alike", ALIKE), ("right", "Right is better", right))
    with st.container(horizontal=True, vertical_alignment="center", key="blind_vote"):
        for name, label, value in choices:
            st.button(
                label,
                key=f"blind_{name}",
                type="primary" if own == value else "secondary",
                icon=":material/check:" if own == value else None,
                on_click=partial(votes.give, comparison, query, person, value),
            )
        panel.class_code()
    if own is not None:
        st.caption("Your vote is counted. You can change it, or ask the next query.")


def _result(comparison: tuple[str, str, str], titles: tuple[str, str], is_first_left: bool) -> None:
    """How many votes there are, and on request what they say."""

    @st.fragment(run_every=SECONDS)
    def drawn() -> None:
        votes = caching.blind_votes().votes(comparison)
        total = sum(each.count for each in votes)
        st.markdown(f"{counted(total, 'vote')} on {counted(len(votes), 'query', 'queries')}.")
        if not total:
            st.caption("Once somebody has voted, you can see which list was which.")
            return
        if st.toggle("Show which is which, and what the votes say", key="blind_revealed"):
            left, right = (messages.escape(title) for title in (titles if is_first_left else titles[::-1]))
            st.markdown(f"For this query, the left list is **{left}**, the right list **{right}**.")
            _estimate(votes, titles)

    with st.container(border=True, key="blind_result"):
        drawn()


def _estimate(votes: Sequence[QueryVotes], titles: tuple[str, str]) -> None:
    found = blind_votes.preference(votes)
    first, second = (messages.escape(title) for title in titles)
    if found.low > 0.5:
        verdict = f"**{first}** is preferred"
    elif found.high < 0.5:
        verdict = f"**{second}** is preferred"
    else:
        verdict = "The votes do not tell the two apart"
    st.markdown(
        f":material/how_to_vote: {verdict}: {first} gets **{100 * found.value:.0f} %** of the votes of a query on average "
        f"(95 % interval {100 * found.low:.0f} to {100 * found.high:.0f} %; “both alike” counts half), {second} the rest."
    )
    st.caption(
        "The interval is over queries: ask at least ten, of different kinds. It says what these people prefer on these "
        "queries, and not which list has more relevant hits. A page that is loaded anew counts as another person."
    )
    figures.data("blind", lambda: table(votes, titles), code=None)


def table(votes: Sequence[QueryVotes], titles: tuple[str, str]) -> pd.DataFrame:
    """One line for each query."""
    return pd.DataFrame(
        [
            {
                "query": each.query,
                f"votes: {titles[0]}": each.first,
                "both alike": each.alike,
                f"votes: {titles[1]}": each.second,
            }
            for each in votes
        ]
    )
