"""A .json file that is one object for a whole table: no key is read as what it is not, and none is lost in silence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.corpora.readers.files import read_table
from components.retrieval.corpora.readers.limits import Count
from components.retrieval.corpora.rows.parts import TO_TRAIN
from components.retrieval.corpora.rows.read import rows_of, table_of


def table(content: dict[str, Any], indent: int | None = None) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The rows of an object without their empty cells, and the keys that are left out."""
    found = read_table(json.dumps(content, indent=indent).encode(), "a.json")
    rows = [dict(zip(found.columns, values, strict=True)) for values in zip(*found.columns.values(), strict=True)]
    return [{key: value for key, value in row.items() if value is not None} for row in rows], found.left_out


def objects(part: str, count: int) -> list[dict[str, str]]:
    return [{"text": f"{part} {number}"} for number in range(count)]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("counts", [(3, 3), (5, 2)])
def test_parts_are_one_table_and_no_pairs(counts: tuple[int, int], indent: int | None) -> None:
    content = {"train": objects("train", counts[0]), "test": objects("test", counts[1])}
    rows, left_out = table(content, indent)
    assert rows == [{**row, "split": part} for part, every in content.items() for row in every]
    assert left_out == ()


def test_training_uses_the_train_part_of_such_a_file() -> None:
    content = {
        part: [{"query": f"{part} question {n}?", "positive": f"{part} answer {n}."} for n in range(count)]
        for part, count in (("train", 4), ("validation", 2), ("test", 4))
    }
    source = json.dumps(content).encode()
    table = table_of([source], "a.json", None, Count("a.json", None))
    rows = rows_of(table, "a.json", preferred=TO_TRAIN, wanted="pairs", holds_out=True)
    assert [row.texts for row in rows.rows] == [
        (f"{part} question {n}?", f"{part} answer {n}.")
        for part, count in (("train", 4), ("validation", 2))
        for n in range(count)
    ]
    assert rows.part is not None
    assert rows.part.counts == {"train": 4, "dev": 2, "test": 4}


def test_parts_can_hold_texts_or_columns() -> None:
    assert table({"train": ["One.", "Two."], "test": ["Three."], "version": 1}) == (
        [
            {"text": "One.", "split": "train"},
            {"text": "Two.", "split": "train"},
            {"text": "Three.", "split": "test"},
        ],
        ("version",),
    )
    by_column = {"text": ["One.", "Two."], "n": [1, 2], "source": "x"}
    assert table({"train": by_column, "validation_matched": {"text": ["Three."], "n": [3]}}) == (
        [
            {"text": "One.", "n": 1, "split": "train"},
            {"text": "Two.", "n": 2, "split": "train"},
            {"text": "Three.", "n": 3, "split": "validation_matched"},
        ],
        ("train.source",),
    )


def test_a_part_beside_a_column_of_that_name_has_another() -> None:
    rows, _ = table({"train": [{"text": "One.", "split": "a"}], "test": [{"text": "Two.", "split": "b"}]})
    assert [row["part"] for row in rows] == ["train", "test"]
    assert [row["split"] for row in rows] == ["a", "b"]


def test_columns_can_be_called_as_parts_are() -> None:
    assert table({"text": ["One.", "Two."], "test": [0, 1]}) == (
        [{"text": "One.", "test": 0}, {"text": "Two.", "test": 1}],
        (),
    )


def test_what_stands_beside_columns_is_named() -> None:
    content = {"text": ["One.", "Two."], "meta": [{"n": 1}, {"n": 2}], "name": "corpus", "about": {"by": "us"}}
    assert table(content) == (
        [{"text": "One.", "meta": {"n": 1}}, {"text": "Two.", "meta": {"n": 2}}],
        ("name", "about"),
    )
    corpus = read_corpus(json.dumps(content).encode(), "a.json")
    assert corpus.texts == ("One.", "Two.")
    assert "Columns left out: name, about." in corpus.report.sentences(tuple(corpus.columns), "")


def test_what_stands_beside_a_list_of_rows_is_named() -> None:
    assert table({"records": objects("a", 3), "other": {"text": ["x"]}, "labels": ["no", "yes"]}) == (
        objects("a", 3),
        ("other", "labels"),
    )
    assert table({"labels": ["no", "yes"], "data": objects("a", 2)}) == (
        objects("a", 2),
        ("labels",),
    )  # as long, by chance
    assert table({"train": objects("a", 2), "labels": objects("b", 2)})[1] == ("labels",)


def test_lists_of_objects_are_never_joined_into_rows() -> None:
    rows, _ = table({"documents 1": objects("a", 2), "documents 2": objects("b", 2)})
    assert rows == [{"documents 1": objects("a", 2), "documents 2": objects("b", 2)}]


def test_what_pandas_writes_beside_its_rows_is_not_named() -> None:
    rows, left_out = table({"columns": ["text"], "index": [0, 1], "data": [["One."], ["Two."]]})
    assert (rows, left_out) == ([{"text": "One."}, {"text": "Two."}], ())
    schema = {"fields": [], "pandas_version": "1.4.0"}
    assert table({"schema": schema, "data": objects("a", 2)}) == (objects("a", 2), ())


def test_a_query_with_lists_of_answers_is_one_row() -> None:
    row = {"query": "A question?", "pos": ["A.", "B."], "neg": ["C.", "D."]}
    assert table(row) == ([row], ())
    assert table({"query": ["A?", "B?"], "pos": [["A."], ["B."]]}) == (
        [{"query": "A?", "pos": ["A."]}, {"query": "B?", "pos": ["B."]}],
        (),
    )


def test_of_a_row_in_an_envelope_nothing_is_lost() -> None:
    assert table({"rows": [{"row_idx": 0, "row": {"text": "One."}}]})[0] == [{"text": "One."}]
    beside = [{"row": {"text": "One."}, "label": 1}]
    assert table({"rows": beside})[0] == beside
