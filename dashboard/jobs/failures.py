"""What the view of a failed search waits for: the corpus's failed queries, hubs, their causes, and the edits of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from components.analysis.similarity.baseline import sample_of_rows
from components.arrays import Float32, Int64
from components.jobs import Stoppable, Stopped, part_of
from components.model.trace import Pooling
from components.numbers import counted
from components.retrieval.failures import causes, edits, failed_queries, hubness, repair, traits
from components.retrieval.failures.edits import EditSearch, Embedding
from components.retrieval.failures.failed_queries import FailedQueries, Placing, SearchedCorpus
from components.retrieval.failures.repair import Repaired
from components.retrieval.failures.vocabulary import CorpusWords
from components.retrieval.search.exact import ExactSearch
from dashboard import caching, state
from dashboard.jobs import embedding, requests

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.failures.causes import Causes
    from components.retrieval.failures.hubness import Hubness
    from components.retrieval.failures.traits import Traits
    from components.retrieval.index.folder import VectorIndex
    from dashboard.jobs.embedding import EmbedRequest

MOST_QUERIES = 5_000  # a seeded sample of this many says how often each text is found


@dataclass(frozen=True, eq=False)
class CorpusQueries:
    """The session's corpus at one layer and pooling, with the vectors of its own queries if it has any."""

    request: EmbedRequest
    corpus: SearchedCorpus
    index: VectorIndex
    queries: VectorIndex | None
    layer: int
    pooling: Pooling

    @property
    def backend(self) -> Backend:
        return self.request.backend

    @property
    def engine(self) -> ExactSearch:
        return self.index.engine(self.layer, self.pooling)

    @property
    def max_length(self) -> int:
        """The number of tokens to which a text is truncated."""
        return self.index.info.options.max_length

    @property
    def key(self) -> tuple[object, ...]:
        """What determines the vectors."""
        queries = "" if self.queries is None else self.queries.folder.name
        return self.index.folder.name, queries, self.layer, self.pooling, self.corpus.every_text

    def vector(self, query: str) -> Float32:
        """The vector of one query [dim], embedded by itself."""
        return caching.query_vectors(self.backend, (query,), self.index.info)[self.layer, self.pooling][0]

    def first_hits(self, query: str, count: int) -> Int64:
        """The rows of the first texts for a query, of those that are searched."""
        vector, is_searched = self.vector(query), self.corpus.first_of >= 0
        scores = np.where(is_searched, self.engine.scores(vector), np.float32(failed_queries.NEVER))
        return self.engine.hits_of(vector, scores, min(count, int(is_searched.sum()))).indices[0]

    def prompts(self) -> tuple[str, str]:
        """What the model puts before a query, and before a text."""
        options = self.index.info.options
        return self.request.query_options(options).prompt, options.prompt


class TriedEdits(NamedTuple):
    """The edits of a query; if none of them helps, those of the right text too."""

    by_query: EditSearch
    by_text: EditSearch | None

    @property
    def nbytes(self) -> int:
        """Memory the listed texts take, in bytes."""
        return self.by_query.nbytes + (0 if self.by_text is None else self.by_text.nbytes)


def searched_corpus(corpus: Corpus, column: str | None) -> SearchedCorpus:
    """The session's corpus as texts and queries, which stand in the `column` if it has any; made once."""
    is_every = state.get("texts_searched") == "all"
    key = (state.get("corpus"), column, is_every)
    return caching.searched_corpora().get(key, lambda: failed_queries.searched_corpus(corpus, column, is_every))


def failures(searched: CorpusQueries) -> FailedQueries | None:
    """The failed queries; None for a corpus without queries. Raises NotReady while they are ranked."""
    queries, corpus, engine = searched.queries, searched.corpus, searched.engine
    if queries is None:
        return None
    vectors = queries.engine(searched.layer, searched.pooling).vectors

    def find(report_progress: ReportProgress, is_stopped: IsStopped) -> FailedQueries:
        return failed_queries.find_failures(corpus, np.asarray(vectors), engine, report_progress, is_stopped)

    title = f"Ranking {counted(len(vectors), 'query', 'queries')}"
    key = ("failed queries", *searched.key)
    return requests.prepared(key, title, find, "failed", "ranking the queries", "queries", caching.evaluations())


def occurrences(searched: CorpusQueries, where: str = "hubness") -> Hubness:
    """In how many queries' first ten hits each different text stands, in the order of `SearchedCorpus.firsts`.

    The different queries are the corpus's own, or without any its texts; of many a seeded sample. `where` keys the widgets.
    Raises NotReady while they are counted.
    """
    corpus, queries = searched.corpus, searched.queries
    different = corpus.firsts if queries is None else corpus.first_queries

    def count(report_progress: ReportProgress, is_stopped: IsStopped) -> Hubness:
        engine = searched.engine
        if len(corpus.firsts) < len(corpus.first_of):
            engine = ExactSearch(np.asarray(engine.vectors[corpus.firsts]))
        vectors = (searched.engine if queries is None else queries.engine(searched.layer, searched.pooling)).vectors
        rows = sample_of_rows(len(different), MOST_QUERIES)
        own = rows if queries is None else None
        chosen = np.asarray(vectors[different[rows]], np.float32)
        return hubness.k_occurrence(chosen, engine, hubness.FIRST_HITS, own, report_progress, is_stopped)

    count_of = f"{min(len(different), MOST_QUERIES):,}"
    title = f"Counting in how many of {count_of} queries' first {hubness.FIRST_HITS} hits each text is"
    key = ("k-occurrence", *searched.key)
    return requests.prepared(key, title, count, where, "counting the hits", "queries", caching.evaluations())


def causes_of(searched: CorpusQueries, found: FailedQueries, hubs: Hubness) -> tuple[Causes, Causes]:
    """The causes of all failures, and the rules that hold for the successes. Raises NotReady while they are sought."""
    for_query, for_text = searched.prompts()
    of_texts = embedding.token_counts(searched.backend, searched.corpus.documents, "failure_texts", for_text)
    of_queries = embedding.token_counts(searched.backend, searched.corpus.queries, "failure_queries", for_query)
    corpus, engine, most = searched.corpus, searched.engine, searched.max_length

    def seek(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[Causes, Causes]:
        truncated = ((of_queries > most).tolist(), (of_texts > most).tolist())
        failed, others = (
            causes.causes_of(placings, corpus, engine, hubs, truncated, report_progress, is_stopped)
            for placings in (found.placings, found.successes)
        )
        return failed, others

    key = ("causes", *searched.key, most)
    return requests.prepared(
        key, "Sorting the failures by cause", seek, "causes", "sorting the failures", "queries", caching.evaluations()
    )


def traits_of(searched: CorpusQueries) -> Traits:
    """The traits of all different queries, in the order of `SearchedCorpus.pairs`. Raises NotReady while they are sought."""
    corpus, queries, backend = searched.corpus, searched.queries, searched.backend
    assert queries is not None
    vectors = queries.engine(searched.layer, searched.pooling).vectors

    def seek(report_progress: ReportProgress, is_stopped: IsStopped) -> Traits:
        both = np.asarray(vectors[corpus.first_queries]), np.asarray(searched.engine.vectors[corpus.firsts])
        known, length = CorpusWords(corpus.pairs.documents.texts, backend.tokenization.vocabulary), searched.max_length
        return traits.traits_of(
            corpus.pairs,
            *both,
            backend.tokenization,
            length,
            searched.prompts(),
            known,
            report_progress,
            is_stopped,
        )

    key = ("traits of queries", *searched.key, searched.max_length)
    title = "Looking for traits of the queries"
    return requests.prepared(key, title, seek, "traits", "looking for traits", "queries", caching.evaluations())


def repairs_of(
    searched: CorpusQueries, query: str, placed: Placing, no_rivals: Sequence[int], abbreviations: Mapping[str, str]
) -> tuple[tuple[Repaired, int], ...]:
    """Each repair of a query that the model reads as another text, with the rank that it gives the right text.

    Raises NotReady.
    """
    backend, documents = searched.backend, searched.index.info.options
    asked = searched.request.query_options(documents)

    def count(report_progress: ReportProgress, is_stopped: IsStopped) -> CorpusWords:
        texts = Stoppable(searched.corpus.pairs.documents.texts, is_stopped)
        counted = CorpusWords(texts, backend.tokenization.vocabulary)
        counted.prepare(is_stopped)
        return counted

    known = requests.prepared(
        ("words of a corpus", searched.corpus.pairs.documents.content_hash, backend.spec.key),
        "Counting the corpus’s words",
        count,
        "corpus_words",
        "counting the words",
        jobs=caching.evaluations(),
    )

    def read(text: str) -> list[int]:
        return [token.id for token in backend.tokenization.tokenize(asked.prompt + text).tokens]

    def rank(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[tuple[Repaired, int], ...]:
        tried = repair.each_repair(query, known, abbreviations)
        own = read(query) if tried else []
        embedded = Embedding(backend, asked, searched.layer, searched.pooling)
        ranks_of = edits.rank_queries(embedded, searched.engine, placed.row, no_rivals)
        found = []
        for number, each in enumerate(tried):
            report_progress(number, len(tried))
            if is_stopped():
                raise Stopped
            if read(each.text) != own:
                ranks, _ = ranks_of([each.text], True)
                found.append((each, int(ranks[0])))
        return tuple(found)

    key = ("repairs", *searched.key, backend.revision, query, placed.row, tuple(no_rivals), *abbreviations.items())
    return requests.latest(key, "Repairing the query", rank, "repairs", "repairing the query", view="debugger")


def edits_of(searched: CorpusQueries, query: str, placed: Placing, no_rivals: Sequence[int]) -> TriedEdits:
    """The edits of a query that help; if there are none, those of the right text too.

    Raises NotReady while they are tried. The search for edits of another query that this session began before is stopped.
    """
    backend, index, engine = searched.backend, searched.index, searched.engine
    documents = index.info.options
    of_queries = Embedding(backend, searched.request.query_options(documents), searched.layer, searched.pooling)
    of_texts = Embedding(backend, documents, searched.layer, searched.pooling)
    right_text, vector = searched.corpus.documents.texts[placed.row], searched.vector(query)

    def seek(report_progress: ReportProgress, is_stopped: IsStopped) -> TriedEdits:
        rank = edits.rank_queries(of_queries, engine, placed.row, no_rivals)
        by_query = edits.query_edits(query, right_text, rank, report_progress, is_stopped)
        if by_query.helping:
            return TriedEdits(by_query, None)
        rank = edits.rank_texts(of_texts, engine, vector, placed.row, no_rivals)
        done = by_query.tried
        further = part_of(report_progress, done, done + edits.MOST_SINGLE)
        return TriedEdits(by_query, edits.text_edits(query, right_text, rank, further, is_stopped))

    key = ("edits", *searched.key, backend.revision, query, placed.row, tuple(no_rivals))
    return requests.latest(key, "Trying edits of the query", seek, "edits", "trying edits", "edits", view="debugger")
