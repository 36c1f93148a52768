"""A collection with graded relevance as rows of a query and a right text."""

from __future__ import annotations

import numpy as np
import pytest

from components.errors import InputError
from components.retrieval.evaluation.graded.collection import GradedReport, GradedSet, read_graded
from components.retrieval.evaluation.graded.rows import GradedRow, rows_of_graded
from tests.support.judged_collections import BEIR


def test_every_relevant_document_is_a_right_text_and_all_documents_are_rows() -> None:
    graded = read_graded(BEIR)
    assert graded.ids == ("d1", "d2", "d3")
    found = rows_of_graded(graded)
    assert found.rows == (
        GradedRow(0, "volcano", 2),
        GradedRow(1, "interest rates", 1),
        GradedRow(2, "volcano", 1),
    )
    assert found.notes == ("Every document with a grade of 1 or more counts as a right text.",)


def test_queries_that_are_documents_or_have_no_right_text_are_left_out_and_counted() -> None:
    queries, grades = ("a", "b", "c", "a"), ({1: 1}, {0: 1}, {}, {1: 3, 2: 1})
    missing, own = ((), (), (1,), ()), np.array([-1, 2, -1, -1])
    graded = GradedSet("few", ("x", "y", "z"), queries, grades, GradedReport(0, 0), missing=missing, own=own)
    found = rows_of_graded(graded)
    assert found.rows == (GradedRow(0), GradedRow(1, "a", 3), GradedRow(2, "a", 1))
    assert found.notes[1:] == (
        "Left out: 1 query with the id of a document.",
        "Left out: 1 query whose relevant documents the corpus lacks.",
    )
    alone = GradedSet("few", ("x", "y"), ("b",), ({0: 1},), GradedReport(0, 0), own=np.array([1]))
    with pytest.raises(InputError, match="is a document of the collection itself"):
        rows_of_graded(alone)
