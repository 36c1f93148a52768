"""Why a sentence is a hit: the score that ranked it as a sum over words, and beside it the two texts token by token."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from components.charts.theme import number
from components.numbers import apart
from components.retrieval.search import words
from components.retrieval.search.score_split import SQUARE, STORED, split_of_vectors
from components.shown_code.code import Command
from components.shown_code.commands import why as why_command
from dashboard import caching, navigation, pair_links, state
from dashboard.ui import controls, figures, messages, token_matches
from dashboard.ui.wording import SIMILARITY_NAMES
from dashboard.views.search import shading, splade, why_score
from dashboard.views.search.ranked import Explained

if TYPE_CHECKING:
    import numpy as np

    from components.analysis.similarity.late_interaction import MaxSim
    from components.jobs import Job
    from components.model.backend import Backend
    from components.model.trace import Pooling, TokenizedSentence
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.exact import Similarity
    from components.retrieval.search.score_split import ScoreSplit
    from components.retrieval.search.splade import SpladeRanker
    from dashboard.views.search.ranked import Ranked
    from dashboard.views.search.request import SearchRequest


MOST_CHARACTERS = 15_000
UNITS = {
    "dot": "dot product",
    "euclidean": "negative Euclidean distance",
    "manhattan": "negative Manhattan distance",
}


def by_vectors(
    request: SearchRequest,
    index: VectorIndex,
    layer: int,
    pooling: Pooling,
    similarity: Similarity,
    scores: np.ndarray,
) -> Explained:
    """How a ranking by the vectors of a model says why: by the split of the cosine or dot product that it ranked by.

    `scores` are those of the ranking, [sentence].
    """
    backend, query, corpus = request.backend, request.query, request.corpus
    options = index.info.options
    reason = backend.structure.why_not("tokens")
    if reason:
        return Explained(said=f"Single tokens are not compared: **{messages.escape(backend.spec.title)}** {reason}.")
    asked = backend.embed_options([layer], max_length=options.max_length, precision="float32", role="query")

    def split(row: int) -> ScoreSplit:
        whole = corpus.texts[row]
        trace = backend.trace(
            [asked.prompt + query, options.prompt + whole[:MOST_CHARACTERS]], max_length=options.max_length, prompt=""
        )
        stored = STORED if len(whole) <= MOST_CHARACTERS else f"the rest of the text, and {STORED}"
        prompts = (len(asked.prompt), len(options.prompt))
        return split_of_vectors(trace, layer, pooling, similarity, float(scores[row]), prompts, stored)

    def shaded(rows: Sequence[int], where: str) -> Job | None:
        return shading.of_vectors(request, index, layer, pooling, rows, where)

    def code(row: int) -> Command:
        texts, prompts = (query, corpus.texts[row]), (asked.prompt, options.prompt)
        is_split = similarity == "cosine" and len(texts[1]) <= MOST_CHARACTERS
        split_by = why_command(backend, texts, layer, pooling, options.max_length, prompts) if is_split else ()
        return Command(split_of_vectors, split_by)

    return Explained(split, code, shaded)


def why(
    request: SearchRequest,
    rankings: Sequence[Ranked],
    of_splade: SpladeRanker | None = None,
    trained: Backend | None = None,
) -> None:
    """The explanation of the hit that was clicked, if any: of its score in one of the `rankings`, or MaxSim beside it.

    `of_splade` is the SPLADE ranking that the hits are compared with, and `trained` the late-interaction model that they are
    compared by; without it, the page's own model is explained by its trained vectors if it has some.
    """
    row = request.explained
    if row is None:
        return
    if not 0 <= row < len(request.corpus):
        state.put("why", None)
        return
    with st.container(border=True, key="why"):
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", wrap=False, key="why_head"
        ):
            figures.subheader(f"Why is number {row} a hit?")
            st.button("Close", key="close_why", icon=":material/close:", on_click=lambda: state.put("why", None))
        if is_cut := token_matches.cut_note(request.corpus.texts[row], MOST_CHARACTERS):
            st.caption(is_cut)
        by = _choice(request, rankings)
        chosen = None if by == "maxsim" else dict(zip(("first", "second"), rankings, strict=False)).get(by)
        if by == "second" and chosen is None:
            st.caption("The other list is not there yet.")
        elif chosen is None or chosen.explained.is_max_sim:
            _max_sim(request, row, trained, is_ranking=chosen is not None)
        elif chosen.explained.is_splade and of_splade is not None:
            splade.explanation(of_splade, request, row)
        else:
            _score(chosen, row)
        text = request.corpus.texts[row][:MOST_CHARACTERS]
        shared = words.common(words.shared_words(request.query, text), text)
        st.markdown(f"**Shared words:** {messages.escape(', '.join(shared)) if shared else 'none'}")
        if not request.backend.structure.why_not(
            "blocks"
        ):  # the view of the split shows what the blocks of an encoder do
            _links(request, row, text)


def _choice(request: SearchRequest, rankings: Sequence[Ranked]) -> str:
    """Whose score is explained: that of the "first" or the "second" ranking, or "maxsim" beside them; a choice is drawn."""
    offered = {name: messages.escape(ranked.name) for name, ranked in zip(("first", "second"), rankings, strict=False)}
    if request.compare_with != "none":
        offered.setdefault("second", "The other list")  # it may still be computed
    if not any(ranked.explained.is_max_sim for ranked in rankings) and request.compare_with != "maxsim":
        offered["maxsim"] = "MaxSim (did not rank it)"
    if state.get("why_by") not in offered:  # of rankings that are no longer there
        state.put("why_by", "first")
    return controls.choice("why_by", "Explain the score of", offered, show_label=False)


def _score(ranked: Ranked, row: int) -> None:
    """Explain the score that a ranking gave a sentence."""
    score, explained = float(ranked.scores[row]), ranked.explained
    unit = UNITS.get(ranked.unit, ranked.unit)
    if math.isnan(score):
        st.info(
            f"**{messages.escape(ranked.name)}** gave this sentence no score: it is not among those that it looked at."
        )
        return
    if explained.split is None or explained.code is None:
        st.info(explained.said.replace("{score}", f"a {ranked.unit} of {number(score)}"))
        return
    split = explained.split(row)
    if split.one_token:
        st.info(
            f"**The {unit} {number(score)} is no sum over words here:** with \\[CLS\\], a text's vector is that of its first "
            "token. “Why is this here?” splits it by what each block and head added, and by the words as typed."
        )
        return
    if split.of:
        distance = SIMILARITY_NAMES[ranked.unit]
        st.caption(
            f"This hit was ranked by its {distance}, {number(-score)}, which is no sum over words. "
            + (
                f"Its negative square, {number(split.score)}, is one and orders hits alike: it is split here."
                if split.of == SQUARE
                else f"Split here is the cosine of the same two vectors, {number(split.score)}: **not how it was ranked.**"
            )
        )
    why_score.draw(split, split.of or unit, explained.code(row))


def _max_sim(request: SearchRequest, row: int, trained: Backend | None, is_ranking: bool) -> None:
    """Query and hit token by token. `is_ranking`: one of the lists is ranked by it."""
    backend, query = request.backend, request.query
    text = request.corpus.texts[row][:MOST_CHARACTERS]  # a row may be a whole book, far more than the model reads
    if trained is None and backend.late_interaction is not None:
        trained = backend
    if trained is not None:
        _trained_matrix(trained, query, text)
    reason = backend.structure.why_not("tokens")
    if reason:
        st.info(f"Single tokens are not compared: **{messages.escape(backend.spec.title)}** {reason}.")
        return
    matches = token_matches.of_texts(backend, query, text, request.layer, request.max_length)
    if matches is None:
        return
    similarity, layer = matches.similarity, matches.layer
    _marked(similarity, matches.document, matches.prompt_length)
    _best_table(similarity, matches.query, matches.document)
    baseline = caching.token_baseline(backend)
    usual = float(baseline.raw.mean[layer]) if baseline.is_measured else math.nan
    mean, of_unrelated = apart(similarity.mean, usual)
    unrelated = (
        f"Two unrelated tokens have a cosine of {of_unrelated} on average here."
        if baseline.is_measured
        else messages.no_baseline(baseline)
    )
    of_hidden = " of the hidden states" if backend.late_interaction is not None else ""
    has_ranked = is_ranking and trained is None
    beside = "" if has_ranked else "**Not how this hit was ranked.** "
    token_matches.figure(
        matches,
        f"MaxSim, layer {layer}" if has_ranked else f"MaxSim, layer {layer}: not how it was ranked",
        key="why_matrix",
        message=f"{beside}MaxSim{of_hidden}, the sum of each query token's best cosine, is {number(similarity.total, 3)}; the "
        f"mean of these cosines is {mean}. {unrelated}",
        read="Every row is a query token; its bluest cell is the document token that matches it best ([Khattab and "
        "Zaharia 2020](https://arxiv.org/abs/2004.12832)).",
        not_shown=("" if has_ranked else "How the hit was found: the search compares one vector per sentence. ")
        + "MaxSim is also one-sided: it ignores what the sentence says beyond the query.",
    )


def _links(request: SearchRequest, row: int, text: str) -> None:
    """Links to the hit's score as a sum, and to the search as one that should have found this sentence."""
    with st.container(horizontal=True, gap="small", key="why_links"):
        pair_links.button("Why is this here?", request.query, text, "score-split", key="why_here")
        if st.button("Why is this text not first?", icon=":material/swap_vert:", key="why_not_first"):
            navigation.go_to(
                "failed-search",
                typed_query=request.query,
                right_row=row,
                layer=request.layer,
                pooling=request.pooling,
            )


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
    with st.expander("Which to choose: cosine or dot product, questions or sentences", icon=":material/help:"):
        st.markdown(
            "**Length:** the dot product grows with a vector's length, so long vectors rank high for every query; the cosine "
            "removes length. Models trained with dot products keep information in the length.  \n"
            "**Symmetric or not:** a sentence model searches for sentences that say the same. To find passages that answer a "
            "short query is another task; models trained on MS MARCO are made for it.  \n"
            "**Shared words** are marked in the hits, except words such as “the” and “at”. A hit without shared words was "
            "found by its vector alone."
        )
