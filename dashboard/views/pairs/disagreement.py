"""Where bi-encoder and cross-encoder disagree most, with the token evidence of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components import numbers
from components.analysis.leave_one_out import leave_one_out
from components.arrays import read_only
from components.charts import bars
from components.charts.retrieval import reranking as charts
from components.retrieval.rankings.ranking import Ranking
from components.shown_code.code import Command
from components.shown_code.search import drops
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.jobs import embedding, requests, reranking
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.stored import cross_looks
from dashboard.ui import controls, figures, messages, model_gate, token_matches
from dashboard.ui.waiting import before_work, frame
from dashboard.ui.wording import counted, quoted, shortened
from dashboard.views.pairs import rerank

if TYPE_CHECKING:
    from components.analysis.leave_one_out import LeaveOneOut
    from components.arrays import Float32, Int64
    from components.charts.retrieval.reranking import Kind
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import VectorIndex
    from components.shown_code.code import AnyCode
    from dashboard.jobs.reranking import SecondStage

SEED = (
    171  # of the sample of queries: the demo's has one that the included cross-encoder repairs, and one that it harms
)
MOST_LISTED = 50  # pairs
MOST_CHARACTERS = 4_000  # of a document whose words are removed
SHORT = 60  # characters of a text in the chooser


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
    correct_ranks: tuple[int, int] | None = (
        None  # of that sentence, by vectors and by the cross-encoder, if both rank it
    )

    @property
    def difference(self) -> int:
        """How many ranks the cross-encoder moves the document up (or down, if negative)."""
        return self.by_vectors - self.by_cross_encoder

    @property
    def is_decisive(self) -> bool:
        """Whether it says who is right: one of the two models ranks the correct answer first."""
        return self.is_correct and 1 in (self.by_vectors, self.by_cross_encoder)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """The first k hits of several queries, and the cross-encoder's scores of them."""

    rows: Int64  # [query, candidate]
    cosines: np.ndarray  # float64 [query, candidate]
    logits: Float32  # [query, candidate]


def intro() -> str:
    """What re-ranking changes over all queries, where that was measured."""
    if rerank.is_included("rerank"):
        return cross_looks.finding()
    return "Documents that the vectors and the cross-encoder rank differently."


def disagreement(backend: Backend) -> None:
    """Draw the pairs that the models rank differently, and the token evidence of the chosen one."""
    messages.cross_encoder_note([backend])
    corpus = current.corpus()
    with controls.row():
        pair_slot = st.container()
        panel = controls.options()
    with panel:
        controls.number("disagreement_queries", "Queries", 5, 100, 20)
        controls.number("k", "Candidates (k)", 1, reranking.MOST_CANDIDATES, 10)
    queries, own_rows = sample_of_queries(corpus, state.get("disagreement_queries"))
    stage = model_gate.second_stage("rerank", backend)
    if stage is None:
        return
    with panel:
        model_gate.label_choice(stage)
    request = EmbedRequest.of_session(backend)
    index = embedding.index_of(request, corpus, "disagree")
    before_work.other_layers(request, corpus, "disagree")
    candidates = _candidates(backend, index, corpus, queries, stage, state.get("k"))
    pairs = disagreements(candidates, queries, own_rows)[:MOST_LISTED]
    if not pairs:
        st.info("Both models rank every candidate the same. Increase k or the number of queries.")
        return
    with pair_slot:
        number = _pair_choice(pairs, corpus)
    chosen = pairs[number]
    _orders(chosen, candidates, queries.index(chosen.query), own_rows[queries.index(chosen.query)], stage, corpus)
    _evidence(backend, stage, corpus, chosen)
    count = candidates.rows.shape[1]
    _list(pairs, corpus, len(queries), count)


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
) -> _Candidates:
    """The first k hits of the queries and their scores. Raises NotReady while the cross-encoder works."""
    layer, pooling = reranking.cell_of(backend, index)
    together = reranking.scored_together(k)  # the slider then costs no pass
    key = ("disagreement", index.folder.name, corpus.content_hash, backend.revision, queries, stage.key, together)

    def score(report_progress: ReportProgress, is_stopped: IsStopped) -> _Candidates:
        vectors = caching.query_vectors(backend, queries, index.info)[layer, pooling]
        hits = index.engine(layer, pooling).search(vectors, together)
        logits = stage.pair_scores(
            [query for query, rows in zip(queries, hits.indices, strict=True) for _ in rows],
            [corpus.texts[row] for rows in hits.indices for row in rows],
            report_progress,
            requests.unless_left(key, is_stopped),
        )
        return _Candidates(hits.indices, hits.scores, read_only(logits.reshape(hits.indices.shape)))

    requests.stop_previous("disagree", key)
    title = f"Scoring the first {together} hits of {counted(len(queries), 'query', 'queries')}"
    if together > k:
        title += f", so that k can be moved up to {together}"
    candidates = requests.prepared(key, title, score, "disagree", "scoring the pairs", "pairs")
    return _Candidates(candidates.rows[:, :k], candidates.cosines[:, :k], candidates.logits[:, :k])


def disagreements(
    candidates: _Candidates, queries: tuple[str, ...], own_rows: tuple[int, ...]
) -> tuple[Disagreement, ...]:
    """The pairs with different ranks: those that say who is right, then the others, each with the largest difference first."""
    pairs = []
    for number, (query, own) in enumerate(zip(queries, own_rows, strict=True)):
        rows = candidates.rows[number].tolist()  # candidate c has the rank c + 1 by vectors
        reranked = Ranking.of_candidates("", "logit", candidates.logits[number], np.arange(len(rows)), len(rows))
        ranks = {rows[place]: (place + 1, rank) for rank, place in enumerate(reranked.best.tolist(), start=1)}
        for (row, both), logit in zip(ranks.items(), reranked.hit_scores.tolist(), strict=True):
            cosine = float(candidates.cosines[number, both[0] - 1])
            pairs.append(Disagreement(query, row, *both, cosine, logit, row == own, ranks.get(own)))
    return tuple(
        sorted(
            (pair for pair in pairs if pair.difference),
            key=lambda pair: (not pair.is_decisive, -abs(pair.difference), not pair.is_correct),
        )
    )


def _pair_choice(pairs: tuple[Disagreement, ...], corpus: Corpus) -> int:
    """The index of the chosen pair."""
    names = {number: _short_name(pair, corpus.texts[pair.row]) for number, pair in enumerate(pairs)}
    return int(controls.bind("disagreement", st.selectbox, "Rank by vectors, then cross-encoder", options=names))


def _short_name(pair: Disagreement, document: str) -> str:
    """A pair in a line: its ranks, and how both texts begin."""
    ranks = f"rank {pair.by_vectors}, then {pair.by_cross_encoder}"
    return f"{ranks}: {shortened(pair.query, SHORT)} · {shortened(document, SHORT)}"


def headline(pair: Disagreement) -> str:
    """Which model is right about a pair, in words."""
    before, after = pair.by_vectors, pair.by_cross_encoder
    query = f"For {quoted(pair.query, 50)}"
    if not pair.is_correct:
        text = f"{query} **not the correct answer:** its move from rank {before} to {after} does not say who is right."
        if pair.correct_ranks is None:
            return f"{text} The correct answer is not among the candidates."
        first, second = pair.correct_ranks
        return f"{text} The correct answer: rank {first} by vectors, {second} by the cross-encoder."
    is_up = after < before
    right = "the cross-encoder is" if is_up else "the vectors are"
    moved = f"{'it' if is_up else 'the cross-encoder'} moved the correct answer from rank {before} {'up' if is_up else 'down'}"
    if not pair.is_decisive:
        return f"{query} **{right} nearer to right:** {moved} to {after}. Neither model ranks it first."
    return f"{query} **{right} right:** {moved} to {after}."


def _orders(
    pair: Disagreement, candidates: _Candidates, number: int, own: int, stage: SecondStage, corpus: Corpus
) -> None:
    """The texts of the pair's query in both orders; the pair's document has a frame, and the correct answer is blue."""
    rows, count = candidates.rows[number], candidates.rows.shape[1]
    by_vectors = Ranking.of_candidates("", "cosine", candidates.cosines[number], rows, len(corpus))
    reranked = Ranking.of_candidates("", "logit", candidates.logits[number], np.arange(count), count)
    by_stage = Ranking.of_candidates("", "logit", candidates.logits[number], rows, len(corpus))
    ranks = (reranked.best + 1).tolist()  # by vectors, of the best by the cross-encoder first
    after = [hit | {"before": rank} for hit, rank in zip(rerank.hits_of(by_stage, corpus, count), ranks, strict=True)]
    texts = [corpus.texts[row] for row in by_stage.best]
    kinds: list[Kind] = ["correct" if row == own else "other" for row in by_stage.best.tolist()]
    table = pd.DataFrame(
        {
            "now": range(1, count + 1),
            "before": ranks,
            "correct": ["yes" if kind == "correct" else "" for kind in kinds],
            "cosine": candidates.cosines[number][reranked.best].round(4),
            stage.unit: by_stage.hit_scores.round(4),
            "text": texts,
        }
    )
    figures.above(
        headline(pair),
        key="disagreement_orders",
        table=lambda: table,
        code=stage.code(pair.query, texts),
        title=f"Orders for “{shortened(pair.query, 40)}”",
        read=rerank.both_orders(count, "by vectors", stage)
        + " The blue line is the correct answer's. In the lists below, the document of the pair has a frame.",
        not_shown="Why a text moves: the bars and cells below show what can be known of it.",
        chart=charts.rank_changes(
            np.array(ranks),
            kinds,
            texts,
            first="vectors",
            second="cross-encoder",
            scale=controls.scale(),
        ),
        alt=f"Lines from the rank of each of {count} texts by vectors to its rank by the cross-encoder",
    )
    before = rerank.hits_of(by_vectors, corpus, count)
    rerank.draw_lists(before, after, frozenset({own}), stage, pair.query, pair.row)


def _evidence(backend: Backend, stage: SecondStage, corpus: Corpus, pair: Disagreement) -> None:
    document = corpus.texts[pair.row][:MOST_CHARACTERS]
    if is_cut := token_matches.cut_note(corpus.texts[pair.row], MOST_CHARACTERS):
        st.caption(is_cut)
    with frame.figure("word_drops"):
        result = _left_out(stage, pair.query, document)
        read = (stage.backend, pair.query, document, result.words, stage.label, stage.max_length)
        _word_drops(result, drops(*read))
    _token_matches(backend, pair, document)


def _token_matches(backend: Backend, pair: Disagreement, document: str) -> None:
    not_by_this = (
        f"The vectors did not rank this way: they compare one vector per text (cosine {numbers.number(pair.cosine)})."
    )
    not_shown = (
        "Why the vectors gave this rank: one vector per text has no tokens that could be compared in such cells."
    )
    if backend.late_interaction is not None:
        trained = token_matches.of_trained_vectors(backend, pair.query, document, controls.length_for(backend))
        if trained is not None:
            message = f"{trained.message} {not_by_this}"
            token_matches.trained_figure(trained, key="disagreement_tokens", message=message)
            figures.reading(token_matches.TRAINED_READ, not_shown)
        return
    matches = token_matches.of_texts(backend, pair.query, document, max_length=controls.length_for(backend))
    if matches is None:
        return
    token_matches.figure(
        matches,
        f"Token by token (MaxSim), layer {matches.layer}",
        key="disagreement_tokens",
        colour_bar="above",
        message=f"Token by token, MaxSim is {numbers.number(matches.similarity.total, 2)}. "
        f"Each query token's best cosine is {numbers.number(matches.similarity.mean, 2)} on average. {not_by_this}",
    )
    figures.reading(
        "Every row is a query token; its bluest cell is the document token that matches it best.",
        not_shown,
    )


def _left_out(stage: SecondStage, query: str, document: str) -> LeaveOneOut:
    """The cross-encoder's score without each word. Raises NotReady while it is computed."""
    (sentence,) = stage.backend.tokenize([query], [document], max_length=stage.max_length)
    key = ("leave one out", stage.key, query, document)

    def score(report_progress: ReportProgress, is_stopped: IsStopped) -> LeaveOneOut:
        return leave_one_out(
            sentence,
            lambda first, second: stage.pair_scores(
                first, second, report_progress, requests.unless_left(key, is_stopped)
            ),
        )

    requests.stop_previous("left_out", key, view="disagree")
    return requests.prepared(key, "Scoring the pair without each word", score, "left_out", "scoring the pair", "pairs")


def drop_in_words(word: str, text: str, score: float, drop: float) -> str:
    """Which word of which text the score needs most: without it the score falls by the largest `drop`, which can be below 0."""
    if drop <= 0:
        return f"No word raises the score. Without any one of them the score of {numbers.number(score)} does not fall."
    return (
        f"{quoted(word)} of the {text} counts most. Without it the score of {numbers.number(score)} falls by "
        f"{numbers.number(drop)}."
    )


def _word_drops(result: LeaveOneOut, code: AnyCode) -> None:
    if not result.words:
        st.info("Neither text has a word that could be removed.")
        return
    texts = ["document" if word.in_pair else "query" for word in result.words]
    words = [word.text for word in result.words]
    largest = int(np.argmax(result.drops))
    figures.figure(
        bars.drop_bars(words, result.drops, texts, "Cross-encoder: without each word"),
        key="disagreement_drops",
        code=code,
        alt=f"Fall of the cross-encoder's score without each of {len(words)} words",
        message=drop_in_words(words[largest], texts[largest], result.score, float(result.drops[largest])),
        table=lambda: pd.DataFrame({"text": texts, "word": words, "drop": result.drops.round(5)}),
    )
    figures.reading(
        "A bar to the right (blue): without this word the score falls, so that the word speaks for the pair. A bar to the left "
        "(orange): without it the score rises. The three largest have their numbers. The score is a logit: above 0 the model "
        "takes the two for similar.",
        "Causes. Removing a word makes a text that the model may never have seen, and the drops do not sum to the score: "
        "where two words say the same, neither may have a drop.",
    )


def _list(pairs: tuple[Disagreement, ...], corpus: Corpus, queries: int, k: int) -> None:
    figures.subheader("The pairs that the models rank differently")
    table = pd.DataFrame(
        [
            {
                "vectors": pair.by_vectors,
                "cross-encoder": pair.by_cross_encoder,
                "correct": "yes" if pair.is_correct else "no",
                "query": pair.query,
                "document": corpus.texts[pair.row],
            }
            for pair in pairs
        ]
    )
    figures.whole_texts(table, key="disagreement_list")
    chosen = (
        ""
        if state.get("corpus")
        else (
            " The demo's sample was chosen to have queries of both kinds, repaired and harmed: it does not say which is more "
            "frequent."
        )
    )
    source = "queries (a sample of the corpus's own)" if current.query_column(corpus) else "sentences of the corpus"
    st.caption(
        f"Ranks among the first {k} hits of {queries} {source}. “correct” marks the sentence that belongs to the query. "
        "First come the correct answers that one of the models ranks first, then the other pairs, the largest difference "
        f"first: of these, a difference alone does not say which model is right.{chosen}"
    )
    figures.data("disagreement", lambda: table, Command(disagreements), "Where the two models disagree")
