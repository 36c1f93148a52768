"""The Search page's results: live hits by vectors, another ranking beside them, and judgements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis import late_interaction
from components.charts import histogram
from components.model.trace import POOLINGS, Pooling
from components.retrieval.lexical import TITLES
from components.retrieval.relevance import Judgements
from components.retrieval.search import top
from dashboard import caching, controls, corpora, embedding_jobs, feedback, state
from dashboard.embedding_jobs import POOLING_NAMES
from dashboard.hit_list import Hit, hit_list

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpus import Corpus
    from components.retrieval.index import VectorIndex
    from components.retrieval.search import Similarity

READY_QUERIES = (
    "volcano erupted",
    "election results announced",
    "new tech company launched",
    "bridge collapses after storm",
    "local sports team wins championship",
    "actor wins award",
)
SIMILARITY_NAMES = {"cosine": "Cosine", "dot": "Dot product"}
BESIDE = {"none": "Nothing", "setting": "Another setting", "model": "Second model", **TITLES}
TAGS = ("topic", "label", "category")  # columns shown beside a hit


@dataclass(frozen=True, eq=False)
class Ranked:
    """One ranking of the corpus."""

    title: str
    unit: str  # what the score is
    scores: np.ndarray  # float32 [sentence]
    best: np.ndarray  # int64 [hit]: the first k


def vector_scores(
    backend: Backend, index: VectorIndex, query: str, layer: int, pooling: Pooling, similarity: Similarity
) -> np.ndarray:
    """Every sentence's score for a query, float32 [sentence]."""
    info = index.info
    key = (info.model, info.revision, info.options.layers, info.options.poolings, info.options.max_length)
    vectors = caching.query_vectors(key, (query,), backend, info)
    return index.engine(layer, pooling).scores(vectors[layer, pooling][0], similarity)


def results(backend: Backend, why: Callable[[], None]) -> None:
    """The query, the hits as it is typed, and what stands beside them; `why` draws the hit that was clicked."""
    corpus = corpora.current()
    query = _query()
    k, similarity, beside = _choices()
    index = embedding_jobs.index_of(backend, corpus, "main")
    if not query.strip():
        st.info("**Nothing to look for yet.** Type a few words, or choose a ready-made query.", icon=":material/edit:")
        return
    rankings: list[Ranked] = []
    layer, pooling = backend.facts.layers, POOLINGS[0]
    if index is not None:
        layer, pooling = _layer_and_pooling(index, "", "layer", "pooling")
        scores = vector_scores(backend, index, query, layer, pooling, similarity)
        title = f"Layer {layer}, {POOLING_NAMES[pooling]}, {SIMILARITY_NAMES[similarity].lower()}"
        rankings.append(Ranked(title, similarity, scores, top(scores, k)))
    if beside != "none":
        other = _beside(backend, index, corpus, query, beside, k)
        if other is not None:
            rankings.append(other)
    if not rankings:
        return
    _side_by_side(rankings, corpus, query)
    why()
    _why_notes()
    for number, ranked in enumerate(rankings):
        if len(ranked.best):
            _spread(ranked, corpus, number)
    _precision(rankings[0], query)


def _query() -> str:
    if st.session_state.get("w_query") != state.get("query"):
        st.session_state["w_query"] = state.get("query")
    st.text_input(
        "Look for",
        key="w_query",
        live=True,
        type="search",
        max_chars=1_000,
        placeholder="Type a few words; hits follow as you type",
        on_change=lambda: state.put("query", st.session_state["w_query"] or ""),
    )
    st.session_state["w_ready_query"] = state.get("query") if state.get("query") in READY_QUERIES else None
    st.pills(
        "Ready-made queries",
        READY_QUERIES,
        key="w_ready_query",
        label_visibility="collapsed",
        on_change=lambda: state.put("query", st.session_state["w_ready_query"] or state.get("query")),
    )
    return str(state.get("query"))


def _choices() -> tuple[int, Similarity, str]:
    left, middle, right = st.columns([3, 3, 4])
    with left:
        st.session_state["w_k"] = state.get("k")
        st.slider("Hits (k)", 1, 100, key="w_k", on_change=lambda: state.put("k", st.session_state["w_k"]))
    with middle:
        similarity = controls.choice("similarity", "Similarity", SIMILARITY_NAMES, caching.glossary()["dot product"])
    with right:
        st.session_state["w_beside"] = state.get("beside")
        st.selectbox(
            "Beside it",
            list(BESIDE),
            format_func=BESIDE.__getitem__,
            key="w_beside",
            on_change=lambda: state.put("beside", st.session_state["w_beside"]),
            help="A second ranking of the same corpus: another layer or pooling, the second model of the sidebar, or "
            "a ranking by words alone.",
        )
    return int(state.get("k")), cast("Similarity", similarity), str(state.get("beside"))


def _layer_and_pooling(index: VectorIndex, suffix: str, layer_key: str, pooling_key: str) -> tuple[int, Pooling]:
    """Pickers of what the index has; where it has one, there is nothing to pick."""
    layers, poolings = index.info.options.layers, index.info.options.poolings
    left, right = st.columns([3, 2])
    chosen = state.get(layer_key)
    if chosen is not None and chosen not in layers:
        state.put(layer_key, None)
        st.warning(f"Layer {chosen} was asked for, but the index has {', '.join(map(str, layers))}.")
        chosen = None
    layer = layers[-1] if chosen is None else chosen
    if len(layers) > 1:
        widget = f"w_{layer_key}"
        st.session_state[widget] = layer
        left.select_slider(
            f"Layer{suffix}",
            layers,
            key=widget,
            on_change=lambda: state.put(layer_key, st.session_state[widget]),
            help=caching.glossary()["layer"],
        )
    if len(poolings) > 1:
        with right:
            controls.choice(
                pooling_key,
                f"Sentence vector{suffix}",
                {name: POOLING_NAMES[name] for name in poolings},
                caching.glossary()["pooling"],
            )
    pooling = state.get(pooling_key)
    return int(layer), cast(Pooling, pooling if pooling in poolings else poolings[0])


def _beside(
    backend: Backend, index: VectorIndex | None, corpus: Corpus, query: str, beside: str, k: int
) -> Ranked | None:
    if beside == "setting" and index is not None:
        layer, pooling = _layer_and_pooling(index, ", right", "layer2", "pooling2")
        similarity = cast("Similarity", controls.choice("similarity2", "Similarity, right", SIMILARITY_NAMES))
        scores = vector_scores(backend, index, query, layer, pooling, similarity)
        title = f"Layer {layer}, {POOLING_NAMES[pooling]}, {SIMILARITY_NAMES[similarity].lower()}"
        return Ranked(title, similarity, scores, top(scores, k))
    if beside == "model":
        second = feedback.second_model()
        if second is None:
            st.info("Choose a second model under “Compare with” in the sidebar.")
            return None
        other = embedding_jobs.index_of(second, corpus, "second")
        if other is None:
            return None
        layer, pooling = _layer_and_pooling(other, ", right", "layer2", "pooling2")
        scores = vector_scores(second, other, query, layer, pooling, "cosine")
        return Ranked(f"{second.spec.title}, layer {layer}", "cosine", scores, top(scores, k))
    if beside in TITLES:
        ranker = _ranker(backend, corpus, beside)
        scores = ranker.scores(query)
        unit = {"bm25": "BM25 score", "jm": "log-probability"}.get(beside, "cosine")
        best = top(scores, k)
        if beside != "jm":  # a score of 0 is no hit: nothing in common with the query
            best = best[scores[best] > 0]
        return Ranked(ranker.title, unit, scores, best)
    return None


def _ranker(backend: Backend, corpus: Corpus, kind: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
    """A baseline; for static vectors an uploaded file's, if there is one, else the model's own input embeddings."""
    key = st.session_state.get("_static")
    uploaded = corpora.static_vectors().get(key) if kind == "static" and key else None
    if uploaded is not None:
        return caching.static_ranker(str(key), corpus.content_hash, uploaded, corpus)
    model = f"{backend.spec.key} {backend.revision}" if kind == "static" else ""
    return caching.ranker(kind, corpus.content_hash, model, corpus, backend)


def _side_by_side(rankings: Sequence[Ranked], corpus: Corpus, query: str) -> None:
    marks = judgements(corpus).of(query)
    places = [{int(at): rank for rank, at in enumerate(ranked.best, start=1)} for ranked in rankings]
    for number, (column, ranked) in enumerate(zip(st.columns(len(rankings)), rankings, strict=True)):
        others = places[1 - number] if len(rankings) == 2 else None
        hits = [
            Hit(
                rank=rank,
                index=int(at),
                text=corpus.texts[at],
                score=float(ranked.scores[at]),
                tag=_tag(corpus, int(at)),
                shared=late_interaction.shared_words(query, corpus.texts[at]),
                other_rank=None if others is None else others.get(int(at), 0),
                relevant=marks.get(int(at)),
                picked=state.get("why") == int(at),
            )
            for rank, at in enumerate(ranked.best, start=1)
        ]
        with column:
            st.markdown(f"**{ranked.title}**")
            if not len(ranked.best):
                st.info("No sentence shares a word with the query.")
                continue
            hit_list(
                hits,
                f"hits_{number}",
                on_pick=lambda at: state.put("why", None if state.get("why") == at else at),
                on_mark=lambda at, relevant: _mark(corpus.content_hash, query, at, relevant),
                pick_hint="Click to see why it came",
                scale=controls.scale(),
            )
            feedback.data(f"hits_{number}", lambda ranked=ranked: _table(ranked, corpus))  # type: ignore[misc]


def _tag(corpus: Corpus, at: int) -> str:
    return next((corpus.columns[name][at] for name in TAGS if name in corpus.columns), "")


def _table(ranked: Ranked, corpus: Corpus) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "rank": range(1, len(ranked.best) + 1),
            "number": ranked.best,
            ranked.unit: ranked.scores[ranked.best].round(6),
            "text": [corpus.texts[at] for at in ranked.best],
            **{name: [column[at] for at in ranked.best] for name, column in corpus.columns.items()},
        }
    )


def _spread(ranked: Ranked, corpus: Corpus, number: int) -> None:
    feedback.figure(
        histogram.score_histogram(
            ranked.scores, ranked.best, f"All {len(corpus):,} scores", value=ranked.unit, scale=controls.scale()
        ),
        key=f"spread_{number}",
        alt=f"Histogram of {len(corpus):,} scores, {ranked.title}; the {len(ranked.best)} shown are marked",
        message=f"{ranked.title}: the best hit has {ranked.scores[ranked.best[0]]:.3f}, half of all sentences less than "
        f"{float(np.median(ranked.scores)):.3f}.",
        read="Bars count sentences by score (each line up is ten times as many); the marks below are the hits shown.",
        not_shown="Whether a hit is relevant. A gap between the hits and the rest speaks for them; scores of different "
        "models, layers or methods do not compare.",
        table=lambda: pd.DataFrame({"number": range(len(ranked.scores)), ranked.unit: ranked.scores}),
    )


def judgements(corpus: Corpus) -> Judgements:
    """What the session's person said of this corpus's sentences."""
    found = st.session_state.get("_judgements", {}).get(corpus.content_hash)
    return found or Judgements()


def _mark(corpus_hash: str, query: str, index: int, relevant: bool | None) -> None:
    kept = st.session_state.setdefault("_judgements", {})
    kept[corpus_hash] = kept.get(corpus_hash, Judgements()).mark(query, index, relevant)


def _precision(ranked: Ranked, query: str) -> None:
    corpus = corpora.current()
    found = judgements(corpus)
    rankings = st.session_state.setdefault("_judged_rankings", {}).setdefault(corpus.content_hash, {})
    if query in found.marks:
        rankings[query] = tuple(int(at) for at in top(ranked.scores, 10))
    if not found.marks:
        st.caption("Mark hits with ✓ and ✗: precision of your queries is counted here.")
        return
    rows = []
    for asked in found.marks:
        if asked in rankings:
            five, ten = (found.precision(asked, rankings[asked], k) for k in (5, 10))
            rows.append({"query": asked, "P@5": five.value, "P@10": ten.value, "not judged of 10": ten.unjudged})
    table = pd.DataFrame(rows)
    if table.empty:
        return
    with st.container(border=True):
        left, middle, right = st.columns(3)
        left.metric("Queries judged", len(table))
        middle.metric("Mean P@5", f"{table['P@5'].mean():.2f}", help=caching.glossary()["precision at k"])
        right.metric("Mean P@10", f"{table['P@10'].mean():.2f}", help=caching.glossary()["precision at k"])
        st.caption(
            "Of the left ranking, as it was when you judged it last. A hit that nobody judged counts as not relevant."
        )
        feedback.data("precision", lambda: _judged(found, corpus, table))


def _judged(found: Judgements, corpus: Corpus, table: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {"query": query, "number": at, "relevant": relevant, "text": corpus.texts[at]}
        for query, marks in found.marks.items()
        for at, relevant in sorted(marks.items())
    ]
    return pd.DataFrame(rows).merge(table, on="query", how="left")


def _why_notes() -> None:
    with st.expander("Cosine or dot product? Questions or sentences?", icon=":material/help:"):
        st.markdown(
            "**Length:** the dot product grows with a vector's length, so long vectors come first whatever is asked; cosine "
            "divides length out. Models trained with dot products keep meaning in the length.  \n"
            "**Symmetric or not:** a sentence model looks for sentences that say the same; a short query against passages "
            "that answer it is another task, for which models such as MS MARCO's are trained.  \n"
            "**Shared words** are marked in the hits; a hit without any was found by its vector alone."
        )
