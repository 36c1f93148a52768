"""The corpora of all sessions, and which one a session searches.

A session holds only the key of its corpus, since the memory of a session is not freed when the session ends. The
corpora themselves are shared by all sessions. Few are kept; the least recently used one is dropped first. A key is half
of a SHA-256 of the content. A link with the key finds a corpus that is still kept, but never reads a file, and nobody
can guess the key without the content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from components.retrieval.corpora.corpus import PAIR_COLUMN, Corpus
from components.retrieval.corpora.demo import demo_corpus as demo
from components.retrieval.index.build import columns_hash
from components.snippets import code
from dashboard import caching, state
from dashboard.sharing import report

KEY_LENGTH = 32
TOPIC_COLUMNS = ("topic", "label", "category")  # columns that may name a sentence's topic


def in_use() -> Corpus:
    """The session's corpus, or the demo if its own is no longer kept; unlike `corpus`, it draws and changes nothing."""
    key = state.get("corpus")
    found = (caching.corpora().find(key) if key else None) or demo()
    report.name_values("corpus", {key: found.name}, key)
    return found


def corpus() -> Corpus:
    """The session's corpus; the demo, with a warning, if the session's own is no longer kept."""
    key = state.get("corpus")
    if not key:
        return demo()
    chosen = caching.corpora().find(key)
    if chosen is None:
        choose(None)
        state.refuse(
            "corpus",
            state.default("corpus"),
            "The corpus that was chosen here is no longer kept on this server: choose it again. "
            "The demo corpus is used instead.",
        )
        return demo()
    return chosen


def code_of(corpus: Corpus) -> tuple[str, ...]:
    """The statements that read a corpus, for the code of a figure."""
    report = corpus.report
    return code.corpus(corpus, corpus is demo(), report.text_column, encoding=report.encoding)


def choose(corpus: Corpus | None) -> None:
    """Make this the session's corpus; None for the demo."""
    key = "" if corpus is None else key_of(corpus)
    state.put("corpus", key)
    state.put("why", None)
    state.put("opened", None)
    state.put("failed_query", None)
    state.put("right_row", None)
    state.put("query_column", "")
    if corpus is not None:
        caching.corpora().put(key, corpus)


def query_column(corpus: Corpus) -> str | None:
    """The column with the queries: the chosen one, else "compressed", else the only one. None if it is not clear."""
    names = list(corpus.columns)
    chosen = state.get("query_column")
    if chosen and chosen not in names:
        state.refuse("query_column", "", f"The corpus has no column “{chosen}”.")
    elif chosen:
        return str(chosen)
    return PAIR_COLUMN if PAIR_COLUMN in names else names[0] if len(names) == 1 else None


def topics(corpus: Corpus, most: int | None = None) -> Sequence[str] | None:
    """The topic of each sentence by the first column that may name it, with at most `most` different ones; else None."""
    columns = (corpus.columns[name] for name in TOPIC_COLUMNS if name in corpus.columns)
    return next((column for column in columns if most is None or len(set(column)) <= most), None)


def own_rows(corpus: Corpus, query: str) -> tuple[int, ...]:
    """The rows of the session's corpus whose query, in the column of `query_column`, is this one; none without a column."""
    column = query_column(corpus)
    if column is None:
        return ()
    query = query.strip()
    return caching.own_rows().get(
        (state.get("corpus"), column, query),
        lambda: tuple(row for row, text in enumerate(corpus.columns[column]) if text.strip() == query),
    )


def key_of(corpus: Corpus) -> str:
    """The key of a corpus in sessions and addresses, made of its texts, columns and name."""
    digest = hashlib.sha256(f"{corpus.content_hash} {columns_hash(corpus)} {corpus.name}".encode())
    return digest.hexdigest()[:KEY_LENGTH]
