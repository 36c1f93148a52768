"""The Search page's two views of a whole corpus: many queries at once, and the most similar pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import theme
from components.errors import InputError
from components.numbers import counted
from components.retrieval.corpora import corpus as reading
from components.retrieval.search.paraphrases import SimilarPair, most_similar_pairs
from components.snippets import search as snippets
from dashboard import caching, settings
from dashboard.corpora import current, uploads
from dashboard.jobs import requests
from dashboard.ui import controls, figures, messages, wording
from dashboard.ui.waiting import frame, progress
from dashboard.ui.wording import SIMILARITY_NAMES
from dashboard.views.search import chance
from dashboard.views.search.ranked import level_of
from dashboard.views.search.request import SearchRequest
from dashboard.views.search.results import TIE, ready_queries

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from components.jobs import IsCancelled, ReportProgress
    from components.model.backend import Backend
    from components.model.trace import Pooling
    from components.retrieval.index.folder import VectorIndex

PAIRS_AT_ONCE = 5_000  # sentences whose pairs are all compared without asking


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
    columns: dict[str, object] = {
        "query": first["query"],
        "best hit": first["text"],
        similarity: first[similarity].map(theme.number),
    }
    if level is not None:
        columns["closer than chance"] = [
            "yes" if chance.is_above(score, level.level) else "no, nothing close" for score in first[similarity]
        ]
    elif job is not None and not job.finished.is_set():
        columns["closer than chance"] = ["being measured …"] * len(first)
        progress.until(job.finished.is_set, lambda: None, 1.0)
    figures.whole_texts(pd.DataFrame(columns), key="queries_table")
    if level is not None:
        st.caption(f"{chance.WHAT_IS_CHANCE} Here it is {theme.number(level.level)}.")
    st.caption(
        f"All {request.k} hits of each query are under “Share”. "
        + _settings(layer, pooling, f"{SIMILARITY_NAMES[similarity].lower()}, k = {request.k}")
    )
    code = snippets.hits(request.code(index, layer, pooling), lines, request.k, similarity)
    figures.data("queries", lambda: table, code, "Hits of many queries")


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


def similar_pairs(backend: Backend) -> None:
    """The most similar pairs of the corpus."""
    messages.cross_encoder_note([backend])
    request = SearchRequest.of_vectors(backend, current.corpus(), is_search=False)
    corpus = request.corpus
    index = request.index("pairs")
    if len(corpus) < 2:
        st.info("The corpus has one sentence: there is no pair to compare.")
        return
    layer, pooling = request.cell(index)
    most = min(settings.MOST_PAIRS, _possible_pairs(request))
    count = most
    with controls.row():
        level = controls.bind(
            "least_cosine",
            st.slider,
            "Near duplicates have a cosine of at least",
            to_widget=lambda hundredths: hundredths / 100,
            from_widget=lambda cosine: round(100 * cosine),
            min_value=settings.LEAST_COSINE / 100,
            max_value=1.0,
            step=0.01,
        )
        panel = controls.options()
    if most > settings.LEAST_PAIRS:
        with panel:
            count = controls.number("shown_pairs", "Pairs", settings.LEAST_PAIRS, most, min(100, most))
    found = _most_similar(request, index, layer, pooling)
    repeats = _repeats(corpus.texts)
    above = sum(pair.cosine >= level for pair in found)
    figures.note(f":material/insights: {duplicates_in_words(found, above, level, repeats)}", "duplicates")
    similar = found[: min(count, above) or count]
    table = pd.DataFrame(
        [
            {
                "cosine": theme.number(pair.cosine, 4),
                "numbers": f"{pair.first} – {pair.second}",
                "first": corpus.texts[pair.first],
                "second": corpus.texts[pair.second],
            }
            for pair in similar
        ]
    )
    if len(similar) > 1 and similar[0].cosine - similar[-1].cosine < TIE:
        st.warning("All of these pairs have the same cosine: the choice of these pairs and their order mean nothing.")
    if similar:
        figures.whole_texts(table, key="pairs_box")
    figures.reading(
        f"Pairs of sentences by the cosine of their vectors (layer {layer}, {wording.POOLING_NAMES[pooling]}), "
        "the highest first. Identical sentences are left out.",
        "Whether two sentences mean the same: shared names, a similar length and the same topic also raise the cosine.",
    )
    st.caption(f"{wording.NUMBERS_EXPLAINED} {_settings(layer, pooling, 'cosine')}")
    code = snippets.most_similar(request.code(index, layer, pooling), len(similar))
    figures.data("pairs", lambda: table, code, "The most similar pairs")
    if repeats:
        figures.subheader("Exact repeats")
        figures.whole_texts(
            pd.DataFrame(
                {
                    "times": [len(rows) for rows in repeats.values()],
                    "numbers": [", ".join(map(str, rows)) for rows in repeats.values()],
                    "text": list(repeats),
                }
            ),
            key="repeats_box",
        )


def _repeats(texts: Sequence[str]) -> dict[str, list[int]]:
    """Each text that a corpus has more than once, to its numbers there; the most frequent first."""
    rows: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        rows.setdefault(text, []).append(number)
    repeated = {text: numbers for text, numbers in rows.items() if len(numbers) > 1}
    return dict(sorted(repeated.items(), key=lambda item: -len(item[1])))


def duplicates_in_words(
    found: Sequence[SimilarPair], above: int, level: float, repeats: Mapping[str, Sequence[int]]
) -> str:
    """How many of the most similar pairs are `above` the level, and how many texts repeat another one."""
    again = sum(len(rows) - 1 for rows in repeats.values())
    limit = theme.number(level, 2)
    if above:
        is_more = above == settings.MOST_PAIRS  # which is as many as are kept
        pairs = f"{'At least ' if is_more else ''}{counted(above, 'pair')}"
        said = f"**{pairs}** {'has' if above == 1 else 'have'} a cosine of {limit} or more"
    elif found:
        nearest = theme.number(found[0].cosine)
        said = f"**No pair** has a cosine of {limit} or more; the nearest has {nearest}"
    else:
        said = "**No pair** of different sentences is left"
    if not again:
        return f"{said}. No sentence is repeated exactly."
    verb = "repeats" if again == 1 else "repeat"
    return f"{said}. **{counted(again, 'sentence')}** {verb} an earlier one exactly, and stand below."


def _most_similar(request: SearchRequest, index: VectorIndex, layer: int, pooling: Pooling) -> tuple[SimilarPair, ...]:
    """The settings.MOST_PAIRS most similar pairs, best first. Raises NotReady, which asks first for a large corpus.

    The number of pairs that are shown is no part of the request: fewer pairs are the first of these.
    """
    corpus, jobs = request.corpus, caching.evaluations()
    key = ("similar pairs", index.folder.name, layer, pooling)
    is_short, done_before = len(corpus) <= PAIRS_AT_ONCE, jobs.find(key)
    if not is_short and (done_before is None or done_before.result is None) and st.session_state.get("_pairs") != key:
        label = f"Compare all {_possible_pairs(request):,} pairs"
        raise frame.Instead(partial(_ask_for_pairs, label, key))
    vectors, texts = index.engine(layer, pooling).vectors, corpus.texts

    def compare(report_progress: ReportProgress, is_cancelled: IsCancelled) -> tuple[SimilarPair, ...]:
        return most_similar_pairs(vectors, settings.MOST_PAIRS, texts, report_progress, is_cancelled)

    job = jobs.request(
        key,
        f"Comparing all pairs of {corpus.name}",
        compare,
        person=caching.person(),
        lane="statistics" if is_short else None,
    )
    similar: tuple[SimilarPair, ...] = requests.result_of(
        jobs,
        job,
        doing="comparing the sentences",
        stop_key="stop_pairs",
        again_key="again_pairs",
        unit="blocks of pairs",
    )
    return similar


def _ask_for_pairs(label: str, key: tuple[object, ...]) -> None:
    """The button that begins to compare all pairs of a large corpus: that takes a while."""
    st.button(label, key="find_pairs", type="primary", on_click=lambda: st.session_state.update(_pairs=key))


def _possible_pairs(request: SearchRequest) -> int:
    return len(request.corpus) * (len(request.corpus) - 1) // 2
