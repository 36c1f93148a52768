"""A test collection with graded relevance: documents, queries, and how relevant each document is to each query.

Where each query has one correct answer (components.retrieval.evaluation), another document that is just as good counts as
wrong. Here people have judged many documents per query, from 0 (not relevant) upwards, as at TREC (Voorhees and Harman
2005) and in BEIR (Thakur et al. 2021). Documents that nobody judged count as not relevant, as in trec_eval.

Documents can have a title and a text, and queries several fields; a `FieldedSet` holds them all, and `chosen` takes those
that are searched.

What is left out is counted: judgements of documents or queries that do not exist, and queries without a relevant
document, for which the measures are not defined. Where a query has others, relevant documents that are not in the corpus count
as missed, as in trec_eval: published values count them too.

The ids decide what is one document: two with equal texts are two, and are counted. A query that has the id of a document is
that document (as in ArguAna and Quora of BEIR), which would be its own first hit: it is left out of the query's ranking, as in
BEIR. Only where it is judged relevant and has another text are the equal ids taken for chance.

What it does not show: how relevant the documents are that nobody judged. Judges mostly saw the hits of the search
methods of their time, so that a new method can be underrated (Buckley et al. 2007).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from sys import getsizeof
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from components.arrays import Int64
from components.errors import InputError
from components.folders import lies_in
from components.jobs import IsStopped, ReportProgress
from components.numbers import counted
from components.retrieval.corpora.corpus import Corpus
from components.retrieval.corpora.readers.limits import (
    BROWSER_LIMITS,
    Limits,
    browser_limits,
    never,
    read_bytes,
    unreadable,
)
from components.retrieval.corpora.readers.table import REFUSED_SHOWN, each_reason
from components.retrieval.corpora.texts import Texts, hash_of, memory_of_texts
from components.retrieval.evaluation.graded import archive
from components.retrieval.evaluation.graded.files import (
    DOCUMENT_FIELDS,
    PARTS,
    QUERY_FIELDS,
    Entries,
    GradedJudgements,
    Part,
    Source,
    find_parts,
    part_of,
    read_entries,
    read_judgements,
)
from components.retrieval.evaluation.graded.ranks import (
    NONE,
    Grades,
    RelevantRanks,
    ranker_relevant_ranks,
    vector_relevant_ranks,
    with_missing,
)
from components.retrieval.evaluation.ranks import ScoresDocuments
from components.retrieval.fusion.ranks import ScoresOf, fused_ranks
from components.retrieval.fusion.scores import Fusion

OWN, SAME_TOPIC = 2, 1  # the grades of the demo
_COMMAND = "evaluate FOLDER"
_OF_A_PART = re.compile(r"(?<![a-z])(?:train|dev|val|test)")  # in the name of a file with judgements
_NUMBER_BYTES = 32  # of the number of a document; grades are small numbers, which exist once


@dataclass(frozen=True)
class GradedReport:
    """How the rows of the files were used. The judgements are the sum of the six numbers below them and of `own_judgements`."""

    judgements: int
    relevant: int  # kept
    not_relevant: int = 0  # grade 0 or below
    unknown_queries: int = 0
    unknown_documents: int = 0
    duplicate_judgements: int = 0  # replaced by a later line about the same pair
    bad_lines: int = 0
    queries_without_relevant: int = 0
    bad_documents: int = 0  # without an id or text, or with the id of an earlier one
    bad_queries: int = 0
    own_judgements: int = 0  # of the relevant: of a query's own document, which is left out of its ranking
    files: Mapping[Part, str] = field(default_factory=dict)  # empty for the demo
    refusals: tuple[
        str, ...
    ] = ()  # which rows of the files were left out, and why, and which file was read instead of another

    @property
    def left_out(self) -> dict[str, int]:
        """The reasons for which rows were left out, each with its number of rows above 0."""
        counts = {
            "queries without a relevant document": self.queries_without_relevant,
            "judgements of unknown queries": self.unknown_queries,
            "judgements of unknown documents": self.unknown_documents,
            "judgements of a query's own document": self.own_judgements,
            "judgements of a pair that is judged again": self.duplicate_judgements,
            "lines that are not judgements": self.bad_lines,
            "documents without an id or text, or with a repeated id": self.bad_documents,
            "queries without an id or text, or with a repeated id": self.bad_queries,
        }
        return {reason: count for reason, count in counts.items() if count}


@dataclass(frozen=True, eq=False)
class GradedSet:
    """Documents, queries and grades, aligned: grades[q] belongs to queries[q].

    `grades[q]` maps the number of a document to its grade, 1 or more; `missing[q]` are the grades of relevant documents that
    the corpus lacks. Every query has at least one of the two, and some query has one in the corpus.
    """

    name: str
    documents: tuple[str, ...]
    queries: tuple[str, ...]
    grades: tuple[Mapping[int, int], ...]
    report: GradedReport
    query_field: str = ""  # of which the queries are; "" for the demo
    document_fields: tuple[str, ...] = ()
    missing: tuple[tuple[int, ...], ...] = ()  # [query], or empty where there are none
    own: Int64 | None = None  # [query]: the number of the document that the query is, or NONE
    ids: tuple[str, ...] = ()  # [document]; empty for the demo

    @cached_property
    def document_texts(self) -> Texts:
        """The documents, ready to be embedded into an index."""
        return Texts(self.name, self.documents)

    @cached_property
    def query_texts(self) -> Texts:
        return Texts(f"queries of {self.name}", self.queries)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of memory of the texts and the grades, about."""
        texts = self.document_texts.nbytes + self.query_texts.nbytes
        return texts + memory_of_texts(self.ids) + _memory_of_grades(self.grades)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of texts and grades with their number, order and boundaries, but not of the name."""
        grades = [sorted(each.items()) for each in self.grades]
        own = None if self.own is None else self.own.tolist()
        others = f" {self.missing} {own}" if self.missing or own else ""
        texts = f"{hash_of(self.documents)} {hash_of(self.queries)}"
        return hashlib.sha256(f"{texts} {grades}{others}".encode()).hexdigest()

    def ranks_by_vectors(
        self,
        queries: NDArray[np.floating],
        documents: NDArray[np.floating],
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
        cosine: bool = True,
    ) -> RelevantRanks:
        """The ranks of the relevant documents by vectors [query, dim] and [document, dim], as `vector_relevant_ranks` does."""
        found = vector_relevant_ranks(queries, documents, self.grades, progress, is_stopped, cosine, self.own)
        return with_missing(found, self.missing)

    def ranks_by_words(
        self,
        ranker: ScoresDocuments,
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> RelevantRanks:
        """The ranks of the relevant documents by a word ranking over the documents."""
        found = ranker_relevant_ranks(
            ranker.scores, self.queries, self.grades, progress, is_stopped, floor=ranker.floor, own=self.own
        )
        return with_missing(found, self.missing)

    def ranks_by_fusions(
        self,
        runs: Sequence[ScoresOf],
        fusions: Sequence[Fusion],
        progress: ReportProgress = lambda done, total: None,
        is_stopped: IsStopped = lambda: False,
    ) -> list[RelevantRanks]:
        """The ranks of the relevant documents by each fusion of runs."""
        shape = (len(self.queries), len(self.documents))
        found = fused_ranks(runs, fusions, shape, self.grades, progress, is_stopped, self.own)
        return [with_missing(each, self.missing) for each in found if isinstance(each, RelevantRanks)]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the measures has to know about the documents, in sentences."""
        own = 0 if self.own is None else int(np.count_nonzero(self.own != NONE))
        missing, asking = sum(map(len, self.missing)), sum(map(bool, self.missing))
        lost = sum(
            bool(gone) and not known for gone, known in zip(self.missing, self.grades, strict=bool(self.missing))
        )
        repeated = len(self.documents) - len(set(self.documents))
        found = list(self.report.refusals)
        if own:
            found.append(
                f"{counted(own, 'query has', 'queries have')} the id of a document: a query's own document is left out of its "
                "ranking, as in BEIR."
            )
        if missing:
            found.append(
                f"{counted(missing, 'relevant document', 'relevant documents')} of {counted(asking, 'query', 'queries')} "
                f"{'is' if missing == 1 else 'are'} not in the corpus, and count{'s' if missing == 1 else ''} as missed, as in "
                "trec_eval."
            )
        if lost:
            found.append(
                f"{counted(lost, 'query has', 'queries have')} no relevant document in the corpus: every measure of such a "
                "query is 0."
            )
        if repeated and self.report.files:
            found.append(
                f"{counted(repeated, 'document has', 'documents have')} the text of an earlier one under another id: each id "
                "is a document of its own, and equal texts tie."
            )
        return tuple(found)


@dataclass(frozen=True, eq=False)
class FieldedSet:
    """What three files hold: documents and queries in all their fields, "" where one lacks a field, and the grades.

    Fields come in the order of DOCUMENT_FIELDS and QUERY_FIELDS; grades[q] belongs to the queries' number q.
    """

    name: str
    documents: Mapping[str, tuple[str, ...]]
    queries: Mapping[str, tuple[str, ...]]
    grades: tuple[Mapping[int, int], ...]
    report: GradedReport
    missing: tuple[tuple[int, ...], ...] = ()  # as in GradedSet
    own: Int64 | None = None
    ids: tuple[str, ...] = ()

    @cached_property
    def nbytes(self) -> int:
        """Bytes of memory of the texts and the grades, about."""
        columns = (*self.documents.values(), *self.queries.values(), self.ids)
        return sum(map(memory_of_texts, columns)) + _memory_of_grades(self.grades)

    def chosen(self, query_field: str | None = None, document_fields: Sequence[str] | None = None) -> GradedSet:
        """The collection with one field of each query, and one or more of each document, joined in the files' order.

        By default the queries' text, else their title, and all that documents have. Those that have nothing in these
        fields are left out and counted. Raises InputError for fields that do not exist, and if no query is left.
        """
        query_field = next(iter(self.queries)) if query_field is None else query_field
        names = tuple(self.documents) if document_fields is None else tuple(document_fields)
        _check_fields((query_field,), self.queries, "queries", "--query-field")
        _check_fields(names, self.documents, "documents", "--document-fields")
        columns = [texts for field, texts in self.documents.items() if field in names]
        documents = columns[0] if len(columns) == 1 else tuple(map(_joined, *columns))
        queries, grades = self.queries[query_field], self.grades
        missing = self.missing or ((),) * len(queries)
        own = [NONE] * len(queries) if self.own is None else self.own.tolist()
        if not all(documents):
            numbers = dict(zip((number for number, text in enumerate(documents) if text), count(), strict=False))
            grades = tuple({numbers[key]: grade for key, grade in each.items() if key in numbers} for each in grades)
            own = [numbers.get(number, NONE) for number in own]
        kept = [number for number, text in enumerate(queries) if text and (grades[number] or missing[number])]
        if not any(grades[number] for number in kept):
            raise InputError(
                f"No query has a {query_field} and a relevant document with a {' or '.join(names)}.",
                "At least one such query is needed.",
                "Choose other fields.",
            )
        report = self._report_of(documents, queries, grades, kept)
        return GradedSet(
            self.name,
            documents if all(documents) else tuple(filter(None, documents)),
            tuple(queries[number] for number in kept),
            tuple(MappingProxyType(grades[number]) for number in kept),
            report,
            query_field,
            tuple(field for field in self.documents if field in names),
            tuple(missing[number] for number in kept) if any(map(missing.__getitem__, kept)) else (),
            np.array([own[number] for number in kept], np.int64)
            if any(own[number] != NONE for number in kept)
            else None,
            tuple(key for key, text in zip(self.ids, documents, strict=bool(self.ids)) if text),
        )

    def _report_of(
        self, documents: Sequence[str], queries: Sequence[str], grades: Grades, kept: Sequence[int]
    ) -> GradedReport:
        """The report with what the chosen fields leave out."""
        report = self.report
        relevant, with_document = sum(map(len, self.grades)), sum(map(len, grades))
        of_kept = sum(len(grades[number]) for number in kept)
        textless = sum(not text for text in queries)
        return replace(
            report,
            relevant=of_kept,
            unknown_documents=report.unknown_documents + relevant - with_document,
            unknown_queries=report.unknown_queries + with_document - of_kept,
            queries_without_relevant=report.queries_without_relevant + len(queries) - textless - len(kept),
            bad_documents=report.bad_documents + sum(not text for text in documents),
            bad_queries=report.bad_queries + textless,
        )


def read_graded(
    files: Mapping[str, Source],
    name: str = "Uploaded files",
    limits: Limits | None = BROWSER_LIMITS,
    is_stopped: IsStopped = never,
) -> GradedSet:
    """The collection of three files, given by name as bytes or paths, in BEIR's or TREC's format, with or without gzip.

    With BROWSER_LIMITS the operator's limits apply to each file (`browser_limits`); with None there is no limit. Raises
    InputError for files that are missing, ambiguous, unreadable, too large, or do not belong together. Raises Stopped.
    """
    return read_fields(files, name, limits, is_stopped).chosen()


def read_fields(
    files: Mapping[str, Source],
    name: str = "Uploaded files",
    limits: Limits | None = BROWSER_LIMITS,
    is_stopped: IsStopped = never,
) -> FieldedSet:
    """As `read_graded`, with every field.

    A folder packed as .zip can take the place of its three files. Of several files with judgements in it the test split's
    is read, and the collection has the name of the .zip. Raises InputError also for more files beside a .zip.
    """
    packed = next(filter(archive.is_archive, files), None)
    if packed is None:
        return _read(files, name, None, limits, is_stopped)
    if len(files) > 1:
        raise InputError(
            f"{packed[:100]} was chosen together with other files.",
            "A collection is one .zip, or three files.",
            "Choose one .zip, or the three files.",
        )
    limits = _limits(limits)
    sources = _unpacked(files[packed], packed, limits, is_stopped)
    return _read(sources, Path(packed).stem, "test", limits, is_stopped, packed)


def _unpacked(source: Source, name: str, limits: Limits | None, is_stopped: IsStopped) -> dict[str, bytes]:
    """The files of a .zip. Its own bytes, if they were read here, are freed before the files are."""
    return archive.unpacked(read_bytes(source, name, limits, is_stopped), name, part_of, limits, is_stopped)


def read_graded_folder(
    path: Path, split: str = "test", limits: Limits | None = BROWSER_LIMITS, is_stopped: IsStopped = never
) -> GradedSet:
    """The collection in a folder: BEIR's (corpus.jsonl, queries.jsonl, qrels/test.tsv) or three files in TREC's format.

    Of several files with judgements (or queries) the one with `split` in its name is read. Raises InputError and
    Stopped as `read_graded` does.
    """
    return read_folder_fields(path, split, limits, is_stopped).chosen()


def read_folder_fields(
    path: Path, split: str = "test", limits: Limits | None = BROWSER_LIMITS, is_stopped: IsStopped = never
) -> FieldedSet:
    """As `read_graded_folder`, with every field."""
    try:
        if not path.is_dir():
            raise InputError(
                f"There is no folder {str(path)!r}.", "The path must name an existing folder.", "Check the path."
            )
        sources = {
            file.relative_to(path).as_posix(): file
            for file in sorted([*path.iterdir(), *path.glob("qrels/*")])
            if file.is_file() and not file.name.startswith(".")
        }
        outside = [name for name, file in sources.items() if not lies_in(path, file)]
    except OSError as problem:
        raise unreadable(str(path), problem) from problem
    if outside:
        raise InputError(
            f"{outside[0][:80]} in {path} is a link that leads out of the folder.",
            "A folder from somebody else could show any file of this machine by such a link.",
            "Put the file itself into the folder, or remove the link.",
        )
    return _read(sources, path.resolve().name, split, limits, is_stopped)


def demo_graded(corpus: Corpus) -> GradedSet:
    """Each compressed text is a query; its own sentence has grade 2, the other sentences of its topic have grade 1.

    For a corpus with columns "compressed" and "topic", such as the demo corpus. Rows without a compressed text are not
    queries; rows without a topic share it with no other row. Raises InputError if a column, or every query, is missing.
    """
    missing = [name for name in ("compressed", "topic") if name not in corpus.columns]
    query_rows = [] if missing else [row for row, text in enumerate(corpus.columns["compressed"]) if text.strip()]
    if not query_rows:
        raise InputError(
            f"{corpus.name} has no {' and no '.join(f'column {name}' for name in missing) or 'compressed text'}.",
            "Grades by topic need sentences with the columns compressed and topic.",
            "Choose the demo corpus, or upload your own judgements.",
        )
    topics: dict[str, list[int]] = {}
    for row, topic in enumerate(corpus.columns["topic"]):
        if topic.strip():
            topics.setdefault(topic, []).append(row)
    grades: list[Mapping[int, int]] = []
    for own in query_rows:
        others = topics.get(corpus.columns["topic"][own], [])
        grades.append(MappingProxyType({row: OWN if row == own else SAME_TOPIC for row in sorted({own, *others})}))
    relevant = sum(map(len, grades))
    report = GradedReport(relevant, relevant, bad_queries=len(corpus) - len(query_rows))
    queries = tuple(corpus.columns["compressed"][row] for row in query_rows)
    return GradedSet(corpus.name, corpus.texts, queries, tuple(grades), report)


def _read(
    sources: Mapping[str, Source],
    name: str,
    split: str | None,
    limits: Limits | None,
    is_stopped: IsStopped = never,
    packed: str = "",
) -> FieldedSet:
    """`packed` names the .zip that the files are from."""
    limits = _limits(limits)
    parts = find_parts(sources, split, packed)
    judgements = read_judgements(sources[parts["judgements"]], parts["judgements"], limits, is_stopped)
    queries = read_entries(sources[parts["queries"]], parts["queries"], QUERY_FIELDS, limits, is_stopped)
    corpus = read_entries(sources[parts["corpus"]], parts["corpus"], DOCUMENT_FIELDS, limits, is_stopped)
    found, read = _matched(name, corpus, queries, judgements, parts), parts["judgements"]
    if split is None or split.lower() in read.lower() or _OF_A_PART.search(read.lower()) is None:
        return found
    another = f"There are no judgements of the part {split}: {read} is read."
    return replace(found, report=replace(found.report, refusals=(another, *found.report.refusals)))


def _limits(limits: Limits | None) -> Limits | None:
    """The operator's limits for BROWSER_LIMITS; their message names this command."""
    if limits is None:
        return None
    return replace(browser_limits() if limits is BROWSER_LIMITS else limits, command=_COMMAND)


def _matched(
    name: str,
    corpus: Entries,
    queries: Entries,
    judgements: GradedJudgements,
    parts: Mapping[Part, str],
) -> FieldedSet:
    """The judgements, matched with the texts that they are about."""
    grades: dict[str, dict[int, int]] = {}
    missing: dict[str, list[int]] = {}
    not_relevant = unknown_queries = unknown_documents = own_judgements = 0
    of_queries, repeated = _with_ids_of(queries, judgements)
    for (query, document), grade in of_queries.items():
        if query not in queries.ids:
            unknown_queries += 1
        elif document not in corpus.ids:
            unknown_documents += 1
            if grade > 0:
                missing.setdefault(query, []).append(grade)
        elif grade <= 0:
            not_relevant += 1
        elif query == document and _is_one_text(queries, corpus, query):
            own_judgements += 1
        else:
            grades.setdefault(query, {})[corpus.ids[document]] = grade
    if not grades:
        raise InputError(
            f"Of {len(judgements.grades):,} judgements in {parts['judgements']} {unknown_queries:,} name no query of "
            f"{parts['queries']}, {unknown_documents:,} no document of {parts['corpus']}, {not_relevant:,} have grade 0"
            + (f", {own_judgements:,} are of a query's own document." if own_judgements else "."),
            "At least one judgement of a relevant document is needed.",
            "Check that the three files belong together.",
        )
    # A query of which every relevant document is lost is asked all the same, and finds nothing: as in trec_eval.
    kept = [(key, number) for key, number in queries.ids.items() if key in grades or key in missing]
    graded = [grades.get(key, {}) for key, _ in kept]
    own = np.array(
        [
            NONE if number is None or number in each else number
            for number, each in zip((corpus.ids.get(key) for key, _ in kept), graded, strict=True)
        ],
        np.int64,
    )
    report = GradedReport(
        judgements.lines,
        sum(map(len, grades.values())),
        not_relevant,
        unknown_queries,
        unknown_documents,
        judgements.duplicates + repeated,
        len(judgements.bad),
        len(queries.ids) - len(kept),
        len(corpus.bad),
        len(queries.bad),
        own_judgements,
        MappingProxyType(dict(parts)),
        tuple(
            f"Left out of {read}: {each_reason(bad.reasons)}. The first: "
            f"{', '.join(f'row {row.row} ({row.reason})' for row in bad.first[:REFUSED_SHOWN])}."
            for read, bad in zip(map(parts.__getitem__, PARTS), (corpus.bad, queries.bad, judgements.bad), strict=True)
            if bad
        ),
    )
    in_fields = {field: tuple(texts[number] for _, number in kept) for field, texts in queries.fields.items()}
    return FieldedSet(
        name,
        MappingProxyType(dict(corpus.fields)),
        MappingProxyType({field: texts for field, texts in in_fields.items() if any(texts)}),
        tuple(map(MappingProxyType, graded)),
        report,
        tuple(tuple(missing.get(key, ())) for key, _ in kept) if missing else (),
        own if (own != NONE).any() else None,
        tuple(corpus.ids),
    )


def _is_one_text(queries: Entries, corpus: Entries, key: str) -> bool:
    """Whether a query's text is one of the fields of the document with its id, or all of them."""
    asked = {texts[queries.ids[key]] for texts in queries.fields.values()} - {""}
    told = [texts[corpus.ids[key]] for texts in corpus.fields.values()]
    return not asked.isdisjoint({*told, _joined(*told)})


def _with_ids_of(queries: Entries, judgements: GradedJudgements) -> tuple[Mapping[tuple[str, str], int], int]:
    """The grades with the queries' own ids, and how many of them another judgement of the same pair replaced.

    TREC's topics have numbers like 007, and judgements say 7, or the other way round: where no query has the id of a
    judgement, the one query with the same number counts. A judgement with the exact id goes first.
    """
    if all(query in queries.ids for query, _ in judgements.grades):
        return judgements.grades, 0
    id_of_number: dict[str, str] = {}
    for key in queries.ids:
        number = _without_zeros(key)
        id_of_number[number] = "" if number in id_of_number else key  # "" where several queries have it
    grades: dict[tuple[str, str], int] = {}
    repeated = 0
    for (query, document), grade in judgements.grades.items():
        own = query if query in queries.ids else id_of_number.get(_without_zeros(query)) or query
        repeated += (own, document) in grades
        if own == query or (own, document) not in judgements.grades:
            grades[own, document] = grade
        elif (own, document) not in grades:
            repeated += 1  # by the exact one, which comes later
    return grades, repeated


def _without_zeros(key: str) -> str:
    """A number without the zeros at its beginning; another id as it is."""
    return (key.lstrip("0") or "0") if key.isascii() and key.isdigit() else key


def _check_fields(names: Sequence[str], existing: Mapping[str, object], of: str, option: str) -> None:
    """Raise InputError unless there is at least one field and all of them exist."""
    if not names or any(name not in existing for name in names):
        raise InputError(
            f"{', '.join(name[:40] for name in names) or 'No field'} is not what the {of} can be searched by.",
            f"The {of} of these files have {' and '.join(existing)}.",
            f"Choose from these ({option} on the command line).",
        )


def _joined(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _memory_of_grades(grades: Grades) -> int:
    return sum(map(getsizeof, map(dict, grades))) + _NUMBER_BYTES * sum(map(len, grades))
