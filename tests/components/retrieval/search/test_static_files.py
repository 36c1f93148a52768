"""Files of word vectors as people bring them: gzipped, broken, with a header or a mark in front."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pytest

from components.errors import InputError
from components.retrieval.search import static_vectors
from components.retrieval.search.static_vectors import read_static_vectors

PLAIN = b"cat 1 2 3\ndog 3 2 1\n"


@pytest.mark.parametrize(
    "content",
    [PLAIN, b"2 3\n" + PLAIN, b"\xef\xbb\xbf2 3\n" + PLAIN, b"\n2 3\n" + PLAIN, gzip.compress(PLAIN, mtime=0)],
)
def test_a_header_a_mark_and_gzip_do_no_harm(content):
    found = read_static_vectors(content, "vectors.txt")
    assert found.matrix.tolist() == [[1, 2, 3], [3, 2, 1]]
    assert found.bad_lines == 0


@pytest.mark.parametrize("content", [gzip.compress(PLAIN, mtime=0)[:-6], b"\x1f\x8b nonsense"])
def test_a_broken_archive_is_said(content):
    with pytest.raises(InputError, match="could not be read"):
        read_static_vectors(content, "vectors.gz")


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(static_vectors, "MAX_BYTES", 1_000)
    with pytest.raises(InputError, match="GB of text"):
        read_static_vectors(gzip.compress(PLAIN * 1_000, mtime=0), "vectors.gz")


@pytest.mark.parametrize("numbers", [static_vectors.MOST_NUMBERS + 1, 500_000])
def test_a_line_of_far_too_many_numbers_is_refused(numbers):
    with pytest.raises(InputError, match=f"vectors of {numbers:,} numbers"):
        read_static_vectors(b"w" + b" 0" * numbers + b"\n", "wide.txt")


def test_the_widest_vectors_keep_only_their_own_memory():
    found = read_static_vectors(b"w" + b" 0" * static_vectors.MOST_NUMBERS + b"\n", "wide.txt")
    assert found.matrix.shape == (1, static_vectors.MOST_NUMBERS)
    assert found.matrix.base is None


@pytest.mark.parametrize("words", [1, 3, 4, 8, 9])
def test_each_vector_is_that_of_its_line(words):
    numbers = np.random.default_rng(0).normal(size=(words, 5)).astype(np.float32)
    lines = [f"w{row} {' '.join(map(repr, map(float, vector)))}" for row, vector in enumerate(numbers)]
    found = read_static_vectors("\n".join(lines).encode(), "vectors.txt")
    np.testing.assert_array_equal(found.matrix, numbers)
    assert list(found.rows) == [f"w{row}" for row in range(words)]


PEAK = """
import sys
from pathlib import Path
from components.retrieval.search.static_vectors import read_static_vectors
def peak():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM:"))
before = peak()
matrix = read_static_vectors(Path(sys.argv[1]), "vectors.txt").matrix
print((peak() - before) / matrix.nbytes)
"""


def test_vectors_are_never_held_twice(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"".join(b"w%d" % row + b" 1" * 1_000 + b"\n" for row in range(6_000)))  # 24 MB of vectors
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1.5  # 2 and more if they were
