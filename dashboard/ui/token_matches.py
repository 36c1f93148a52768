"""Late interaction (MaxSim) of a query and a document as a figure: every query token beside every document token.

The texts are read as the scores by MaxSim read them (components/retrieval/search/rerank.py): behind the model's own prompts
for queries and documents if it has some, and truncated to the same length, so that the sum shown here is that score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.analysis.similarity import late_interaction
from components.charts import matrices
from dashboard.ui import figures

if TYPE_CHECKING:
    from components.analysis.similarity.late_interaction import MaxSim
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence


@dataclass(frozen=True, eq=False)
class TokenMatches:
    """A query and a document, token by token."""

    similarity: MaxSim
    query: TokenizedSentence
    document: TokenizedSentence
    layer: int
    prompt_length: int  # characters of the model's own prompt in front of the document


def of_texts(
    backend: Backend, query: str, document: str, layer: int | None = None, max_length: int | None = None
) -> TokenMatches | None:
    """The token similarities at a layer, by default the last one; None if a text has only special tokens, which is said.

    `max_length` in tokens, by default the model's own maximum for vectors.
    """
    layer = backend.facts.layers if layer is None else min(layer, backend.facts.layers)
    asked = backend.embed_options([layer], max_length=max_length, precision="float32", role="query")
    answered = backend.embed_options([layer], max_length=max_length, precision="float32", role="document")
    trace = backend.trace([asked.prompt + query, answered.prompt + document], max_length=asked.max_length)
    try:
        similarity = late_interaction.of_trace(trace, layer)
    except ValueError:
        st.info("The query or the document has only special tokens: there is nothing to compare.")
        return None
    of_query, of_document = trace.sentences
    return TokenMatches(similarity, of_query, of_document, layer, len(answered.prompt))


def figure(matches: TokenMatches, title: str, *, key: str, colour_bar: bool = True, **arguments: Any) -> None:
    """Draw the cosines of all tokens; the other arguments are those of `figures.matrix`, such as its message."""
    similarity = matches.similarity
    rows = matrices.axis_labels([token.piece for token in matches.query.tokens], similarity.query_positions)
    columns = matrices.axis_labels([token.piece for token in matches.document.tokens], similarity.document_positions)
    figures.matrix(
        similarity.matrix,
        rows,
        columns,
        title,
        key=key,
        alt=f"Cosines of {len(rows)} query tokens with {len(columns)} document tokens",
        digits=4,
        rows="query token",
        columns="document token",
        value="cosine",
        colour_bar=colour_bar,
        show_values=len(columns) <= 12,
        **arguments,
    )
