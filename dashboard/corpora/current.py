"""The corpora of all sessions, and which one a session searches.

A session holds only the key of its corpus, since the memory of a session is not freed when the session ends. The
corpora themselves are shared by all sessions. Beside the kept files stands a note for each corpus that was chosen: from which
files, and how, it was read. So a corpus that is no longer in memory is read again, also after a restart, if what is read
has the same key. A key is half of a SHA-256 of the content: nobody can guess it without the content, and a link reads no file
that somebody who may read it has not chosen here before.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.errors import UserError
from components.retrieval.corpora import corpus as reading
from components.retrieval.corpora.column_names import is_question
from components.retrieval.corpora.columns import AS_ASKED
from components.retrieval.corpora.corpus import PAIR_COLUMN, Corpus
from components.retrieval.corpora.demo import demo_corpus as demo
from components.retrieval.corpora.readers.separated_rows import DialectChoice
from components.retrieval.corpora.rows import roles
from components.retrieval.corpora.rows.parts import find_parts
from components.retrieval.evaluation import pair_runs
from components.shown_code.arrays import file_of as saved_file
from components.shown_code.search import CORPUS_TABLE
from dashboard import access, caching, state
from dashboard.corpora import uploads
from dashboard.jobs import requests
from dashboard.jobs.requests import NotReady
from dashboard.settings import MOST_OF_QUERY
from dashboard.sharing import figure_link, report

if TYPE_CHECKING:
    from components.jobs import IsStopped, ReportProgress
    from components.retrieval.evaluation.pair_runs import Pairs

KEY_LENGTH = 32
_NOTED = "_corpus_noted"  # session key: the corpus whose files IN_CORPUS names
_AGAIN = "again_corpus"  # key of the button that reads the corpus once more
TOPIC_COLUMNS = ("topic", "label", "category")  # columns that may name a sentence's topic
DEMO_FILE = "assets/demo_corpus.jsonl"  # as a command in the folder of this project reads it
ID_COLUMNS = {"id", "_id", "doc_id", "docid", "key", "code"}  # names of columns that may hold a sentence's own id
MOST_OF_ID = 12  # characters
# How the names of corpora end that were made here, of pasted rows, own queries, and graded relevance: no file has them.
MADE_HERE = ("pasted rows.csv", " with own queries.jsonl", " with its queries.jsonl")


@dataclass(frozen=True)
class CorpusSource:
    """How a corpus was read: what its note holds."""

    name: str  # of the corpus; its ending gives the format of an upload
    upload: str = ""  # the key of an upload, if it is from one
    paths: tuple[str, ...] = ()  # else the files of this machine
    is_of_hub: bool = False  # a data set that the hub's client has downloaded
    encoding: str | None = None
    column: str | None = None
    sentences: int = 0
    dialect: str = ""  # what a person chose of it, as DialectChoice writes it

    def read(self, is_stopped: IsStopped) -> Corpus:
        """The corpus, read again. Raises InputError where that is no longer possible."""
        content: bytes | tuple[Path, ...] = tuple(map(Path, self.paths))
        if self.upload:
            content = uploads.stored(self.upload)[0].getvalue()
        dialect = DialectChoice.of_text(self.dialect)
        return reading.read_corpus(
            content, self.name, self.column, self.encoding, is_stopped=is_stopped, dialect=dialect
        )


def source_of(key: str) -> CorpusSource | None:
    """How the corpus of a key was read here; None if that is not kept, or may no longer be read."""
    content = caching.kept_files().read(f"{key}.json")
    if content is None:
        return None
    try:
        noted = json.loads(content)
        source = CorpusSource(**{**noted, "paths": tuple(noted["paths"])})
        DialectChoice.of_text(source.dialect)
    except (ValueError, TypeError, KeyError):  # of another version, or damaged
        return None
    is_of_server = bool(source.paths) and not source.is_of_hub
    return None if is_of_server and not access.server_files_allowed() else source


def name_in_use() -> str:
    """The name of the session's corpus; of one that is still read again, that of its note."""
    key = state.peek("corpus")
    source = source_of(key) if key and caching.corpora().find(key) is None else None
    return in_use().name if source is None else source.name


def is_kept(key: str) -> bool:
    """Whether the corpus of a key is in memory or can be read again."""
    return caching.corpora().find(key) is not None or source_of(key) is not None


def make_ready() -> None:
    """See that the session's corpus is in memory, if it can be had. Raises NotReady while it is read again."""
    key = state.get("corpus")
    if not key or caching.corpora().find(key) is not None:
        _note_use(key)
        return
    source = source_of(key)
    if source is None:
        return
    jobs = caching.readings()
    job = jobs.request(
        ("corpus", key),
        "Reading a corpus",
        partial(_read_again, key, source),
        person=caching.person(),
        then=lambda job: jobs.drop([job]),
    )
    requests.result_of(jobs, job, doing="reading a corpus", stop_key="stop_corpus", again_key=_AGAIN, final=UserError)
    _note_use(key)


def offer_demo(problem: NotReady) -> None:
    """Where the session's corpus could not be read again, or a person stopped it: another one can be used."""
    awaited = problem.awaited
    if awaited is not None and awaited.again_key == _AGAIN and not requests.is_awaited(awaited.job):
        st.button("Use the demo corpus", key="demo_instead", on_click=choose, args=(None,))


def _read_again(key: str, source: CorpusSource, _: ReportProgress, is_stopped: IsStopped) -> None:
    """Put a corpus into memory once more; where its files are gone or say something else now, drop its note."""
    with suppress(UserError):
        corpus = source.read(is_stopped)
        if key_of(corpus) == key:
            caching.corpora().put(key, corpus)
            return
    caching.kept_files().remove(f"{key}.json")


def _note_use(key: str) -> None:
    """What the session's corpus was read from is in use: it is dropped last."""
    if not key:
        return
    if st.session_state.get(_NOTED) != key:  # it came by a link, or from an earlier session
        source = source_of(key)
        st.session_state[_NOTED] = key
        st.session_state[uploads.IN_CORPUS] = _files_of(source)
    if caching.kept_files().use(f"{key}.json", caching.person()):
        for name in st.session_state[uploads.IN_CORPUS]:
            caching.kept_files().use(name, caching.person())


def _files_of(source: CorpusSource | None) -> set[str]:
    """The digests of the kept files from which a corpus was read; none of other sources."""
    return {file.digest for file in uploads.stored(source.upload)} if source is not None else set()


def at_hand(read: Callable[[str], Any] = state.get) -> Corpus | None:
    """The session's corpus, or None as long as it is not in memory; `read` by state.peek where nothing is drawn of it."""
    key = read("corpus")
    return caching.corpora().find(key) if key else demo()


def in_use() -> Corpus:
    """The session's corpus, or the demo if its own is no longer kept; unlike `corpus`, it draws and changes nothing."""
    key = state.get("corpus")
    found = (caching.corpora().find(key) if key else None) or demo()
    report.name_values("corpus", {key: found.name}, key)
    _name_file(key, found)
    return found


def corpus() -> Corpus:
    """The session's corpus; the demo, with a warning, if the session's own is no longer kept."""
    key = state.get("corpus")
    if not key:
        return demo()
    chosen = caching.corpora().find(key)
    if chosen is None and source_of(key) is not None:
        st.rerun()  # the whole page, which waits until the corpus is read again (see `make_ready`)
    if chosen is None:
        choose(None)
        state.refuse(
            "corpus",
            state.default("corpus"),
            "The corpus that was chosen here is no longer kept on this server: choose it again. "
            "The demo corpus is used instead.",
        )
        return demo()
    _name_file(key, chosen)
    return chosen


def _name_file(key: str, corpus: Corpus) -> None:
    """For commands beside figures: by which options they read the file of the session's corpus."""
    file = _read_with(corpus, _text_column(corpus)) if key else ()
    st.session_state[figure_link.CORPUS_FILE] = (key, ("--corpus", *file) if file else ())


def _text_column(corpus: Corpus) -> tuple[str, ...]:
    """The option that names the column of its texts, where a person has: those of one that was found may have titles."""
    read = corpus.report
    return ("--text-column", read.text_column) if read.text_reason == AS_ASKED else ()


def file_of(corpus: Corpus) -> tuple[str, ...]:
    """The file of a corpus, and how `index` is told to read it.

    Of a data set of the hub, and of a corpus made here of what a person gave, it is the table that Search saves of it.
    """
    of_table = (saved_file(CORPUS_TABLE), "--text-column", "sentence")
    return _read_with(corpus, _text_column(corpus)) or of_table


def file_of_pairs(corpus: Corpus) -> tuple[str, ...]:
    """The same for `evaluate` and `diagnose`, which also read the column of queries."""
    if corpus is demo():  # whose columns they know: no choice of the page is read
        return (DEMO_FILE,)
    ours = {"anchor": query_column(corpus), "positive": corpus.report.text_column}
    columns = ",".join(f"{name}={column}" for name, column in ours.items() if column)
    texts = () if state.get("texts_searched") == "all" else ("--texts", state.get("texts_searched"))
    # A page reads all rows, where the command would take those that a column calls test.
    part = () if find_parts(corpus.columns) is None else ("--part", "all")
    return _read_with(corpus, ("--columns", columns, *part, *texts))


def _read_with(corpus: Corpus, options: tuple[str, ...]) -> tuple[str, ...]:
    if corpus is demo():
        return (DEMO_FILE,)
    if "/" in corpus.name or "." not in corpus.name or corpus.name.endswith(MADE_HERE):
        return ()
    return corpus.name, *options, *reading_options(corpus.report.chosen, corpus.report.encoding)


def say_regression_test(file: Sequence[str]) -> None:
    """Say how pairs of a file become a test that fails once a change makes a search worse; nothing where there is no file."""
    if file:
        written = shlex.join(("python", "-m", "components", "evaluate", *file))
        st.caption(
            f"**As a test that fails once a search becomes worse** (in CI): once `{written} --record run.json`, and after each "
            "change the same with `--against run.json`, which ends with status 1 if the run is significantly worse."
        )


def reading_options(chosen: DialectChoice, encoding: str) -> tuple[str, ...]:
    """The options of a command that reads a file as a person chose, and in its encoding."""
    switches = {name: value for name, value in chosen.given.items() if name != "separator"}
    return (
        *(f"--{name}" if value else f"--no-{name}" for name, value in switches.items()),
        *(("--separator", chosen.separator) if chosen.separator else ()),
        *(("--encoding", encoding) if encoding != "utf-8" else ()),
    )


def choose(corpus: Corpus | None, source: CorpusSource | None = None) -> None:
    """Make this the session's corpus, None for the demo; with its `source` it can be read again later."""
    key = "" if corpus is None else key_of(corpus)
    state.put("corpus", key)
    state.put("why", None)
    state.put("opened", None)
    state.put("failed_query", None)
    state.put("failed_only", "")
    state.put("right_row", None)
    state.put("query_column", "")
    # The query that nobody typed asks for a headline of the demo corpus.
    if corpus is None and not state.peek("query"):
        state.put("query", state.default("query"))
    elif corpus is not None and state.peek("query") == state.default("query"):
        state.put("query", "")
    if corpus is not None:
        caching.corpora().put(key, corpus)
    st.session_state[_NOTED] = key
    st.session_state[uploads.IN_CORPUS] = _files_of(source)
    if source is not None:
        note = json.dumps(asdict(source), ensure_ascii=False).encode(errors="replace")
        caching.kept_files().keep(note, caching.person(), f"{key}.json")


def query_column(corpus: Corpus) -> str | None:
    """The column with the queries: the chosen one, else "compressed", the only one, or the only one that is named as
    questions are. None if it is not clear."""
    names = list(corpus.columns)
    chosen = state.get("query_column")
    if chosen and chosen not in names:
        state.refuse("query_column", "", f"The corpus has no column “{chosen}”.")
    elif chosen:
        return str(chosen)
    if PAIR_COLUMN in names:
        return PAIR_COLUMN
    asked = [name for name in names if is_question(name)]
    return names[0] if len(names) == 1 else asked[0] if len(asked) == 1 else None


def shown_column(name: str) -> str:
    """A column's name on screen: the demo's queries are headlines."""
    return name if state.get("corpus") else {pair_runs.QUERY_COLUMN: "headline"}.get(name, name)


def pairs(corpus: Corpus, column: str) -> Pairs:
    """The queries of a column with their right texts, and the texts that are searched. Raises InputError where it has none."""
    is_every = state.get("texts_searched") == "all"
    key = f"{state.get('corpus')} {is_every} {column}"
    return caching.pair_sets().get(key, lambda: pair_runs.pairs_of_corpus(corpus, column, is_every))


def topics(corpus: Corpus, most: int | None = None) -> Sequence[str] | None:
    """The topic of each sentence by the first column that may name it, with at most `most` different ones; else None."""
    columns = (corpus.columns[name] for name in TOPIC_COLUMNS if name in corpus.columns)
    return next((column for column in columns if most is None or len(set(column)) <= most), None)


def own_ids(corpus: Corpus) -> Sequence[str]:
    """What the corpus calls its sentences: a column of short texts whose name says so, different for different sentences;
    empty where there is none."""
    name = caching.id_columns().get(key_of(corpus), lambda: _id_column(corpus))
    return corpus.columns[name] if name else ()


def _id_column(corpus: Corpus) -> str:
    """The name of the column of `own_ids`; empty where there is none."""
    for name, values in corpus.columns.items():
        is_named = name.strip().lower() in ID_COLUMNS and all(0 < len(value.strip()) <= MOST_OF_ID for value in values)
        if is_named and len(set(zip(values, corpus.texts, strict=True))) == len(set(values)):
            return name
    return ""


def own_rows(corpus: Corpus, query: str) -> tuple[int, ...]:
    """The rows of the session's corpus whose query, in the column of `query_column`, is this one; none without a column."""
    column = query_column(corpus)
    if column is None:
        return ()
    query = " ".join(query.split())  # as `own_queries` has it
    return caching.own_rows().get(
        (state.get("corpus"), column, query),
        lambda: tuple(row for row, text in enumerate(corpus.columns[column]) if " ".join(text.split()) == query),
    )


def own_queries(corpus: Corpus, most: int, *, named: bool = True) -> tuple[str, ...]:
    """The first queries of a person's own corpus, each once; none where no column is known to hold some.

    Those that have no room in the field of a query are left out.

    `named`: only where its name says so, not of one that is taken because the file has no other.
    """
    column = query_column(corpus) if state.get("corpus") else None
    if column is None or (named and not roles.is_named_query(column)):
        return ()

    def sought() -> tuple[str, ...]:
        found: dict[str, None] = {}
        for value in corpus.columns[column]:
            if 0 < len(query := " ".join(value.split())) <= MOST_OF_QUERY:
                found.setdefault(query)
            if len(found) == most:
                break
        return tuple(found)

    return caching.first_queries().get((state.get("corpus"), column, most), sought)


def key_of(corpus: Corpus) -> str:
    """The key of a corpus in sessions and addresses, made of its texts, columns and name."""
    digest = hashlib.sha256(f"{corpus.content_hash} {corpus.columns_hash} {corpus.name}".encode())
    return digest.hexdigest()[:KEY_LENGTH]
