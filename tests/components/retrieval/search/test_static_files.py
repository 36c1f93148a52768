"""Files of word vectors as people bring them: gzipped, broken, with a header or a mark in front."""

from __future__ import annotations

import gzip

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
