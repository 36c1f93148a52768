"""Which sentences of a corpus a person marked as relevant to a query, in this session."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from components.retrieval.corpora.corpus import Corpus
from components.retrieval.search.relevance import Judgements

_MARKS = "_judgements"  # session key: the judgements of each corpus, by the hash of its texts


def of_session() -> Mapping[str, Judgements]:
    """All marks of the session, by the hash of the corpus."""
    found: Mapping[str, Judgements] = st.session_state.get(_MARKS, {})
    return found


def judgements(corpus: Corpus) -> Judgements:
    """The session's marks on sentences of this corpus."""
    return of_session().get(corpus.content_hash) or Judgements()


def mark(corpus_hash: str, query: str, index: int, relevant: bool | None) -> None:
    """Mark a sentence as relevant or not relevant to a query; None removes the mark."""
    kept = st.session_state.setdefault(_MARKS, {})
    kept[corpus_hash] = kept.get(corpus_hash, Judgements()).mark(query, index, relevant)


def add(earlier: Mapping[str, Judgements]) -> None:
    """Add the marks of an earlier session: those of this one count where both have one."""
    kept = st.session_state.setdefault(_MARKS, {})
    for corpus_hash, judged in earlier.items():
        kept[corpus_hash] = joined(judged, kept.get(corpus_hash, Judgements()))


def joined(earlier: Judgements, later: Judgements) -> Judgements:
    """The marks of both; the later one's where both have one, and the queries marked last at the end."""
    queries = dict.fromkeys((*(query for query in earlier.marks if query not in later.marks), *later.marks))
    return Judgements(
        MappingProxyType({query: MappingProxyType({**earlier.of(query), **later.of(query)}) for query in queries})
    )
