"""Two rankings side by side without their names: people vote on each query and tick good hits, then see which is which."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.charts.theme import signed
from components.retrieval.search import blind_votes
from components.retrieval.search.blind_votes import ALIKE, FIRST, SECOND, Alone, QueryVotes
from components.shown_code.code import NoCode
from dashboard import caching, state
from dashboard.corpora import word_rankings
from dashboard.lessons import panel
from dashboard.ui import browser, controls, figures, messages, wording
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.rankings.ranking import Ranking
    from dashboard.views.search.request import SearchRequest

SHOWN_CHARACTERS = 300  # of a hit
SECONDS = 2.0  # between two looks at the votes of others
NAMES = ("List A", "List B")  # no sides: on a phone they stand one above the other
# Beside the model, what the two rankings are computed from: votes count together only where all of it is the same.
RANKED_BY = (
    *("model2", "layer", "pooling", "similarity", "compare_with", "layer2", "pooling2", "similarity2"),
    *("cross_encoder", "score_label", "reranked_hits", "max_length"),
)
ALONE = "Only your own votes count. With a class code (“Class”), the votes of all who enter the same code are counted together."
WHO_SEES = "All who enter this class code see each other's queries and how many voted which way, without names."
Comparison = tuple[object, ...]
_TICKS, _TICK_NUMBER = "_blind_ticks", "_blind_tick_number"  # session keys
_VOTED_ON = "_blind_voted_on"  # session key: the comparison of the last votes
FEWEST_QUERIES = 5  # for the interval of a difference


def compare(request: SearchRequest, rankings: Sequence[Ranking]) -> None:
    """Draw two rankings without their names, the vote, and what the votes say once it is revealed."""
    browser.know_visitor("blind_visitor")
    corpus, query = request.corpus, request.query
    titles = (rankings[0].name, rankings[1].name)
    named = " / ".join((request.backend.spec.key, *titles))
    comparison = _comparison(request, titles)
    is_first_left = blind_votes.is_first_left(named, query)
    count = min(len(ranking.best) for ranking in rankings)  # a shorter list would be known by its length
    if not count:
        st.info(
            "One of the two rankings finds nothing for this query, so they cannot be compared blindly. Ask another one."
        )
        return
    st.markdown("**Which list is better for this query?** Tick the good hits, if you like, and vote.")
    st.caption(
        "Two settings of Search; only the page's address names them. Which one is A is chosen at random for each query, the "
        "same for all. "
        f"{WHO_SEES if state.get('class_code') else ALONE}"
    )
    _say_if_others(comparison)
    _vote(comparison, query, is_first_left)
    _result(comparison, query, titles, is_first_left)
    lists = tuple(tuple(int(row) for row in ranking.best[:count]) for ranking in rankings)
    own = caching.blind_votes().marked_by(comparison, query, caching.visitor())
    is_over = caching.blind_votes().is_revealed(comparison, query, caching.visitor())
    mark = _marker(comparison, query, (lists[0], lists[1]))
    ticks = _Ticks.of((state.get("class_code"), *comparison[1:], query), own)
    for number, (column, rows) in enumerate(zip(st.columns(2), lists if is_first_left else lists[::-1], strict=True)):
        with column.container(gap="xsmall", key=f"blind_list_{number}"):
            title = messages.escape((titles if is_first_left else titles[::-1])[number])
            st.markdown(f"**{NAMES[number]}: {title}**" if is_over else f"**{NAMES[number]}**")
            for rank, row in enumerate(rows, start=1):
                text = f"{rank}\\. {_text(corpus, row)}"
                if is_over:  # as text to read: a disabled box would be grey
                    st.markdown(f":material/{'check_box' if row in own else 'check_box_outline_blank'}: {text}")
                    continue
                # Without scores and marked words, which would give the ranking away.
                controls.checked(
                    partial(st.checkbox, value=row in own),
                    text,
                    key=f"blind_hit_{number}_{rank}_{ticks.name_of(number, row)}",
                    on_choice=partial(_ticked_in, ticks, mark, number, row),
                )


def _say_if_others(comparison: Comparison) -> None:
    """Say that this session's last vote was on other settings, until there is one on these."""
    before = st.session_state.get(_VOTED_ON)
    if before not in (None, comparison) and not caching.blind_votes().votes(comparison):
        st.caption(
            ":material/info: These are not the settings, the corpus or the class of your last vote, so a new count begins. The "
            "votes before are there again once these are as they were."
        )


def _comparison(request: SearchRequest, titles: tuple[str, str]) -> Comparison:
    """What votes are counted for: the class, or this visitor alone, and what the rankings are computed from."""
    backend = request.backend
    group = ("class", state.get("class_code")) if state.get("class_code") else Alone(caching.visitor())
    static = word_rankings.word_ranking(backend, "static").source if request.compare_with == "static" else ""
    settings = tuple(state.get(name) for name in RANKED_BY)
    return (group, request.corpus.content_hash, backend.spec.key, backend.revision, titles, static, settings)


def _counted_now(comparison: Comparison) -> Comparison:
    """A comparison as it is counted now: since the page was drawn, the browser's mark can have become known."""
    return (Alone(caching.visitor()), *comparison[1:]) if isinstance(comparison[0], Alone) else comparison


def _text(corpus: Corpus, row: int) -> str:
    """A sentence in one line, cut if it is very long; nothing in it acts as markup."""
    return messages.escape(wording.shortened(corpus.texts[row], SHOWN_CHARACTERS))


@dataclass
class _Ticks:
    """The boxes of one query, with names that no other box has had: a browser sends what it last knew of a name.

    A hit can stand in both lists. Ticked in one, it gets a new box in the other, which begins with the tick. When the
    browser's mark becomes known, the boxes stay, so that a click on its way finds its box; only a mark that has other ticks,
    as after a reload, gets new ones.
    """

    of_query: tuple[object, ...]
    name: str
    visitor: str
    ticked: frozenset[int]  # the sentences whose boxes are ticked
    turns: Counter[tuple[int, int]] = field(
        default_factory=Counter
    )  # by list and sentence: how often its box was replaced

    @classmethod
    def of(cls, query: tuple[object, ...], own: frozenset[int]) -> _Ticks:
        """The session's boxes of a query; `own` are the sentences that its visitor has ticked."""
        kept: _Ticks | None = st.session_state.get(_TICKS)
        visitor = caching.visitor()
        if kept is None or kept.of_query != query or (kept.visitor != visitor and kept.ticked != own):
            st.session_state[_TICK_NUMBER] = st.session_state.get(_TICK_NUMBER, 0) + 1
            kept = st.session_state[_TICKS] = cls(query, str(st.session_state[_TICK_NUMBER]), visitor, own)
        kept.visitor, kept.ticked = visitor, own
        return kept

    def name_of(self, number: int, row: int) -> str:
        return f"{self.name}_{self.turns[number, row]}"


def _ticked_in(ticks: _Ticks, mark: Callable[[int, bool], None], number: int, row: int, is_good: bool) -> None:
    mark(row, is_good)
    ticks.turns[1 - number, row] += 1
    ticks.ticked = ticks.ticked | {row} if is_good else ticks.ticked - {row}


def _marker(
    comparison: Comparison, query: str, lists: tuple[tuple[int, ...], tuple[int, ...]]
) -> Callable[[int, bool], None]:
    """What ticking a hit does."""
    votes = caching.blind_votes()

    def mark(row: int, is_good: bool) -> None:
        counted_for, person = _counted_now(comparison), caching.visitor()
        if votes.is_revealed(counted_for, query, person):  # a browser can send a tick after the boxes are gone
            return
        own = votes.marked_by(counted_for, query, person)  # now: several ticks can arrive at once
        votes.mark(counted_for, query, person, own | {row} if is_good else own - {row}, lists)
        st.session_state[_VOTED_ON] = counted_for

    return mark


def _vote(comparison: Comparison, query: str, is_first_left: bool) -> None:
    votes, person = caching.blind_votes(), caching.visitor()
    own, is_over = votes.of_person(comparison, query, person), votes.is_revealed(comparison, query, person)
    left, right = (FIRST, SECOND) if is_first_left else (SECOND, FIRST)
    choices = (("left", "A is better", left), ("alike", "Both alike", ALIKE), ("right", "B is better", right))

    def give(value: float | None) -> None:
        counted_for, giver = _counted_now(comparison), caching.visitor()
        if votes.is_revealed(counted_for, query, giver):  # a browser can send a click on a disabled button
            return
        if value is None:
            votes.take_back(counted_for, query, giver)
        else:
            votes.give(counted_for, query, giver, value)
            st.session_state[_VOTED_ON] = counted_for

    with st.container(horizontal=True, vertical_alignment="center", key="blind_vote"):
        for name, label, value in choices:
            st.button(
                label,
                key=f"blind_{name}",
                type="primary" if own == value else "secondary",
                icon=":material/check:" if own == value else None,
                disabled=is_over,
                on_click=give,
                args=(value,),
            )
        if own is not None and not is_over:
            st.button("Take back", key="blind_take_back", type="tertiary", on_click=give, args=(None,))
        panel.class_code("w_class_code_blind", "Votes")  # the panel of a lesson has the same field
    if is_over:
        st.caption(
            "You have seen which list is which, so your vote and your ticks on this query stay as they are. Ask the next query."
        )
    elif own is not None:
        st.caption("Your vote is counted. You can change it, or ask the next query.")


def _result(comparison: Comparison, query: str, titles: tuple[str, str], is_first_left: bool) -> None:
    """How many votes there are, and on request what they say."""
    if st.session_state.get("_blind_query") != query:  # the next query is blind again
        st.session_state.update(_blind_query=query, blind_revealed=False)

    @st.fragment(run_every=SECONDS)
    def drawn() -> None:
        votes = caching.blind_votes().votes(comparison)
        total, marked = sum(each.count for each in votes), sum(each.markers > 0 for each in votes)
        st.markdown(
            f"{counted(total, 'vote')} on {counted(sum(each.count > 0 for each in votes), 'query', 'queries')}; "
            f"hits ticked on {counted(marked, 'query', 'queries')}."
        )
        if not total and not marked:
            st.caption("Once somebody has voted, you can see which list was which.")
            return
        is_shown = st.toggle("Show which is which, and what the votes say", key="blind_revealed")
        if not is_shown and not caching.blind_votes().is_revealed(comparison, query, caching.visitor()):
            st.caption("After that, your vote and your ticks on this query are final.")
        if is_shown:
            if caching.blind_votes().of_person(comparison, query, caching.visitor()) is None:
                st.caption("Vote on this query to see which of its lists is which.")
            else:
                left, right = (messages.escape(title) for title in (titles if is_first_left else titles[::-1]))
                st.markdown(f"For this query, list A is **{left}**, list B **{right}**.")
                if not caching.blind_votes().is_revealed(comparison, query, caching.visitor()):
                    caching.blind_votes().reveal(comparison, query, caching.visitor())
                    st.rerun()  # the whole page: the lists have their names now
            _estimate(votes, titles)

    with st.container(border=True, key="blind_result"):
        drawn()


def _estimate(votes: Sequence[QueryVotes], titles: tuple[str, str]) -> None:
    """What the votes say, and what the ticked hits say."""
    if any(each.count for each in votes):
        _preferred(votes, titles)
    if any(each.markers for each in votes):
        _ticked(votes, titles)
    st.caption(
        "The intervals are over queries: ask at least ten, of different kinds. They say what these people prefer on these "
        "queries, and not which list has more relevant hits. Two tabs of a browser count as two people."
    )
    figures.data(
        "blind", lambda: table(votes, titles), NoCode("There is no code for it: the numbers are people's votes.")
    )


def _ticked(votes: Sequence[QueryVotes], titles: tuple[str, str]) -> None:
    marked = [each for each in votes if each.markers]
    first, second = (messages.escape(title) for title in titles)
    pairs = [(each.good_first, each.good_second) for each in marked]
    shares = [100 * sum(values) / len(marked) for values in zip(*pairs, strict=True)]
    text = (
        f":material/check_box: People ticked **{shares[0]:.0f} %** of the hits of {first} and **{shares[1]:.0f} %** of those "
        f"of {second}, on {counted(len(marked), 'query', 'queries')}"
    )
    if len(marked) < FEWEST_QUERIES:
        st.markdown(f"{text}. From {FEWEST_QUERIES} queries on, the difference gets an interval.")
        return
    found = blind_votes.marked_difference(marked)
    low, high = (signed(100 * value, 0) for value in (found.low, found.high))
    st.markdown(
        f"{text}: a difference of **{signed(100 * found.value, 0)}** percentage points (95 % interval {low} to {high})."
    )


def _preferred(votes: Sequence[QueryVotes], titles: tuple[str, str]) -> None:
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


def table(votes: Sequence[QueryVotes], titles: tuple[str, str]) -> pd.DataFrame:
    """One line for each query."""
    return pd.DataFrame(
        [
            {
                "query": each.query,
                f"votes: {titles[0]}": each.first,
                "both alike": each.alike,
                f"votes: {titles[1]}": each.second,
                "people who ticked hits": each.markers,
                f"ticked hits, %: {titles[0]}": round(100 * each.good_first, 1) if each.markers else None,
                f"ticked hits, %: {titles[1]}": round(100 * each.good_second, 1) if each.markers else None,
            }
            for each in votes
        ]
    )
