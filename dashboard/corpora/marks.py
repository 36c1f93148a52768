"""Which sentences of a corpus a person marked as relevant to a query, in this session."""

from __future__ import annotations

import streamlit as st

from components.retrieval.corpora.corpus import Corpus
from components.retrieval.search.relevance import Judgements


def judgements(corpus: Corpus) -> Judgements:
    """The session's marks on sentences of this corpus."""
    return st.session_state.get("_judgements", {}).get(corpus.content_hash) or Judgements()


def mark(corpus_hash: str, query: str, index: int, relevant: bool | None) -> None:
    """Mark a sentence as relevant or not relevant to a query; None removes the mark."""
    kept = st.session_state.setdefault("_judgements", {})
    kept[corpus_hash] = kept.get(corpus_hash, Judgements()).mark(query, index, relevant)
