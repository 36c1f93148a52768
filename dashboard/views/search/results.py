"""The Search page's results: live hits by vectors, a second ranking to compare with, and judgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import histogram, theme
from components.model.catalog import EMBEDDED_CROSS_ENCODER_KEY
from components.model.trace import Pooling
from components.retrieval.rankings.ranking import TEN
from components.retrieval.search import words
from components.retrieval.search.exact import ExactSearch, is_distance, tie_note, top
from components.retrieval.search.lexical import TITLES, Kind
from components.retrieval.search.splade import SpladeRanker
from components.shown_code.code import Command
from components.shown_code.vectors import unrelated
from components.words.function import FUNCTION_WORDS
from components.words.unicode_words import has_pairs
from dashboard import caching, state
from dashboard.corpora import current, marks, word_rankings
from dashboard.jobs import rankers, reranking, search_engines
from dashboard.jobs.stored import cross_looks
from dashboard.ui import controls, figures, languages, messages, model_gate
from dashboard.ui.waiting import frame, progress
from dashboard.ui.wording import (
    NUMBERS_EXPLAINED,
    POOLING_NAMES,
    PRODUCTS,
    SIMILARITY_HELP,
    SIMILARITY_NAMES,
    shortened,
)
from dashboard.views.search import blind, chance, judging, splade, why
from dashboard.views.search.comparisons import hybrid
from dashboard.views.search.hit_list import Axis, Hit, hit_list
from dashboard.views.search.ranked import COSINES, Explained, Ranked, Scale, different_hits
from dashboard.views.search.request import SearchRequest

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.exact import Hits, Similarity
    from dashboard.jobs.reranking import SecondStage
    from dashboard.views.search.shading import Shaded

READY_QUERIES = (
    "volcano erupted",
    "election results announced",
    "new tech company launched",
    "bridge collapses after storm",
    "local sports team wins championship",
    "actor wins award",
)
COMPARISONS = {
    "none": "Compare with …",
    "setting": "Compare: another setting",
    "model": "Compare: second model",
    "rerank": "Compare: re-ranked",
    "maxsim": "Compare: MaxSim",
    "splade": "Compare: SPLADE",
    **{kind: f"Compare: {title}" for kind, title in TITLES.items()},
    "fused": "Compare: hybrid",
}
COMPARISON_NOTES = {
    "rerank": "A cross-encoder reads the query together with each of the first {count} hits of the other list and sorts "
    "them again; it sees no other sentence.",
    "maxsim": "MaxSim (late interaction): the sum over query tokens of the best cosine with a token of the sentence, for the "
    "first {count} hits of the other list; no other sentence is ranked. The model was not trained for it.",
    "splade": "SPLADE: the dot product (the cosine, if the model was published with it) of the weights that a trained model "
    "gives to pieces of the vocabulary, also to pieces that a text does not contain.",
    "bow": "Bag of words: the cosine of word counts, without meaning or order.",
    "tfidf": "TF-IDF: a bag of words in which rare words count more.",
    "lsa": "LSA: TF-IDF in at most 100 dimensions that keep most of it, roughly the main directions in which words occur "
    "together, so that related words count too.",
    "bm25": "BM25: rare words count more, each repetition counts less, and long sentences score lower.",
    "jm": "Jelinek-Mercer: the log-probability of drawing the query from the words of the sentence mixed with those of the "
    "corpus. Nearer 0 is better.",
    "static": "Static vectors: the mean of the words' fixed vectors, which do not depend on the sentence.",
}
PERCENTILES = (
    "A percentile is the share of all pairs among up to 1,000 sentences of this corpus that are less similar to each other "
    "than the query is to the hit, at the same layer and pooling. The order of the hits stays the same."
)
TRAINED_MAX_SIM = (
    "MaxSim (late interaction): the sum over the query's token vectors of the best dot product with a token vector of the "
    "sentence, for the first {{count}} hits of the other list; no other sentence is ranked. {title} was trained for it: these "
    "are its own token vectors, and not hidden states."
)
SHADED = (
    "Shaded are the words that carry the similarity: the cosine is split exactly over the words of either text, and those "
    "that add at least 40 % of what the strongest adds are shaded; where even that one adds less than 0.08, faintly. \\[CLS\\] "
    "and \\[SEP\\] are the rest."
)
SHARED = "Words that the query has too are marked, except words such as “the” and “at”."
OWN_EXAMPLES = 3  # queries that are offered for a person's own corpus
WORDS_OF_EXAMPLE, MOST_OF_EXAMPLE = 5, 40
OF_WORDS = (
    "Bars begin at the score of a sentence without a word of the query; a full one would be a sentence in which each word "
    "counts as much as it does anywhere in the corpus."
)
OF_MAX_SIM = "Bars show MaxSim from 0 to that of a sentence which has the very vector of each token of the query."
CROSS_ENCODER_SAYS = (
    "**The cross-encoder gave {score}**, one number for query and sentence read together: it is no sum over words. "
    "The Laboratory shows how it falls without each word (“One input of two texts”)."
)
PAIRS_ARE = "The query has no spaces between its words: pairs of neighbouring characters stand for them in this list."
COUNTING = ("bow", "tfidf", "bm25", "jm")  # word rankings whose scores are sums over shared words


def hits(backend: Backend) -> None:
    """The hits of one query."""
    messages.cross_encoder_note([backend])
    searched = current.corpus()
    panel, first_options = query_controls(backend)
    _results(SearchRequest.of_session(backend, searched), panel, first_options)


def _results(request: SearchRequest, panel: DeltaGenerator, first_options: DeltaGenerator) -> None:
    """The hits, a second ranking to compare with, and the explanation of a hit. The containers get further options."""
    backend, index = request.backend, None
    with frame.figure("main_index"):
        index = request.index("main")
    if not request.query.strip():
        st.info("**No query yet.** Type a few words, or choose some below.", icon=":material/edit:")
        examples(request.corpus)
        return
    rankings: list[Ranked] = []
    if index is not None:
        with panel:
            layer, pooling = _layer_and_pooling(backend, index, "", "layer", "pooling")
        request = replace(request, layer=layer, pooling=pooling)
        if _unknown(request):
            st.warning(
                "The model's vocabulary has no piece of this query, so its vector, and these hits, say nothing about it."
            )
        if request.engine == "exact":
            rankings.append(_by_vectors(request, index, layer, pooling, request.similarity))
        else:
            rankings.append(_by_engine(request, index, layer, pooling))
    of_splade, comparison = None, None
    max_sim_by = _of_token_vectors(request)
    with frame.figure("comparison"):
        if request.compare_with == "splade":
            of_splade = splade.ranker(request)
            comparison = _by_splade(request, of_splade)
        else:
            options = first_options if request.compare_with == "fused" else panel
            comparison = _comparison(request, index, options, max_sim_by)
    if comparison is not None:
        rankings.append(comparison)
    if len(rankings) == 2 and state.get("blind"):
        blind.compare(request, rankings)
        examples(request.corpus)
        return
    if rankings:
        _side_by_side(request, rankings)
    if comparison is not None and index is not None and request.compare_with == "fused":
        hybrid.on_all_queries(request, index, max_sim_by)
    examples(request.corpus)
    if not rankings:
        return
    if of_splade is not None and request.explained is None:
        splade.query_pieces(of_splade, request)
    if index is not None:
        messages.head_note([backend], pooling, layer)
    is_trained = request.compare_with == "maxsim" and max_sim_by.late_interaction is not None
    why.why(request, rankings, of_splade, max_sim_by if is_trained else None)
    if of_splade is not None and request.explained is not None:
        splade.query_pieces(of_splade, request)  # after the explanation, which was asked for
    why.notes()
    judging.precision(rankings, request)
    for number, ranked in enumerate(rankings):
        if len(ranked.best) and not ranked.hits_only:
            _spread(ranked, request.corpus, number)


def examples(corpus: Corpus) -> None:
    """Queries to begin with, below the hits: ready-made ones, those of a person's own corpus, or how its texts begin."""
    of_demo, own = ready_queries(), current.own_queries(corpus, OWN_EXAMPLES)
    texts = {query: query for query in of_demo} or {
        query: messages.escape(shortened(query, MOST_OF_EXAMPLE)) for query in own or own_beginnings(corpus.texts)
    }
    if texts:
        label = "Ready-made queries" if of_demo else "Your queries" if own else "Beginnings of your texts"
        controls.ready_row(label, texts, state.get("query"), _choose_query, key="w_ready_query")


def own_beginnings(texts: Sequence[str]) -> tuple[str, ...]:
    """How the first texts of a corpus begin, as queries: some words each, and none twice."""
    beginnings: dict[str, None] = {}
    for text in texts[: 10 * OWN_EXAMPLES]:
        words_of = text.split()[:WORDS_OF_EXAMPLE]
        while len(words_of) > 1 and words_of[-1].lower() in FUNCTION_WORDS:
            words_of.pop()
        begin = " ".join(words_of).rstrip(".,;:!?")[:MOST_OF_EXAMPLE].strip()
        if begin:
            beginnings.setdefault(begin)
    return tuple(beginnings)[:OWN_EXAMPLES]


def ready_queries() -> tuple[str, ...]:
    """Queries for whoever has none yet: they are headlines of the demo corpus, and say nothing of another one."""
    return () if state.get("corpus") else READY_QUERIES


def query_controls(backend: Backend) -> tuple[DeltaGenerator, DeltaGenerator]:
    """The query and how it is ranked; returns the panel of options, and the place of its first ones.

    Draw them before the request is read: they refuse invalid values.
    """
    if state.peek("corpus") and "query" not in st.session_state:
        state.put("query", "")  # the default asks for a headline of the demo corpus
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="search_controls"):
        controls.bind(
            "query",
            st.text_input,
            "Query",
            after_change=lambda: state.put("why", None),  # the explanation belongs to the last query
            live=True,
            type="search",
            max_chars=1_000,
            placeholder="Type a few words: hits appear as you type",
            label_visibility="collapsed",
        )
        is_blind = state.get("blind") and state.get("compare_with") != "none"
        if not is_blind:  # there the choice would name one of the two rankings
            with st.container(width=round(218 * controls.scale())):
                controls.pick("compare_with", "Compare with", COMPARISONS, label_visibility="collapsed")
        panel = controls.options()
    with panel:
        first_options = st.container()
        if is_blind:
            controls.pick("compare_with", "Compare with", COMPARISONS)
        controls.number("k", "Hits (k)", 1, 100, 10)
        own = backend.sentence_config.similarity
        # Distances are offered to models that were published for one: for others the two products say all.
        offered = SIMILARITY_NAMES if is_distance(own) or is_distance(state.peek("similarity") or "") else PRODUCTS
        similarity = controls.choice("similarity", "Similarity", offered, SIMILARITY_HELP, default=own)
        controls.percentiles(disabled=similarity != "cosine")
        controls.switch(
            "blind",
            "Blind comparison",
            "Two rankings without their names and scores: people vote for the better list, query by query.",
            disabled=state.get("compare_with") == "none",
        )
        _engine()
        if _has_max_sim() or state.get("compare_with") in reranking.STAGE_NAMES:
            controls.number("reranked_hits", "Candidates (re-ranked)", 10, reranking.MOST_CANDIDATES, 100)
    return panel, first_options


def _engine() -> None:
    """The choice of the engine, where there are several."""
    offered = search_engines.offered()
    if state.get("engine") not in offered:
        name = search_engines.NAMES[state.get("engine")]
        state.refuse(
            "engine", "exact", f"The search engine “{name}” is not available here; every sentence is compared."
        )
    count = len(current.corpus())
    if len(offered) > 1 and count < search_engines.MANY and state.get("engine") == "exact":
        st.caption(
            f"Every sentence is compared: with {count:,} that takes milliseconds. Approximate engines are offered from "
            f"{search_engines.MANY:,} sentences."
        )
    elif len(offered) > 1:
        controls.pick(
            "engine",
            "Search engine",
            offered,
            "“Exact” compares the query with every sentence. The others are faster for large collections and may miss some "
            "hits: “Approximation” in the Laboratory shows how many.",
        )


def _choose_query(query: str) -> None:
    state.put("query", query)
    state.put("why", None)


def _unknown(request: SearchRequest) -> bool:
    """Whether every piece of the query is unknown to the model."""
    unknown = request.backend.tokenization.unknown_id
    (query,) = request.backend.tokenize([request.query], max_length=request.max_length)
    pieces = [token.id for token in query.tokens if not token.special]
    return unknown is not None and all(piece == unknown for piece in pieces)


def _layer_and_pooling(
    backend: Backend, index: VectorIndex, suffix: str, layer_key: str, pooling_key: str
) -> tuple[int, Pooling]:
    """The choice of a layer and pooling of the index; without a widget where it has only one."""
    layers, poolings = index.info.options.layers, index.info.options.poolings
    layer, help_text = layers[-1], caching.glossary()["layer"]
    if len(layers) > 1:
        layer = controls.bind(
            layer_key, st.select_slider, f"Layer{suffix}", options=layers, default=layer, help=help_text
        )
    label = f"Sentence vector (pooling){suffix}"
    pooling = controls.pooling(pooling_key, label, POOLING_NAMES, poolings, backend.own_pooling)
    return int(layer), pooling


def _by_vectors(
    request: SearchRequest,
    index: VectorIndex,
    layer: int,
    pooling: Pooling,
    similarity: Similarity,
    title: str = "",
) -> Ranked:
    """The corpus ranked by a model's vectors at a layer and pooling."""
    vectors = caching.query_vectors(request.backend, (request.query,), index.info)
    engine, query = index.engine(layer, pooling), vectors[layer, pooling][0]
    scores = engine.scores(query, similarity)
    find = partial(engine.hits_of, query, scores, similarity=similarity, rows=request.corpus.different)
    hits = find(k=request.k)
    ten = hits if request.k >= TEN else find(k=TEN)  # of more the same come first
    exact_scores = scores.astype(np.float64)
    exact_scores[hits.indices[0]] = hits.scores[0]
    title = title or f"Layer {layer}, {POOLING_NAMES[pooling]}, {SIMILARITY_NAMES[similarity].lower()}"
    ranked = _of_hits(title, request, index, (layer, pooling), similarity, exact_scores, hits, ten)
    code = request.code(index, layer, pooling)
    return replace(
        ranked,
        code=code.hits(request.query, [request.corpus.texts[row] for row in hits.indices[0]], similarity)
        if ranked.calibration is None
        else unrelated(percentiles=True),
        code_of_all=code.command(ExactSearch.scores, code.search(request.query, len(request.corpus), similarity)),
    )


def _by_engine(request: SearchRequest, index: VectorIndex, layer: int, pooling: Pooling) -> Ranked:
    """The hits that an approximate engine finds. Raises NotReady while it is built."""
    similarity = request.similarity
    engine = search_engines.ready(index, layer, pooling, similarity, request.engine)
    if engine.facts.note:
        st.caption(messages.escape(engine.facts.note))
    query = caching.query_vectors(request.backend, (request.query,), index.info)[layer, pooling]
    search = partial(engine.search, query, similarity=similarity)
    hits = different_hits(search, request.corpus, request.k)
    ten = hits if request.k >= TEN else different_hits(search, request.corpus, TEN)
    scores = np.full(len(request.corpus), np.nan)
    scores[ten.indices[0]], scores[hits.indices[0]] = ten.scores[0], hits.scores[0]
    name = f"{SIMILARITY_NAMES[similarity].lower()}, {search_engines.NAMES[request.engine]}"
    title = f"Layer {layer}, {POOLING_NAMES[pooling]}, {name}"
    ranked = _of_hits(title, request, index, (layer, pooling), similarity, scores, hits, ten)
    searched = request.code(index, layer, pooling)
    asked = searched.search(request.query, request.k, similarity, "--engine", request.engine)
    code = searched.command(type(engine).search, asked, prints=_by_rows(request.corpus, "the numbers"))
    ranked = replace(ranked, code=code, code_of_all=code, hits_only=True)
    return replace(ranked, best=hits.indices[0], hit_scores=hits.scores[0])  # a search for ten may find others first


def _of_hits(
    title: str,
    request: SearchRequest,
    index: VectorIndex,
    cell: tuple[int, Pooling],
    similarity: Similarity,
    scores: np.ndarray,
    hits: Hits,
    ten: Hits,
) -> Ranked:
    """The ranking by vectors with `scores` [sentence], its scale, chance, and how each score is explained.

    `hits` are those of the query that are shown, and `ten` are at least ten.
    """
    as_percentiles = state.get("percentiles") and similarity == "cosine"
    unknown = _unknown(request) or languages.is_unknown(request.backend, request.query)
    return Ranked.of_scores(
        title,
        similarity,
        scores,
        request.k,
        ten.indices[0],
        (int(hits.tied[0]), int(hits.tied_shown[0])),
        calibration=caching.corpus_calibration(index, *cell) if as_percentiles else None,
        finding=chance.unknown_finding(scores, int(np.nanargmax(scores))) if unknown else "",
        scale=COSINES if similarity == "cosine" else None,
        is_open_ended=similarity != "cosine",
        chance=chance.of_vectors(request, index, *cell, similarity),
        explained=why.by_vectors(request, index, *cell, similarity, scores),
    )


def _comparison(
    request: SearchRequest, index: VectorIndex | None, panel: DeltaGenerator, max_sim_by: Backend
) -> Ranked | None:
    """The second ranking; None if none was chosen, or its model is not there. Raises NotReady.

    `panel` gets its further options, and `max_sim_by` gives the token vectors that MaxSim compares.
    """
    if request.compare_with == "setting" and index is not None:
        layer, pooling = _layer_and_pooling(request.backend, index, ", right", "layer2", "pooling2")
        similarity = cast("Similarity", controls.choice("similarity2", "Similarity, right", PRODUCTS))
        return _by_vectors(request, index, layer, pooling, similarity)
    if request.compare_with in reranking.STAGE_NAMES:
        return None if index is None else _by_second_stage(request, index, panel, max_sim_by)
    if request.compare_with == "model":
        return _by_second_model(request)
    if request.compare_with in TITLES:
        return _by_words(request, index)
    if request.compare_with == "fused" and index is not None:
        return hybrid.together(request, index, panel, max_sim_by)
    return None


def _by_words(request: SearchRequest, index: VectorIndex | None) -> Ranked:
    """The corpus ranked by words or static vectors. Raises NotReady while its words are counted."""

    def code_of(k: int, function: Callable[..., Any]) -> Command | None:
        if index is None or kind not in get_args(Kind):
            return None
        searched = request.code(index, *request.cell(index))
        asked = searched.search(query, k, request.similarity, "--fuse", kind, "--weights", "1", "--json", "-")
        what = f'the scores as "score" of {kind}, and what each word adds'
        return searched.command(function, asked, prints=_by_rows(corpus, what))

    kind, query, corpus = request.compare_with, request.query, request.corpus
    ranking = word_rankings.word_ranking(request.backend, kind)
    ranker = rankers.word_ranker(ranking, corpus)
    scores = ranker.scores(query)
    unit = {"bm25": "BM25 score", "jm": "log-probability"}.get(kind, "cosine")
    low, high = ranker.bounds(query)
    return Ranked.of_scores(
        ranker.title,
        unit,
        scores,
        request.k,
        _by_likelihood(request, scores) if kind == "jm" else None,
        code=code_of(request.k, type(ranker).scores) or Command(type(ranker).scores),
        code_of_all=code_of(len(corpus), type(ranker).scores) or Command(type(ranker).scores),
        scale=COSINES if unit == "cosine" else Scale(low, high, ("no word", "each at its most"), OF_WORDS),
        rows=corpus.different,
        chance=None if kind in COUNTING else chance.of_words(corpus, ranker, ranking.source),
        explained=Explained(
            split=lambda row: ranker.split(query, corpus.texts[row], row),
            code=lambda _: code_of(len(corpus), type(ranker).split) or Command(type(ranker).split),
            counts_words=kind in COUNTING,
        ),
    )


def _by_splade(request: SearchRequest, ranker: SpladeRanker) -> Ranked:
    scores = ranker.scores(request.query)
    title = f"{ranker.title}, {ranker.backend.spec.title}"
    return Ranked.of_scores(
        title,
        "SPLADE score",
        scores,
        request.k,
        code=Command(SpladeRanker.scores),
        code_of_all=Command(SpladeRanker.scores),
        is_open_ended=True,
        rows=request.corpus.different,
        chance=chance.of_splade(request.corpus, ranker),
        explained=Explained(is_splade=True),
    )


def _by_second_stage(
    request: SearchRequest, index: VectorIndex, panel: DeltaGenerator, max_sim_by: Backend
) -> Ranked | None:
    """The first candidates of the left ranking, ordered again by a cross-encoder or by MaxSim."""
    layer, pooling = request.cell(index)
    reason = max_sim_by.structure.why_not("tokens") if request.compare_with == "maxsim" else ""
    if reason:
        st.info(f"MaxSim compares vectors of tokens, and **{messages.escape(max_sim_by.spec.title)}** {reason}.")
        return None
    stage = model_gate.second_stage(request.compare_with, max_sim_by, layer)
    if stage is None:
        return None
    with panel:
        model_gate.label_choice(stage)
    vectors = caching.query_vectors(request.backend, (request.query,), index.info)[layer, pooling]
    search = index.engine(layer, pooling).search
    rows = search(vectors, request.candidates, request.similarity, request.corpus.different).indices[0]
    scores = reranking.scored(stage, request.corpus, request.query, rows, "search").scores.astype(np.float64)
    is_cross = stage.kind == "rerank"
    ranked = Ranked.of_candidates(
        f"Re-ranked: {stage.title}",
        stage.unit,
        scores,
        rows,
        len(request.corpus),
        k=request.k,
        note=TRAINED_MAX_SIM.format(title=messages.escape(stage.backend.spec.title))
        if stage.is_trained_max_sim
        else "",
        scale=None if is_cross else _scale_of_max_sim(stage, request.query),
        explained=Explained(said=CROSS_ENCODER_SAYS) if is_cross else Explained(is_max_sim=True),
    )
    code = stage.code(request.query, [request.corpus.texts[row] for row in ranked.best])
    return replace(ranked, code=code, code_of_all=code)


def _scale_of_max_sim(stage: SecondStage, query: str) -> Scale:
    """From 0 to a sentence that has the vector of each of the query's tokens."""
    backend, length = stage.backend, stage.max_length
    trained = backend.late_interaction
    if trained is not None:
        count = 1 if trained.is_mean else len(caching.trained_token_vectors(backend, query, "query", length))
    else:
        asked = backend.embed_options([stage.layer], max_length=length, precision="float32", role="query")
        (read,) = backend.tokenize([asked.prompt + query], max_length=asked.max_length, prompt="")
        count = sum(not token.special for token in read.tokens)
    return Scale(0.0, float(max(1, count)), ("0", str(max(1, count))), OF_MAX_SIM)


def _has_max_sim() -> bool:
    """Whether MaxSim ranks, alone or in a hybrid list."""
    compared = state.get("compare_with")
    return compared == "maxsim" or (compared == "fused" and "maxsim" in state.get("hybrid_with"))


def _of_token_vectors(request: SearchRequest) -> Backend:
    """The model whose token vectors MaxSim compares: the second one where only that was trained for late interaction."""
    if not _has_max_sim() or request.backend.late_interaction is not None or not state.get("model2"):
        return request.backend
    second = model_gate.second_model()
    return request.backend if second is None or second.late_interaction is None else second


def _by_second_model(request: SearchRequest) -> Ranked | None:
    second = model_gate.second_model()
    if second is None:
        if not state.get("model2"):
            st.info("Choose a second model in the sidebar.")
        return None
    request = request.by(second)
    index = request.index("second")
    layer, pooling = _layer_and_pooling(request.backend, index, ", right", "layer2", "pooling2")
    title = f"{second.spec.title}, layer {layer}, {POOLING_NAMES[pooling]}"
    return _by_vectors(request, index, layer, pooling, "cosine", title)


def _by_likelihood(request: SearchRequest, scores: np.ndarray) -> np.ndarray:
    """The first sentences by log-probability that have a word of the query."""
    floor = scores.min()  # the log-probability of sentences without a word of the query
    texts, different = request.corpus.texts, request.corpus.different
    return np.array(
        [
            row
            for row in different[top(scores[different], max(request.k, TEN))]
            if scores[row] > floor or words.shared_words(request.query, texts[row])
        ],
        np.int64,
    )


def _by_rows(corpus: Corpus, what: str) -> str:
    """`what` a command prints that ranks rows, where the page ranks different texts."""
    return (
        f"{what}, for each row of a repeated text too, which the page shows once" if corpus.report.duplicates else what
    )


def _side_by_side(request: SearchRequest, rankings: Sequence[Ranked]) -> None:
    """The lists beside each other."""
    corpus, query = request.corpus, request.query
    counts = np.bincount(corpus.first_rows, minlength=len(corpus))[corpus.first_rows]  # of each row
    relevant = marks.judgements(corpus).of(query)
    ids = current.own_ids(corpus)
    for number, (column, ranked) in enumerate(zip(st.columns(len(rankings)), rankings, strict=True)):
        other_ranks = rankings[1 - number].places(ranked.best) if len(rankings) == 2 else None
        shaded = _shaded(ranked, number)
        terms = {int(row): ((), None) if ranked.terms is None else ranked.terms(int(row)) for row in ranked.best}
        hits = [
            Hit(
                rank=rank,
                rows=int(counts[row]),
                index=int(row),
                text=corpus.texts[row],
                score=float(ranked.scores[row]),
                tag=_tag(corpus, int(row)),
                shared=words.highlighted(query, corpus.texts[row]),
                shades=None if shaded is None or int(row) not in shaded else shaded[int(row)].hit,
                query_shades=() if shaded is None or int(row) not in shaded else shaded[int(row)].query,
                own_id=ids[row] if ids else "",
                other_rank=None if other_ranks is None else int(other_ranks[rank - 1]),
                relevant=relevant.get(int(row)),
                picked=request.explained == int(row),
                shown_score=ranked.shown(float(ranked.scores[row])),
                bar=ranked.bar(float(ranked.scores[row])),
                terms=terms[int(row)][0],
                first_share=terms[int(row)][1],
                is_close=ranked.level is None or chance.is_above(float(ranked.scores[row]), ranked.level.level),
            )
            for rank, row in enumerate(ranked.best, start=1)
        ]
        with column.container(gap="xsmall", key=f"hit_column_{number}"):
            name = f"**{messages.escape(ranked.name)}**"
            if not len(ranked.best):
                st.markdown(name)
                shared = "piece" if request.compare_with == "splade" else "word"
                st.info(ranked.finding or f"No sentence shares a {shared} with the query.")
                _say_what_words_are(request, number)
                continue
            if len(rankings) == 2:
                st.markdown(name)
            figures.above(
                ranked.finding or chance.finding(ranked, corpus, query, len(rankings) == 2),
                key=f"hits_{number}",
                table=lambda ranked=ranked: _table(ranked, corpus),  # type: ignore[misc]
                code=ranked.code,
                title=f"Hits: {ranked.name}",
                place=f".st-key-hits_{number}",
                read=_read(ranked, request, number, len(rankings) == 2, shaded is not None),
                not_shown="Whether a hit answers the query: sentences on one subject are close too. A hit below the level of "
                "chance can be right, if the query is short or unusual.",
            )
            if ranked.is_measured_now and ranked.chance is not None:
                progress.until(ranked.chance.finished.is_set, lambda: None, 1.0)
            _say_what_words_are(request, number)
            if note := tie_note(ranked.tied, ranked.tied_shown, at_least=ranked.hits_only):
                st.warning(note)
            hit_list(
                hits,
                f"hits_{number}",
                axis=_axis(ranked),
                query=query,
                on_pick=partial(_explain, by=("first", "second")[number]),
                on_mark=None
                if state.get("projector")
                else _marker(corpus.content_hash, query, _marked_again(corpus, query)),
                pick_hint="Why is this a hit?",
                answer=".st-key-why",
                answered=request.explained is not None,
                scale=controls.list_scale(),
            )
            if number and request.compare_with == "rerank" and state.get("cross_encoder") == EMBEDDED_CROSS_ENCODER_KEY:
                st.markdown(cross_looks.finding())


def _shaded(ranked: Ranked, number: int) -> Mapping[int, Shaded] | None:
    """The words that carry the score of each hit; None where they are not weighed, or not yet: the page is drawn again then."""
    find = ranked.explained.shaded
    job = (
        find([int(row) for row in ranked.best], f"hit_words_{number}")
        if find is not None and len(ranked.best)
        else None
    )
    if job is None:
        return None
    if not job.finished.is_set():
        progress.shown_in_page(job)
        progress.until(job.finished.is_set, lambda: None, 0.3)
        return None
    words_of_hits: Mapping[int, Shaded] | None = None if job.error is not None else job.result
    return words_of_hits


def _say_what_words_are(request: SearchRequest, number: int) -> None:
    """Where the second list ranks by words and the query has no spaces between its own, what stands for them."""
    if number and request.compare_with in TITLES and has_pairs(request.query):
        st.caption(PAIRS_ARE)


def _read(ranked: Ranked, request: SearchRequest, number: int, is_compared: bool, is_shaded: bool) -> str:
    """How a list is read: its ranking, its bars, what is marked, and its numbers."""
    parts = [f"**{messages.escape(ranked.name)}.** {_about_bars(ranked)}"]
    note = ranked.note or COMPARISON_NOTES.get(request.compare_with, "")
    if number and note:
        candidates = int(np.count_nonzero(np.isfinite(ranked.scores)))
        parts.append(note.replace("{count}", str(candidates)))  # a title may have braces too
    if ranked.calibration is not None:
        parts.append(PERCENTILES)
    parts.append(SHADED if is_shaded else SHARED)
    if is_compared:
        parts.append(
            "▲, ▼ and = compare a hit's rank with its rank in the other list; “only here”: it is not among the "
            f"{request.k} hits there."
        )
    parts.append(NUMBERS_EXPLAINED)
    return "  \n".join(part for part in parts if part.strip())


def _about_bars(ranked: Ranked) -> str:
    """What the bars of a list are, in sentences."""
    if ranked.calibration is not None:
        return ""  # PERCENTILES says it
    bars = ranked.bars
    said = bars.note if bars is not None else f"A {ranked.unit} has no bar: it has no zero and no end to draw one from."
    return said if ranked.level is None else f"{said} {chance.WHAT_IS_CHANCE} {chance.WHAT_BARS_SHOW}"


def _axis(ranked: Ranked) -> Axis | None:
    """What stands above the bars of a list; None where it has none."""
    ends = (
        ("0 %", "100 %") if ranked.calibration is not None else ranked.bars.names if ranked.bars is not None else None
    )
    if ends is None:
        return None
    if not any(ends):
        return None
    level = ranked.level
    middle = "50 %" if ranked.calibration is not None else "0.5" if ends == COSINES.names else ""
    if level is None:
        return Axis(ends, middle)
    name = ranked.shown(level.level) if ranked.calibration is not None else theme.number(level.level, 2)
    return Axis(ends, middle, ranked.bar(level.level), f"random words reach {name}", ranked.bar(level.unrelated))


def _explain(row: int, by: str) -> None:
    """Open the explanation of a hit of a list, `by` its ranking, or close it after a second click."""
    is_open = state.get("why") == row and state.get("why_by") in (by, "maxsim")
    state.put("why", None if is_open else row)
    state.put("why_by", by)


def _marker(corpus_hash: str, query: str, again: Mapping[int, Sequence[int]]) -> Callable[[int, bool | None], None]:
    """What a mark does. A separate function: a widget keeps its callback, which must not keep a corpus in memory."""

    def mark(row: int, relevant: bool | None) -> None:
        for other in again.get(row, ()):
            marks.mark(corpus_hash, query, other, None)
        marks.mark(corpus_hash, query, row, relevant)

    return mark


def _marked_again(corpus: Corpus, query: str) -> dict[int, list[int]]:
    """The first row of a text to its other rows that have a mark: of a session before marks went by text."""
    judged = marks.of_session().get(corpus.content_hash)
    found: dict[int, list[int]] = {}
    for row in judged.within(len(corpus)).of(query) if judged is not None and corpus.report.duplicates else ():
        found.setdefault(int(corpus.first_rows[row]), []).append(row)
    return found


def _tag(corpus: Corpus, row: int) -> str:
    topics = current.topics(corpus)
    return "" if topics is None else topics[row]


def _table(ranked: Ranked, corpus: Corpus) -> pd.DataFrame:
    own = {
        "rank": range(1, len(ranked.best) + 1),
        "number": ranked.best,
        ranked.unit: ranked.hit_scores.round(9),
        "text": [corpus.texts[row] for row in ranked.best],
    }
    return pd.DataFrame(own | figures.corpus_columns(own, corpus.columns, ranked.best))


def _spread(ranked: Ranked, corpus: Corpus, number: int) -> None:
    ranked_rows = np.flatnonzero(np.isfinite(ranked.scores))
    scores = ranked.scores[ranked_rows]
    best, median = (theme.number(float(score)) for score in (ranked.hit_scores[0], np.median(scores)))
    things = "sentences" if len(scores) == len(corpus) else "candidates"
    figures.figure(
        histogram.score_histogram(
            scores,
            np.searchsorted(ranked_rows, ranked.best),
            f"All {len(scores):,} scores: {ranked.name}",
            value=ranked.unit,
        ),
        key=f"spread_{number}",
        code=ranked.code_of_all,
        alt=f"Histogram of {len(scores):,} scores, {ranked.name}; the {len(ranked.best)} shown are marked",
        message=f"{messages.escape(ranked.name)}: the best hit scores {best}; half of all {things} score at most {median}.",
        read="Bars count sentences by score (each grid line means ten times as many); the orange marks are the hits shown.",
        not_shown="Whether a hit is relevant. A gap between the hits and the other sentences is a good sign. Scores of "
        "different models, layers or methods cannot be compared.",
        table=lambda: pd.DataFrame({"number": ranked_rows, ranked.unit: scores}),
    )
