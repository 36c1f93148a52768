"""Every st.cache_* function: singletons and small derived results, all bounded.

Keys are models, revisions, texts and options, never arrays: Streamlit only samples large arrays when it hashes them, so
that one array could get the result of another.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components import operator_settings
from components.arrays import read_only
from components.errors import UserError
from components.folders import cache_part
from components.jobs import RETRY_SECONDS, Cache, CachePart, IsStopped, Job, Jobs, Lane, PageDrawing, Presence, Queue
from components.kept_files import KeptFiles, Room
from components.model import loader
from components.model.store import DEFAULT_BYTES, TraceStore
from components.retrieval.corpora.readers.limits import browser_limits
from components.sizes import memory_of
from dashboard import access, garbage
from dashboard.ready_made import ASSETS

if TYPE_CHECKING:
    import numpy as np

    from components.analysis.attention.head_kinds import HeadKinds
    from components.analysis.attention.head_patterns import HeadPatterns
    from components.analysis.attention.telling import HeadLook
    from components.analysis.attention.weights import TextsFilter
    from components.analysis.first_look.decisive import Habits
    from components.analysis.languages.known_letters import KnownLetters
    from components.analysis.maps.drawing import MapMaker
    from components.analysis.pooling import Pooling
    from components.analysis.similarity.baseline import Baseline, Baselines
    from components.analysis.similarity.calibration import Calibration
    from components.analysis.similarity.cka import LayerCKA
    from components.analysis.vocabulary import Alike, Kinds
    from components.analysis.word_senses import SenseCurve
    from components.arrays import Float32
    from components.distributed.serving import Served
    from components.lessons.answers import Answers
    from components.model.backend import Backend
    from components.model.files.sentence_config import Role
    from components.model.tokenization import Truncation
    from components.model.trace import TokenizedSentence, Trace
    from components.retrieval.corpora.columns import ColumnPreview
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.corpora.minimal_pairs import MinimalPairs
    from components.retrieval.corpora.senses import SenseFile
    from components.retrieval.evaluation.graded.collection import FieldedSet, GradedSet
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.pooling_lab import LabLayers, Pooled
    from components.retrieval.evaluation.run_record import Run
    from components.retrieval.evaluation.sts import ScoredPairs
    from components.retrieval.failures.failed_queries import SearchedCorpus
    from components.retrieval.failures.traits import Traits
    from components.retrieval.index.cache import IndexCache
    from components.retrieval.index.folder import IndexInfo, VectorIndex
    from components.retrieval.search.blind_votes import BlindVotes
    from components.retrieval.search.static_vectors import StaticVectors
    from components.training.data import Split, TrainingData
    from components.training.history import History, HistoryReader
    from components.training.run_folder import RunFolder

log = logging.getLogger(__name__)
_VISITOR = "_visitor"  # session key
_MARK = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # a UUID
CALIBRATED_SENTENCES = 1_000  # of a corpus: up to 499,500 pairs
LECTURES_BYTES = 64 << 20  # of what pictures of lectures showed, of all sessions
PARSED_BYTES = 1 << 30  # at least, of what is read of people's files and made of it
MODELS_KEPT = 4  # in memory: as many as are compared
NICENESS = 5  # of long work beside pages that are drawn
LANES = {
    "models": Lane(workers=4),
    "downloads": Lane(workers=8),  # of models and data sets; they wait for the network
    "embedding": Lane(workers=2, niceness=NICENESS),  # more workers would only slow each other down
    "short embedding": Lane(workers=2),
    "other servers": Lane(workers=8),  # what they embed is waited for
    "tokens": Lane(workers=2, niceness=NICENESS),
    "evaluation": Lane(niceness=NICENESS),
    "statistics": Lane(niceness=NICENESS),
    "preparation": Lane(workers=2),
    # Two: an engine that only has to be opened does not wait behind a graph that is built.
    "engines": Lane(workers=2, niceness=NICENESS),
    # A shorter kind of work must not wait for a longer one: the words of two texts take seconds, the deletion curves of long
    # texts minutes, and so does a pass over a long text up to a late block.
    "explanations": Lane(workers=2, niceness=NICENESS),
    "deletions": Lane(niceness=NICENESS),
    "long texts": Lane(niceness=NICENESS),
    "experiments": Lane(niceness=NICENESS),
    # Nobody still looks for a map that was requested long ago. One job is one layer, and a large model has 25.
    "maps": Lane(newest_first=True, most_waiting=1_000, niceness=NICENESS),
    "quick maps": Lane(newest_first=True, most_waiting=1_000),
    "training": Lane(outlives_process=True),  # a run uses all cores
    "background": Lane(gives_way=True),
    "verification": Lane(),  # the work is another process's
}


@st.cache_resource(max_entries=1, show_spinner=False)
def drawing() -> PageDrawing:
    """The pages that are being drawn."""
    return PageDrawing()


@st.cache_resource(max_entries=1, show_spinner=False)
def queue() -> Queue:
    """The jobs of all sessions."""

    def is_busy() -> bool:
        return traces().is_computing() or drawing().is_under_way()

    return Queue(LANES, is_busy=is_busy, is_present=presence().is_present)


def person() -> str:
    """Who waits for a job: this session's id; empty outside a session."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return ""
    presence().see(context.session_id)  # also whoever waits: the progress of their job is drawn every second
    return context.session_id


def visitor() -> str:
    """Whose answers and votes count once: the mark of the browser's tab, which outlives a reload.

    Before the mark is known (see `know_visitor`), and in a browser that sends none: this session's id.
    """
    return str(st.session_state.get(_VISITOR) or person())


def know_visitor(mark: object) -> bool:
    """Take the mark that a browser's tab sent, and count for it what this session has answered before.

    A session keeps its first mark; anything but a UUID in its usual form is ignored. Returns whether the mark is new.
    """
    if st.session_state.get(_VISITOR) or not isinstance(mark, str) or not _MARK.fullmatch(mark):
        return False
    session = person()
    lesson_answers().move(session, mark)
    blind_votes().move(session, mark)
    st.session_state[_VISITOR] = mark
    return True


def is_visitor_known() -> bool:
    """Whether the browser's tab has sent its mark."""
    return _VISITOR in st.session_state


@st.cache_resource(max_entries=1, show_spinner=False)
def stops() -> Cache[bool]:
    """Which jobs people stopped, by (visitor, key): a session that begins with a reload does not start them again."""
    return Cache(1_000)


@st.cache_resource(max_entries=1, show_spinner=False)
def presence() -> Presence:
    """Which sessions are still there."""
    return Presence(is_connected)


def is_connected(person: Hashable) -> bool:
    """Whether a session is connected now; where that cannot be known (in a test), it counts as connected."""
    return not runtime.exists() or bool(runtime.get_instance().is_active_session(str(person)))


@st.cache_resource(max_entries=1, show_spinner=False)
def traces() -> TraceStore:
    """The traces of all sessions."""
    try:
        return TraceStore()
    except UserError as problem:
        log.error("%s The default of 1 GiB is used.", problem)
        return TraceStore(DEFAULT_BYTES)


@st.cache_resource(max_entries=1, show_spinner=False)
def models() -> loader.ModelLoader:
    """The models in memory, and those being loaded."""
    limit = None
    try:
        loader.configured_bytes()
    except UserError as problem:
        log.error("%s Half of the machine's memory is used.", problem)
        limit = loader.default_bytes()
    return loader.ModelLoader(queue(), traces(), MODELS_KEPT, _after_load, limit)


@st.cache_resource(max_entries=1, show_spinner=False)
def _model_server() -> Served | None:
    """The model server that the operator named; None if there is none."""
    address = operator_settings.BACKEND.chosen()
    if address is None:
        return None
    from components.distributed.serving import Served

    return Served(address)


# What else is done with a model once it is loaded, by name. warm_up fills it: this module must not import dashboard.jobs.
after_load: dict[str, Callable[[Backend], None]] = {}


def _after_load(backend: Backend) -> None:
    server = _model_server()
    if server is not None:
        backend.compute_elsewhere(server.of(backend))
    garbage.freezer.collect_everything()  # a model that was dropped for this one is freed
    baseline(backend)
    for more in after_load.values():
        more(backend)


@st.cache_resource(max_entries=1, show_spinner=False)
def _baselines() -> Cache[Baselines]:
    return Cache(8)


@st.cache_resource(max_entries=1, show_spinner=False)
def _failed_baselines() -> dict[tuple[str, str], float]:
    """When measuring failed for another reason than the model, time.monotonic() by model."""
    return {}


def token_baseline(backend: Backend) -> Baseline:
    """How similar unrelated tokens are in a model."""
    return baseline(backend).tokens


def sentence_baseline(backend: Backend, pooling: Pooling, include_special: bool) -> Baseline:
    """How similar unrelated sentences are in a model, by pooling."""
    return baseline(backend).sentences[pooling, include_special]


def baseline(backend: Backend) -> Baselines:
    """The similarity of unrelated tokens and sentences in a model; waits while another thread measures it.

    For a model that cannot read the sample it is not measured: that must not keep a page from showing what it can. After
    any other failure it is measured again, not before RETRY_SECONDS have passed.
    """
    from components.analysis.similarity.baseline import measure_sample, not_measured
    from components.retrieval.corpora.demo import demo_sentences

    def measured() -> Baselines:
        if backend.structure.why_not("tokens"):
            return not_measured(backend.facts.layers, backend.poolings)
        try:
            return measure_sample(backend.run, demo_sentences())
        except UserError as problem:
            log.warning("%s has no baseline: %s", backend.spec.title, problem)
            return not_measured(backend.facts.layers, backend.poolings)

    key, failed_at = _model_key(backend), _failed_baselines()
    if time.monotonic() - failed_at.get(key, -math.inf) >= RETRY_SECONDS:
        try:
            return _baselines().get(key, measured)
        except Exception as problem:
            log.warning("the baseline of %s could not be measured", backend.spec.title, exc_info=problem)
            failed_at[key] = time.monotonic()
    return not_measured(backend.facts.layers, backend.poolings, has_failed=True)


def baseline_under_way(backends: Sequence[Backend]) -> bool:
    """Whether the baseline of every model is measured, or being measured by another thread."""
    return all(_baselines().is_known(_model_key(backend)) for backend in backends)


def baseline_ready(backend: Backend) -> bool:
    """Whether the baseline of a model is measured."""
    return _baselines().find(_model_key(backend)) is not None


def _model_key(backend: Backend) -> tuple[str, str]:
    return (backend.spec.key, backend.revision)


@st.cache_resource(max_entries=16, show_spinner=False)  # read-only
def vocabulary_kinds(key: tuple[str, str], _vocabulary: Sequence[str]) -> Kinds | None:
    """How many pieces of a vocabulary begin and continue words; keyed on the model and its revision."""
    from components.analysis import vocabulary

    return vocabulary.kinds(_vocabulary)


@st.cache_data(max_entries=16, show_spinner=False)
def _has_long_pieces(key: tuple[str, str], _vocabulary: Sequence[str]) -> bool:
    """Whether the pieces of a vocabulary are mostly longer than a letter; keyed on the model and its revision."""
    from components.analysis.languages import known_letters as languages

    return languages.has_long_pieces(_vocabulary)


def known_letters(backend: Backend, text: str) -> KnownLetters:
    """How many letters of a text a model knows."""
    return _known_letters(_model_key(backend), text, backend, (text,))


def known_letters_of_corpus(backend: Backend, content_hash: str, texts: Sequence[str]) -> KnownLetters:
    """The same of a sample of a corpus, which its hash identifies."""
    return _known_letters(_model_key(backend), f"corpus {content_hash}", backend, texts)


@st.cache_resource(max_entries=512, show_spinner=False)  # two numbers
def _known_letters(key: tuple[str, str], texts_key: str, _backend: Backend, _texts: Sequence[str]) -> KnownLetters:
    """How many letters of some texts a model knows; keyed on the model, its revision and the texts."""
    from components.analysis.languages import known_letters as languages

    tokenization = _backend.tokenization
    return languages.of_corpus(_texts, tokenization, _has_long_pieces(key, tokenization.vocabulary))


@st.cache_resource(max_entries=64, show_spinner=False)  # read-only
def beginning_alike(
    key: tuple[str, str], pieces: tuple[str, ...], named: int, _vocabulary: Sequence[str]
) -> list[Alike]:
    """Of each of some pieces those that begin alike; keyed on the model and its revision."""
    from components.analysis import vocabulary

    return vocabulary.beginning_alike(_vocabulary, pieces, named)


@st.cache_data(max_entries=16, show_spinner=False)
def layer_cka(
    key: tuple[tuple[str, str, bytes], ...], _first: np.ndarray, _second: np.ndarray | None = None
) -> LayerCKA:
    """Linear CKA of layers; keyed on models, revisions and input ids."""
    from components.analysis.similarity import cka

    return cka.layer_cka(_first, _second)


@st.cache_resource(max_entries=32, show_spinner=False)  # read-only, and a record that cannot be pickled
def head_patterns(
    key: tuple[str, str, tuple[object, ...]], which: TextsFilter, windows: tuple[int | None, ...], _trace: Trace
) -> HeadPatterns:
    """Every head's score on every pattern over a trace; keyed on model, revision, texts and input ids."""
    from components.analysis.attention import head_patterns as analysis
    from components.analysis.attention.weights import of_sentence

    attentions = [of_sentence(_trace, row) for row in range(len(_trace.sentences))]
    return analysis.score_heads(attentions, _trace.sentences, texts=which, windows=windows)


@st.cache_resource(max_entries=32, show_spinner=False)  # read-only
def head_kinds(
    key: tuple[str, str, tuple[object, ...]],
    windows: tuple[int | None, ...],
    _attentions: Float32,
    _sentence: TokenizedSentence,
) -> HeadKinds | None:
    """The kinds of the heads on one input; keyed on model, revision, text and input ids. None without tokens of its own."""
    from components.analysis.attention import head_kinds as analysis

    return analysis.head_kinds(_attentions, _sentence, windows)


@st.cache_resource(max_entries=32, show_spinner=False)  # tuples of numbers
def head_looks(
    key: tuple[str, str, tuple[object, ...]],
    which: TextsFilter,
    has_habits: bool,
    _attentions: Float32,
    _sentence: TokenizedSentence,
    _habits: Habits | None,
) -> tuple[HeadLook, ...]:
    """The look of each head between the texts that are shown; keyed as `head_kinds`. A model has one set of habits, or none."""
    from components.analysis.attention.telling import telling_looks
    from components.analysis.attention.weights import pair_mask
    from components.analysis.first_look.words import words_of

    return telling_looks(_attentions, words_of([_sentence]), _habits, pair_mask(_sentence, which))


@st.cache_resource(max_entries=1, show_spinner=False)
def indexes() -> IndexCache:
    """The indexes of all sessions."""
    from components.retrieval.index.cache import DEFAULT_CACHE_BYTES, IndexCache

    try:
        return IndexCache(queue())
    except UserError as problem:
        log.error("%s The default of 20 GiB is used.", problem)
        return IndexCache(queue(), limit=DEFAULT_CACHE_BYTES)


@st.cache_resource(max_entries=1, show_spinner=False)
def evaluations() -> Jobs:
    """The evaluations of all sessions.

    Embedding, ranking, timing and comparing all pairs of a large corpus run one after the other: two at a time would take
    as long together, and both people would wait for both. Statistics over ranks, and the pairs of a small corpus, have a
    lane of their own.
    """
    return Jobs(queue(), "evaluation", keep=64, keep_bytes=512 << 20)


class RunJobs(Jobs):
    """The training runs that are followed. A run is everybody's: whoever presses Stop ends it for all.

    A person who reloads the page is a new person to the server, and could not stop the run otherwise.
    """

    @property
    def can_be_stopped(self) -> bool:
        return access.training_allowed()

    def stop(self, job: Job, person: Hashable = None) -> None:
        from components.training import runs

        if not self.can_be_stopped or job.finished.is_set():
            return
        run = runs.find(str(job.key))
        if run is not None:  # also for a job that only waits, whose work would never say it
            run.ask_to_stop()
        super().stop(job)


@st.cache_resource(max_entries=1, show_spinner=False)
def training_runs() -> RunJobs:
    """The training runs of all sessions, by name; one at a time, in a process of its own that outlives the server."""
    return RunJobs(queue(), "training", keep=16)


@st.cache_resource(max_entries=1, show_spinner=False)
def kept_files() -> KeptFiles:
    """The files that people uploaded; see dashboard/corpora/uploads.py."""
    for_one = operator_settings.SESSION_UPLOADS_BYTES.chosen() or 2 * browser_limits().bytes
    try:
        folder = cache_part("uploads")
    except UserError as problem:
        log.error("%s Uploads are kept in memory.", problem)
        folder = None
    return KeptFiles(
        folder,
        Room(operator_settings.UPLOADS_BYTES.value(), operator_settings.UPLOADS_FILES.value()),
        Room(for_one, operator_settings.SESSION_UPLOADS_FILES.value()),
        operator_settings.KEEP_UPLOADS.value(),
        presence().is_present,
    )


@st.cache_resource(max_entries=1, show_spinner=False)
def parsed() -> Cache[Any]:
    """What was read of people's files and made of it, for all sessions together and bounded by bytes.

    Nothing is lost with it: what is dropped is read again from the kept files, or made again.
    """
    most = max(PARSED_BYTES, 3 * browser_limits().memory)  # the largest corpus counts twice: as read, and as chosen
    return Cache(most, size=lambda value: min(memory_of(value), most))


def _of_kind(kind: str) -> CachePart[Any]:
    return CachePart(parsed(), kind)


corpora: Callable[[], CachePart[Corpus]] = partial(_of_kind, "corpora")  # that people chose, by key
saved_runs: Callable[[], CachePart[tuple[Run, ...]]] = partial(_of_kind, "runs")  # loaded from files, by upload
pair_sets: Callable[[], CachePart[Pairs]] = partial(_of_kind, "pairs")  # queries and documents, by corpus and column
searched_corpora: Callable[[], CachePart[SearchedCorpus]] = partial(
    _of_kind, "searched corpora"
)  # by corpus and column
id_columns: Callable[[], CachePart[str]] = partial(_of_kind, "id columns")  # their names, by corpus
# By corpus and column: the values of other columns by which queries can be chosen.
query_parts: Callable[[], CachePart[dict[str, str]]] = partial(_of_kind, "query parts")
# By corpus, column, these values, and whether every text is searched: which queries have each.
query_values: Callable[[], CachePart[Traits]] = partial(_of_kind, "values of queries")
# By corpus and queries that joined it: the corpus with them, their column, and its upload ("" where it is not kept).
joined_corpora: Callable[[], CachePart[tuple[Corpus, str, str]]] = partial(_of_kind, "joined corpora")
# By corpus: ids to rows, texts to rows, and these texts in order.
text_names: Callable[[], CachePart[tuple[dict[str, int], dict[str, int], list[str]]]] = partial(
    _of_kind, "names of texts"
)
graded_files: Callable[[], CachePart[FieldedSet]] = partial(_of_kind, "graded files")  # by upload or path
graded_sets: Callable[[], CachePart[GradedSet]] = partial(_of_kind, "graded sets")  # by files and the chosen fields
scored_pairs: Callable[[], CachePart[ScoredPairs]] = partial(_of_kind, "scored pairs")  # by upload
static_vectors: Callable[[], CachePart[StaticVectors]] = partial(_of_kind, "static vectors")  # by upload
minimal_pairs: Callable[[], CachePart[MinimalPairs]] = partial(_of_kind, "minimal pairs")  # by upload
sense_files: Callable[[], CachePart[SenseFile]] = partial(_of_kind, "sense files")  # by upload
read_corpora: Callable[[], CachePart[Corpus]] = partial(
    _of_kind, "read corpora"
)  # by file, encoding, column and dialect
lab_pairs: Callable[[], CachePart[Pooled]] = partial(
    _of_kind, "lab pairs"
)  # the lab's scored pairs, by model and corpus
query_files: Callable[[], CachePart[tuple[str, ...]]] = partial(_of_kind, "query files")  # by upload
# By upload; columns where a person has to say which hold what.
training_files: Callable[[], CachePart[TrainingData | tuple[ColumnPreview, ...]]] = partial(_of_kind, "training files")
training_plans: Callable[[], CachePart[tuple[Split, tuple[int, ...]]]] = partial(
    _of_kind, "training plans"
)  # by rows and settings
_run_data: Callable[[], CachePart[tuple[TrainingData, Split]]] = partial(_of_kind, "data of runs")
column_previews: Callable[[], CachePart[tuple[ColumnPreview, ...]]] = partial(
    _of_kind, "columns"
)  # by file, encoding and dialect


@st.cache_resource(max_entries=1, show_spinner=False)
def _run_histories() -> Cache[HistoryReader]:
    return Cache(16)  # they grow, and can be read again from their runs


def run_data(run: RunFolder) -> tuple[TrainingData, Split]:
    """The rows of a run and their split, read once. Raises InputError as `RunFolder.data` does."""
    return _run_data().get((run.path, run.data_version), run.data)


def run_history(run: RunFolder) -> History:
    """The curves of a run, of which only what is new is read."""
    from components.training.history import HistoryReader

    return _run_histories().get(run.path, lambda: HistoryReader(run)).read()


@st.cache_resource(max_entries=1, show_spinner=False)
def lab_vectors() -> Cache[LabLayers]:
    """The pooling lab's vectors at all layers, by model and pairs; those of a large corpus take up to 512 MiB."""
    return Cache(2)


@st.cache_resource(max_entries=1, show_spinner=False)
def maps() -> MapMaker:
    """The maps of all sessions."""
    from components.analysis.maps.drawing import MapMaker

    return MapMaker(queue())


@st.cache_resource(max_entries=1, show_spinner=False)
def datasets() -> Jobs:
    """The downloads of data sets by name, for all sessions; the result is the paths of the files."""
    return Jobs(queue(), "downloads", keep=16, is_stale=lambda job: not all(path.exists() for path in job.result))


@st.cache_resource(max_entries=1, show_spinner=False)
def token_jobs() -> Jobs:
    """The token vectors of corpora, for all sessions; a large set takes several GB of disk space."""
    return Jobs(queue(), "tokens", keep=4)


@st.cache_resource(max_entries=1, show_spinner=False)
def included_words() -> Jobs:
    """The words of the included sentences, for all sessions; on disk, 31 MB of a model with 7 layers of 384 dimensions."""
    return Jobs(queue(), "tokens", keep=4, keep_bytes=128 << 20, retry_seconds=RETRY_SECONDS)


def token_folder() -> Path:
    """The folder of token vectors. Their files have no names, so that disk space is free once nothing uses a file."""
    return cache_part("tokens")


@st.cache_resource(max_entries=1, show_spinner=False)
def _corpus_calibrations() -> Cache[Calibration]:
    return Cache(16)  # 10 MB each


def corpus_calibration(index: VectorIndex, layer: int, pooling: Pooling) -> Calibration:
    """The cosines of all pairs of a seeded sample of a corpus, at a layer and pooling of its index."""
    from components.analysis.similarity import baseline, calibration

    def measured() -> Calibration:
        rows = baseline.sample_of_rows(index.info.sentences, CALIBRATED_SENTENCES)
        return calibration.of_vectors(index.engine(layer, pooling).vectors[rows], [index.texts[row] for row in rows])

    return _corpus_calibrations().get((index.info.identity, layer, pooling), measured)


@st.cache_resource(max_entries=1, show_spinner=False)
def _query_vectors() -> Cache[Mapping[tuple[int, Pooling], Float32]]:
    return Cache(6_000, size=lambda vectors: len(next(iter(vectors.values()))))  # counts queries


def query_vectors(backend: Backend, queries: tuple[str, ...], info: IndexInfo) -> Mapping[tuple[int, Pooling], Float32]:
    """(layer, pooling) to the queries' vectors [query, dim], for an index; shared, so that nobody may change them."""
    from components.retrieval.search.query import query_vectors as compute

    options = info.options
    key = (info.model, info.revision, options.layers, options.poolings, options.max_length, queries)
    return _query_vectors().get(key, lambda: compute(backend, queries, info))


@st.cache_resource(max_entries=1, show_spinner=False)
def _random_query_vectors() -> Cache[Mapping[tuple[int, Pooling], Float32]]:
    return Cache(4)  # 200 short queries at every layer and pooling: 6 MB for the included model


def random_query_vectors(
    backend: Backend, queries: tuple[str, ...], info: IndexInfo, is_stopped: IsStopped
) -> Mapping[tuple[int, Pooling], Float32]:
    """As `query_vectors`, for many queries that nobody typed: all in one batch. Raises Stopped."""
    from components.retrieval.search.query import query_vectors as compute

    return _random_query_vectors().get(
        info.identity, lambda: compute(backend, queries, info, token_budget=None, is_stopped=is_stopped)
    )


@st.cache_resource(max_entries=1, show_spinner=False)
def _trained_token_vectors() -> Cache[Float32]:
    return Cache(128)


def trained_token_vectors(backend: Backend, text: str, role: Role, max_length: int | None) -> Float32:
    """The token vectors [token, dim] of a text by a late-interaction model; shared, so that nobody may change them."""
    key = (backend.spec.key, backend.revision, text, role, max_length)
    return _trained_token_vectors().get(
        key, lambda: read_only(backend.multi_vectors([text], role, max_length=max_length)[0])
    )


@st.cache_resource(max_entries=1, show_spinner=False)
def lecture_pictures() -> Cache[Any]:
    """What the pictures of lectures showed, by a tab's mark and the picture: they outlive a reload of the page."""
    return Cache(LECTURES_BYTES, size=memory_of)


@st.cache_resource(max_entries=1, show_spinner=False)
def own_rows() -> Cache[tuple[int, ...]]:
    """The rows of a corpus that belong to a query, by corpus, column and query."""
    return Cache(256)


@st.cache_resource(max_entries=1, show_spinner=False)
def first_queries() -> Cache[tuple[str, ...]]:
    """The first queries of a column of a corpus, by corpus, column and their number."""
    return Cache(64)


@st.cache_resource(max_entries=1, show_spinner=False)
def _pair_logits() -> Cache[Float32]:
    return Cache(256)


def pair_logits(
    backend: Backend,
    queries: tuple[str, ...],
    documents: tuple[str, ...],
    max_length: int | None,
    truncation: Truncation,
) -> Float32:
    """A cross-encoder's logits of a few pairs [pair, label]; shared, so that nobody may change them."""
    key = (backend.spec.key, backend.revision, queries, documents, max_length, truncation)
    return _pair_logits().get(
        key,
        lambda: read_only(backend.pair_logits(queries, documents, max_length=max_length, truncation=truncation)),
    )


@st.cache_resource(max_entries=1, show_spinner=False)
def _next_sentence_probabilities() -> Cache[Float32]:
    return Cache(256)


def next_sentence_probabilities(backend: Backend, texts: tuple[str, ...], followers: tuple[str, ...]) -> Float32:
    """The probability that each of a few followers follows its text [pair]; shared, so that nobody may change them.

    Raises as the model does.
    """
    key = (backend.spec.key, backend.revision, texts, followers)
    return _next_sentence_probabilities().get(key, lambda: backend.next_sentence_probabilities(texts, followers))


@st.cache_resource(max_entries=1, show_spinner=False)
def readings() -> Jobs:
    """The files being read, for all sessions, and those that were refused. What was read is kept in the caches above."""
    return Jobs(queue(), "preparation", keep=16)


@st.cache_resource(max_entries=1, show_spinner=False)
def preparations() -> Jobs:
    """What a page needs of a corpus before it can show anything of it: words and tokens counted."""
    return Jobs(queue(), "preparation", keep=16, keep_bytes=512 << 20, retry_seconds=RETRY_SECONDS)


@st.cache_resource(max_entries=1, show_spinner=False)
def chance_levels() -> Jobs:
    """What queries of random words find, by corpus and ranking; 84 kB each. Nobody waits for one: the hits come first."""
    return Jobs(queue(), "statistics", keep=256, retry_seconds=RETRY_SECONDS)


@st.cache_resource(max_entries=1, show_spinner=False)
def verifications() -> Jobs:
    """What came of comparing each model with sentence-transformers, by model and revision; kilobytes each."""
    return Jobs(queue(), "verification", keep=256)


@st.cache_resource(max_entries=1, show_spinner=False)
def search_engines() -> Jobs:
    """Graphs and collections that approximate searches use: mapped from files, elsewhere, or a GiB of graphs in memory."""
    return Jobs(queue(), "engines", keep=16, keep_bytes=1 << 30, retry_seconds=RETRY_SECONDS)


@st.cache_resource(max_entries=1, show_spinner=False)
def explanations() -> Jobs:
    """What explanations compute of texts: splits, edits, cosines of pairs, probes; mostly kilobytes each."""
    return Jobs(queue(), "explanations", keep=512, keep_bytes=128 << 20, retry_seconds=RETRY_SECONDS)


@st.cache_resource(max_entries=1, show_spinner=False)
def deletions() -> Jobs:
    """Deletion curves: those of long texts take minutes, so that they have a lane of their own."""
    return Jobs(queue(), "deletions", keep=128, keep_bytes=32 << 20, retry_seconds=RETRY_SECONDS)


@st.cache_resource(max_entries=1, show_spinner=False)
def long_texts() -> Jobs:
    """The queries and keys of single blocks for long texts, pictures of their attention, and inner dimensions: up to 64 MiB a
    block.

    Among the other explanations each of them would push out hundreds of small ones.
    """
    return Jobs(queue(), "long texts", keep=64, keep_bytes=256 << 20, retry_seconds=RETRY_SECONDS)


@st.cache_resource(max_entries=1, show_spinner=False)
def interventions() -> Jobs:
    """Experiments in which activations are replaced; those of a pair of sentences take up to some megabytes."""
    return Jobs(queue(), "experiments", keep=256, keep_bytes=128 << 20, retry_seconds=RETRY_SECONDS)


@st.cache_resource(max_entries=1, show_spinner=False)
def learnt_vectors() -> Jobs:
    """The vectors from which rankings are learnt, of two models at once: those of each take up to 512 MiB."""
    return Jobs(queue(), "preparation", keep=16, keep_bytes=1 << 30, retry_seconds=RETRY_SECONDS)


@st.cache_data(max_entries=64, show_spinner="Comparing the occurrences …")
def sense_curve(key: tuple[str, ...], labels: tuple[str, ...], _vectors: np.ndarray) -> SenseCurve:
    """How well senses separate at each layer; keyed on the tokens and their labels."""
    from components.analysis import word_senses

    return word_senses.sense_curve(_vectors, labels)


@st.cache_resource(max_entries=1, show_spinner=False)
def sense_jobs() -> Jobs:
    """For all sessions: the groups of a word's occurrences at a layer, and the tables of all labelled words."""
    return Jobs(queue(), "tokens", keep=64)


@st.cache_resource(max_entries=1, show_spinner=False)
def splade_indexes() -> Jobs:
    """The weights of corpora by SPLADE; those of one corpus take up to 256 MB, and 8 bytes a sentence."""
    return Jobs(queue(), "embedding", keep=8, keep_bytes=512 << 20, retry_seconds=RETRY_SECONDS)


@st.cache_resource(max_entries=1, show_spinner=False)
def blind_votes() -> BlindVotes:
    """What people voted in blind comparisons of two rankings, counted for each class."""
    from components.retrieval.search.blind_votes import BlindVotes

    return BlindVotes()


@st.cache_resource(max_entries=1, show_spinner=False)
def lesson_answers() -> Answers:
    """What people answered to the questions of lessons, counted for each class."""
    from components.lessons.answers import Answers

    return Answers()


@cache
def glossary() -> dict[str, str]:
    return json.loads((ASSETS / "glossary.json").read_text(encoding="utf-8"))
