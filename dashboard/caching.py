"""Every st.cache_* function: singletons and small derived results, all bounded.

Keys are models, revisions, texts and options, never arrays: Streamlit only samples large arrays when it
hashes them, and two that differ can get one another's result.
"""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from components.errors import UserError
from components.jobs import Cache, Jobs, Lane, Queue
from components.model.loader import ModelLoader
from components.model.store import DEFAULT_BYTES, TraceStore
from dashboard.ready_made import ASSETS

if TYPE_CHECKING:
    import numpy as np

    from components.analysis.attention import TextsFilter
    from components.analysis.baseline import Baseline, Baselines
    from components.analysis.cka import LayerCKA
    from components.analysis.head_patterns import HeadPatterns
    from components.analysis.maps.drawing import MapMaker
    from components.analysis.pooling import Pooling
    from components.analysis.word_senses import Cluster, SenseCurve
    from components.model.backend import Backend
    from components.model.embedding.embedder import Resolved
    from components.model.trace import Trace
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.corpora.senses import SenseFile
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.pooling_lab import LabLayers
    from components.retrieval.evaluation.run_record import Run
    from components.retrieval.evaluation.sts import ScoredPairs
    from components.retrieval.index.cache import IndexCache
    from components.retrieval.index.folder import IndexInfo
    from components.retrieval.search.lexical import Ranker
    from components.retrieval.search.paraphrases import SimilarPair
    from components.retrieval.search.static_vectors import StaticVectors

log = logging.getLogger(__name__)
FEW = 6  # of what people bring along, for all sessions together
LANES = {
    "models": Lane(workers=4),
    "embedding": Lane(workers=2),  # more would only slow each other down
    "tokens": Lane(workers=2),
    "evaluation": Lane(),
    "statistics": Lane(),
    # Nobody looks at a picture that was asked for long before; a large model alone has 25 layers to draw.
    "maps": Lane(newest_first=True, most_waiting=100),
    "quick maps": Lane(newest_first=True, most_waiting=100),
    "background": Lane(gives_way=True),
}


@st.cache_resource(max_entries=1, show_spinner=False)
def queue() -> Queue:
    """Everything that runs in the background, for all sessions."""
    return Queue(LANES, is_busy=traces().is_computing, is_present=_is_present)


def person() -> str:
    """Who waits for a job: this session's id; empty outside a session."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""


def _is_present(person: Hashable) -> bool:
    """Whether a session is still connected; where that cannot be known (in a test) it counts as there."""
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
def models() -> ModelLoader:
    """The models in memory, and those on their way."""
    return ModelLoader(queue(), traces(), after_load=_after_load)


# What else is done with a model once it is loaded, by name. The entry adds to it: this module stands below those it serves.
after_load: dict[str, Callable[[Backend], None]] = {}


def _after_load(backend: Backend) -> None:
    freeze_garbage()
    baseline(backend)
    for more in after_load.values():
        more(backend)


def freeze_garbage() -> None:
    """Keep the collector away from what a loaded model brought along.

    Streamlit collects garbage in full after every rerun. With torch and transformers loaded that walks some
    million objects, 200 ms a time, holding the interpreter's lock. They live as long as the server, so they
    are moved out of the collector's sight; unfreezing first lets it take a model that was dropped meanwhile.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@st.cache_resource(max_entries=1, show_spinner=False)
def _baselines() -> Cache[Baselines]:
    return Cache(8)


def token_yardstick(backend: Backend) -> Baseline:
    """How similar unrelated tokens are in a model; measured in the background after the model was loaded."""
    return baseline(backend).tokens


def sentence_yardstick(backend: Backend, pooling: Pooling, include_special: bool) -> Baseline:
    """How similar unrelated sentences are, by pooling."""
    return baseline(backend).sentences[pooling, include_special]


def baseline(backend: Backend) -> Baselines:
    """The yardsticks of unrelated tokens and sentences of a model; waits where they are being measured."""
    from components.analysis.baseline import measure_sample

    return _baselines().get(_model_key(backend), lambda: measure_sample(backend.run, demo_sentences()))


def baseline_under_way(backends: Sequence[Backend]) -> bool:
    """Whether another thread is measuring each yardstick that is not there yet."""
    return all(_baselines().is_known(_model_key(backend)) for backend in backends)


def baseline_ready(backend: Backend) -> bool:
    """Whether the yardsticks are there without waiting."""
    return _baselines().find(_model_key(backend)) is not None


def _model_key(backend: Backend) -> tuple[str, str]:
    return (backend.spec.key, backend.revision)


@st.cache_data(max_entries=16, show_spinner=False)
def layer_cka(
    key: tuple[tuple[str, str, bytes], ...], _first: np.ndarray, _second: np.ndarray | None = None
) -> LayerCKA:
    """Linear CKA of layers; keyed on models, revisions and input ids, not on the vectors."""
    from components.analysis import cka

    return cka.layer_cka(_first, _second)


@st.cache_resource(max_entries=32, show_spinner=False)  # read-only, and a record that cannot be pickled
def head_patterns(key: tuple[str, str, tuple[object, ...]], which: TextsFilter, _trace: Trace) -> HeadPatterns:
    """Every head's score on every pattern over a trace; keyed on model, revision, texts and the inputs' ids."""
    from components.analysis import head_patterns as analysis
    from components.analysis.attention import of_sentence

    attentions = [of_sentence(_trace, row) for row in range(len(_trace.sentences))]
    return analysis.score_heads(attentions, _trace.sentences, texts=which)


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
    """The evaluations of all sessions. What embeds, ranks or takes times runs one after the other: two at a time would
    take as long together, and both people would wait for both. Statistics over ranks have a lane of their own."""
    return Jobs(queue(), "evaluation", keep=64, keep_bytes=512 << 20)


@st.cache_resource(max_entries=1, show_spinner=False)
def saved_runs() -> Cache[tuple[Run, ...]]:
    """The runs that people loaded from files."""
    return Cache(FEW)


@st.cache_resource(max_entries=1, show_spinner=False)
def pair_sets() -> Cache[Pairs]:
    """Queries and documents of corpora, by corpus and column."""
    return Cache(FEW)


@st.cache_resource(max_entries=1, show_spinner=False)
def graded_sets() -> Cache[GradedSet]:
    """The collections with graded relevance that people brought along."""
    return Cache(FEW)


@st.cache_resource(max_entries=1, show_spinner=False)
def lab_vectors() -> Cache[LabLayers]:
    """The pooling lab's vectors at all layers, by model and pairs; few, for those of large corpora take up to 512 MiB each."""
    return Cache(2)


@st.cache_resource(max_entries=1, show_spinner=False)
def scored_pairs() -> Cache[ScoredPairs]:
    """The scored sentence pairs that people brought along, by upload."""
    return Cache(FEW)


@st.cache_resource(max_entries=1, show_spinner=False)
def maps() -> MapMaker:
    """The maps of all sessions."""
    from components.analysis.maps.drawing import MapMaker

    return MapMaker(queue())


@st.cache_resource(max_entries=1, show_spinner=False)
def token_jobs() -> Jobs:
    """The token vectors of corpora, of all sessions: few, for a large set takes some GB of the disk."""
    return Jobs(queue(), "tokens", keep=4)


def token_folder() -> Path:
    """Where token vectors lie, in files without a name: one that is kept no longer frees its disk space."""
    from components.retrieval.index.cache import cache_folder

    return cache_folder().parent / "tokens"


@st.cache_data(max_entries=512, show_spinner=False)
def query_vectors(
    key: tuple[str, str, tuple[int, ...], tuple[str, ...], int],
    queries: tuple[str, ...],
    _backend: Backend,
    _info: IndexInfo,
) -> dict[tuple[int, Pooling], np.ndarray]:
    """Queries' vectors at every layer and pooling of an index; keyed on model, revision, options and the texts."""
    from components.retrieval.search.query import query_vectors as compute

    return dict(compute(_backend, queries, _info))


@st.cache_resource(max_entries=8, show_spinner="Counting words …")
def ranker(kind: str, texts_hash: str, source: str, _texts: Texts, _make: Callable[[Sequence[str]], Ranker]) -> Ranker:
    """A word ranking over texts; `source` names the word vectors it uses."""
    return _make(_texts.texts)


@st.cache_resource(max_entries=8, show_spinner="Counting tokens …")
def corpus_lengths(corpus_hash: str, model: str, revision: str, _corpus: Texts, _backend: Backend) -> np.ndarray:
    """Tokens of every sentence, special tokens included, before any truncation, int64 [sentence]."""
    import numpy as np

    lengths = []
    tokenization = _backend.tokenization
    for start in range(0, len(_corpus.texts), 4096):
        lengths += tokenization.lengths(_corpus.texts[start : start + 4096])
    return np.array(lengths, np.int64)


@st.cache_data(max_entries=8, show_spinner=False)
def embedding_speed(model: str, revision: str, device: str, precision: Resolved, _backend: Backend) -> float:
    """Sentences a second of some 20 tokens, measured once on the demo's sentences."""
    import time

    texts = demo_sentences()[:96]
    options = _backend.embed_options(precision=precision)
    _backend.embed(texts[:32], options=options)  # warms up
    started = time.perf_counter()
    _backend.embed(texts, options=options)
    return len(texts) / (time.perf_counter() - started)


@st.cache_resource(max_entries=1, show_spinner=False)
def corpora() -> Cache[Corpus]:
    """The corpora that people brought along, by key."""
    return Cache(FEW)


@st.cache_resource(max_entries=1, show_spinner=False)
def static_vectors() -> Cache[StaticVectors]:
    """The word vectors that people brought along, by upload."""
    return Cache(FEW)


@st.cache_resource(max_entries=1, show_spinner=False)
def sense_files() -> Cache[SenseFile]:
    """The labelled sentences that people brought along, by upload."""
    return Cache(FEW)


@st.cache_resource(max_entries=1, show_spinner=False)
def similar_pairs() -> Cache[tuple[SimilarPair, ...]]:
    """The most similar pairs of corpora, by index, layer, pooling and number."""
    return Cache(FEW)


@st.cache_data(max_entries=64, show_spinner="Comparing the occurrences …")
def sense_curve(key: tuple[str, ...], labels: tuple[str, ...], _vectors: np.ndarray) -> SenseCurve:
    """How well senses part at each layer; keyed on the tokens and their labels."""
    from components.analysis import word_senses

    return word_senses.sense_curve(_vectors, labels)


@st.cache_data(max_entries=64, show_spinner="Grouping the occurrences …")
def clusters(key: tuple[str, ...], layer: int, _vectors: np.ndarray) -> list[Cluster]:
    """Groups of a word's occurrences at a layer; keyed on the tokens."""
    from components.analysis import word_senses

    return word_senses.clusters(_vectors)


@st.cache_data(max_entries=8, show_spinner="Reading every word's sentences …")
def sense_overview(key: tuple[str, str, str], _backend: Backend, _found: SenseFile) -> list[dict[str, object]]:
    """Every labelled word at its best layer; keyed on model, revision and file."""
    from components.analysis.word_senses import sense_curve as curve_of
    from components.retrieval.corpora.senses import meant_occurrences

    rows: list[dict[str, object]] = []
    for word in _found.words:
        labelled = _found.of(word)
        vectors = _backend.token_vectors([row.sentence for row in labelled], word=word)
        places = [(token.sentence, token.start, token.end) for token in vectors.tokens]
        chosen, _ = meant_occurrences(labelled, places)
        senses = [labelled[places[at][0]].sense for at in chosen]
        curve = curve_of(vectors.vectors[:, chosen], senses)
        rows.append(
            {
                "word": word,
                "senses": len(set(senses)),
                "sentences": len(senses),
                "best layer": curve.best,
                "accuracy there": float(curve.accuracy[curve.best]),
                "at layer 0": float(curve.accuracy[0]),
                "most frequent sense": curve.majority,
            }
        )
    return rows


@st.cache_resource(max_entries=6, show_spinner=False)
def many_query_vectors(
    key: tuple[str, str, tuple[int, ...], tuple[str, ...], int],
    queries: tuple[str, ...],
    _backend: Backend,
    _info: IndexInfo,
) -> dict[tuple[int, Pooling], np.ndarray]:
    """As query_vectors, for up to a thousand queries at once: few are kept, and nobody changes them."""
    from components.retrieval.search.query import query_vectors as compute

    return dict(compute(_backend, queries, _info))


@cache
def demo_sentences() -> tuple[str, ...]:
    return tuple((ASSETS / "demo_sentences.txt").read_text(encoding="utf-8").splitlines())


@cache
def glossary() -> dict[str, str]:
    return json.loads((ASSETS / "glossary.json").read_text(encoding="utf-8"))
