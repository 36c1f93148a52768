"""A collection with graded relevance as rows of a query and a right text, in which its failed queries are looked into.

Every document with a grade of 1 or more is a right text of its query. Equal texts are one text there, and equal queries one
query with the right texts of all, whatever their ids.

What is left out: queries that have the id of a document, which would be their own first hit (in ArguAna of BEIR all of them);
and queries whose relevant documents the corpus lacks. The difference between grades is not used: a query is found once any of
its right texts is first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.errors import InputError
from components.numbers import counted
from components.retrieval.evaluation.graded.ranks import NONE

if TYPE_CHECKING:
    from components.retrieval.evaluation.graded.collection import GradedSet


@dataclass(frozen=True)
class GradedRow:
    """A document, and a query to which it is right."""

    document: int
    query: str = ""  # "" where no query has the document as a right text
    grade: int = 0


@dataclass(frozen=True)
class GradedRows:
    """The rows of a collection, in the order of its documents; a document with several queries has several."""

    rows: tuple[GradedRow, ...]
    notes: tuple[str, ...]  # what is right, and how many queries are left out, in sentences


def rows_of_graded(graded: GradedSet) -> GradedRows:
    """The rows of a collection. Raises InputError where no query is left."""
    own = [NONE] * len(graded.queries) if graded.own is None else graded.own.tolist()
    of_document: dict[int, dict[str, int]] = {}  # its queries with their grades
    lost = documents = 0
    for query, grades, number in zip(graded.queries, graded.grades, own, strict=True):
        if number != NONE:
            documents += 1
        elif not grades:
            lost += 1
        else:
            for document, grade in grades.items():
                asking = of_document.setdefault(document, {})
                asking[query] = max(grade, asking.get(query, 0))
    if not of_document:
        raise InputError(
            f"Each query of {graded.name} that has a relevant document is a document of the collection itself.",
            "Such a query is its own first hit, so that it cannot fail as others do.",
            "Choose a collection with queries of its own; evaluate measures this one.",
        )
    rows = [
        GradedRow(document, query, grade)
        for document in range(len(graded.documents))
        for query, grade in (of_document.get(document) or {"": 0}).items()
    ]
    notes = [*graded.report.refusals, "Every document with a grade of 1 or more counts as a right text."]
    if documents:
        notes.append(f"Left out: {counted(documents, 'query', 'queries')} with the id of a document.")
    if lost:
        notes.append(f"Left out: {counted(lost, 'query', 'queries')} whose relevant documents the corpus lacks.")
    return GradedRows(tuple(rows), tuple(notes))
