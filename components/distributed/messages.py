"""What crosses between a dashboard and the model server, as bytes: JSON for the small values, and arrays as they are.

    8 bytes: the length of the JSON | JSON | arrays, each from a multiple of 64 bytes on

A value is None, a number, a text, a list, a tuple, an array of one of the KINDS, a record of RECORDS, or an error for people.
Nothing is unpickled and nothing is looked up by a name that came: what is not in these tables is refused. Both sides must
have the same records, so that `LAYOUT` is part of the version that they compare first (direct.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from components.arrays import read_only
from components.errors import DatasetError, InputError, ModelError, UserError
from components.model.embedding.options import EmbedOptions, EmbedReport
from components.model.trace import (
    Dropped,
    EmbeddingParts,
    MaskLogits,
    Token,
    TokenizedSentence,
    Trace,
    TraceOptions,
)

_ALIGNED = 64  # bytes: every number of an array lies where the processor reads it fastest
_LENGTH = 8


@dataclass(frozen=True)
class TraceRequest:
    """The texts of one trace, and what it is to contain."""

    model: str
    texts: tuple[str, ...]
    pairs: tuple[str | None, ...] | None
    options: TraceOptions

    @property
    def lengths(self) -> list[int]:
        """The characters of each sentence, and some for its special tokens: roughly in proportion to its tokens."""
        pairs = self.pairs or [None] * len(self.texts)
        return [len(text) + len(pair or "") + 10 for text, pair in zip(self.texts, pairs, strict=True)]

    @property
    def can_be_joined(self) -> bool:
        """Whether it may share a pass with others of the same model and options."""
        return not (self.options.attentions or self.options.mask_logits)


_RECORD_TYPES = (
    TraceRequest,
    TraceOptions,
    Trace,
    TokenizedSentence,
    Token,
    Dropped,
    EmbeddingParts,
    MaskLogits,
    EmbedOptions,
    EmbedReport,
)
# Each record that may cross with the names of its values, by its own name.
RECORDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    kind.__name__: (kind, tuple(field.name for field in fields(kind) if field.init)) for kind in _RECORD_TYPES
}
ERRORS: dict[str, type[UserError]] = {kind.__name__: kind for kind in (UserError, InputError, ModelError, DatasetError)}
KINDS = {kind: np.dtype(kind) for kind in ("<f8", "<f4", "<f2", "<i8", "<i4", "|i1", "|u1", "|b1")}
LAYOUT = hashlib.sha256(
    json.dumps([[name, *names] for name, (_, names) in RECORDS.items()] + [[*ERRORS], [*KINDS]]).encode()
).digest()[:8]


def packed(value: Any) -> list[bytes | memoryview]:
    """The bytes of a value in parts, which one behind the other are its message. Raises TypeError for other values."""
    arrays: list[np.ndarray] = []
    text = json.dumps(_plain(value, arrays)).encode()  # ASCII: half characters keep their own escapes
    parts: list[bytes | memoryview] = [len(text).to_bytes(_LENGTH, "little"), text, _gap(_LENGTH + len(text))]
    for array in arrays:
        parts += [array.reshape(-1).view(np.uint8).data, _gap(array.nbytes)]
    return parts


def size_of(parts: Sequence[bytes | memoryview]) -> int:
    """Bytes of a message."""
    return sum(len(part) for part in parts)


def unpacked(message: bytes | bytearray) -> Any:
    """The value of a message; its arrays are read-only parts of the message. Raises ValueError for any other content."""
    try:
        length = int.from_bytes(message[:_LENGTH], "little")
        start = _LENGTH + length
        if len(message) < start:
            raise ValueError("it is too short")
        plain = json.loads(message[_LENGTH:start].decode("ascii"))
        return _MessageReader(message, start + len(_gap(start))).value(plain)
    except (TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as problem:
        raise ValueError(f"no message of a model server or a dashboard ({type(problem).__name__})") from problem


def _gap(size: int) -> bytes:
    """The zeros between what takes so many bytes and the next array."""
    return bytes(-size % _ALIGNED)


def _plain(value: Any, arrays: list[np.ndarray]) -> Any:
    """The value as JSON holds it: whatever JSON does not know is an object with one key, which says what it is."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.str not in KINDS:
            raise TypeError(f"arrays of {value.dtype} do not cross")
        arrays.append(np.ascontiguousarray(value))
        return {"array": [value.dtype.str, *value.shape]}
    if isinstance(value, list):
        return [_plain(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_plain(item, arrays) for item in value]}
    if isinstance(value, UserError):
        kind = next(each for each in type(value).__mro__ if ERRORS.get(each.__name__) is each)
        sentences = [value.problem, value.expected, value.fix]
        return {"error": [kind.__name__, *([value.kind] if isinstance(value, ModelError) else []), *sentences]}
    name = type(value).__name__
    kind, names = RECORDS.get(name, (None, ()))
    if type(value) is not kind:
        raise TypeError(f"values of {name} do not cross")
    return {"record": [name, *(_plain(getattr(value, each), arrays) for each in names)]}


class _MessageReader:
    """Values of a message, whose arrays begin at `position` and come in the order in which they are asked for."""

    def __init__(self, message: bytes | bytearray, position: int) -> None:
        self._message, self._position = message, position

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        ((tag, content),) = plain.items()
        if tag == "array":
            return self._array(content[0], tuple(content[1:]))
        if tag == "tuple":
            return tuple(self.value(item) for item in content)
        name, *values = content
        if tag == "error":
            return ERRORS[name](*map(str, values))
        if tag != "record":
            raise KeyError(tag)
        kind, names = RECORDS[name]
        if len(values) != len(names):
            raise ValueError(f"{name} has {len(names)} values, not {len(values)}")
        return kind(**dict(zip(names, map(self.value, values), strict=True)))

    def _array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        kind = KINDS[name]
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError("a shape consists of numbers from 0 on")
        count = 1
        for size in shape:  # Python's own numbers, which have no largest
            count *= size
        nbytes = count * kind.itemsize
        if nbytes > len(self._message) - self._position:
            raise ValueError("an array is longer than its message")
        array = np.frombuffer(self._message, kind, count, self._position) if count else np.empty(0, kind)
        self._position += nbytes + len(_gap(nbytes))
        return read_only(array.reshape(shape))
