"""The queries with their correct answers, and how many of a query's words stand in its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.numbers import counted
from components.retrieval.failures.causes import shared_content
from components.retrieval.search.words import content_words, shared_share
from components.shown_code.arrays import of_table
from dashboard.ui import figures, wording

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.retrieval.evaluation.pair_runs import Pairs

MOST_COUNTED = 2_000  # queries whose words are compared
OF_EACH_KIND, SHOWN = 3, 9  # queries on screen
ANSWERS_SHOWN = 2  # of a query
SHOWN_CHARACTERS = 300  # of a query
NONE, SOME, ALL = KINDS = ("no content word", "some content words", "all content words")


def draw(pairs: Pairs) -> DeltaGenerator:
    """The finding on the words that queries share with their answers, the counts, and pairs of each kind.

    Returns the place below the counts, which has room for more.
    """
    count = min(len(pairs), MOST_COUNTED)
    kinds = [kind_of(shared_share(pairs.queries.texts[row], _answers(pairs, row))) for row in range(count)]
    rows = shown_rows(kinds)
    are_cut = any(len(_answers(pairs, row)) > ANSWERS_SHOWN for row in rows)

    def table() -> pd.DataFrame:
        return pd.DataFrame(
            [
                {
                    "query": pairs.queries.texts[row],
                    "correct answer": answer,
                    "share of words in this answer": shared_share(pairs.queries.texts[row], [answer]),
                }
                for row in range(count)
                for answer in _answers(pairs, row)
            ]
        )

    in_no_form = sum(
        has_no_form(pairs.queries.texts[row], _answers(pairs, row)) for row in range(count) if kinds[row] == NONE
    )
    figures.above(
        finding(Counter(kinds), len(pairs), in_no_form),
        key="evaluated_pairs",
        place=".st-key-evaluated_pairs",
        table=table,
        code=of_table(
            "evaluated_pairs",
            {"queries": ("query", "texts"), "shares": ("share of words in this answer", "numbers")},
            (),
            "best = {}  # of each query the share in that of its answers which has most of its words",
            "for query, share in zip(queries, shares):\n    best[query] = max(share, best.get(query, 0))",
            "found = np.array(list(best.values()))",
            "values = [(found == 0).sum(), ((found > 0) & (found < 1)).sum(), (found == 1).sum()]",
            "print(values)  # queries that share none, some and all of their words",
        ),
        title="Queries and their correct answers",
        read="Which of a query's words stand in its correct answer: they are marked. Words such as “the” do not count, unless "
        "a query has no others, and “plane” and “planes” are two words: only “another form” takes them for one, as the "
        "trait “no shared word” of failed queries does. Of several answers the one with most of its words "
        f"counts. {_what_is_shown(len(rows), len(pairs), are_cut)}",
        not_shown="Whether a model finds the answer: it may know that two words mean the same.",
    )
    with st.container(key="evaluated_pairs"):
        left, right = st.columns([3, 7], gap="medium")
        with left:
            figures.markup(_bars(Counter(kinds)), "pairs_words")
        with right:
            figures.markup(_marked(pairs, rows), "first_pairs")
    return left


def kind_of(share: float) -> str:
    """One of KINDS, for the share of a query's words that stand in its answer."""
    return NONE if share == 0 else ALL if share == 1 else SOME


def has_no_form(query: str, answers: Sequence[str]) -> bool:
    """Whether no answer has a word of the query in any regular form: the trait “no shared word” of failed queries."""
    return bool(content_words(query)) and not any(shared_content(query, answer) for answer in answers)


def finding(kinds: Mapping[str, int], total: int, in_no_form: int) -> str:
    """How many of the counted queries share no word that carries meaning with an answer; `total` is the number of all, and
    `in_no_form` counts those that share none in another form either."""
    count = sum(kinds.values())
    of = f"the first {count:,} of {total:,}" if count < total else f"{total:,}"
    if not kinds.get(NONE):
        return f"**Each of {of} queries shares a content word with its correct answer**: a search by words has a start."
    share = "shares" if kinds[NONE] == 1 else "share"
    every = "shares all of its content words" if kinds.get(ALL) == 1 else "share all of theirs"
    rest = f" Of all queries {kinds[ALL]:,} {every}." if kinds.get(ALL) else ""
    said = f"**{kinds[NONE]:,} of {of} queries {share} no content word with the correct answer**"
    other = (
        ", not even in another form"
        if in_no_form == kinds[NONE]
        else f", {in_no_form:,} not even in another form"
        if in_no_form
        else ", but each has one in another form"
    )
    return f"{said}{other}: for {'it' if kinds[NONE] == 1 else 'these'} a search by words has little to go by.{rest}"


def _what_is_shown(shown: int, total: int, are_cut: bool) -> str:
    queries = "One query is" if shown == 1 else "All queries are" if shown == total else f"{shown} queries are"
    order = f", in the order “{NONE}”, “{SOME}”, “{ALL}”" if shown > 1 else ""
    answers = f"; of more than {ANSWERS_SHOWN} answers those with most of a query's words" if are_cut else ""
    return f"{queries} shown{order}{answers}."


def _answers(pairs: Pairs, row: int) -> list[str]:
    return [pairs.documents.texts[number] for number in pairs.answers_of(row)]


def shown_rows(kinds: Sequence[str]) -> list[int]:
    """The queries on screen: the first of each kind, then the next of all until there are SHOWN; sorted by kind."""
    first = [row for kind in KINDS for row in [row for row, own in enumerate(kinds) if own == kind][:OF_EACH_KIND]]
    rest = [row for row in range(min(len(kinds), 2 * SHOWN)) if row not in first]
    return sorted([*first, *rest][:SHOWN], key=lambda row: (KINDS.index(kinds[row]), row))


def _bars(kinds: Mapping[str, int]) -> str:
    """How many queries share none, some or all of their words with an answer."""
    most = max(kinds.values())
    lines = "".join(
        f'<p class="{"opposed" if kind == NONE else ""}"><span>{kind}</span>'
        f'<i style="--share: {100 * kinds.get(kind, 0) / most:.1f}%"></i><b>{kinds.get(kind, 0):,}</b></p>'
        for kind in KINDS
    )
    queries = counted(sum(kinds.values()), "query", "queries")
    what = f"In the correct answer <span>{queries}</span>"
    return f'<div class="bi-kinds"><h6>{what}</h6>{lines}</div>'


def _marked(pairs: Pairs, rows: Sequence[int]) -> str:
    """Queries with the answers that share most with each, in which the words of the query are marked."""
    parts = []
    for row in rows:
        query = pairs.queries.texts[row]
        answers = [(shared_share(query, [answer]), answer) for answer in _answers(pairs, row)]
        answers.sort(key=lambda of: -of[0])
        more = counted(len(answers) - ANSWERS_SHOWN, "more answer")
        for place, (share, answer) in enumerate(answers[:ANSWERS_SHOWN]):
            asked = f'<p dir="auto"><strong>{escape(wording.beginning(query, SHOWN_CHARACTERS))}</strong></p>'
            text = f'<p dir="auto">{wording.with_shared_words(query, answer)}</p>'
            rest = f"<small>and {more}</small>" if place == ANSWERS_SHOWN - 1 and len(answers) > ANSWERS_SHOWN else ""
            parts.append(
                f'<section class="{"again" if place else ""}"><div>{"" if place else asked}{text}{rest}</div>'
                f"<i>{kind_of(share)}</i></section>"
            )
    heading = "<h6>A query, and its correct answer <span>words such as “at” and “of” do not count</span></h6>"
    return f'<div class="bi-near bi-asked">{heading}{"".join(parts)}</div>'
