"""What approximation loses: which of the 10 nearest sentences smaller vectors and graphs do not find."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import theme
from components.charts.retrieval.approximation import Point, recall_by_bytes
from components.retrieval.engines import approximation as engines
from components.retrieval.engines import graph
from components.retrieval.engines.approximation import losses
from components.retrieval.engines.contract import StoredVectors
from components.shown_code.code import Command
from dashboard import caching, state
from dashboard.corpora import current
from dashboard.jobs import embedding, evaluation, search_engines
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import controls, figures, messages
from dashboard.ui.waiting import before_work, frame
from dashboard.ui.wording import POOLING_NAMES, counted
from dashboard.views.evaluate import choices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.engines.approximation import Approximated, HitLosses
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.exact import Similarity

SHOWN_HITS = 12  # lost hits in the list
FEWEST, FEW = 2 * engines.K, 10 * engines.K  # sentences: below them there is no figure, or one that teaches nothing
TIMED = "_approximation_times"  # session key: what a person asked to be timed
IN_SHORT = {  # by the family or the code of a way
    "float16": "float16: two bytes per number.",
    "bits-4": "bits, best 40: the best 40 are compared again with the full vectors.",
    "first": "first numbers: the others are left out.",
    "hnsw": "HNSW: a graph that links neighbours; the number says how many candidates its walk keeps.",
}
EXPLAINED = """
- **float16**: each number in 2 bytes instead of 4. Here they are converted to float32 for every query, which takes time.
- **int8**: each number in 1 byte, and one number per vector for the scale.
- **bits**: only the sign of each number. Sentences whose signs differ least from the query's come first. *best 40*: the
  first 40 are compared again with the float32 vectors, whose bytes are not counted: they can stay on the disk.
- **first numbers: 192**: only the first 192 numbers of each vector. Models trained for it (Matryoshka) keep most in the first
  numbers; in other models the first numbers are no better than the others.
- **HNSW 64**: a graph that links each vector to its neighbours and is walked towards the query; 64 is the number of
  candidates that the walk keeps. Its bytes are those of the vectors and the links.
"""


@dataclass(frozen=True, eq=False)
class SearchVectors:
    """The vectors of a corpus and of the queries, at one layer and pooling."""

    documents: VectorIndex
    queries: VectorIndex | None  # None: the sentences are the queries
    query_texts: Sequence[str]
    name: str  # of the corpus
    layer: int
    pooling: Pooling
    similarity: Similarity

    @property
    def key(self) -> tuple[object, ...]:
        of_queries = "" if self.queries is None else self.queries.folder.name
        cell = (self.layer, self.pooling, self.similarity, graph.is_installed())
        return "approximation", self.documents.folder.name, of_queries, *cell

    def stored(self) -> StoredVectors:
        return StoredVectors.of_search(self.documents.engine(self.layer, self.pooling))

    def vectors(self) -> np.ndarray:
        """The first queries' vectors [query, dim]."""
        of = self.documents if self.queries is None else self.queries
        return np.asarray(of.engine(self.layer, self.pooling).vectors[: engines.MOST_QUERIES], np.float32)

    def losses(self, report_progress: ReportProgress, is_stopped: IsStopped) -> HitLosses:
        return engines.losses(
            self.stored(), self.vectors(), self.similarity, None, report_progress, is_stopped, self.queries is None
        )

    def times(self, report_progress: ReportProgress, is_stopped: IsStopped) -> Mapping[str, float]:
        return engines.times(self.stored(), self.vectors(), self.similarity, None, report_progress, is_stopped)


def approximation(backend: Backend) -> None:
    """Recall@10 against exact search by the bytes of a vector, and the hits that a chosen way loses."""
    request = EmbedRequest.of_session(backend, exact=True)
    panel = controls.options()
    documents, queries, texts = _indexes(request)
    layers, poolings = documents.info.options.layers, documents.info.options.poolings
    with panel:
        layer = controls.layer(layers[-1]) if len(layers) == layers[-1] + 1 else layers[-1]
        pooling = controls.pooling("pooling", "Sentence vector (pooling)", POOLING_NAMES, poolings, backend.own_pooling)
        similarity = cast("Similarity", controls.product(backend))
    if len(documents.texts) < FEWEST:
        st.info(
            f"**{counted(len(documents.texts), 'sentence')} are too few.** Nearly every sentence would be among the "
            f"{engines.K} nearest: at least {FEWEST} are needed. Choose another one at the top, under “Corpus”.",
            icon=":material/science:",
        )
        return
    searched = SearchVectors(documents, queries, texts, documents.info.corpus, layer, pooling, similarity)
    found: HitLosses = evaluation.result(
        searched.key,
        f"Comparing approximate searches of {len(documents.texts):,} sentences",
        searched.losses,
        "approximation",
    )

    times = _known_times(searched)
    _figure(searched, found, times)
    compared = {name for way in found.ways for name in (way.approximation.family, way.approximation.code)}
    st.caption(" ".join(said for name, said in IN_SHORT.items() if name in compared))
    if left_out := _left_out(found, len(documents.texts)):
        st.caption(left_out)
    if not graph.is_installed():
        st.caption(
            "HNSW, a graph of neighbours, is not compared: the package usearch is not installed "
            "(`pip install -r requirements-scale.txt`)."
        )
    _table(found, times)
    _measure(searched, times)
    _lost(searched, found)
    with st.expander("What the names mean", icon=":material/help:"):
        st.markdown(EXPLAINED)


def _indexes(
    request: EmbedRequest,
) -> tuple[VectorIndex, VectorIndex | None, Sequence[str]]:
    """Documents, queries and their texts: the pairs of the corpus, or its sentences alone. Raises NotReady."""
    corpus = current.corpus()
    if current.query_column(corpus) is None:
        index = embedding.index_of(request, corpus, "approximation")
        before_work.other_layers(request, corpus, "approximation")
        return index, None, corpus.texts[: engines.MOST_QUERIES]
    pairs = choices.current_pairs()
    documents, queries = evaluation.both_indexes(request, pairs.documents, pairs.queries, "approximation")
    before_work.other_layers(request, pairs.documents, "approximation")
    return documents, queries, pairs.queries.texts[: engines.MOST_QUERIES]


def _figure(searched: SearchVectors, found: HitLosses, times: Mapping[str, float]) -> None:
    exact = Point("exact", "exact", found.exact_bytes, 100.0, times.get("exact"))
    points = [exact] + [
        Point(
            way.approximation.name,
            way.approximation.family,
            way.bytes_per_vector,
            100 * way.mean,
            times.get(way.approximation.code),
        )
        for way in found.ways
    ]
    count = len(searched.query_texts)
    asked = (
        f"the {counted(count, 'query', 'queries')}"
        if searched.queries is not None
        else f"{counted(count, 'sentence')} of the corpus as queries"
    )
    figures.figure(
        recall_by_bytes(points, "Nearest sentences that are found", k=found.k, scale=controls.scale()),
        key="approximation",
        code=Command(losses),
        alt=f"Recall@{found.k} against exact search by bytes per vector, for {len(found.ways)} ways to search",
        message=_message(found, len(searched.documents.texts)),
        table=lambda: _frame(found, times),
        read=f"For {asked}, the exact search finds the {found.k} nearest of {len(searched.documents.texts):,} sentences. A "
        f"point is the share of them that one way to search finds (Recall@{found.k}), by the bytes that it holds for each "
        "sentence. Points of one kind are joined: more candidates are looked at, or fewer numbers are kept. The scores of "
        "what is found are computed again from the float32 vectors."
        + ("" if searched.queries is not None else " A sentence is no hit of itself."),
        not_shown="Whether the lost sentences were relevant: the exact search is the measure here, not an answer that people "
        "found correct. Nor what happens in a collection a thousand times larger, where more sentences lie close together.",
    )


def _message(found: HitLosses, count: int) -> str:
    """What a quarter of the bytes and one bit per number keep of the nearest of so many sentences."""
    by_code = {way.approximation.code: way for way in found.ways}
    rescored = f", or {_share(by_code['bits-4'])} if full vectors check the best 40" if "bits-4" in by_code else ""
    said = (
        f"**int8**, one byte per number, finds {_share(by_code['int8'])} of the {found.k} nearest with a quarter of the bytes; "
        f"one bit per number finds {_share(by_code['bits-1'])}{rescored}."
    )
    few = too_few_to_pay(count)
    few += (
        f" **Nothing can be learnt from so few texts:** the {found.k} nearest are {100 * found.k / count:.0f} % of all "
        f"{count:,}, and approximation is for collections of which they are a tiny part."
        if count < FEW
        else ""
    )
    return said + few


def too_few_to_pay(count: int) -> str:
    """That an exact search of so many texts is fast enough; empty from search_engines.MANY on."""
    if count >= search_engines.MANY:
        return ""
    return (
        f" With {counted(count, 'text')} an exact search is fast enough: approximation pays from a few thousand texts on, and "
        f"Search offers it from {search_engines.MANY:,}."
    )


def _left_out(found: HitLosses, count: int) -> str:
    """Which ways are not shown, and why; empty if all are."""
    if not found.left_out:
        return ""
    names = "; ".join(way.name for way in found.left_out)
    one = len(found.left_out) == 1
    return (
        f"Left out {'is' if one else 'are'} {counted(len(found.left_out), 'way')} to search ({names}): "
        f"{'it compares' if one else 'they compare'} as many candidates as there are texts ({count:,}), or more, by their full "
        f"vectors, so that {'it is' if one else 'they are'} exact by definition."
    )


def _share(way: Approximated) -> str:
    return f"{100 * way.mean:.1f} %"


def _frame(found: HitLosses, times: Mapping[str, float]) -> pd.DataFrame:
    """One line per way."""
    lines = [("exact", "exact (float32)", found.exact_bytes, np.ones(len(found.exact.indices)))]
    lines += [(way.approximation.code, way.approximation.name, way.bytes_per_vector, way.recall) for way in found.ways]
    losing = f"queries that lose a hit, of {len(found.exact.indices):,}"
    frame = pd.DataFrame(
        {
            "way": [name for _, name, _, _ in lines],
            "bytes in memory": [f"{nbytes:,.0f}" for _, _, nbytes, _ in lines],
            f"Recall@{found.k} (%)": [theme.number(100 * recall.mean(), 2) for _, _, _, recall in lines],
            losing: [f"{np.count_nonzero(recall < 1):,}" for _, _, _, recall in lines],
        }
    )
    if times:
        frame["ms per query (median)"] = [theme.number(times[code]) for code, _, _, _ in lines]
    return frame


def _table(found: HitLosses, times: Mapping[str, float]) -> None:
    with st.container(key="small_table_ways"):
        figures.plain_table(_frame(found, times), key="approximation_table")


def _times_key(searched: SearchVectors) -> tuple[object, ...]:
    return "times", *searched.key


def _known_times(searched: SearchVectors) -> Mapping[str, float]:
    """Milliseconds by way; nothing before they were measured."""
    job = caching.evaluations().find(_times_key(searched))
    known: Mapping[str, float] | None = None if job is None or not job.finished.is_set() else job.result
    return known or {}


def _measure(searched: SearchVectors, times: Mapping[str, float]) -> None:
    """The button that measures the times, its progress, or what they mean."""
    if times:
        st.caption(
            f"Times of {min(engines.TIMED_QUERIES, len(searched.query_texts))} queries, one after the other, on this machine; "
            "without the time that the model needs for the query. On a small corpus they say little: an exact search has "
            "hardly anything to do there, and the steps around it take most of the time."
        )
        return
    key = _times_key(searched)
    if st.session_state.get(TIMED) != key:
        st.button(
            "Measure the time per query",
            key="measure_approximation",
            icon=":material/timer:",
            on_click=lambda: st.session_state.update({TIMED: key}),
            help="Each way to search is built once more and asked some queries.",
        )
        return
    ways, _ = engines.compared(searched.stored())
    title = f"Measuring the time per query of {len(ways)} ways to search"
    with frame.figure("approximation_times"):  # what follows needs no times
        evaluation.result(key, title, searched.times, "approximation_times")
        st.rerun()  # the figure above has no times yet


def _lost(searched: SearchVectors, found: HitLosses) -> None:
    """The queries that lose hits by a chosen way, and which."""
    figures.subheader("Which hits are lost?")
    names = {way.approximation.code: way.approximation.name for way in found.ways}
    default = state.default("approximation")
    asked = state.get("approximation")
    if asked in {way.code for way in found.left_out}:  # said above
        state.put("approximation", default if default in names else "int8")
    chosen = controls.pick("approximation", "Way to search", names, default=default if default in names else "int8")
    way = found.of(chosen)
    assert way is not None  # `pick` offers only these
    losing = np.flatnonzero(way.recall < 1)
    if not len(losing):
        st.success(f"{way.approximation.name} finds all {found.k} nearest sentences of every query.")
        return
    order = losing[np.argsort(way.recall[losing], kind="stable")]
    unit = "cosine" if found.similarity == "cosine" else "dot product"
    texts = searched.documents.texts
    rows = [
        {
            "query": searched.query_texts[query],
            "rank": lost.rank,
            "lost hit": texts[lost.row],
            unit: theme.number(lost.score),
        }
        for query in order.tolist()
        for lost in found.lost(way, query)
    ]
    figures.note(
        f"**{messages.escape(way.approximation.name)}** loses hits of {len(losing):,} of "
        f"{counted(len(searched.query_texts), 'query', 'queries')}, {len(rows):,} in all. The queries that lose most come first"
        + (f"; the first {SHOWN_HITS} lost hits are listed." if len(rows) > SHOWN_HITS else "."),
        key="lost_note",
    )
    figures.markup(_drawn(rows[:SHOWN_HITS], unit), "lost_hits_drawn")
    figures.data("lost_hits", lambda: pd.DataFrame(rows), Command(losses), "Hits that are lost")


def _drawn(rows: Sequence[Mapping[str, object]], unit: str) -> str:
    """Each lost hit below its query, with its rank and score."""
    lines = []
    for row in rows:
        query, text = (escape(str(row[name])) for name in ("query", "lost hit"))
        lines.append(
            f"<section><b><span><small>rank</small> {row['rank']}</span><span>{row[unit]} <small>{unit}</small></span></b>"
            f'<div><p dir="auto"><b>{query}</b></p><p dir="auto">{text}</p></div></section>'
        )
    return f'<div class="bi-near bi-errors">{"".join(lines)}</div>'
