"""Which sentences of a corpus a person marked as relevant to a query, and the rankings in which they stood, in this session."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from components.retrieval.corpora.corpus import Corpus
from components.retrieval.search.relevance import Judgements
from dashboard.corpora import usage

# The rankings that were last on screen with a query: of each its title and the rows of its first hits.
Shown = tuple[tuple[str, tuple[int, ...]], ...]
MOST_SHOWN, FIRST_HITS = 2, 10  # rankings beside each other, and the hits of each
_MARKS = "_judgements"  # session key: the judgements of each corpus, by the hash of its texts
_RANKINGS = "_judged_rankings"  # session key: Shown by query, for each corpus, by the hash of its texts


def of_session() -> Mapping[str, Judgements]:
    """All marks of the session, by the hash of the corpus."""
    found: Mapping[str, Judgements] = st.session_state.get(_MARKS, {})
    return found


def judgements(corpus: Corpus) -> Judgements:
    """The session's marks on sentences of this corpus, for a view that shows them. Equal texts have the mark of one."""
    usage.note(usage.MARKS)
    judged = (of_session().get(corpus.content_hash) or Judgements()).within(len(corpus))
    return judged.by_text(corpus.first_rows) if corpus.report.duplicates else judged


def mark(corpus_hash: str, query: str, index: int, relevant: bool | None) -> None:
    """Mark a sentence as relevant or not relevant to a query; None removes the mark."""
    kept = st.session_state.setdefault(_MARKS, {})
    kept[corpus_hash] = kept.get(corpus_hash, Judgements()).mark(query, index, relevant)


def rankings_of_session() -> Mapping[str, Mapping[str, Shown]]:
    """The rankings that stood beside the session's marks, by the hash of the corpus and by query."""
    found: Mapping[str, Mapping[str, Shown]] = st.session_state.get(_RANKINGS, {})
    return found


def rankings(corpus: Corpus) -> Mapping[str, Shown]:
    """The rankings that were last on screen with each judged query of a corpus."""
    return rankings_of_session().get(corpus.content_hash) or {}


def keep_rankings(corpus: Corpus, query: str, shown: Shown) -> None:
    """Note the rankings that are on screen with a judged query."""
    st.session_state.setdefault(_RANKINGS, {}).setdefault(corpus.content_hash, {})[query] = shown


def add(earlier: Mapping[str, Judgements], shown: Mapping[str, Mapping[str, Shown]]) -> None:
    """Add the marks of an earlier session, and their rankings: those of this one count where both have one."""
    kept = st.session_state.setdefault(_MARKS, {})
    for corpus_hash, judged in earlier.items():
        kept[corpus_hash] = joined(judged, kept.get(corpus_hash, Judgements()))
    kept_rankings = st.session_state.setdefault(_RANKINGS, {})
    for corpus_hash, by_query in shown.items():
        kept_rankings[corpus_hash] = {**by_query, **kept_rankings.get(corpus_hash, {})}


def joined(earlier: Judgements, later: Judgements) -> Judgements:
    """The marks of both; the later one's where both have one, and the queries marked last at the end."""
    queries = dict.fromkeys((*(query for query in earlier.marks if query not in later.marks), *later.marks))
    return Judgements(
        MappingProxyType({query: MappingProxyType({**earlier.of(query), **later.of(query)}) for query in queries})
    )
