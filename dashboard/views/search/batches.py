"""Many queries at once: the best hit of each, and whether it is closer than chance."""

from __future__ import annotations

from collections.abc import Sequence
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
from dashboard.views.search.ranked import level_of
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

MOST_COMMANDS = 10  # of the code of the figure
UNKNOWN = "not known: unknown language"


def many_queries(backend: Backend) -> None:
    """The best hits of each of many queries."""
    messages.cross_encoder_note([backend])
    request = SearchRequest.of_vectors(backend, current.corpus(), is_search=True)
    left, right = st.columns([1, 2], gap="medium")
    with left:
        lines = _queries()
    with right, frame.figure("queries"):
        index = request.index("queries")
        if lines:
            _best_hits(request, index, lines)
        else:
            st.info("**No query yet.** Type some on the left, one per line, or upload a file.", icon=":material/edit:")


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
    columns: dict[str, object] = {
        "query": first["query"],
        "best hit": first["text"],
        similarity: first[similarity].map(theme.number),
    }
    if level is not None:
        columns["closer than chance"] = [
            UNKNOWN if line in unknown else "yes" if chance.is_above(score, level.level) else "no, nothing close"
            for line, score in zip(first["query"], first[similarity], strict=True)
        ]
    elif job is not None and not job.finished.is_set():
        columns["closer than chance"] = ["being measured …"] * len(first)
        progress.until(job.finished.is_set, lambda: None, 1.0)
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
        read=f"The best hit of each query; all {request.k} hits of each are under “Share”. "
        + _settings(layer, pooling, f"{SIMILARITY_NAMES[similarity].lower()}, k = {request.k}")
        + measured,
        not_shown="Whether a hit answers its query: “closer than chance” says that random words find nothing as close.",
    )
    figures.whole_texts(pd.DataFrame(columns), key="queries_table")


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
    typed = controls.bind(
        "typed_queries",
        st.text_area,
        "Queries, one per line",
        default="\n".join(ready_queries()),
        to_widget="\n".join,
        from_widget=settings.clean_queries,
        height=120,
    )
    with st.popover("Upload queries", icon=":material/upload_file:", width="content"):
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
