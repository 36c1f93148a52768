"""Late interaction (MaxSim) of a query and a document as a figure: every query token beside every document token.

The texts are read as the scores by MaxSim read them (components/retrieval/search/rerank.py): behind the model's own prompts
for queries and documents if it has some, and truncated to the same length. A model that was trained for late interaction is
scored by the token vectors that it was trained to give, which `of_trained_vectors` compares; other models are scored by
their hidden states, which `of_texts` compares. What is shown by the right one of the two adds up to the score; hidden states
of a trained model do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import streamlit as st

from components import numbers
from components.analysis.similarity import late_interaction
from components.charts import matrices
from components.retrieval.search.rerank import late_interaction_scores, trained_scores
from components.shown_code import search as shown_search
from components.shown_code.code import Command
from dashboard import caching
from dashboard.ui import figures, messages

if TYPE_CHECKING:
    from components.analysis.similarity.late_interaction import MaxSim
    from components.arrays import Float32
    from components.model.backend import Backend
    from components.model.files.sentence_config import Role
    from components.model.trace import TokenizedSentence
    from components.shown_code.code import AnyCode

MOST_VALUES = 12  # rows and columns whose numbers are written into the cells
ROLES: tuple[Role, Role] = ("query", "document")
TRAINED_READ = (
    "Every row is a token of the query as the model reads it, special tokens included; its brightest cell counts. The model "
    "was trained to compare these vectors ([Khattab and Zaharia 2020](https://arxiv.org/abs/2004.12832))."
)


@dataclass(frozen=True, eq=False)
class TokenMatches:
    """A query and a document, token by token."""

    similarity: MaxSim
    query: TokenizedSentence
    document: TokenizedSentence
    layer: int
    prompt_length: int  # characters of the model's own prompt in front of the document
    code: AnyCode


def of_texts(
    backend: Backend, query: str, document: str, layer: int | None = None, max_length: int | None = None
) -> TokenMatches | None:
    """The token similarities at a layer, by default the last one; None if a text has only special tokens, which is said.

    `max_length` in tokens, by default the model's own maximum for vectors.
    """
    layer = backend.facts.layers if layer is None else min(layer, backend.facts.layers)
    asked = backend.embed_options([layer], max_length=max_length, precision="float32", role="query")
    answered = backend.embed_options([layer], max_length=max_length, precision="float32", role="document")
    trace = backend.trace([asked.prompt + query, answered.prompt + document], max_length=asked.max_length, prompt="")
    try:
        similarity = late_interaction.of_trace(trace, layer)
    except ValueError:
        st.info("The query or the document has only special tokens: there is nothing to compare.")
        return None
    of_query, of_document = trace.sentences
    code = shown_search.token_matches(
        backend,
        [asked.prompt + query, answered.prompt + document],
        (similarity.query_positions, similarity.document_positions),
        layer,
        asked.max_length,
    )
    return TokenMatches(similarity, of_query, of_document, layer, len(answered.prompt), code)


def figure(
    matches: TokenMatches, title: str, *, key: str, colour_bar: bool | Literal["above"] = True, **arguments: Any
) -> None:
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
        code=matches.code,
        alt=f"Cosines of {len(rows)} query tokens with {len(columns)} document tokens",
        digits=4,
        rows="query token",
        columns="document token",
        value="cosine",
        pale=True,
        colour_bar=colour_bar,
        show_values=len(columns) <= MOST_VALUES,
        **arguments,
    )


@dataclass(frozen=True, eq=False)
class TrainedMatches:
    """A query and a document by the token vectors that a model was trained to compare."""

    model: str  # its title
    products: Float32  # [query token, document token]
    query_pieces: tuple[str, ...]  # with their positions
    document_pieces: tuple[str, ...]
    message: str  # the score, and what it is made of


def of_trained_vectors(
    backend: Backend, query: str, document: str, max_length: int | None = None
) -> TrainedMatches | None:
    """The products of a late-interaction model's token vectors; None if a text has none, which is said."""
    trained, vectors, pieces = backend.late_interaction, [], []
    for text, role in zip((query, document), ROLES, strict=True):
        vectors.append(caching.trained_token_vectors(backend, text, role, max_length))
        of_text, positions = backend.multi_vector_pieces(text, role, max_length=max_length)
        pieces.append(tuple(f"{position} {piece[:24]}" for position, piece in zip(positions, of_text, strict=True)))
    if trained is None or not all(map(len, vectors)):
        st.info("The query or the document has no token with a vector: there is nothing to compare.")
        return None
    (score,) = trained_scores(backend, vectors[0], vectors[1:])
    message = (
        f"MaxSim by {messages.escape(backend.spec.title)} is {numbers.number(score, 2)}: the best product of each of the "
        "query's "
    )
    message += f"{len(vectors[0])} token vectors, " + ("on average." if trained.is_mean else "added up.")
    expansion = trained.readings["query"].expansion
    if expansion is not None:
        added = messages.escape(backend.tokenization.vocabulary[expansion.token])
        message += f" The model fills the query up with {added}, whose vectors count too."
    return TrainedMatches(backend.spec.title, vectors[0] @ vectors[1].T, pieces[0], pieces[1], message)


def trained_figure(matches: TrainedMatches, *, key: str, **arguments: Any) -> None:
    """Draw the products of all token vectors; the other arguments are those of `figures.figure`, such as its message."""
    rows, columns = list(matches.query_pieces), list(matches.document_pieces)
    figures.figure(
        matrices.token_matrix(
            matches.products,
            rows,
            columns,
            f"Token vectors of {matches.model}",
            rows="query token",
            columns="document token",
            value="dot product",
            show_values=len(columns) <= MOST_VALUES and len(rows) <= MOST_VALUES,
        ),
        key=key,
        code=Command(late_interaction_scores),
        alt=f"Dot products of {len(rows)} query token vectors with {len(columns)} of the document",
        table=lambda: pd.DataFrame(matches.products.round(4), columns=columns).assign(query=rows)[["query", *columns]],
        **arguments,
    )


def cut_note(text: str, most: int) -> str:
    """What to say where only the beginning of a text is explained; empty where all of it is."""
    if len(text) <= most:
        return ""
    return (
        f"The text has {len(text):,} characters, of which only the first {most:,} are explained here. The score was computed "
        "from as many tokens as the model reads, so that the numbers below can differ from it."
    )
