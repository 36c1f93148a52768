"""Why a sentence is a hit: the similarity of query and sentence token by token, and the words they share."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.retrieval.search import words
from dashboard import caching, navigation, pair_links, state
from dashboard.ui import controls, figures, messages, token_matches
from dashboard.views.search import splade

if TYPE_CHECKING:
    from components.analysis.similarity.late_interaction import MaxSim
    from components.model.backend import Backend
    from components.model.trace import TokenizedSentence
    from components.retrieval.search.splade import SpladeRanker
    from dashboard.views.search.request import SearchRequest


MOST_CHARACTERS = 15_000


def why(request: SearchRequest, of_splade: SpladeRanker | None = None, trained: Backend | None = None) -> None:
    """The explanation of the hit that was clicked, if any.

    `of_splade` is the SPLADE ranking that the hits are compared with, and `trained` the late-interaction model that they are
    compared by; without it, the page's own model is explained by its trained vectors if it has some.
    """
    backend, corpus, query, row = request.backend, request.corpus, request.query, request.explained
    if row is None:
        return
    if not 0 <= row < len(corpus):
        state.put("why", None)
        return
    with st.container(border=True, key="why"):
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", wrap=False, key="why_head"
        ):
            figures.subheader(f"Why is number {row} a hit?")
            st.button("Close", key="close_why", icon=":material/close:", on_click=lambda: state.put("why", None))
        if of_splade is not None:
            splade.explanation(of_splade, request, row)
        # A row of a file may be a whole book: far more than the model reads is not even tokenized.
        text = corpus.texts[row][:MOST_CHARACTERS]
        if is_cut := token_matches.cut_note(corpus.texts[row], MOST_CHARACTERS):
            st.caption(is_cut)
        if trained is None and backend.late_interaction is not None:
            trained = backend
        if trained is not None:
            _trained_matrix(trained, query, text)
        if not backend.structure.why_not("blocks"):  # the page Why splits what the blocks of an encoder do
            _links(request, row, text)
        reason = backend.structure.why_not("tokens")
        if reason:
            shared = words.common(words.shared_words(query, text), text)
            st.markdown(f"**Shared words:** {messages.escape(', '.join(shared)) if shared else 'none'}")
            st.info(f"Single tokens are not compared: **{messages.escape(backend.spec.title)}** {reason}.")
            return
        matches = token_matches.of_texts(backend, query, text, request.layer, request.max_length)
        if matches is None:
            return
        similarity, layer = matches.similarity, matches.layer
        _marked(similarity, matches.document, matches.prompt_length)
        spans = words.shared_words(query, text)
        shared = words.common(spans, text)
        st.markdown(f"**Shared words:** {messages.escape(', '.join(shared)) if shared else 'none'}")
        _best_table(similarity, matches.query, matches.document)
        baseline = caching.token_baseline(backend)
        unrelated = (
            f"Two unrelated tokens have a cosine of {baseline.raw.mean[layer]:.2f} on average here."
            if baseline.is_measured
            else messages.no_baseline(baseline)
        )
        token_matches.figure(
            matches,
            f"Query and sentence, layer {layer}",
            key="why_matrix",
            message=f"MaxSim{' of the hidden states' if backend.late_interaction is not None else ''}, the sum of each query "
            f"token's best cosine, is {similarity.total:.2f}; the mean of these cosines is {similarity.mean:.2f}. {unrelated}",
            read="Every row is a query token; its brightest cell is the document token that matches it best ([Khattab and "
            "Zaharia 2020](https://arxiv.org/abs/2004.12832)).",
            not_shown="How the hit was found: the search compares one vector per sentence. MaxSim is also one-sided: it "
            "ignores what the sentence says beyond the query.",
        )


def _links(request: SearchRequest, row: int, text: str) -> None:
    """Links to the Why page: to the hit's score as a sum, and to the search as one that should have found this sentence."""
    with st.container(horizontal=True, gap="small", key="why_links"):
        pair_links.button("Why is this here?", request.query, text, "why", key="why_here")
        if st.button("Why is this text not first?", icon=":material/swap_vert:", key="why_not_first"):
            values = {"why_view": "debugger", "typed_query": request.query, "right_row": row, "layer": request.layer}
            for name, value in values.items():
                state.put(name, value)
            state.put("pooling", request.pooling)
            st.switch_page(navigation.page_of("why"))


def _trained_matrix(backend: Backend, query: str, text: str) -> None:
    """The comparison of the token vectors that a model was trained to give."""
    matches = token_matches.of_trained_vectors(backend, query, text, controls.length_for(backend))
    if matches is not None:
        token_matches.trained_figure(
            matches,
            key="trained_matrix",
            message=matches.message,
            read=token_matches.TRAINED_READ,
            not_shown="Tokens without a vector, such as punctuation marks of the sentence. What follows compares hidden "
            "states.",
        )


def _marked(similarity: MaxSim, hit: TokenizedSentence, prompt_length: int) -> None:
    """The sentence, its tokens marked more strongly the better they match a query token; without the model's prompt."""
    low = 0.3  # a cosine that gets the weakest mark
    pieces, end = [], prompt_length
    for position, weight in zip(similarity.document_positions, similarity.weights, strict=True):
        token = hit.tokens[position]
        if token.start >= end and weight > 0:
            strength = max(0.12, (float(weight) - low) / (1 - low))
            pieces.append(html.escape(hit.text[end : token.start]))
            pieces.append(
                f'<span style="background: rgba(230, 159, 0, {0.75 * strength:.2f}); border-radius: 3px">'
                f"{html.escape(hit.text[token.start : token.end])}</span>"
            )
            end = token.end
    pieces.append(html.escape(hit.text[end:]))
    figures.markup(f'<p style="font-size: 1.15rem; line-height: 1.6; margin: 0">{"".join(pieces)}</p>', "why_marked")


def _best_table(similarity: MaxSim, query: TokenizedSentence, hit: TokenizedSentence) -> None:
    st.dataframe(
        pd.DataFrame(
            [
                {
                    "query token": query.tokens[position].piece,
                    "best match": hit.tokens[similarity.document_positions[column]].piece,
                    "cosine": float(similarity.matrix[row, column]),
                }
                for row, (position, column) in enumerate(zip(similarity.query_positions, similarity.best, strict=True))
            ]
        ),
        hide_index=True,
        key="why_best",
        column_config={"cosine": st.column_config.ProgressColumn(format="%.3f", min_value=0.0, max_value=1.0)},
    )


def notes() -> None:
    with st.expander("Cosine or dot product? Questions or sentences?", icon=":material/help:"):
        st.markdown(
            "**Length:** the dot product grows with a vector's length, so long vectors rank high for every query; the cosine "
            "removes length. Models trained with dot products keep information in the length.  \n"
            "**Symmetric or not:** a sentence model searches for sentences that say the same. To find passages that answer a "
            "short query is another task; models trained on MS MARCO are made for it.  \n"
            "**Shared words** are marked in the hits, except words such as “the” and “at”. A hit without shared words was "
            "found by its vector alone."
        )
