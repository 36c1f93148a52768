"""Words of all scripts: by Unicode's boundaries, with what the standard leaves open."""

from __future__ import annotations

import random
import time
import unicodedata

import numpy as np
import pytest
import regex

from components.training.data import normalised
from components.training.negatives import with_deleted_words
from components.words.unicode_words import (
    deletable,
    folded,
    has_pairs,
    is_within_word,
    place_of_word,
    spans,
    words,
    words_and_signs,
)

# Each with its words by the rules of UAX 29, in twelve scripts; in each a mark, sign or joiner stands inside a word.
SCRIPTS = {
    "Latin": ("L’été, it's 3.5 or 1,000 in snake_case", ["l'été", "it's", "3.5", "or", "1,000", "in", "snake_case"]),
    "Cyrillic": ("Всё ещё мой дом.", ["всё", "ещё", "мой", "дом"]),
    "Greek": ("Καλημέρα σας!", ["καλημέρα", "σασ"]),  # the final sigma folds to the other
    "Hebrew": ('צה"ל שׁלום', ['צה"ל', "שׁלום"]),
    "Arabic": ("كِتَابٌ، می‌خواهم", ["كِتَابٌ", "می‌خواهم"]),
    "Devanagari": ("कला और काल।", ["कला", "और", "काल"]),
    "Bengali": ("বাংলা ভাষা", ["বাংলা", "ভাষা"]),
    "Tamil": ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
    "Hangul": ("한국어 텍스트", ["한국어", "텍스트"]),
    "Han": ("火山爆发。", ["火山", "山爆", "爆发"]),
    "Kana": ("ぎんこう", ["ぎん", "んこ", "こう"]),
    "Thai": ("อยู่ที่", ["อยู่", "ยู่ที่"]),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_words_of_twelve_scripts(script):
    text, expected = SCRIPTS[script]
    assert words(text) == [unicodedata.normalize("NFC", word) for word in expected]


def test_boundaries_are_those_of_another_implementation_of_the_standard():
    """The parts between the boundaries of `regex`, in random texts without what is a word of ours beside the standard."""
    letters = "aZé" + "\u0301\u00ad\u200d" + "אדב" + "कि्" + "한" + "09٣" + "_.,':;’·\"" + "  -!?/"
    random = np.random.default_rng(3)
    boundary = regex.compile(r"(?w)\b", regex.VERSION1)
    tried = 0
    for _ in range(3_000):
        text = "".join(random.choice(list(letters), random.integers(1, 14)).tolist())
        if regex.search(r"\p{L}-\p{N}", text):
            continue  # "E-23"
        parts, place = [], 0
        for part in boundary.split(text):
            if part and regex.search(r"[\p{L}\p{N}]", part):
                parts.append((place, place + len(part)))
            place += len(part)
        assert [(start, end) for _, start, end in spans(text)] == parts, repr(text)
        tried += 1
    assert tried > 2_500


def test_texts_of_ascii_have_the_same_words_by_the_shorter_pattern():
    random = np.random.default_rng(4)
    for _ in range(3_000):
        text = "".join(random.choice(list("aBc09_.,':;\"+#- !"), random.integers(1, 14)).tolist())
        longer = [found for found in spans(f"{text} é") if found[0] != "é"]
        assert list(spans(text)) == longer, repr(text)
        assert words(text) == [word for word, _, _ in longer]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++, C# and C", ["c++", "c#", "and", "c"]),
        ("the E-23 and F-16", ["the", "e-23", "and", "f-16"]),
        ("COVID-19 well-known", ["covid", "19", "well", "known"]),
        ("good 👍 bad 👎🏽 🇩🇪❤️", ["good", "👍", "bad", "👎🏽", "🇩🇪", "❤"]),
        ("… — !", []),
        ("___ a_b", ["a_b"]),
        ("", []),
        ("ABC东京3号", ["abc", "东京", "3", "号"]),
        ("ตัวเลข ๑๒", ["ตัว", "วเ", "เล", "ลข", "๑๒"]),
    ],
)
def test_words_that_the_standard_leaves_open(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("re\u0301sume\u0301", "résumé"),
        ("İstanbul", "istanbul"),
        ("ISTANBUL", "istanbul"),
        ("STRASSE", "Straße"),
        ("ＢＥＲＴ", "bert"),
        ("ﬁre", "fire"),
        ("co\u00adoperate", "cooperate"),
        ("ｶﾞｽ", "ガス"),
        ("don’t", "don't"),
        ("п’ять пʼять", "п'ять п'ять"),
        ("O‘zbek", "O'zbek"),
        ("ﻛﺘﺎﺏ", "كتاب"),
    ],
)
def test_spellings_of_one_word_are_equal(first, second):
    assert words(first) == words(second)
    assert folded(folded(first)) == folded(first)


def test_what_differs_stays_different():
    assert words("می‌خواهم") != words("می خواهم")
    assert words("x²") != words("x2")
    assert words("कला") != words("काल")
    assert has_pairs("ABC火") is True
    assert has_pairs("café") is False


def test_spans_are_places_in_the_text_as_written():
    text = "In I\u0307STANBUL, Straße 5"
    assert [(word, text[start:end]) for word, start, end in spans(text)] == [
        ("in", "In"),
        ("istanbul", "I\u0307STANBUL"),
        ("strasse", "Straße"),
        ("5", "5"),
    ]


def test_training_tells_texts_apart_that_differ_in_signs():
    assert normalised("good job 👍") != normalised("good job 👎")
    assert normalised("5 €") != normalised("5 $")
    assert normalised("50 %") != normalised("50")
    assert normalised("बच्चा खेलता है") != normalised("बच्चे खेलते हैं")
    assert normalised("The cat sat.") == normalised("the cat   sat")
    assert words_and_signs("from 5 € to €6") == ["from", "5", "€", "to", "€", "6"]
    assert words_and_signs("-5 to (-3), 7-8, a-9") == ["-", "5", "to", "-", "3", "7", "8", "a-9"]
    assert words_and_signs("5, -3 but pages 3 -5 and 3\u22125") == [
        "5",
        "-",
        "3",
        "but",
        "pages",
        "3",
        "5",
        "and",
        "3",
        "5",
    ]
    assert normalised("It is -5 °C.") == normalised("It is \u22125 °C.") != normalised("It is 5 °C.")


def test_parts_are_deleted_from_a_text_without_spaces():
    text = "火山爆发了 in 2019年"
    assert deletable(text) == [list("火山爆发了"), ["in"], ["2019", "年"]]
    random = np.random.default_rng(0)
    kept = [with_deleted_words("火山爆发了。", 0.6, random) for _ in range(500)]
    assert 0.3 < np.mean([len(one) for one in kept]) / 6 < 0.6
    assert min(map(len, kept)) == 1


@pytest.mark.parametrize("hard", ["a'", "a.", "a-", "c+", "a\u0301", 'א"', "0,", "_", "ก", "👍", "🇩", "\u0301", "a"])
def test_a_long_text_of_one_thing_takes_no_longer_than_its_length(hard):
    """Ten times the length takes about ten times as long, and not a hundred."""

    def seconds(text: str) -> float:
        started = time.process_time()
        words(text)
        return time.process_time() - started

    short, long = (min(seconds(hard * length + "é") for _ in range(2)) for length in (5_000, 50_000))
    assert long < 40 * short + 0.05


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("abc d", {0, 3, 4, 5}),
        ("किती", {0, 4}),
        ("a火山b", {0, 1, 2, 3, 4}),
        ("ที่นี่", {0, 3, 6}),
        ("can't", {0, 5}),
        ("C++ or 3.5", {0, 3, 4, 6, 7, 10}),
        ("👍🏽!", {0, 2, 3}),
        ("x\u0301\u0301", {0, 3}),
        ("ᩈᩣ", {0, 2}),  # Tai Tham: no word of the definition, but a letter with its mark
        ("可\u3099", {0, 2}),
    ],
)
def test_where_a_text_can_be_cut_without_cutting_a_word(text, cut):
    assert {place for place in range(len(text) + 1) if not is_within_word(text, place)} == cut


@pytest.mark.parametrize(
    ("text", "word", "place"),
    [
        ("banks and bank", "bank", (10, 14)),
        ("कला कल", "कल", (4, 6)),
        ("河边的银行", "银行", (3, 5)),
        ("banks", "bank", None),
        ("a bank", "", None),
        ("I don't or I don", "don", (13, 16)),
        ("I don't", "don", None),
        ("C++ and C", "C", (8, 9)),
        ("3.5 or 3", "3", (7, 8)),
    ],
)
def test_where_a_word_stands_first(text, word, place):
    assert place_of_word(text, word) == place


def test_the_places_within_words_are_those_of_the_spans():
    """One definition: a place is within a word if a span has it inside; pairs of letters without spaces apart."""
    chance = random.Random(1)
    for _ in range(300):
        text = "".join(chance.choices("abé1.,'’_-+# \"%€👍\u0301\u200dßİक्ि", k=chance.randint(1, 14)))
        inner = {place for _, start, end in spans(text) for place in range(start + 1, end)}
        found = {place for place in range(len(text) + 1) if is_within_word(text, place)}
        assert inner <= found
        # What is more are marks behind a letter, and lines, which join no word.
        assert all(
            unicodedata.category(text[place])[0] in "MC" or "_" in text[place - 1 : place + 1]
            for place in found - inner
        )
