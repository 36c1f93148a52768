"""Vectors of length 1 and cosines: one rule for vectors without a direction."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from components.arrays import cosine, read_arrays, unit, wilson


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_directions_have_length_1_and_keep_their_precision(kind):
    vectors = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(kind)
    directions = unit(vectors)
    assert directions.dtype == kind
    np.testing.assert_allclose(np.linalg.norm(directions, axis=-1), 1, rtol=1e-6)
    np.testing.assert_allclose(directions[0, 0], vectors[0, 0] / np.sqrt((vectors[0, 0] ** 2).sum()), rtol=1e-6)
    np.testing.assert_allclose(unit(np.array([3, 4], kind)), [0.6, 0.8], rtol=1e-6)


def test_a_zero_vector_stays_zero_and_a_missing_one_missing():
    vectors = np.array([[0.0, 0.0], [np.nan, 1.0], [3.0, 4.0]])
    np.testing.assert_allclose(unit(vectors), [[0, 0], [np.nan, np.nan], [0.6, 0.8]])
    np.testing.assert_allclose(cosine(vectors, [3.0, 4.0]), [0, np.nan, 1])
    assert cosine([0.0, 0.0], [0.0, 0.0]) == 0


@pytest.mark.parametrize(("share", "count"), [(0.0, 50), (0.3, 10), (0.97, 200), (1.0, 100)])
def test_wilsons_interval_equals_scipys(share, count):
    theirs = binomtest(round(share * count), count).proportion_ci(0.95, "wilson")
    low, high = wilson(np.array([share]), count)
    np.testing.assert_allclose((low[0], high[0]), theirs, atol=1e-12)


def test_a_share_of_nothing_has_no_interval():
    with pytest.raises(ValueError, match="no case"):
        wilson(np.array([0.5]), 0)


def archive_of(compression: int = zipfile.ZIP_STORED, **entries: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, entry in entries.items():
            archive.writestr(f"{name}.npy", entry)
    return content.getvalue()


def entry_of(array: Any, shape: tuple[int, ...] | None = None) -> bytes:
    """A .npy file of an array, whose header can say another shape."""
    content = io.BytesIO()
    array = np.asarray(array)
    header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape or array.shape}
    np.lib.format.write_array_header_1_0(content, header)
    return content.getvalue() + array.tobytes()


def test_arrays_of_a_file_are_read_within_their_limit():
    content = archive_of(a=entry_of(np.arange(6.0).reshape(2, 3)), b=entry_of("text"))
    found = read_arrays(content, 1_000)
    assert found["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert str(found["b"]) == "text"
    for wrong, said in (
        (archive_of(zipfile.ZIP_DEFLATED, a=entry_of(np.zeros(5_000_000))), "take more than"),
        (archive_of(a=entry_of([1.0], (10**12,))), "announces more than it has"),
        (archive_of(a=entry_of(np.array([None]))), "announces more than it has"),
        (archive_of(a=b"no array"), "magic string"),
        (archive_of(**{f"a{number}": entry_of([1.0]) for number in range(17)}), "17 arrays"),
        (content[:-20], "not a zip file"),
        (b"", "not a zip file"),
    ):
        with pytest.raises(ValueError, match=said):
            read_arrays(wrong, 1 << 20)
