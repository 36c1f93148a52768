"""What crosses between dashboards and the model server: equal values on the other side, and nothing else."""

from __future__ import annotations

import io
import json
import math
import pickle
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.distributed.messages import KINDS, RECORDS, TraceRequest, packed, size_of, unpacked
from components.errors import DatasetError, InputError, ModelError
from components.model.backend import Backend
from components.model.embedding.options import EmbedOptions, EmbedReport
from components.model.trace import Dropped, MaskLogits, Token, TokenizedSentence, Trace, TraceOptions
from components.retrieval.corpora.rows.roles import UnclearColumns
from tests.support.tiny import save_tiny


def message_of(value: Any) -> bytearray:
    return bytearray().join(packed(value))


def crossed(value: Any) -> Any:
    return unpacked(message_of(value))


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_same(*pair)
    elif type(one).__name__ in RECORDS:
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


VALUES = [
    None, True, False, 0, -(2**70), 1.5, float("inf"), "", "Ünï\ud800\0", [], (), [1, (2, [None])],
    TraceRequest("m", ("a", "b"), ("c", None), TraceOptions(attentions=True, max_length=7)),
    EmbedOptions((0, 6), ("mean", "cls"), 256, "float32", "query: "),
    EmbedReport(12, 3),
    Dropped("x", 1, 2, True),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_small_values_cross(value: Any) -> None:
    assert_same(value, crossed(value))


def test_no_number_crosses_as_itself_and_numbers_of_numpy_as_pythons() -> None:
    assert math.isnan(crossed(float("nan")))
    assert_same([3, 0.5, True], crossed([np.int64(3), np.float32(0.5), np.bool_(True)]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 5), (3, 1, 7)])
def test_arrays_cross(kind: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(1).integers(0, 2, shape).astype(kind)
    first, second = crossed((array, {"f": array}["f"]))
    for found in (first, second):
        assert_same(array, found)
        assert not found.flags.writeable
        assert found.flags.aligned
    assert_same(np.ascontiguousarray(array.T), crossed(array.T))


def test_a_trace_crosses_whole(tmp_path: Path) -> None:
    backend = Backend.load(str(save_tiny(tmp_path / "m")))
    trace = backend.run(["the cat sat", "a dog"], ["on", None], TraceOptions(attentions=True))
    trace = replace(trace, mask_logits=MaskLogits(((0, 1), (1, 2)), np.ones((2, 5), np.float32)))
    assert isinstance(trace.sentences[0], TokenizedSentence)
    assert isinstance(trace.sentences[0].tokens[0], Token)
    found = crossed(("answer", trace))[1]
    assert isinstance(found, Trace)
    assert_same(trace, found)


def test_errors_for_people_cross() -> None:
    for problem in (
        InputError("a.", "b.", "c."),
        ModelError("offline", "a.", "b.", "c."),
        DatasetError("gated", "a.", "b.", "c."),
    ):
        found = crossed(problem)
        assert type(found) is type(problem)
        assert vars(found) == vars(problem)
    found = crossed(UnclearColumns("f.csv", ()))  # one of a kind that the other side may not know
    assert type(found) is InputError
    assert found.problem.startswith("f.csv has 0 columns")


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, {"a": 1}, b"bytes", np.array([object()]), np.array(["a"]), len, Exception("x"), 1j],
    ids=["object", "set", "dict", "bytes", "objects", "texts", "function", "exception", "complex"],
)
def test_other_values_do_not_cross(value: Any) -> None:
    with pytest.raises(TypeError, match="do not cross"):
        packed((1, [value]))


def test_a_type_with_the_name_of_a_record_does_not_cross() -> None:
    class Token:
        position = 1

    with pytest.raises(TypeError, match="values of Token do not cross"):
        packed(Token())


def plain(content: Any, rest: bytes = b"") -> bytes:
    text = json.dumps(content).encode()
    return len(text).to_bytes(8, "little") + text + bytes(-(8 + len(text)) % 64) + rest


class Exploding:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (io.open, ("/dev/null",))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff" * 8,
        b"\xff" * 200,
        bytes(8),
        pickle.dumps(Exploding()),
        plain({"array": ["<f4", 10]}),
        plain({"array": ["<f4", 2**62, 2**62]}, bytes(64)),  # whose product is 0 in 64 bits
        plain({"array": ["<f4", -1]}, bytes(64)),
        plain({"array": ["<f4", 2.0]}, bytes(64)),
        plain({"array": ["<f4", True]}, bytes(64)),
        plain({"array": ["|O", 1]}, bytes(64)),
        plain({"array": []}),
        plain({"record": ["object"]}),
        plain({"record": ["EmbedReport", 1]}),
        plain({"record": ["EmbedReport", 1, 2, 3]}),
        plain({"record": []}),
        plain({"error": ["SystemExit", "a", "b", "c"]}),
        plain({"error": ["InputError", "a"]}),
        plain({"tuple": 5}),
        plain({"a": 1, "b": 2}),
        plain({}),
        plain({"eval": "1"}),
        b"\x10\0\0\0\0\0\0\0" + b"not JSON at all!",
        plain(None)[:9],
        (200_000).to_bytes(8, "little") + b"[" * 200_000,
        plain({"record": ["Trace", *[None] * 12]}),
    ],
)
def test_other_messages_are_refused(message: bytes) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        unpacked(message)
    assert not isinstance(refused.value, InputError)


def test_changed_messages_are_read_or_refused() -> None:
    """Of one who knows the secret and has other code; a seal refuses what anybody else changed."""
    whole = bytes(message_of(("vectors", ("m", ["a", "b"], VALUES[13], np.ones((2, 3), np.float32)))))
    draw = np.random.default_rng(20_261_125)
    refused = 0
    for _ in range(3_000):
        changed = bytearray(whole)
        for _ in range(draw.integers(1, 5)):
            changed[draw.integers(len(changed))] = draw.integers(256)
        try:
            unpacked(changed[: draw.integers(len(changed) + 1)] if draw.random() < 0.3 else changed)
        except ValueError:
            refused += 1
    assert 500 < refused < 3_000


def test_the_size_of_a_message_is_known_before_it_is_made() -> None:
    parts = packed([np.ones(1_000, np.float32), "text"])
    assert size_of(parts) == len(message_of([np.ones(1_000, np.float32), "text"]))
