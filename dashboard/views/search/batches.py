"""Many queries at once: the best hit of each, and whether it is closer than chance."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import theme
from components.errors import InputError
from components.numbers import counted
from components.retrieval.corpora import corpus as reading
from components.retrieval.search.exact import ExactSearch
from components.shown_code.code import Command
from dashboard import caching, settings
from dashboard.corpora import current, uploads
from dashboard.ui import controls, figures, languages, messages, wording
from dashboard.ui.waiting import frame, progress
from dashboard.ui.wording import SIMILARITY_NAMES
from dashboard.views.search import chance
from dashboard.views.search.ranked import COSINES, level_of, up_to
from dashboard.views.search.request import SearchRequest
from dashboard.views.search.results import ready_queries

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import IsCancelled
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.exact import Similarity
    from components.shown_code.search import Searched
    from dashboard.views.search.ranked import Scale

MOST_COMMANDS = 10  # of the code of the figure
UNKNOWN = "not known: unknown language"
FAR = "nothing close"  # no closer than chance


def many_queries(backend: Backend) -> None:
    """The best hits of each of many queries."""
    messages.cross_encoder_note([backend])
    request = SearchRequest.of_vectors(backend, current.corpus(), is_search=True)
    lines = _queries()
    with frame.figure("queries"):
        index = request.index("queries")
        if lines:
            _best_hits(request, index, lines)
        else:
            st.info("**No query yet.** Type some above, one per line, or upload a file.", icon=":material/edit:")


def _best_hits(request: SearchRequest, index: VectorIndex, lines: tuple[str, ...]) -> None:
    corpus, similarity = request.corpus, request.similarity
    layer, pooling = request.cell(index)
    vectors = caching.query_vectors(request.backend, lines, index.info)[layer, pooling]
    hits = index.engine(layer, pooling).search(vectors, request.k, similarity)
    rows = [
        {
            "query": line,
            "rank": rank,
            "number": int(row),
            similarity: float(score),
            "text": corpus.texts[row],
            "tied with the last hit": int(tied),
        }
        for line, best, scores, tied in zip(lines, hits.indices, hits.scores, hits.tied, strict=True)
        for rank, (row, score) in enumerate(zip(best, scores, strict=True), start=1)
    ]
    table = pd.DataFrame(rows)
    unshown = int(np.count_nonzero(hits.tied > hits.tied_shown))
    if unshown:
        st.warning(
            f"For {unshown:,} of {len(lines):,} queries, more sentences have the same score as the last hit than are shown. "
            "They are in the order of the corpus: which of them are shown, and in which order, means nothing."
        )
    first = table[table["rank"] == 1]
    job = chance.of_vectors(request, index, layer, pooling, similarity)
    level = level_of(job)
    unknown = {line for line in lines if languages.is_unknown(request.backend, line)}
    if level is None and job is not None and not job.finished.is_set():
        progress.until(job.finished.is_set, lambda: None, 1.0)
    best = first[similarity].max()
    bars = COSINES if similarity == "cosine" else up_to(float(best), None if level is None else level.level)
    measured = "" if level is None else f" {chance.WHAT_IS_CHANCE} Here it is {theme.number(level.level)}."
    figures.above(
        finding_of_queries(
            [
                float(score)
                for line, score in zip(first["query"], first[similarity], strict=True)
                if line not in unknown
            ],
            None if level is None else level.level,
            len(unknown),
        ),
        key="queries",
        table=lambda: table,
        code=_code(request.code(index, layer, pooling), lines, request.k, similarity),
        title="Hits of many queries",
        place=".st-key-queries",
        read=f"The best hit of each query, with the words that it shares with the query marked. {bars.note} The dashed line is "
        f"the level of chance; bars that do not reach it are grey. All {request.k} hits of each query are under “Share”. "
        + _settings(layer, pooling, f"{SIMILARITY_NAMES[similarity].lower()}, k = {request.k}")
        + measured,
        not_shown="Whether a hit answers its query: “closer than chance” says that random words find nothing as close.",
    )
    found = [
        Found(
            str(line),
            str(text),
            float(score),
            bars.length(float(score)),
            UNKNOWN if line in unknown else "" if level is None or chance.is_above(score, level.level) else FAR,
        )
        for line, text, score in zip(first["query"], first["text"], first[similarity], strict=True)
    ]
    with st.container(height=620 if len(found) > 9 else "content", border=False, key="queries"):
        figures.markup(
            _drawn(found, bars, SIMILARITY_NAMES[similarity].lower(), None if level is None else level.level),
            "queries_drawn",
        )


@dataclass(frozen=True)
class Found:
    """A query with its best hit."""

    query: str
    text: str
    score: float
    length: float  # of its bar, 0 to 1
    warning: str  # why the hit says nothing; empty where it is closer than chance, or where that is not known


def _drawn(found: Sequence[Found], bars: Scale, unit: str, level: float | None) -> str:
    """Each query with its best hit, whose shared words are marked, and a bar; the line through all bars is chance."""
    place = 0.0 if level is None else 100 * bars.length(level)
    side = f"padding-left: {place:.1f}%" if place < 60 else f"padding-right: {100 - place:.1f}%; text-align: right"
    line = "" if level is None else f'<u style="left: {place:.1f}%"></u>'
    chance_named = "" if level is None else f'<small style="{side}">best by chance {theme.number(level, 2)}</small>'
    rows = "".join(
        f'<section class="{"far" if item.warning else ""}"><div><b>{html.escape(item.query)}</b>'
        f"<p>{wording.with_shared_words(item.query, item.text)}</p></div>"
        f'<div class="track"><i style="width: {100 * item.length:.1f}%"></i>{line}</div>'
        f"<b>{theme.number(item.score)}</b>{f'<em>{item.warning}</em>' if item.warning else ''}</section>"
        for item in found
    )
    low, high = bars.names
    return (
        '<div class="bi-found"><header><span>query, and its best hit</span>'
        f"<div>{chance_named}<span>{low}</span><span>{unit}</span><span>{high}</span></div></header>{rows}</div>"
    )


def _code(searched: Searched, lines: Sequence[str], k: int, similarity: Similarity) -> Command:
    """A command for each query, if they are few."""
    few = lines if len(lines) <= MOST_COMMANDS else ()
    return searched.command(ExactSearch.search, *(searched.search(line, k, similarity) for line in few))


def finding_of_queries(best: Sequence[float], level: float | None, unknown: int = 0) -> str:
    """For how many queries the best hit, whose scores are `best`, is closer than chance; None: that is not known.

    Of `unknown` further queries the model does not know the language.
    """
    if level is None:
        return f"{counted(len(best) + unknown, 'query', 'queries')}, each with its best hit."
    if unknown:
        of_them = counted(unknown, "query", "queries")
        said = f"**The scores of {of_them} say nothing:** the model does not know the language."
        return f"{said} {finding_of_queries(best, level)}" if best else said
    close = sum(bool(chance.is_above(score, level)) for score in best)
    if len(best) == 1:
        return "**The query's best hit is closer than chance.**" if close else "**Nothing close** to the query."
    if not close:
        return f"**Nothing close** to any of the {len(best):,} queries: random words find texts as close."
    of = "all" if close == len(best) else f"{close:,} of"
    return f"**For {of} {len(best):,} queries** the best hit is closer than chance."


def _queries() -> tuple[str, ...]:
    """The queries of the uploaded file, or else those typed; none if there is a file that cannot be read."""
    with controls.row():
        typed = controls.bind(
            "typed_queries",
            st.text_area,
            "Queries, one per line",
            default="\n".join(ready_queries()),
            to_widget="\n".join,
            from_widget=settings.clean_queries,
            height=76,
            label_visibility="collapsed",
            placeholder="Queries, one per line",
        )
        panel = st.popover("Upload queries", icon=":material/upload_file:", width="content")
    with panel:
        file = uploads.uploader("queries", "A file with one query per line", key="queries_file", type=["txt"])
    of_file = uploads.kept("queries", caching.query_files(), file, _read_queries)
    if of_file is not None or file is not None:
        return of_file or ()
    return _few_enough(settings.clean_queries(typed))


def _read_queries(file: UploadedFile, is_cancelled: IsCancelled) -> tuple[str, ...]:
    """Read like a corpus of lines, so that the encoding is detected in the same way."""
    return _few_enough(
        [text.strip() for text in reading.read_corpus(file.getvalue(), "queries.txt", is_cancelled=is_cancelled).texts]
    )


def _few_enough(lines: Sequence[str]) -> tuple[str, ...]:
    if len(lines) > settings.MOST_QUERIES:
        raise InputError(
            f"There are {len(lines):,} queries.",
            f"At most {settings.MOST_QUERIES:,} can be searched at once.",
            "Remove some of them.",
        )
    return tuple(lines)


def _settings(layer: int, pooling: Pooling, rest: str) -> str:
    return f"Layer {layer}, pooling {wording.POOLING_NAMES[pooling]}, {rest}. Change these settings under “Hits”."
