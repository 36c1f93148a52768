"""The two stages of retrieve and re-rank as jobs: the first hits of a corpus, and their scores by a second model.

Several pages re-rank: each passes its candidates, and gets their scores as soon as the job has them.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from components.arrays import read_only
from components.numbers import counted
from components.retrieval.corpora.demo import demo_sentences
from components.retrieval.rankings.ranking import Ranking
from components.retrieval.search.query import query_vectors
from components.retrieval.search.rerank import late_interaction_scores, max_sim_scores
from components.shown_code import search as shown_search
from dashboard import caching
from dashboard.jobs import embedding, requests
from dashboard.jobs.embedding import EmbedRequest
from dashboard.jobs.requests import stop_previous, unless_left

if TYPE_CHECKING:
    from components.arrays import Float32, Int64
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.index.folder import VectorIndex
    from components.shown_code.code import AnyCode

StageKind = Literal["rerank", "maxsim"]
STAGE_NAMES: dict[StageKind, str] = {"rerank": "Cross-encoder", "maxsim": "MaxSim"}
MOST_CANDIDATES = 100  # of one query, for which a person waits; a run of Evaluate has up to run_code.MOST_CANDIDATES
RANKED_BY = {"entailment", "relevant"}  # labels that rank, where a head has several; in lower case
SCORED_TOGETHER = (20, 50, MOST_CANDIDATES)  # a slider of the number of candidates moves freely within a step
REPEATS = 3  # of what takes milliseconds
_TRIAL_PAIRS = 48  # of the demo's sentences, on which the speed is measured


@dataclass(frozen=True)
class SecondStage:
    """A way to score candidates together with a query. It needs no session."""

    kind: StageKind
    backend: Backend  # the cross-encoder; for MaxSim the model that gives the token vectors
    max_length: int | None  # tokens; None: the model's own
    label: int | None = None  # of a cross-encoder with several
    layer: int = 0  # of MaxSim, where the model was not trained for it

    @property
    def is_trained_max_sim(self) -> bool:
        """Whether MaxSim compares the vectors of a model that was trained for it, and not a layer's hidden states."""
        return self.kind == "maxsim" and self.backend.late_interaction is not None

    @property
    def title(self) -> str:
        """What it is, for people; not escaped."""
        if self.is_trained_max_sim:
            return f"MaxSim by {self.backend.spec.title}, trained for late interaction"
        if self.kind == "maxsim":
            return f"MaxSim, layer {self.layer}"
        names = self.backend.pair_labels()
        of_label = f" ({names[self.label or 0]})" if len(names) > 1 else ""
        return f"{self.backend.spec.title}{of_label}"

    def code(self, query: str, texts: Sequence[str]) -> AnyCode:
        """The code of its scores of a query with some candidates."""
        if self.kind == "maxsim":
            return shown_search.max_sim_scores(self.backend, query, texts, self.layer, self.max_length)
        return shown_search.reranked(self.backend, query, texts, self.label, self.max_length)

    @property
    def unit(self) -> str:
        """What the score is."""
        return "logit" if self.kind == "rerank" else "MaxSim"

    @property
    def key(self) -> Hashable:
        """What determines the scores of given texts."""
        backend = self.backend
        model = (backend.spec.key, backend.revision, str(backend.device))
        return (self.kind, *model, self.max_length, self.label, self.layer)

    def scores(
        self,
        query: str,
        documents: Sequence[str],
        report_progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> Float32:
        """The score of a query with each document, float32 [document]. Raises as the models do, and Stopped."""
        if self.kind == "maxsim":
            return late_interaction_scores(
                self.backend, query, documents, self.layer, self.max_length, report_progress, is_stopped
            )
        return self.pair_scores([query] * len(documents), documents, report_progress, is_stopped)

    def pair_scores(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        report_progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> Float32:
        """A cross-encoder's score of each query with the document of the same number, float32 [pair]."""
        return self.backend.score_pairs(
            queries,
            documents,
            label=self.label,
            max_length=self.max_length,
            progress=report_progress,
            is_stopped=is_stopped,
        )


@dataclass(frozen=True)
class FirstStage:
    """The first hits of a query by the model's vectors, and what they cost."""

    ranking: Ranking
    layer: int
    pooling: Pooling
    embed_seconds: float  # of the query, once warm: the median of REPEATS
    search_seconds: float  # the same
    was_alone: bool  # whether no other job was at work meanwhile


@dataclass(frozen=True, eq=False)
class TimedScores:
    """Candidates' scores by a second stage, and what they cost."""

    scores: Float32  # [candidate]
    seconds: float  # of one pass over all of them, once the model is warm
    was_alone: bool  # whether no other job was at work meanwhile


@dataclass(frozen=True)
class PassCosts:
    """Seconds per unit of work, measured here on the demo's sentences."""

    single: float  # one text through the bi-encoder
    joint: float  # two texts through the cross-encoder
    max_sim: float  # MaxSim of two texts whose token vectors are known
    was_alone: bool


def likely_label(names: Sequence[str]) -> str:
    """The label that says that a document is relevant, as far as its name tells."""
    return next((name for name in names if name.lower() in RANKED_BY), names[0])


def cell_of(backend: Backend, index: VectorIndex) -> tuple[int, Pooling]:
    """The index's last layer, and the model's own pooling or the first that the index has."""
    poolings = index.info.options.poolings
    return index.info.options.layers[-1], backend.own_pooling if backend.own_pooling in poolings else poolings[0]


def first_stage(backend: Backend, corpus: Corpus, query: str, where: str) -> FirstStage:
    """The first MOST_CANDIDATES different texts for a query. Raises NotReady while the corpus is embedded."""
    index = embedding.index_of(EmbedRequest.of_session(backend), corpus, where)

    def search(report_progress: ReportProgress, is_stopped: IsStopped) -> FirstStage:
        layer, pooling = cell_of(backend, index)
        times, queue = [], caching.queue()
        was_alone = queue.works_on_one()
        for _ in range(1 + REPEATS):
            started = time.perf_counter()
            vector = query_vectors(backend, (query,), index.info)[layer, pooling][0]
            embedded = time.perf_counter()
            hits = index.engine(layer, pooling).search(vector, MOST_CANDIDATES, rows=corpus.different)
            times.append((embedded - started, time.perf_counter() - embedded))
        # The first time reads weights and vectors from disk: it is not counted.
        embed_seconds, search_seconds = np.median(times[1:], axis=0).tolist()
        was_alone = was_alone and queue.works_on_one()
        ranking = Ranking.of_hits("vectors", "cosine", hits)
        return FirstStage(ranking, layer, pooling, embed_seconds, search_seconds, was_alone)

    key = ("first stage", index.folder.name, backend.revision, query)
    job = caching.preparations().find(key)
    if job is None or not job.finished.is_set():
        stop_previous(f"retrieve_{where}", key)  # the scores for the query before, behind which this would wait
    return requests.prepared(key, "Searching", search, f"retrieve_{where}", "searching the corpus")


def scored(
    stage: SecondStage, corpus: Texts, query: str, rows: Int64, where: str, title: str = "", view: str = ""
) -> TimedScores:
    """The scores of candidate `rows` [candidate]. Raises NotReady while the second stage works.

    Work that this session requested here before for other candidates is stopped: a person who types a query would
    otherwise wait for the scores of each beginning of it. `title` says what the job does, if it is not simply re-ranking;
    `view` is that of `stop_previous`.
    """
    documents = [corpus.texts[row] for row in rows]
    queue = caching.queue()
    key = ("second stage", stage.key, corpus.content_hash, query, tuple(map(int, rows)))

    def score(report_progress: ReportProgress, is_stopped: IsStopped) -> TimedScores:
        is_over = unless_left(key, is_stopped)
        stage.scores(
            query, documents[:1], lambda done, total: None, is_over
        )  # warms up: the time is not that of a start
        was_alone, started = queue.works_on_one(), time.perf_counter()
        scores = stage.scores(query, documents, report_progress, is_over)
        seconds = time.perf_counter() - started
        return TimedScores(read_only(scores), seconds, was_alone and queue.works_on_one())

    stop_previous(where, key, view)
    title = title or f"Re-ranking {counted(len(rows), 'candidate')}"
    return requests.prepared(key, title, score, f"rerank_{where}", "scoring the candidates", "texts")


def first_scored(stage: SecondStage, corpus: Corpus, query: str, rows: Int64, k: int, where: str) -> TimedScores:
    """As `scored` for the first k rows, of which more are scored at once: a slider of k then costs no pass."""
    together = scored_together(k)
    count = min(together, len(rows))
    title = f"Re-ranking {counted(k, 'candidate')}: {count} are scored at once, so that k can be moved up to {count}"
    result = scored(stage, corpus, query, rows[:together], where, title if count > k else "")
    return TimedScores(result.scores[:k], result.seconds * min(k, count) / max(1, count), result.was_alone)


def scored_together(k: int) -> int:
    """How many candidates are scored at once where k are asked for."""
    return next(count for count in SCORED_TOGETHER if count >= k)


def pass_costs(backend: Backend, scorer: Backend, where: str) -> PassCosts:
    """What one pass costs here, measured once per pair of models. Raises NotReady while it is measured."""
    options = backend.embed_options()
    measured = embedding.speed(backend, options.precision, where)
    queue = caching.queue()

    def measure(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[float, float, bool]:
        sentences = demo_sentences()[: 2 * _TRIAL_PAIRS]
        first, second = sentences[:_TRIAL_PAIRS], sentences[_TRIAL_PAIRS:]
        scorer.pair_logits(first[:8], second[:8], is_stopped=is_stopped)  # warms up
        was_alone, started = queue.works_on_one(), time.perf_counter()
        scorer.pair_logits(first, second, is_stopped=is_stopped)
        joint = (time.perf_counter() - started) / len(first)
        vectors = backend.own_token_vectors(sentences, is_stopped=is_stopped)
        started = time.perf_counter()
        for query in vectors[:4]:
            max_sim_scores(query, vectors)
        each = (time.perf_counter() - started) / (4 * len(vectors))
        return joint, each, was_alone and queue.works_on_one()

    models = (backend.spec.key, backend.revision, scorer.spec.key, scorer.revision, str(scorer.device))
    jobs, key = caching.preparations(), ("pass costs", *models)
    before = jobs.find(key)
    if before is not None and before.result is not None and not before.result[2] and not queue.under_way():
        jobs.drop([before])  # measured beside other work: again, now that there is none
    title = f"Measuring the speed of {scorer.spec.title}"
    joint = requests.prepared(key, title, measure, f"costs_{where}", "measuring the speed")
    return PassCosts(1 / measured[0], joint[0], joint[1], measured[1] and joint[2])
