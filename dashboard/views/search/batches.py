"""Many queries at once: the best hit of each, and whether it is closer than chance."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.arrays import read_only
from components.charts import theme
from components.errors import InputError
from components.numbers import counted
from components.retrieval.corpora import corpus as reading
from components.retrieval.search.exact import ExactSearch
from components.retrieval.search.query import query_vectors
from components.shown_code.code import Command
from dashboard import caching, settings, state
from dashboard.corpora import chooser, current, uploads
from dashboard.jobs import requests
from dashboard.ui import controls, figures, languages, messages, wording
from dashboard.ui.waiting import frame, progress
from dashboard.ui.wording import SIMILARITY_NAMES, shortened
from dashboard.views.search import chance
from dashboard.views.search.ranked import COSINES, level_of, up_to
from dashboard.views.search.request import SearchRequest
from dashboard.views.search.results import ready_queries
from dashboard.views.search.why import UNITS

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.arrays import Float32
    from components.jobs import IsStopped, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.index.folder import VectorIndex
    from components.retrieval.search.exact import Similarity
    from components.shown_code.search import SearchCode
    from dashboard.views.search.ranked import Scale

MOST_COMMANDS = 10  # of the code of the figure
AT_ONCE = 10  # queries, which take about a second
UNKNOWN = "says nothing: unknown language"  # of a score
FAR = "nothing close"  # no closer than chance
WRONG = "wrong text"  # by the file


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
    vectors = _vectors(request, index, (layer, pooling), lines)
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
    is_measured_now = job is not None and not job.finished.is_set()
    level = None if is_measured_now else level_of(job)
    unknown = {line for line in lines if languages.is_unknown(request.backend, line)}
    if job is not None and is_measured_now:
        progress.until(job.finished.is_set, lambda: None, 1.0)
    right = _right_texts(corpus)
    bars = bars_of(similarity, float(first[similarity].max()), None if level is None else level.level)
    figures.above(
        finding_of_queries(
            [
                float(score)
                for line, score in zip(first["query"], first[similarity], strict=True)
                if line not in unknown
            ],
            None if level is None else level.level,
            len(unknown),
            is_measured_now,
        )
        + weakest(list(zip(first["query"], first[similarity].astype(float), strict=True)), unknown)
        + right_hits(list(zip(first["query"], first["text"], strict=True)), right),
        key="queries",
        table=lambda: table,
        code=_code(request.code(index, layer, pooling), lines, request.k, similarity),
        title="Hits of many queries",
        place=".st-key-queries",
        read=f"The best hit of each query, with the words that it shares with the query marked. "
        f"{what_is_drawn(similarity, bars, None if level is None else level.level)} All {request.k} hits of each query are "
        "under “Share”. " + _settings(layer, pooling, f"{SIMILARITY_NAMES[similarity].lower()}, k = {request.k}"),
        not_shown="Whether a hit answers its query: “closer than chance” says that random words find nothing as close.",
    )
    found = [
        QueryHit(
            str(line),
            str(text),
            float(score),
            0.0 if bars is None else bars.length(float(score)),
            UNKNOWN if line in unknown else "" if level is None or chance.is_above(score, level.level) else FAR,
            text not in right.get(line, (text,)),
        )
        for line, text, score in zip(first["query"], first["text"], first[similarity], strict=True)
    ]
    with st.container(height=620 if len(found) > 9 else "content", border=False, key="queries"):
        figures.markup(
            _drawn(found, bars, UNITS.get(similarity, similarity), None if level is None else level.level),
            "queries_drawn",
        )


def _vectors(request: SearchRequest, index: VectorIndex, cell: tuple[int, Pooling], lines: tuple[str, ...]) -> Float32:
    """The vectors [query, dim] at a layer and pooling; those of more than a few queries are made by a job, for all layers
    and poolings of the index. Raises NotReady until they are."""
    if len(lines) <= AT_ONCE:
        return caching.query_vectors(request.backend, lines, index.info)[cell]
    cells = list(product(index.info.options.layers, index.info.options.poolings))

    def embed(report_progress: ReportProgress, is_stopped: IsStopped) -> Float32:
        made = query_vectors(request.backend, lines, index.info, progress=report_progress, is_stopped=is_stopped)
        return read_only(np.stack([made[one] for one in cells]))

    title, doing = f"Embedding {len(lines):,} queries", "embedding the queries"
    key, kept = ("vectors of queries", index.info.identity, lines), caching.evaluations()
    every = requests.latest(key, title, embed, "query_vectors", doing, "queries", view="queries", jobs=kept)
    return every[cells.index(cell)]


def _right_texts(corpus: Corpus) -> dict[str, set[str]]:
    """Each query of a person's own corpus to its right texts; empty without a column of queries."""
    column = current.query_column(corpus) if state.get("corpus") else None
    right: dict[str, set[str]] = {}
    for query, text in zip(() if column is None else corpus.columns[column], corpus.texts, strict=False):
        right.setdefault(" ".join(query.split()), set()).add(text)
    return right


def right_hits(found: Sequence[tuple[str, str]], right: Mapping[str, set[str]]) -> str:
    """Of how many queries, each with its best hit, that hit is right, where the file says so; else "" """
    known = [text in right[query] for query, text in found if query in right]
    if not known:
        return ""
    unknown = len(found) - len(known)
    of = f" Of {counted(unknown, 'other')} the file does not say it." if unknown else ""
    share = theme.number(100 * sum(known) / len(known), 1)
    queries = counted(len(known), "query", "queries")
    return f" By the file the best hit is right for {sum(known):,} of {queries} ({share} %).{of}"


@dataclass(frozen=True)
class QueryHit:
    """A query with its best hit."""

    query: str
    text: str
    score: float
    length: float  # of its bar, 0 to 1
    warning: str  # why the hit says nothing; empty where it is closer than chance, or where that is not known
    is_wrong: bool = False  # by the file that has the query with its right texts

    @property
    def kind(self) -> str:
        """What its row looks like."""
        return "far" if self.warning else "wrong" if self.is_wrong else ""

    @property
    def notes(self) -> str:
        return ", ".join(filter(None, (self.warning, WRONG if self.is_wrong else "")))


def bars_of(similarity: Similarity, best: float, level: float | None) -> Scale | None:
    """The scale of the bars; None without bars: for distances, and for products of which the `best` is not above 0."""
    if similarity == "cosine":
        return COSINES
    return up_to(best, level) if similarity == "dot" and best > 0 else None


def _place_of_line(bars: Scale | None, level: float | None) -> float | None:
    """Where the level of chance stands on the scale, 0 to 1; None where it is not known or not on it."""
    return bars.length(level) if bars is not None and level is not None and bars.low <= level <= bars.high else None


def what_is_drawn(similarity: Similarity, bars: Scale | None, level: float | None) -> str:
    """What the bars, the numbers and the line of chance are, in sentences."""
    said = []
    if bars is not None:
        said.append(bars.note)
    elif similarity == "dot":
        said.append("There are no bars, because no score is above 0.")
    else:
        said.append(
            "A distance has a minus sign: nearer to 0 is more similar. It has no bar, because it has no upper end."
        )
    if level is not None:
        has_line = _place_of_line(bars, level) is not None
        said.append(
            f"{chance.WHAT_IS_CHANCE} Here it is {theme.number(level)}{', the dashed line' if has_line else ''}."
        )
        said.append("Bars that do not reach it are grey." if has_line else f"Hits that are not above it say “{FAR}”.")
    return " ".join(said)


def _drawn(found: Sequence[QueryHit], bars: Scale | None, unit: str, level: float | None) -> str:
    """Each query with its best hit, whose shared words are marked, and a bar; the line through all bars is chance."""
    line, chance_named, place = "", "", _place_of_line(bars, level)
    if level is not None and place is not None:
        left, right = f"{100 * place:.1f}%", f"{100 * (1 - place):.1f}%"
        side = f"padding-left: {left}" if place < 0.6 else f"padding-right: {right}; text-align: right"
        line = f'<u style="left: {left}"></u>'
        chance_named = f'<small style="{side}">random words reach {theme.number(level, 2)}</small>'
    low, high = ("", "") if bars is None else bars.names
    heading = "query, and its best hit; marked words are in both"
    rows = "".join(
        f'<section class="{item.kind}"><div>'
        f'<b dir="auto">{html.escape(wording.beginning(item.query, wording.SHOWN_CHARACTERS))}</b>'
        f'<p dir="auto">{wording.with_shared_words(item.query, item.text)}</p></div>'
        + ("" if bars is None else f'<div class="track"><i style="width: {100 * item.length:.1f}%"></i>{line}</div>')
        + f"<b>{theme.number(item.score)}</b>{f'<em>{item.notes}</em>' if item.notes else ''}</section>"
        for item in found
    )
    return (
        f'<div class="bi-found{" numbers" if bars is None else ""}"><header><span>{heading}</span>'
        f"<div>{chance_named}<span>{unit} {low}</span><span>{high}</span></div></header>{rows}</div>"
    )


def _code(searched: SearchCode, lines: Sequence[str], k: int, similarity: Similarity) -> Command:
    """A command for each query, if they are few."""
    few = lines if len(lines) <= MOST_COMMANDS else ()
    return searched.command(ExactSearch.search, *(searched.search(line, k, similarity) for line in few))


def finding_of_queries(
    best: Sequence[float], level: float | None, unknown: int = 0, is_measured_now: bool = False
) -> str:
    """For how many queries the best hit, whose scores are `best`, is closer than chance; None: that is not known.

    Of `unknown` further queries the model does not know the language.
    """
    if unknown:
        of_them = counted(unknown, "query", "queries")
        said = f"**The scores of {of_them} say nothing:** the model does not know the language."
        return f"{said} {finding_of_queries(best, level, 0, is_measured_now)}" if best else said
    if level is None:
        said = f"{counted(len(best), 'query', 'queries')}, each with its best hit."
        return f"{said} The level of chance is still being measured …" if is_measured_now else said
    close = sum(bool(chance.is_above(score, level)) for score in best)
    if len(best) == 1:
        return "**The query's best hit is closer than chance.**" if close else "**Nothing close** to the query."
    if not close:
        return f"**Nothing close** to any of the {len(best):,} queries: random words find texts as close."
    of = "all" if close == len(best) else f"{close:,} of"
    return f"**For {of} {len(best):,} queries** the best hit is closer than chance."


def weakest(best: Sequence[tuple[str, float]], unknown: Collection[str] = ()) -> str:
    """Which query has the lowest best hit, as a further sentence; "" for one query, and where several have the lowest.

    `best` are queries with the scores of their best hits; the scores of `unknown` ones say nothing.
    """
    known = sorted((score, query) for query, score in best if query not in unknown)
    if len(known) < 2 or known[0][0] == known[1][0]:
        return ""
    score, query = known[0]
    return f" The weakest is “{messages.escape(shortened(query, 50))}”, {theme.number(score)}."


def _queries() -> tuple[str, ...]:
    """The queries of the uploaded file, or else those typed; none if there is a file that cannot be read."""
    own = current.own_queries(current.corpus(), settings.MOST_QUERIES + 1)  # they stand there at once, if not too many
    with controls.row():
        typed = controls.bind(
            "typed_queries",
            st.text_area,
            "Queries, one per line",
            default="\n".join(own if 0 < len(own) <= settings.MOST_QUERIES else ready_queries()),
            to_widget="\n".join,
            from_widget=settings.clean_queries,
            height=74,  # three lines
            label_visibility="collapsed",
            placeholder="Queries, one per line",
        )
        panel = st.popover("Upload queries", icon=":material/upload_file:", width="content")
    if state.get("corpus"):
        _offer_own(current.corpus(), settings.clean_queries(typed))
    with panel:
        file = uploads.uploader("queries", "A file with one query per line", key="queries_file", type=["txt"])
    of_file = uploads.kept("queries", caching.query_files(), file, _read_queries)
    if of_file is not None or file is not None:
        return of_file or ()
    return _few_enough(settings.clean_queries(typed))


def _offer_own(corpus: Corpus, typed: tuple[str, ...]) -> None:
    """A button that takes the queries of a corpus which has a column with some, where others are `typed`: the first ones of
    too many.

    Where it is not clear which column that is, a choice of the column stands in its place.
    """
    if current.query_column(corpus) is None and corpus.columns:
        advice = "Choose a column to use its queries"
        chooser.choose_query_column(corpus, None, placeholder=advice, label_visibility="collapsed")
    found = current.own_queries(corpus, settings.MOST_QUERIES + 1, named=False)
    taken = found[: settings.MOST_QUERIES]
    if taken in ((), typed):
        return
    first = "first " if len(found) > settings.MOST_QUERIES else ""
    which = f"the {first}{len(taken):,} queries" if len(taken) > 1 else "the query"
    label = f"Use {which} of {messages.escape(corpus.name[:60])}"
    st.button(label, key="own_queries_used", icon=":material/table:", on_click=state.put, args=("typed_queries", taken))


def _read_queries(file: UploadedFile, is_stopped: IsStopped) -> tuple[str, ...]:
    """Read like a corpus of lines, so that the encoding is detected in the same way."""
    return _few_enough(
        [text.strip() for text in reading.read_corpus(file.getvalue(), "queries.txt", is_stopped=is_stopped).texts]
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
