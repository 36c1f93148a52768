"""Which characters do not come back: by kind, in several families, against what decoding gives."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from components.analysis.lost_characters import LostCharacters, lost_characters
from components.model.backend import Backend
from components.model.trace import Dropped
from tests.components.analysis.handmade import sentence


def lost(backend: Backend, text: str, **options: int) -> LostCharacters:
    (read,) = backend.tokenize([text], **options)
    decoded = backend.tokenization.decode([token.id for token in read.tokens], skip_special=True)
    return lost_characters(read, decoded, backend.tokenization.unknown_id)


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


def test_a_tokenizer_of_bytes_loses_nothing_of_what_it_reads() -> None:
    """Its pieces are no letters, but what it decodes is the text, or the beginning that was read."""
    pieces = [("the", 0, 0, 3), ("caf\u00c3\u00a9", 1, 4, 8)]
    assert not lost_characters(sentence("the caf\u00e9", pieces), "the caf\u00e9", None).all
    cut = (Dropped(" is open", 8, 2, False),)
    assert not lost_characters(sentence("the caf\u00e9 is open", pieces, dropped=cut), "the caf\u00e9", None).all


def test_a_tokenizer_without_a_word_for_it_loses_the_whole_word(tiny_folder: Callable[[str], Path]) -> None:
    backend = Backend.load(str(tiny_folder("bert")))
    assert letters("the zebra sat", lost(backend, "the zebra sat").unknown) == "zebra"


def test_of_a_pair_each_text_has_its_own(embedded: Backend) -> None:
    """A pair's second text is read from its own tokens: the same characters as when it is read alone."""
    read = embedded.tokenize(["The Bank"], ["São Paulo 😀 Two Three"], max_length=9)[0]
    unknown = embedded.tokenization.unknown_id

    def of(of_pair: bool) -> LostCharacters:
        ids = [token.id for token in read.tokens if token.in_pair == of_pair]
        return lost_characters(read, embedded.tokenization.decode(ids, skip_special=True), unknown, of_pair)

    assert letters("The Bank", of(False).all) == "TB"
    assert letters("São Paulo 😀 Two Three", of(True).capitals) == "SPT"  # “Three” is cut off
    assert letters("São Paulo 😀 Two Three", of(True).accents) == "ã"
    assert letters("São Paulo 😀 Two Three", of(True).unknown) == "😀"


def test_kana_lose_their_voicing_and_hangul_nothing(embedded: Backend) -> None:
    """An uncased tokenizer reads ぎ as き; the letters of a syllable of Hangul are pieces of one character."""
    found = lost(embedded, "ぎんこうはえきのまえにあります")
    assert (letters("ぎんこうはえきのまえにあります", found.marks), len(found.all)) == ("ぎ", 1)
    assert not lost(embedded, "안녕하세요").all
    assert letters("é き", lost(embedded, "é き").accents) == "é"


def test_removed_vowel_signs_are_marks() -> None:
    """Thai without its two marks, by NFD and the category Mn: 15 of 17 characters are read."""
    text = "ธนาคารเปิดตอนเช้า"
    kept = [place for place, letter in enumerate(text) if unicodedata.category(letter) != "Mn"]
    pieces = [("##" * (number > 0) + text[place], 0, place, place + 1) for number, place in enumerate(kept)]
    found = lost_characters(sentence(text, pieces), "".join(text[place] for place in kept), 1)
    assert found.marks == found.all == frozenset(range(17)) - set(kept)
    assert len(found.marks) == 2


def test_unknown_text_counts_with_its_marks(embedded: Backend) -> None:
    assert len(lost(embedded, "ธนาคารเปิดตอนเช้า").unknown) == 17
