"""Texts packed for an address: they come back as they were, and nothing large or strange is unpacked."""

from __future__ import annotations

import base64
import json
import re
import tracemalloc
import zlib
from typing import Any

import pytest

from components import packing

TEXTS = {"s": ["A & b = c?", "日本語 😀", 'quotes " and <b>', ""], "q": ["line\nbreak\0"], "none": []}


def packed(content: bytes) -> str:
    """Any bytes as a word of the format."""
    deflate = zlib.compressobj(9, wbits=-15)
    return "1" + base64.urlsafe_b64encode(deflate.compress(content) + deflate.flush()).decode().rstrip("=")


def test_texts_come_back_as_they_were() -> None:
    word = packing.pack(TEXTS)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", word)
    assert packing.unpack(word) == TEXTS
    assert packing.pack({"s": ["half \ud83d emoji"]}) == packing.pack({"s": ["half ? emoji"]})  # no valid text


def test_a_text_of_sentences_becomes_shorter() -> None:
    texts = {"s": [f"The {number}th sentence is about a river and a bank." for number in range(200)]}
    assert len(packing.pack(texts)) < len(json.dumps(texts)) / 5


def test_no_more_than_the_limit_is_ever_unpacked() -> None:
    bomb = packed(b'{"s":["' + b"a" * (64 << 20) + b'"]}')
    assert len(bomb) < 100_000
    tracemalloc.start()
    with pytest.raises(ValueError, match="more than 256 kB"):
        packing.unpack(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * packing.MOST_BYTES
    room = packing.MOST_BYTES - len('{"s":[""]}')
    assert packing.unpack(packed(json.dumps({"s": ["a" * room]}, separators=(",", ":")).encode()))
    with pytest.raises(ValueError, match="more than"):
        packing.unpack(packed(json.dumps({"s": ["a" * (room + 1)]}, separators=(",", ":")).encode()))


@pytest.mark.parametrize(
    "word",
    [
        *(
            "",
            "1",
            "1!!!!",
            "2" + packing.pack(TEXTS)[1:],
            packing.pack(TEXTS)[:-4],
            packing.pack(TEXTS) + "AAAA",
            "1A",
        ),
        *(
            packed(b"no json"),
            packed(b"\xff\xfe"),
            packed(b"[" * 200_000),
            packed(b'["s"]'),
            packed(b'{"s":"a"}'),
        ),
        packed(b'{"s":' + b"9" * 5_000 + b"}"),
        *(packed(b'{"s":[1]}'), packed(b'{"s":[["a"]]}'), packed(b"")),
    ],
)
def test_what_is_damaged_or_no_text_is_refused(word: Any) -> None:
    with pytest.raises(ValueError, match=r"^it is damaged$"):
        packing.unpack(word)


def test_half_a_character_becomes_a_whole_one() -> None:
    word = packed(b'{"s\\udfff":["\\ud800", "whole \\ud83d\\ude00"]}')
    found = packing.unpack(word)
    assert found == {"s\ufffd": ["\ufffd", "whole \U0001f600"]}
    assert packing.valid({"a": ["\ud800", {"b": "\udfff"}], "c": 1.5, "d": None}) == {
        "a": ["\ufffd", {"b": "\ufffd"}],
        "c": 1.5,
        "d": None,
    }


def test_a_word_holds_no_more_texts_than_a_page_could_use() -> None:
    many = {"s": ["a"] * (packing.MOST_TEXTS - 1)}
    assert packing.unpack(packing.pack(many)) == many
    for content in ({"s": ["a"] * packing.MOST_TEXTS}, {f"k{at}": [] for at in range(packing.MOST_TEXTS + 1)}):
        with pytest.raises(ValueError, match="more than 10,000 texts"):
            packing.unpack(packing.pack(content))
