"""SPLADE on the Search page: its ranking, the pieces of a query, and what each piece adds to the score of a hit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.charts.retrieval import pieces as charts
from components.retrieval.search.splade import SpladeRanker
from components.shown_code.search import pieces as code_of_pieces
from dashboard import state
from dashboard.jobs import splade
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import figures, messages, model_gate
from dashboard.ui.waiting import frame
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from components.model.backend import Backend
    from components.model.embedding.sparse_vectors import ExpandedPieces
    from components.retrieval.search.splade import SharedPieces
    from components.shown_code.code import AnyCode
    from dashboard.views.search.request import SearchRequest

SHOWN_PIECES = 15
WHICH_MODELS = (
    "SPLADE needs a model that was published as one and saved in sentence-transformers' format (a masked-LM head followed "
    "by SpladePooling), such as sparse-encoder/example-splade-distilbert-base-uncased-nq."
)


def ranker(request: SearchRequest) -> SpladeRanker:
    """The ranking of the corpus by the model, or else by the second one. Raises NotReady, also if neither is SPLADE."""
    backends = [request.backend]
    if request.backend.splade is None and state.get("model2"):
        second = model_gate.second_model()
        backends += [] if second is None else [second]
    backend = next((backend for backend in backends if backend.splade is not None), None)
    if backend is None:
        raise frame.Instead(partial(_no_model, backends))
    return splade.ranker(EmbedRequest.of_session(backend), request.corpus, "search")


def _no_model(backends: Sequence[Backend]) -> None:
    """Say that none of these models is SPLADE, which models are, and why one that was published as SPLADE is not used."""
    reasons = [
        f"{messages.escape(backend.spec.title)} is not used: {messages.escape(backend.loaded.not_given)}."
        for backend in backends
        if backend.loaded.not_given and backend.late_interaction is None
    ]
    st.info(" ".join([WHICH_MODELS, "Choose one as the model, or as the second model, in the sidebar.", *reasons]))


def query_pieces(of_corpus: SpladeRanker, request: SearchRequest) -> None:
    """The pieces to which the model gives a weight for this query."""
    read = (of_corpus.backend, request.query, request.query, of_corpus.max_length)
    _pieces_figure(
        of_corpus.query_pieces(request.query), "query", "query_pieces", partial(code_of_pieces, *read, "query")
    )


def explanation(of_corpus: SpladeRanker, request: SearchRequest, row: int) -> None:
    """What each piece adds to the score of a sentence, and the sentence's own pieces."""
    query, text = request.query, request.corpus.texts[row]
    read = (of_corpus.backend, query, text, of_corpus.max_length)
    shared = of_corpus.shared_pieces(query, text, row)
    if not shared.pieces:
        st.info("SPLADE: the query and the sentence share no piece, so that their score is 0.")
    else:
        _contributions(shared, partial(code_of_pieces, *read, "both"))
    _pieces_figure(
        of_corpus.sentence_pieces(text, row), "sentence", "hit_pieces", partial(code_of_pieces, *read, "sentence")
    )


def _contributions(shared: SharedPieces, code_of: Callable[[int], AnyCode]) -> None:
    contributions, sources = shared.contributions, _sources(shared)
    count, total = len(shared.pieces), float(shared.contributions.sum(dtype=np.float64))
    shown = min(count, SHOWN_PIECES)
    of_added = float(contributions[[source != "in both texts" for source in sources]].sum(dtype=np.float64))
    message = f"SPLADE's score of {numbers.number(total, 2)} is the sum of {counted(count, 'shared piece')}"
    message += f": pieces that the model added give {100 * of_added / total:.0f} % of it."
    if shown < count:
        rest = 100 * float(contributions[shown:].sum(dtype=np.float64)) / total
        message += f" The {count - shown} that are not shown give {rest:.0f} %."
    figures.figure(
        charts.piece_bars(
            shared.pieces[:shown], contributions[:shown], sources[:shown], "What each piece adds to the score", "points"
        ),
        key="splade_contributions",
        code=code_of(shown),
        alt=f"Bars of what the {shown} strongest of {count} shared pieces add to SPLADE's score of {numbers.number(total, 2)}",
        message=message,
        read="Each bar is a piece that has a weight in both texts: its weight in the query times that in the sentence. All "
        "bars together are the score ([Formal et al. 2021](https://arxiv.org/abs/2109.10086)).",
        not_shown="Why the model gives a piece its weight. A piece of a longer word may be added without the word.",
        table=lambda: pd.DataFrame(
            {
                "piece": shared.pieces,
                "adds to the score": contributions.round(5),
                "weight in the query": shared.query_weights.round(5),
                "weight in the sentence": shared.sentence_weights.round(5),
                "where it is": sources,
            }
        ),
    )


def _sources(shared: SharedPieces) -> list[str]:
    """Which of the two texts has each piece."""
    names = {
        (True, True): "in both texts",
        (True, False): "added to the sentence",
        (False, True): "added to the query",
        (False, False): "added to both",
    }
    return [names[both] for both in zip(shared.in_query, shared.in_sentence, strict=True)]


def _pieces_figure(pieces: ExpandedPieces, of: str, key: str, code_of: Callable[[int], AnyCode]) -> None:
    """The heaviest pieces of a text; `of` says which text it is."""
    count = len(pieces.pieces)
    if not count:
        st.info(f"SPLADE gives no piece of the vocabulary a weight for this {of}.")
        return
    sources = ["in the text" if is_own else "added by the model" for is_own in pieces.in_text]
    shown, added = min(count, SHOWN_PIECES), sources.count("added by the model")
    words = [messages.escape(piece) for piece, is_own in zip(pieces.pieces, pieces.in_text, strict=True) if not is_own]
    message = f"SPLADE gives {counted(count, 'piece')} of the vocabulary a weight for this {of}; {added} of them are not in it"
    message += f", above all {', '.join(words[:3])}." if words else "."
    figures.figure(
        charts.piece_bars(
            pieces.pieces[:shown], pieces.weights[:shown], sources[:shown], f"The heaviest pieces of the {of}"
        ),
        key=key,
        code=code_of(shown),
        alt=f"Bars of the {shown} heaviest of {count} pieces of the {of}",
        message=message,
        read="Each bar is a piece of the vocabulary with its weight. Blue pieces are in the text, orange ones were added by "
        "the model. The longer the bar, the more a sentence that has the piece gains.",
        not_shown="Pieces beyond the first ones: they are in the data of the figure." if shown < count else "",
        table=lambda: pd.DataFrame({"piece": pieces.pieces, "weight": pieces.weights.round(5), "where it is": sources}),
    )
