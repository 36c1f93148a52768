"""The Search page's results: live hits by vectors, another ranking beside them, and judgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import histogram
from components.model.trace import Pooling
from components.retrieval.search import words
from components.retrieval.search.exact import top
from components.retrieval.search.lexical import TITLES
from dashboard import caching, state
from dashboard.jobs import embedding, rankers
from dashboard.ui import controls, figures, messages, model_gate
from dashboard.ui.wording import POOLING_NAMES
from dashboard.views.search import judging, why
from dashboard.views.search.hit_list import Hit, hit_list
from dashboard.views.search.request import SearchRequest, vectors_key

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.exact import Similarity

READY_QUERIES = (
    "volcano erupted",
    "election results announced",
    "new tech company launched",
    "bridge collapses after storm",
    "local sports team wins championship",
    "actor wins award",
)
SIMILARITY_NAMES = {"cosine": "Cosine", "dot": "Dot product"}
SIMILARITY_HELP = (
    "Cosine: how far two vectors point the same way, whatever their length. Dot product: cosine times both lengths."
)
COMPARISONS = {"none": "Nothing", "setting": "Another setting", "model": "Second model", **TITLES}
COMPARISON_NOTES = {
    "bow": "Bag of words: cosine of the counts of words. No meaning, no order.",
    "tfidf": "TF-IDF: as bag of words, but a rare word counts more.",
    "lsa": "LSA: TF-IDF reduced to the main directions in which words occur together, so that related words help.",
    "bm25": "BM25: rare words count more, repetition counts less and less, long sentences lose.",
    "jm": "Jelinek-Mercer: the log-probability of the query if it were drawn from the sentence's words mixed with the "
    "corpus's. Nearer 0 is better.",
    "static": "Static vectors: the mean of one fixed vector a word, whatever its sentence.",
}
TIE = 1e-6  # scores this close are the same
TAGS = ("topic", "label", "category")  # columns shown beside a hit


@dataclass(frozen=True, eq=False)
class Ranked:
    """One ranking of the corpus."""

    title: str
    unit: str  # what the score is
    scores: np.ndarray  # float32 [sentence]
    best: np.ndarray  # int64 [hit]: the first k that are hits
    first_ten: np.ndarray  # int64 [hit]: the same for k = 10, which precision is counted of


def results(backend: Backend, corpus: Corpus) -> None:
    """The query, the hits as it is typed, what stands beside them, and why the hit that was clicked came."""
    _query_controls()
    request = SearchRequest.of_session(backend, corpus)
    index = embedding.index_of(backend, corpus, "main")
    if not request.query.strip():
        st.info("**Nothing to look for yet.** Type a few words, or choose a ready-made query.", icon=":material/edit:")
        return
    rankings: list[Ranked] = []
    if index is not None:
        layer, pooling = _layer_and_pooling(index, "", "layer", "pooling")
        messages.head_note([backend], pooling, layer)
        request = replace(request, layer=layer, pooling=pooling)
        if _unknown(request):
            st.warning(
                "The model knows no piece of this query, so its vector says nothing about it: nor do these hits."
            )
        rankings.append(_by_vectors(request, backend, index, layer, pooling, request.similarity))
    other = _compared(request, index)
    if other is not None:
        rankings.append(other)
    if not rankings:
        return
    _side_by_side(request, rankings)
    why.why(request)
    why.notes()
    judging.precision([(ranked.title, ranked.first_ten) for ranked in rankings], request)
    for number, ranked in enumerate(rankings):
        if len(ranked.best):
            _spread(ranked, corpus, number)


def _query_controls() -> None:
    controls.bind(
        "query",
        st.text_input,
        "Look for",
        after_change=lambda: state.put("why", None),  # what was explained belonged to the last query
        live=True,
        type="search",
        max_chars=1_000,
        placeholder="Type a few words; hits follow as you type",
    )
    st.session_state["w_ready_query"] = state.get("query") if state.get("query") in READY_QUERIES else None
    st.pills(
        "Ready-made queries",
        READY_QUERIES,
        key="w_ready_query",
        label_visibility="collapsed",
        on_change=_ready_query,
    )
    left, middle, right = st.columns([3, 3, 4])
    with left:
        controls.number("k", "Hits (k)", 1, 100, 10)
    with middle:
        controls.choice("similarity", "Similarity", SIMILARITY_NAMES, SIMILARITY_HELP)
    with right:
        controls.pick(
            "beside",
            "Compare with",
            COMPARISONS,
            "A second ranking of the same corpus: another layer or pooling, the second model of the sidebar, a ranking "
            "by words alone (bag of words, TF-IDF, LSA, BM25, a language model), or by one fixed vector a word.",
        )


def _ready_query() -> None:
    query = st.session_state["w_ready_query"]
    if query in READY_QUERIES:  # another one: what was explained belonged to the last
        state.put("query", query)
        state.put("why", None)


def _unknown(request: SearchRequest) -> bool:
    """Whether the model knows no piece of the query."""
    unknown = request.backend.tokenization.unknown_id
    (asked,) = request.backend.tokenize([request.query], max_length=request.max_length)
    pieces = [token.id for token in asked.tokens if not token.special]
    return unknown is not None and all(piece == unknown for piece in pieces)


def _layer_and_pooling(index: VectorIndex, suffix: str, layer_key: str, pooling_key: str) -> tuple[int, Pooling]:
    """Pickers of what the index has; where it has one, there is nothing to pick."""
    layers, poolings = index.info.options.layers, index.info.options.poolings
    left, right = st.columns([3, 2])
    layer, words = layers[-1], caching.glossary()
    if len(layers) > 1:
        layer = controls.bind(
            layer_key, left.select_slider, f"Layer{suffix}", options=layers, default=layer, help=words["layer"]
        )
    with right:
        pooling = controls.pooling(pooling_key, f"Sentence vector (pooling){suffix}", POOLING_NAMES, poolings)
    return int(layer), pooling


def _by_vectors(
    request: SearchRequest,
    backend: Backend,
    index: VectorIndex,
    layer: int,
    pooling: Pooling,
    similarity: Similarity,
    title: str = "",
) -> Ranked:
    """The corpus by the scores of a model's vectors at a layer and pooling."""
    vectors = caching.query_vectors(vectors_key(index.info), (request.query,), backend, index.info)
    scores = index.engine(layer, pooling).scores(vectors[layer, pooling][0], similarity)
    title = title or f"Layer {layer}, {POOLING_NAMES[pooling]}, {SIMILARITY_NAMES[similarity].lower()}"
    return Ranked(title, similarity, scores, top(scores, request.k), top(scores, 10))


def _compared(request: SearchRequest, index: VectorIndex | None) -> Ranked | None:
    """The second ranking that was asked for; None where there is none, or none yet."""
    if request.compare_with == "setting" and index is not None:
        layer, pooling = _layer_and_pooling(index, ", right", "layer2", "pooling2")
        similarity = cast("Similarity", controls.choice("similarity2", "Similarity, right", SIMILARITY_NAMES))
        return _by_vectors(request, request.backend, index, layer, pooling, similarity)
    if request.compare_with == "model":
        return _by_second_model(request)
    if request.compare_with in TITLES:
        kind = request.compare_with
        ranker = rankers.word_ranker(request.backend, request.corpus, kind)
        scores = ranker.scores(request.query)
        unit = {"bm25": "BM25 score", "jm": "log-probability"}.get(kind, "cosine")
        return Ranked(ranker.title, unit, scores, _hits(request, scores, request.k), _hits(request, scores, 10))
    return None


def _by_second_model(request: SearchRequest) -> Ranked | None:
    second = model_gate.second_model()
    if second is None:
        if not state.get("model2"):
            st.info("Choose a second model under “Compare with” in the sidebar.")
        return None
    messages.cross_encoder_note([second], after=[request.backend])
    index = embedding.index_of(second, request.corpus, "second")
    if index is None:
        return None
    layer, pooling = _layer_and_pooling(index, ", right", "layer2", "pooling2")
    title = f"{messages.escape(second.spec.title)}, layer {layer}"
    return _by_vectors(request, second, index, layer, pooling, "cosine", title)


def _hits(request: SearchRequest, scores: np.ndarray, k: int) -> np.ndarray:
    """The first k of a lexical or static ranking that have anything in common with the query."""
    best = top(scores, k)
    if request.compare_with != "jm":
        return best[scores[best] > 0]
    floor = scores.min()  # the log-probability of sentences without any of the query's words
    texts = request.corpus.texts
    return np.array(
        [row for row in best if scores[row] > floor or words.shared_words(request.query, texts[row])], np.int64
    )


def _side_by_side(request: SearchRequest, rankings: Sequence[Ranked]) -> None:
    corpus, query = request.corpus, request.query
    marks = judging.judgements(corpus).of(query)
    if len(rankings) == 2:
        st.caption(f"▲ ▼ = : its rank against the list beside; “only here”: not among the {request.k} hits there.")
    ranks = [{int(row): rank for rank, row in enumerate(ranked.best, start=1)} for ranked in rankings]
    for number, (column, ranked) in enumerate(zip(st.columns(len(rankings)), rankings, strict=True)):
        others = ranks[1 - number] if len(rankings) == 2 else None
        hits = [
            Hit(
                rank=rank,
                index=int(row),
                text=corpus.texts[row],
                score=float(ranked.scores[row]),
                tag=_tag(corpus, int(row)),
                shared=words.shared_words(query, corpus.texts[row]),
                other_rank=None if others is None else others.get(int(row), 0),
                relevant=marks.get(int(row)),
                picked=request.explained == int(row),
            )
            for rank, row in enumerate(ranked.best, start=1)
        ]
        with column:
            st.markdown(f"**{ranked.title}**")
            if number and request.compare_with in COMPARISON_NOTES:
                st.caption(COMPARISON_NOTES[request.compare_with])
            if not len(ranked.best):
                st.info("No sentence shares a word with the query.")
                continue
            _ties(ranked)
            hit_list(
                hits,
                f"hits_{number}",
                on_pick=_explain,
                on_mark=_marker(corpus.content_hash, query),
                pick_hint="Click to see why it came",
                answer=".st-key-why",
                scale=controls.scale(),
            )
            figures.data(f"hits_{number}", lambda ranked=ranked: _table(ranked, corpus))  # type: ignore[misc]


def _explain(row: int) -> None:
    """A click opens the explanation of a hit, a second one closes it."""
    state.put("why", None if state.get("why") == row else row)


def _marker(corpus_hash: str, query: str) -> Callable[[int, bool | None], None]:
    """What a mark does. Made apart: a widget keeps its callback, and must not keep a corpus with it."""
    return lambda row, relevant: judging.mark(corpus_hash, query, row, relevant)


def _ties(ranked: Ranked) -> None:
    """Say so where chance decides which sentences are shown: many have the last hit's score."""
    last = ranked.scores[ranked.best[-1]]
    margin = TIE * max(1.0, abs(float(last)))
    tied = int(np.count_nonzero(np.abs(ranked.scores - last) <= margin))
    shown = int(np.count_nonzero(np.abs(ranked.scores[ranked.best] - last) <= margin))
    if tied > shown:
        st.warning(
            f"{tied:,} sentences have the same score as the last hit, and {shown} of them are shown: which ones, and in which "
            "order, means nothing (it is the corpus's)."
        )


def _tag(corpus: Corpus, row: int) -> str:
    return next((corpus.columns[name][row] for name in TAGS if name in corpus.columns), "")


def _table(ranked: Ranked, corpus: Corpus) -> pd.DataFrame:
    own = {
        "rank": range(1, len(ranked.best) + 1),
        "number": ranked.best,
        ranked.unit: ranked.scores[ranked.best].round(6),
        "text": [corpus.texts[row] for row in ranked.best],
    }
    return pd.DataFrame(own | figures.corpus_columns(own, corpus.columns, ranked.best))


def _spread(ranked: Ranked, corpus: Corpus, number: int) -> None:
    figures.figure(
        histogram.score_histogram(
            ranked.scores,
            ranked.best,
            f"All {len(corpus):,} scores: {ranked.title}",
            value=ranked.unit,
            scale=controls.scale(),
        ),
        key=f"spread_{number}",
        alt=f"Histogram of {len(corpus):,} scores, {ranked.title}; the {len(ranked.best)} shown are marked",
        message=f"{ranked.title}: the best hit has {ranked.scores[ranked.best[0]]:.3f}, half of all sentences have at most "
        f"{float(np.median(ranked.scores)):.3f}.",
        read="Bars count sentences by score (each line up is ten times as many); the orange marks are the hits shown.",
        not_shown="Whether a hit is relevant. A gap between the hits and the rest speaks for them; scores of different "
        "models, layers or methods do not compare.",
        table=lambda: pd.DataFrame({"number": range(len(ranked.scores)), ranked.unit: ranked.scores}),
    )
