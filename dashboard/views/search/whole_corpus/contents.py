"""The Search page's corpus view: what the corpus contains, the indexes on disk, and an upload of word vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from components.charts import bars
from components.numbers import counted, percent
from components.retrieval.corpora.columns import called
from components.retrieval.corpora.facts import corpus_facts
from components.retrieval.search.static_vectors import read_static_vectors
from components.shown_code.arrays import Input
from components.shown_code.arrays import columns as read_columns
from components.sizes import in_words
from dashboard import access, caching, state
from dashboard.corpora import current, uploads
from dashboard.jobs import embedding
from dashboard.jobs.embedding import EmbedRequest
from dashboard.ui import figures, messages
from dashboard.ui.waiting import before_work, frame

if TYPE_CHECKING:
    from components.model.backend import Backend
    from components.retrieval.corpora.corpus import Corpus
    from components.retrieval.corpora.facts import CorpusFacts


def corpus(backend: Backend) -> None:
    """What the corpus contains."""
    searched = current.corpus()
    if state.get("corpus"):
        st.button("Search this corpus", key="search_it", type="primary", on_click=state.open_view, args=("hits",))
    lengths = embedding.token_counts(backend, searched, "corpus")
    request = EmbedRequest.of_session(backend)
    limit = request.max_length or backend.own_max_length
    facts = corpus_facts(searched, lengths, limit)
    counts, edges = facts.histogram()
    figures.figure(
        bars.count_bars(edges, counts, "Length of the sentences"),
        key="corpus_lengths",
        code=Input(
            backend, (), prompt="", source=read_columns("corpus_lengths", {"texts": ("sentence", "texts")})
        ).lengths("texts"),
        message=finding(searched.name, facts, searched.report.duplicates),
        read=f"Tokens of {messages.escape(backend.spec.title)}, special tokens included. Sentences longer than {limit} tokens"
        + (" (the maximum length of this session)" if request.max_length else "")
        + " are truncated when the corpus is embedded.",
        not_shown="Which words are lost when a sentence is truncated.",
        alt=f"Histogram of the sentences' lengths in tokens, that of the middle one is {middle_length(facts)}",
        table=lambda: pd.DataFrame({"number": range(len(lengths)), "tokens": lengths, "sentence": searched.texts}),
    )
    if state.get("corpus"):  # of a file one wants to know how it was read
        _report(searched)
    figures.note("**The first sentences**")
    texts = {"text": list(searched.texts[:8])}
    columns = figures.corpus_columns(texts, searched.columns, range(len(texts["text"])))
    figures.whole_texts(pd.DataFrame(texts | columns).rename(columns=current.shown_column), key="corpus_examples")
    with frame.figure("corpus_index"):
        embedding.index_of(request, searched, "corpus")
        before_work.other_layers(request, searched, "corpus")
    _storage()


def finding(name: str, facts: CorpusFacts, repeated: int = 0) -> str:
    """How many sentences a corpus has, how long they are, and how many of them are cut off.

    `repeated` sentences repeat the text of an earlier one.
    """
    limit, cut, middle = facts.max_length, facts.truncated, middle_length(facts)
    count = counted(facts.sentences, "sentence")
    if repeated:
        count = f"{counted(facts.sentences - repeated, 'different text')} in {count}"
    said = f"**{messages.escape(name[:40])} has {count}**"
    if facts.sentences == 1:
        said += f", of {counted(middle, 'token')}"
        return (
            f"{said}. **It is cut off** after {limit}."
            if cut
            else f"{said}. It is not cut off: the model reads up to {limit}."
        )
    if (facts.token_lengths == middle).all():
        said += f", each of {counted(middle, 'token')}"
    else:
        said += (
            f"; the middle one by length has {counted(middle, 'token')}, the longest {int(facts.token_lengths.max())}"
        )
    if not cut:
        return f"{said}. None is cut off: the model reads up to {limit}."
    verb = "is" if cut == 1 else "are"
    return f"{said}. **{cut:,} ({percent(facts.truncated_share)}) {verb} cut off** after {limit} tokens."


def middle_length(facts: CorpusFacts) -> int:
    """The tokens of the sentence in the middle of all by length; of two in the middle, those of the shorter one."""
    return int(np.sort(facts.token_lengths)[(facts.sentences - 1) // 2])


def _report(corpus: Corpus) -> None:
    report = corpus.report
    if len(report.text_column.split()) > 3:
        st.warning(
            f"The first line was read as the name of the column: “{messages.escape(report.text_column[:120])}”. If it is a "
            "sentence, add a line with a name above it, or save the file as .txt."
        )
    if report.encoding_guessed:
        st.caption(
            f"The encoding {messages.escape(report.encoding)} is a guess. If letters are wrong, type the encoding at the top."
        )
    if report.bad_count:
        with st.expander(f"{report.bad_count:,} of {report.rows:,} rows cannot be used", icon=":material/warning:"):
            figures.whole_texts(
                pd.DataFrame([{"row": row.row, "reason": row.reason} for row in report.bad_rows]), key="bad_rows"
            )
            if report.bad_count > len(report.bad_rows):
                st.caption(f"These are the first {len(report.bad_rows)} of them.")
    said = [
        f"{report.kept:,} of {report.rows:,} rows are sentences.",
        f"{counted(report.joined, 'row')} {'was' if report.joined == 1 else 'were'} joined from several lines."
        if report.joined
        else "",
        f"Control characters or invalid characters were removed from {counted(report.cleaned, 'sentence')}."
        if report.cleaned
        else "",
        f"The sentences are the {called(report.text_column)} ({report.text_reason})." if report.text_reason else "",
        f"Columns that were not kept: {', '.join(report.left_out)}." if report.left_out else "",
        f"The fields are {report.dialect}." if report.dialect else "",
        f"They could also be {report.other_dialect}: look at the rows above." if report.other_dialect else "",
        *report.notes,
        "" if report.is_named else "The first line is read as a row: it does not look like names of columns.",
    ]
    st.caption(messages.escape(" ".join(filter(None, said))))
    if report.duplicates:
        example = report.duplicate_examples[0][:80] if report.duplicate_examples else ""
        verb = "repeats" if report.duplicates == 1 else "repeat"
        repeated = counted(report.duplicates, "sentence")
        st.caption(f"{repeated} {verb} an earlier one, such as “{messages.escape(example)}”. All are kept.")


def _storage() -> None:
    panel = st.expander(
        "For experts: indexes and word vectors", icon=":material/database:", key="kept", on_change="rerun"
    )
    if not panel.open:
        return
    with panel:
        indexes = caching.indexes()
        count, size = indexes.usage()
        st.markdown(f"{count} indexes use {in_words(size)} of at most {in_words(indexes.limit)}.")
        if access.server_files_allowed() and st.button(
            "Remove all indexes", key="clear_cache", icon=":material/delete:"
        ):
            st.success(f"{in_words(indexes.clear())} were freed.")
        file = uploads.uploader(
            "static",
            "Word vectors for the ranking by static vectors: GloVe, fastText or word2vec in text format",
            key="static_file",
            help="Without a file, the model's own input embeddings are used.",
        )
        vectors = uploads.kept(
            "static",
            caching.static_vectors(),
            file,
            lambda file, is_stopped: read_static_vectors(file.getvalue(), file.name, is_stopped=is_stopped),
        )
        if vectors is not None:
            st.caption(
                f"{len(vectors.rows):,} words with {vectors.matrix.shape[1]} numbers each; "
                f"{vectors.bad_lines:,} lines could not be read."
            )
