"""SPLADE as a ranking of a corpus: its sentences' weights as a job, and the runs of Evaluate that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.retrieval.evaluation import pair_runs, run_record
from components.retrieval.index.build import versions
from components.retrieval.search.splade import TITLE, SpladeIndex, SpladeRanker
from dashboard import caching
from dashboard.jobs import embedding, evaluation, requests
from dashboard.jobs.evaluation import Timing
from dashboard.jobs.requests import NeedsChoice

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.retrieval.corpora.texts import Texts
    from components.retrieval.evaluation.graded.collection import GradedSet
    from components.retrieval.evaluation.metrics import Ranks
    from components.retrieval.evaluation.pair_runs import Pairs
    from components.retrieval.evaluation.run_record import Run
    from dashboard.jobs.embedding import EmbedRequest

_BEGUN = "_splade"  # session key: the work on a large corpus that a person has begun


class NeedsStart(NeedsChoice):
    """A person has to begin the work on a large corpus: every sentence goes through the model and its masked-LM head."""

    def __init__(self, key: tuple[object, ...], sentences: int, where: str) -> None:
        super().__init__()
        self.key, self.sentences, self.where = key, sentences, where


def begin(key: tuple[object, ...]) -> None:
    """Let this session's next request start the work of NeedsStart's `key`."""
    st.session_state[_BEGUN] = key


def ranker(request: EmbedRequest, texts: Texts, where: str) -> SpladeRanker:
    """The ranker over texts. Raises NotReady; NeedsStart for a large corpus. `where` keys the widgets."""
    backend, max_length = request.backend, request.max_length
    key = ("splade", *model_of(request), texts.content_hash)
    jobs, sentences = caching.splade_indexes(), texts.texts
    if len(sentences) > embedding.EXACT_AT_ONCE and jobs.find(key) is None and st.session_state.get(_BEGUN) != key:
        raise NeedsStart(key, len(sentences), where)

    def compute(report_progress: ReportProgress, is_stopped: IsStopped) -> SpladeIndex:
        return SpladeIndex.of_texts(backend, sentences, max_length, report_progress, is_stopped)

    title = f"{TITLE}: the weights of {len(sentences):,} sentences"
    index = requests.prepared(key, title, compute, f"splade_{where}", "computing the weights", "sentences", jobs)
    return SpladeRanker(backend, index)


def model_of(request: EmbedRequest) -> tuple[object, ...]:
    """What SPLADE's weights depend on besides the texts: part of the keys of results."""
    backend = request.backend
    return (backend.spec.key, backend.revision, str(backend.device), request.max_length)


def ranks_of(
    request: EmbedRequest, answers: Pairs | GradedSet, documents: Texts, queries: Sequence[str], where: str
) -> tuple[Ranks, str]:
    """The ranks of the correct answers, and when they were made. Raises NotReady."""
    of_corpus = ranker(request, documents, where)

    def work(report_progress: ReportProgress, is_stopped: IsStopped) -> tuple[Ranks, str]:
        together = of_corpus.for_queries(queries, report_progress, is_stopped)
        return answers.ranks_by_words(together, is_stopped=is_stopped), run_record.now()

    return evaluation.result(
        ("splade", *model_of(request), answers.content_hash), f"{TITLE}: ranking {len(queries):,} queries", work, where
    )


def pair_run(request: EmbedRequest, pairs: Pairs, where: str) -> Run:
    """The record of SPLADE over pairs. Raises NotReady."""
    of_corpus, backend = ranker(request, pairs.documents, where), request.backend
    ranks, made = ranks_of(request, pairs, pairs.documents, pairs.queries.texts, where)
    milliseconds, made = timing(request, pairs, where).known() or (None, made)
    prompts = backend.sentence_config.prompts
    return run_record.Run(
        name=f"{backend.spec.title}, {TITLE}",
        system={"kind": TITLE, "model": backend.spec.key, "revision": backend.revision},
        data=evaluation.data_of(pairs),
        settings=_settings(request, prompts),
        versions=versions(("numpy", "scipy", "torch", "transformers")),
        ranks=ranks,
        milliseconds=milliseconds,
        index_bytes=of_corpus.nbytes,
        made=made,
    )


def _settings(request: EmbedRequest, prompts: Mapping[str, str]) -> dict[str, str | int | float]:
    return {
        "precision": "float32",
        "similarity": "dot" if request.backend.splade is None else request.backend.splade.similarity,
        "max_length": request.max_length or request.backend.own_max_length,
        "document_prompt": prompts.get("document", ""),
        "query_prompt": prompts.get("query", ""),
        "bootstrap_seed": 0,
    }


def timing(request: EmbedRequest, pairs: Pairs, where: str) -> Timing:
    """The time per query: its pass through the model, and its products with all sentences. Raises NotReady."""
    of_corpus = ranker(request, pairs.documents, where)
    index, backend, queries = of_corpus.index, request.backend, pairs.queries.texts

    def milliseconds(is_stopped: IsStopped) -> float:
        fresh = SpladeRanker(
            backend, SpladeIndex(index.postings, index.text_of, index.max_length)
        )  # which knows no query yet
        return pair_runs.ranker_milliseconds(fresh, queries, is_stopped)

    return Timing(
        ("speed", "splade", *map(str, model_of(request)), pairs.content_hash),
        f"Measuring the time per query of {backend.spec.title}, {TITLE}",
        milliseconds,
    )
