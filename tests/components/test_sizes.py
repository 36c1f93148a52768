"""Sizes in bytes are read, and refused with the name of the variable that has to be set."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from components.errors import InputError
from components.model import loader, store
from components.retrieval.corpora.readers import limits
from components.retrieval.index import cache
from components.sizes import in_words, memory_of, parse_bytes
from tests.support.places import ROOT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1073741824", 1 << 30),
        ("512M", 512 << 20),
        ("512m", 512 << 20),
        ("512MB", 512 << 20),
        ("512 MiB", 512 << 20),
        ("2 GiB", 2 << 30),
        ("2G", 2 << 30),
        ("1.5K", 1536),
        (" 7 B ", 7),
        ("1e3", 1000),
    ],
)
def test_sizes_are_read(text, expected):
    assert parse_bytes(text, "SOME_BYTES") == expected


@pytest.mark.parametrize(
    "text", ["", " ", "B", "G", "0", "0.4", "-1G", "1T", "ten", "1 2", "nan", "inf", "1e999", "½G"]
)
def test_sizes_that_cannot_be_read(text):
    with pytest.raises(InputError) as caught:
        parse_bytes(text, "SOME_BYTES")
    assert repr(text) in caught.value.problem
    assert "SOME_BYTES" in caught.value.fix


@pytest.mark.parametrize(
    ("variable", "read"),
    [
        ("BERT_INTERNALS_TRACE_BYTES", store.configured_bytes),
        ("BERT_INTERNALS_MODEL_BYTES", loader.configured_bytes),
        ("BERT_INTERNALS_CACHE_BYTES", cache.cache_limit),
        ("BERT_INTERNALS_CORPUS_BYTES", limits.browser_limits),
    ],
)
def test_the_error_names_the_variable_that_was_read(monkeypatch, variable, read):
    monkeypatch.setenv(variable, "lots")
    with pytest.raises(InputError) as caught:
        read()
    assert "'lots'" in caught.value.problem
    assert f"Set {variable} to" in caught.value.fix


def test_the_memory_of_a_value_counts_what_it_holds_once() -> None:
    @dataclass
    class Record:
        array: np.ndarray
        texts: tuple[str, ...]
        inner: object = None

    array, long = np.zeros(100_000, np.float32), "x" * 50_000
    one = memory_of(Record(array, (long,)))
    assert 450_000 <= one <= 455_000
    assert memory_of(Record(array, (long,), Record(array, ()))) <= one + 2_000  # the same array
    assert memory_of({"a": [b"y" * 70_000], 3: {"b"}}) >= 70_000
    assert memory_of([Record(array.copy(), ()) for _ in range(3)]) >= 1_200_000
    holds_itself: list[object] = []
    holds_itself.append(holds_itself)
    assert memory_of(holds_itself) < 200
    assert memory_of(np) < 200  # a module is nobody's


def test_an_array_of_a_file_takes_no_memory_of_its_own(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", np.zeros(100_000))
    assert memory_of(np.load(tmp_path / "array.npy", mmap_mode="r")) < 1_000


def test_the_size_of_texts_is_what_they_take() -> None:
    texts = tuple(f"Sentence number {number}." for number in range(1_000))
    assert memory_of(texts) == pytest.approx(sum(map(sys.getsizeof, texts)), rel=0.2)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (999.5, "1.00 kB"),
        (1_000, "1.00 kB"),
        (1_536, "1.54 kB"),
        (9_994, "9.99 kB"),
        (9_996, "10.0 kB"),
        (99_960, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (12_345_678, "12.3 MB"),
        (2_000_000_000, "2.00 GB"),
        (3_400_000_000_000, "3.40 TB"),
        (1_234_000_000_000_000, "1,234 TB"),
    ],
)
def test_a_size_is_said_in_the_unit_that_leaves_it_three_digits(count, text):
    assert in_words(count) == text


def test_what_is_known_to_whole_megabytes_has_no_decimals():
    assert [in_words(1e6 * size, about=True) for size in (1, 30, 547, 1_884)] == ["1 MB", "30 MB", "547 MB", "1.88 GB"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999 bytes"), (1_000, "0.98 KiB"), (1 << 20, "1.00 MiB"), (85 << 20, "85.0 MiB"), (3 << 29, "1.50 GiB")],
)
def test_memory_is_counted_by_1024(count, text):
    assert in_words(count, binary=True) == text


# How a file says that it makes the unit of a size itself; one more would say "0.00 GB" of something small.
DIVISION = re.compile(r"/ ?1e[69]\b|/ ?2 ?\*\* ?[23]0|/ ?\(1 ?<< ?[23]0\)")
ALLOWED = {
    "components/retrieval/index/cost.py",  # money
    "components/retrieval/search/static_vectors.py",  # the same limit always
    "components/numbers.py",  # a large number in words
    "dashboard/ui/wording.py",  # a number of parameters, where there is little room
    "dashboard/views/evaluate/compare.py",  # the area of a mark
    "dashboard/views/evaluate/run_table.py",  # a column, whose title has the unit
}


def test_no_other_code_chooses_the_unit_of_a_size():
    files = [path for folder in ("components", "dashboard") for path in (ROOT / folder).rglob("*.py")]
    found = {path.relative_to(ROOT).as_posix() for path in files if DIVISION.search(path.read_text(encoding="utf-8"))}
    assert found == ALLOWED


def test_mb_has_one_meaning():
    """A million bytes. What is counted by 1,024, memory and limits, is said in MiB."""
    assert in_words(200 << 20, binary=True) == "200 MiB"
    assert (in_words(200e6), in_words(200e6, about=True)) == ("200 MB", "200 MB")


def test_no_size_above_nothing_is_said_as_nothing():
    counts = {round(1.01**power) for power in range(3_500)}
    for count in counts:
        number = float(in_words(count).split()[0].replace(",", ""))
        assert number >= 1
        assert number < 1_000 or count > 1e15
