"""Texts packed into one short word for an address: JSON, compressed by deflate, written in base64 for addresses.

Whoever opens a link unpacks what somebody else has written: a small word could hold a text of many megabytes. So no more is
ever unpacked than the limit, and nothing but texts is accepted.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

MOST_BYTES = 256 << 10  # of unpacked texts: several times what a page takes
MOST_TEXTS = 10_000  # of all keys together, which are no more than these
_FORMAT = "1"  # the first character of each word, so that a later format can tell this one
_RAW = -15  # deflate without zlib's header and checksum: 6 bytes less


def pack(texts: Mapping[str, Sequence[str]]) -> str:
    """Keys and their texts as one word of letters, digits, "-" and "_"."""
    plain = json.dumps({key: list(values) for key, values in texts.items()}, ensure_ascii=False, separators=(",", ":"))
    deflate = zlib.compressobj(9, wbits=_RAW)
    packed = deflate.compress(plain.encode(errors="replace")) + deflate.flush()
    return _FORMAT + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def unpack(word: str) -> dict[str, list[str]]:
    """The keys and texts of a word. Raises ValueError if it is damaged or holds more than MOST_BYTES or MOST_TEXTS."""
    if len(word) > MOST_BYTES or not re.fullmatch(rf"{_FORMAT}[A-Za-z0-9_-]+", word):
        raise ValueError("it is damaged")
    inflate = zlib.decompressobj(wbits=_RAW)
    try:
        packed = base64.urlsafe_b64decode(word[1:] + "=" * (-len(word[1:]) % 4))
        plain = inflate.decompress(packed, MOST_BYTES + 1)
    except (binascii.Error, zlib.error) as problem:
        raise ValueError("it is damaged") from problem
    if len(plain) > MOST_BYTES:
        raise ValueError(f"it holds more than {MOST_BYTES >> 10} kB")
    if not inflate.eof or inflate.unused_data:
        raise ValueError("it is damaged")
    try:
        found = json.loads(plain.decode())
    except (ValueError, RecursionError) as problem:  # also of a number with thousands of digits
        raise ValueError("it is damaged") from problem
    if not isinstance(found, dict) or not all(map(_is_texts, found.values())):
        raise ValueError("it is damaged")
    if len(found) + sum(map(len, found.values())) > MOST_TEXTS:
        raise ValueError(f"it holds more than {MOST_TEXTS:,} texts")
    texts: dict[str, list[str]] = valid(found)
    return texts


def valid(content: Any) -> Any:
    """What JSON held, with valid Unicode only: half a character, which JSON can write, would end whatever sends it on.

    Invalid characters of texts and keys become U+FFFD.
    """
    if isinstance(content, str):
        return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(content, list):
        return [valid(item) for item in content]
    if isinstance(content, dict):
        return {valid(key): valid(item) for key, item in content.items()}
    return content


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
