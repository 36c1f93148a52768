"""The session's corpus, at the top of every page that shows one: one line, which unfolds into the choice of another."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import UserError
from components.retrieval.corpora.demo import sentences_that_differ
from dashboard import caching, state
from dashboard.corpora import chooser, current, preview
from dashboard.declared import table
from dashboard.ui import controls, messages
from dashboard.ui.waiting import frame
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from components.retrieval.corpora.corpus import Corpus

TEXTS = {"all": "All texts", "right": "The right texts alone"}
TEXTS_HELP = (
    "All texts: as in a search that people use. The right texts alone: those that are right for some query, which is easier, "
    "since the texts of rows without a query cannot come first. All views of Diagnose, and the commands, follow this choice."
)
MOST_NAMED = 60  # characters of its name in the line


def draw(page: str) -> None:
    """Draw the bar of a page: folded when the page opens, and again when another corpus is chosen."""
    key = f"corpus_bar_{page}_{state.peek('corpus')}"
    with st.container(key="corpus_bar"):  # as the bar of sentences has it, with a key of its own on each page
        bar = st.expander(f"**Corpus**  {_named(page)}", key=key, icon=":material/database:")
    with bar:
        messages.guarded(lambda: frame.view(lambda: _choice(page)), "choosing a corpus")


def _named(page: str) -> str:
    """What the view shows, the corpus or the included pairs, and its size; of one that is not in memory yet its name alone."""
    key = state.peek("corpus")
    source = current.source_of(key) if key and caching.corpora().find(key) is None else None
    if source is not None:
        return messages.escape(source.name[:MOST_NAMED])
    corpus = sentences_that_differ() if _is_of_pairs(page) and not key else current.in_use()
    lost, rows = corpus.report.bad_count, corpus.report.rows
    left_out = f"  ·  {lost:,} of {counted(rows, 'row')} left out" if lost else ""  # why, the unfolded bar says
    return f"{messages.escape(corpus.name[:MOST_NAMED])}  ·  {counted(len(corpus), 'sentence')}{left_out}"


def _texts_searched(corpus: Corpus) -> None:
    """The choice of the texts that are searched, where some stand only on rows without a query."""
    column = current.query_column(corpus)
    with suppress(UserError):
        pairs = None if column is None else current.pairs(corpus, column)
        if pairs is not None and (pairs.others or pairs.unsearched):
            controls.choice("texts_searched", "Texts searched", TEXTS, TEXTS_HELP)


def _is_of_pairs(page: str) -> bool:
    return state.view_of(page) == "similar-pairs" and state.peek("compared_texts") == "included"


def _choice(page: str) -> None:
    if _is_of_pairs(page) and not state.peek("corpus"):
        name = sentences_that_differ().name
        st.caption(f"The view compares “{name}”, not this corpus. Choose “Demo news” in the view to compare it.")
    unused = chooser.choose()
    if unused is not None:
        preview.draw(unused, key="corpus_not_in_use")
    elif state.get("corpus"):
        corpus = current.at_hand()
        if corpus is not None:
            preview.say(corpus)
            if "texts_searched" in table.VIEWS[state.view_of(page)].settings:
                _texts_searched(corpus)
        st.caption("Whoever has a link of yours can search this corpus too, as long as this server keeps it.")
