"""The queries with their correct answers, and how many of a query's words stand in its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.numbers import counted
from components.retrieval.search.words import shared_share
from components.shown_code.code import Command
from dashboard.ui import figures, wording

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.retrieval.evaluation.pair_runs import Pairs

MOST_COUNTED = 2_000  # queries whose words are compared
OF_EACH_KIND, SHOWN = 3, 9  # pairs on screen
SHOWN_CHARACTERS = 300  # of a query
NONE, SOME, ALL = KINDS = ("no word", "some words", "every word")


def draw(pairs: Pairs) -> DeltaGenerator:
    """The finding on the words that queries share with their answers, the counts, and pairs of each kind.

    Returns the place below the counts, which has room for more.
    """
    count = min(len(pairs), MOST_COUNTED)
    shares = [shared_share(pairs.queries.texts[row], _answers(pairs, row)) for row in range(count)]
    kinds = [kind_of(share) for share in shares]

    def table() -> pd.DataFrame:
        return pd.DataFrame(
            [
                {
                    "query": pairs.queries.texts[row],
                    "correct answer": answer,
                    "share of words in an answer": shares[row],
                }
                for row in range(count)
                for answer in _answers(pairs, row)
            ]
        )

    figures.above(
        finding(Counter(kinds), len(pairs)),
        key="evaluated_pairs",
        place=".st-key-evaluated_pairs",
        table=table,
        code=Command(shared_share),
        title="Queries and their correct answers",
        read="Which of a query's words stand in its correct answer: they are marked. Words such as “the” do not count, and "
        f"“plane” and “planes” are two words. {counted(OF_EACH_KIND, 'query', 'queries')} of each kind are shown.",
        not_shown="Whether a model finds the answer: it may know that two words mean the same.",
    )
    with st.container(key="evaluated_pairs"):
        left, right = st.columns([3, 7], gap="medium")
        with left:
            figures.markup(_bars(Counter(kinds)), "pairs_words")
        with right:
            figures.markup(_marked(pairs, kinds), "first_pairs")
    return left


def kind_of(share: float) -> str:
    """One of KINDS, for the share of a query's words that stand in its answer."""
    return NONE if share == 0 else ALL if share == 1 else SOME


def finding(kinds: Mapping[str, int], total: int) -> str:
    """How many of the counted queries share no word with their answer; `total` is the number of all queries."""
    count = sum(kinds.values())
    of = f"the first {count:,} of {total:,}" if count < total else f"{total:,}"
    if not kinds.get(NONE):
        return (
            f"**Each of {of} queries shares a word with its correct answer**: a search by words has something to go by."
        )
    share = "shares" if kinds[NONE] == 1 else "share"
    every = "shares all of its words" if kinds.get(ALL) == 1 else "share all of their words"
    rest = f"; {kinds[ALL]:,} {every}" if kinds.get(ALL) else ""
    said = f"**{kinds[NONE]:,} of {of} queries {share} no word with the correct answer**"
    return f"{said}, so that a search by words has nothing to go by{rest}."


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
    return f'<div class="bi-kinds"><h6>Shared with the answer <span>{queries}</span></h6>{lines}</div>'


def _marked(pairs: Pairs, kinds: Sequence[str]) -> str:
    """Queries with their answers, in which the words of the query are marked."""
    parts = []
    for row, answer in [(query, answer) for query in shown_rows(kinds) for answer in _answers(pairs, query)][:SHOWN]:
        query = escape(pairs.queries.texts[row][:SHOWN_CHARACTERS])
        texts = f"<p><strong>{query}</strong></p><p>{wording.with_shared_words(pairs.queries.texts[row], answer)}</p>"
        parts.append(f"<section><div>{texts}</div><i>{kinds[row]}</i></section>")
    return f'<div class="bi-near bi-asked"><h6>A query, and its correct answer</h6>{"".join(parts)}</div>'
