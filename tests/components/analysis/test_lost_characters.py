"""Which characters do not come back: by kind, in several families, against what decoding gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from components.analysis.lost_characters import LostCharacters, lost_characters
from components.model.backend import Backend


def lost(backend: Backend, text: str, **options: int) -> LostCharacters:
    (sentence,) = backend.tokenize([text], **options)
    decoded = backend.tokenization.decode([token.id for token in sentence.tokens], skip_special=True)
    return lost_characters(sentence, decoded, backend.tokenization.unknown_id)


def letters(text: str, places: frozenset[int]) -> str:
    return "".join(text[place] for place in sorted(places))


@pytest.mark.parametrize(
    ("text", "capitals", "accents", "unknown", "others"),
    [
        ("all of it comes back", "", "", "", ""),
        ("The Bank", "TB", "", "", ""),
        ("São Paulo costs 3,499.50", "SP", "ã", "", ""),
        ("Élan and ÅNGSTRÖM", "ÉÅNGSTRÖM", "", "", ""),
        ("a 😀 and 😀!", "", "", "😀😀", ""),
        ("unbelievably Unbelievably", "U", "", "", ""),
        ("zero\u200bwidth", "", "", "", "\u200b"),
    ],
)
def test_what_does_not_come_back(
    embedded: Backend, text: str, capitals: str, accents: str, unknown: str, others: str
) -> None:
    found = lost(embedded, text)
    assert letters(text, found.capitals) == capitals
    assert letters(text, found.accents) == accents
    assert letters(text, found.unknown) == unknown
    assert letters(text, found.others) == others
    assert len(found.all) == len(capitals + accents + unknown + others)


def test_what_was_cut_off_is_not_counted(embedded: Backend) -> None:
    text = "One Two Three Four"
    assert letters(text, lost(embedded, text, max_length=4).all) == "OT"


@pytest.mark.parametrize("family", ["roberta", "modernbert", "deberta-v2", "albert"])
def test_families_that_keep_the_text_lose_nothing(family: str, tiny_folder: Callable[[str], Path]) -> None:
    backend = Backend.load(str(tiny_folder(family)))
    text = "the cat sat"
    (sentence,) = backend.tokenize([text])
    decoded = backend.tokenization.decode([token.id for token in sentence.tokens], skip_special=True)
    found = lost_characters(sentence, decoded, backend.tokenization.unknown_id)
    if decoded.strip() == text:
        assert not found.all
    else:  # whatever is lost, it is a character of the text that is no space
        assert all(not text[place].isspace() for place in found.all)
