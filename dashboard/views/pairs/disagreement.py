"""Where bi-encoder and cross-encoder disagree most, with the token evidence of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.analysis.leave_one_out import leave_one_out
from components.analysis.similarity import late_interaction
from components.arrays import read_only
from components.charts import bars, matrices
from components.retrieval.search.rerank import in_order_of
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.jobs import embedding, progress, reranking
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import controls, figures, messages
from dashboard.ui.wording import counted

if TYPE_CHECKING:
    from components.analysis.leave_one_out import LeaveOneOut
    from components.arrays import Float32, Int64
    from components.jobs import IsCancelled, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import VectorIndex
    from dashboard.jobs.reranking import SecondStage

SEED = 0  # of the sample of queries
MOST_LISTED = 50  # pairs
MOST_CHARACTERS = 4_000  # of a document whose words are removed


@dataclass(frozen=True)
class Disagreement:
    """A query and a document that the two models rank differently among the first k."""

    query: str
    row: int  # of the corpus
    by_vectors: int  # rank from 1
    by_cross_encoder: int
    cosine: float
    logit: float
    is_correct: bool  # the sentence that belongs to the query

    @property
    def difference(self) -> int:
        """How many ranks the cross-encoder moves the document up (or down, if negative)."""
        return self.by_vectors - self.by_cross_encoder


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The first k hits of several queries, and the cross-encoder's scores of them."""

    rows: Int64  # [query, candidate]
    cosines: np.ndarray  # float64 [query, candidate]
    logits: Float32  # [query, candidate]


def disagreement(backend: Backend) -> None:
    """Draw the pairs with the largest difference of rank, and the token evidence of the chosen one."""
    messages.cross_encoder_note([backend])
    corpus = current.corpus()
    with controls.row():
        pair_slot = st.container()
        panel = controls.options()
    with panel:
        controls.number("disagreement_queries", "Queries", 5, 100, 20)
        controls.number("k", "Candidates (k)", 1, reranking.MOST_CANDIDATES, 10)
    queries, own_rows = sample_of_queries(corpus, state.get("disagreement_queries"))
    stage = reranking.second_stage("rerank", backend)
    if stage is None:
        return
    with panel:
        reranking.label_choice(stage)
    index = embedding.index_of(EmbedRequest.of_session(backend), corpus, "disagree")
    if index is None:
        return
    candidates = _candidates(backend, index, corpus, queries, stage, state.get("k"))
    if candidates is None:
        return
    pairs = disagreements(candidates, queries, own_rows)[:MOST_LISTED]
    if not pairs:
        st.info("Both models rank every candidate the same. Increase k or the number of queries.")
        return
    with pair_slot:
        number = _pair_choice(pairs, corpus)
    _evidence(backend, stage, corpus, pairs[number])
    _list(pairs, corpus, len(queries), candidates.rows.shape[1])


def sample_of_queries(corpus: Corpus, count: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """A seeded sample of the corpus's queries with the rows of their own sentences.

    For a corpus without a column of queries a sample of its sentences, which then find themselves first.
    """
    column = current.query_column(corpus)
    texts = corpus.texts if column is None else corpus.columns[column]
    rows = [row for row, text in enumerate(texts) if text.strip()]
    chosen = np.random.default_rng(SEED).permutation(len(rows))[:count]  # a larger sample begins with the smaller one
    own_rows = tuple(rows[number] for number in chosen.tolist())
    return tuple(texts[row][:1_000] for row in own_rows), own_rows


def _candidates(
    backend: Backend, index: VectorIndex, corpus: Corpus, queries: tuple[str, ...], stage: SecondStage, k: int
) -> _Candidates | None:
    """The first k hits of the queries and their scores; None while the cross-encoder works, with the progress drawn."""
    layer, pooling = reranking.cell_of(backend, index)
    together = next(count for count in reranking.SCORED_TOGETHER if count >= k)  # the slider then costs no pass

    def score(report_progress: ReportProgress, is_cancelled: IsCancelled) -> _Candidates:
        vectors = caching.query_vectors(backend, queries, index.info)[layer, pooling]
        hits = index.engine(layer, pooling).search(vectors, together)
        logits = stage.pair_scores(
            [query for query, rows in zip(queries, hits.indices, strict=True) for _ in rows],
            [corpus.texts[row] for rows in hits.indices for row in rows],
            report_progress,
            is_cancelled,
        )
        return _Candidates(hits.indices, hits.scores, read_only(logits.reshape(hits.indices.shape)))

    key = ("disagreement", index.folder.name, corpus.content_hash, backend.revision, queries, stage.key, together)
    reranking.stop_previous("disagree", key)
    title = f"Scoring the first {together} hits of {counted(len(queries), 'query', 'queries')}"
    found = progress.prepared(key, title, score, "disagree", "scoring the pairs", "pairs")
    return None if found is None else _Candidates(found.rows[:, :k], found.cosines[:, :k], found.logits[:, :k])


def disagreements(
    candidates: _Candidates, queries: tuple[str, ...], own_rows: tuple[int, ...]
) -> tuple[Disagreement, ...]:
    """The pairs with different ranks, the largest difference first."""
    pairs = []
    for number, (query, own) in enumerate(zip(queries, own_rows, strict=True)):
        reranked = in_order_of(candidates.logits[number], candidates.rows[number])
        for rank, (row, before, logit) in enumerate(
            zip(reranked.rows.tolist(), reranked.before.tolist(), reranked.scores.tolist(), strict=True), start=1
        ):
            cosine = float(candidates.cosines[number, before - 1])
            pairs.append(Disagreement(query, row, before, rank, cosine, logit, row == own))
    return tuple(
        sorted((pair for pair in pairs if pair.difference), key=lambda pair: (-abs(pair.difference), -pair.is_correct))
    )


def _pair_choice(pairs: tuple[Disagreement, ...], corpus: Corpus) -> int:
    """The index of the chosen pair."""
    names = {
        number: f"{pair.by_vectors} → {pair.by_cross_encoder}  {pair.query[:40]} · {corpus.texts[pair.row][:60]}"
        for number, pair in enumerate(pairs)
    }
    return int(
        controls.bind("disagreement", st.selectbox, "Pair: rank by vectors → by the cross-encoder", options=names)
    )


def _evidence(backend: Backend, stage: SecondStage, corpus: Corpus, pair: Disagreement) -> None:
    document = corpus.texts[pair.row][:MOST_CHARACTERS]
    left_out = _left_out(stage, pair.query, document)
    correct = ", and it is the correct answer" if pair.is_correct else ""
    st.markdown(
        f":material/insights: Rank {pair.by_vectors} by vectors (cosine {pair.cosine:.3f}), rank {pair.by_cross_encoder} by "
        f"the cross-encoder (logit {pair.logit:.3f}){correct}."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        _token_matches(backend, pair, document)
    if left_out is not None:
        with right:
            _word_drops(left_out)


def _token_matches(backend: Backend, pair: Disagreement, document: str) -> None:
    trace = backend.trace([pair.query, document], max_length=controls.length_for(backend) or backend.own_max_length)
    layer = trace.n_layers
    try:
        similarity = late_interaction.of_trace(trace, layer)
    except ValueError:
        st.info("The query or the document has only special tokens: there is nothing to compare.")
        return
    query, hit = trace.sentences
    rows = matrices.axis_labels([token.piece for token in query.tokens], similarity.query_positions)
    columns = matrices.axis_labels([token.piece for token in hit.tokens], similarity.document_positions)
    figures.figure(
        matrices.token_matrix(
            similarity.matrix,
            rows,
            columns,
            f"Vectors: token similarities, layer {layer}",
            rows="query token",
            columns="document token",
            value="cosine",
            colour_bar=False,
            show_values=len(columns) <= 12,
        ),
        key="disagreement_tokens",
        alt=f"Cosines of {len(rows)} query tokens with {len(columns)} document tokens",
        message=f"MaxSim is {similarity.total:.2f}; each query token's best cosine is {similarity.mean:.2f} on average.",
        message_below=True,
        table=lambda: pd.DataFrame(similarity.matrix.round(4), columns=columns).assign(query=rows)[["query", *columns]],
    )
    figures.reading(
        "Every row is a query token; its brightest cell is the document token that matches it best.",
        "How the vectors ranked the document: they compare one vector per text, not tokens.",
        stacked=True,
    )


def _left_out(stage: SecondStage, query: str, document: str) -> LeaveOneOut | None:
    """The cross-encoder's score without each word; None while it is computed, with the progress drawn."""
    (sentence,) = stage.backend.tokenize([query], [document], max_length=stage.max_length)

    def score(report_progress: ReportProgress, is_cancelled: IsCancelled) -> LeaveOneOut:
        return leave_one_out(
            sentence, lambda first, second: stage.pair_scores(first, second, report_progress, is_cancelled)
        )

    key = ("leave one out", stage.key, query, document)
    return progress.prepared(key, "Scoring the pair without each word", score, "left_out", "scoring the pair", "pairs")


def _word_drops(result: LeaveOneOut) -> None:
    if not result.words:
        st.info("Neither text has a word that could be removed.")
        return
    texts = ["document" if word.in_pair else "query" for word in result.words]
    words = [word.text for word in result.words]
    largest = int(np.argmax(result.drops))
    figures.figure(
        bars.drop_bars(words, result.drops, texts, "Cross-encoder: without each word"),
        key="disagreement_drops",
        alt=f"Fall of the cross-encoder's score without each of {len(words)} words",
        message=f"The score of {result.score:.3f} falls most, by {result.drops[largest]:.3f}, without "
        f"“{messages.escape(words[largest])}” of the {texts[largest]}.",
        message_below=True,
        table=lambda: pd.DataFrame({"text": texts, "word": words, "drop": result.drops.round(5)}),
    )
    figures.reading(
        "A bar to the right: without this word the score falls, so that the word speaks for the pair. A bar to the left: "
        "without it the score rises.",
        "Causes. Removing a word makes a text that the model may never have seen, and the drops do not sum to the score: "
        "where two words say the same, neither may have a drop.",
        stacked=True,
    )


def _list(pairs: tuple[Disagreement, ...], corpus: Corpus, queries: int, k: int) -> None:
    st.subheader("The pairs with the largest difference of rank", anchor=False)
    table = pd.DataFrame(
        [
            {
                "vectors": pair.by_vectors,
                "cross-encoder": pair.by_cross_encoder,
                "correct": "yes" if pair.is_correct else "",
                "query": pair.query,
                "document": corpus.texts[pair.row],
            }
            for pair in pairs
        ]
    )
    figures.whole_texts(table, key="disagreement_list")
    source = "queries (a sample of the corpus's own)" if current.query_column(corpus) else "sentences of the corpus"
    st.caption(
        f"Ranks among the first {k} hits of {queries} {source}. “correct” marks the sentence that belongs to the query. A "
        "difference does not say which model is right."
    )
    figures.data("disagreement", lambda: table)
