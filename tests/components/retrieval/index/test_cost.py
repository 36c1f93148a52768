"""The plan of a large index: sizes of files that were written, and sums done by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.errors import InputError
from components.model.backend import Backend
from components.retrieval.corpora.corpus import read_corpus
from components.retrieval.index.build import build_index
from components.retrieval.index.cost import Prices, Rate, cost, sentence_counts, vector_bytes


def test_hours_bytes_and_money_are_those_of_a_sum_by_hand() -> None:
    plan = cost(7_200_000, 100, 2, 3, Rate(500, 42), machines=2, prices=Prices(1.5, 0.1))
    assert plan.hours == 2.0
    assert plan.text_bytes == 7_200_000 * 50
    assert plan.vector_bytes == {
        "float32": 7_200_000 * 6 * 404,
        "float16": 7_200_000 * 6 * 204,
        "int8": 7_200_000 * 6 * 104,
        "pq": 7_200_000 * 6 * 29,
    }
    assert plan.money_once == pytest.approx(2 * 2 * 1.5)
    assert plan.money is not None
    assert plan.money["int8"] == pytest.approx(6 + (7.2 * 6 * 104 + 360) * 1e-3 * 0.1)
    assert cost(10, 100, 1, 1, Rate(1, 1)).money is None


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_bytes_are_those_of_an_index_on_the_disk(embedded: Backend, tmp_path: Path, dtype: Any) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("".join(f"Sentence {number} of a small corpus.\n" for number in range(200)))
    options = embedded.embed_options([0, 6], ["mean", "cls"])
    folder = build_index(embedded, read_corpus(file, file.name, limits=None), tmp_path / "index", options, dtype).folder
    written = sum(path.stat().st_size for path in folder.glob("*.npy"))
    headers = 128 * len(list(folder.glob("*.npy")))
    plan = cost(200, 384, 2, 2, Rate(1, file.stat().st_size / 200 - 1))
    texts = sum(path.stat().st_size for path in folder.glob("texts*"))
    assert written - headers <= plan.vector_bytes[dtype] + plan.text_bytes <= written + texts
    assert vector_bytes(384, dtype) * 4 * 200 == plan.vector_bytes[dtype]


@pytest.mark.parametrize(
    "numbers", [["0"], ["1.5"], ["ten"], ["inf"], ["nan"], ["-3"], ["1e8", ""], ["1,5"], ["1_5"], ["1,0000"]]
)
def test_a_count_that_is_none_is_refused(numbers: list[str]) -> None:
    with pytest.raises(InputError, match="not a number of sentences"):
        sentence_counts(numbers)


def test_counts_are_read_as_people_write_them() -> None:
    assert sentence_counts(["1e8", "10,000,000", "250_000", "7"]) == [100_000_000, 10_000_000, 250_000, 7]


def test_numbers_that_make_no_plan_are_refused() -> None:
    for arguments in (
        (0, Rate(1, 1), 1, None),
        (1, Rate(0, 1), 1, None),
        (1, Rate(float("nan"), 1), 1, None),
        (1, Rate(float("inf"), 1), 1, None),
        (1, Rate(1, 1), 1, Prices(1, float("nan"))),
        (1, Rate(1, 1), 0, None),
        (1, Rate(1, 1), 1, Prices(-1, 0)),
    ):
        sentences, rate, machines, prices = arguments
        with pytest.raises(InputError):
            cost(sentences, 8, 1, 1, rate, machines, prices)
