"""The session's corpus, at the top of every page that shows one: one line, which unfolds into the choice of another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from dashboard import caching, state
from dashboard.corpora import chooser, current
from dashboard.ui import figures, messages
from dashboard.ui.waiting import frame
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from components.retrieval.corpora.corpus import Corpus

SHOWN = 3  # sentences of a corpus that is not in use yet
MOST_NAMED = 60  # characters of its name in the line


def draw(page: str) -> None:
    """Draw the bar of a page: folded when the page opens, whether or not it was open on the page before."""
    with st.container(key="corpus_bar"):  # as the bar of sentences has it, with a key of its own on each page
        bar = st.expander(f"**Corpus**  {_named()}", key=f"corpus_bar_{page}", icon=":material/database:")
    with bar:
        messages.guarded(lambda: frame.view(_choice), "choosing a corpus")


def _named() -> str:
    """The corpus and its size; of one that is not in memory yet its name alone."""
    key = state.peek("corpus")
    source = current.source_of(key) if key and caching.corpora().find(key) is None else None
    if source is not None:
        return messages.escape(source.name[:MOST_NAMED])
    corpus = current.in_use()
    return f"{messages.escape(corpus.name[:MOST_NAMED])}  ·  {counted(len(corpus), 'sentence')}"


def _choice() -> None:
    unused = chooser.choose()
    if unused is not None:
        _first_sentences(unused)
    elif state.get("corpus"):
        st.caption("Whoever has a link of yours can search this corpus too, as long as this server keeps it.")


def _first_sentences(corpus: Corpus) -> None:
    """How a corpus was read that is not in use yet, before anything is computed of it."""
    figures.plain_table(pd.DataFrame({"first sentences": list(corpus.texts[:SHOWN])}), key="corpus_not_in_use")
    said = []
    if corpus.report.bad_count:
        said.append(f"{corpus.report.bad_count:,} of {corpus.report.rows:,} rows could not be used.")
    if corpus.report.encoding_guessed:
        said.append(f"The encoding {corpus.report.encoding} is a guess: if letters are wrong, type another one.")
    if said:
        st.caption(messages.escape(" ".join(said)))
