"""Word rankings in twelve scripts, against the papers' formulas in plain float64, with words written by hand."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter

import numpy as np
import pytest

from components.retrieval.search.lexical import K1, LAMBDA, B, make_ranker
from components.words.unicode_words import words

# Of each script three texts and a query with their words as UAX 29 divides them (pairs of characters where it cannot), "|"
# between them. In each script a mark, vowel sign, joiner or apostrophe stands within a word, at which "\w+" would cut; the last
# text has a word that is equal to the query's up to such a sign.
SCRIPTS = {
    "Latin": (
        ("L’été à Zu\u0308rich.", "l'été|à|zürich"),
        ("It's 3.5 °C in Zürich!", "it's|3.5|c|in|zürich"),
        ("Ete zurich its 35", "ete|zurich|its|35"),
        ("it’s l'e\u0301te\u0301 zürich", "it's|l'été|zürich"),
    ),
    "Cyrillic": (
        ("Всё ещё мой дом.", "всё|ещё|мой|дом"),
        ("Мо\u0438\u0306 дом и твой дом", "мой|дом|и|твой|дом"),
        ("все еще мои дома", "все|еще|мои|дома"),
        ("ЕЩЁ МОЙ ДОМ", "ещё|мой|дом"),
    ),
    "Greek": (
        ("Καλημέρα σας!", "καλημέρα|σασ"),
        ("Η ώρα σας, η ημέρα", "η|ώρα|σασ|η|ημέρα"),
        ("ωρα και ημερα", "ωρα|και|ημερα"),
        ("ώρα ΣΑΣ", "ώρα|σασ"),
    ),
    "Hebrew": (
        ('צה"ל ושלום', 'צה"ל|ושלום'),
        ("שָׁלוֹם רב ושלום", "שָׁלוֹם|רב|ושלום"),
        ("צה ל שלם", "צה|ל|שלם"),
        ('צה"ל שָׁלוֹם', 'צה"ל|שָׁלוֹם'),
    ),
    "Arabic": (
        ("كِتَابٌ جديد", "كِتَابٌ|جديد"),
        ("می\u200cخواهم، كِتَابٌ", "می\u200cخواهم|كِتَابٌ"),
        ("می خواهم كتاب", "می|خواهم|كتاب"),
        ("می\u200cخواهم كِتَابٌ", "می\u200cخواهم|كِتَابٌ"),
    ),
    "Devanagari": (
        ("कला और काल।", "कला|और|काल"),
        ("कला कला की बात", "कला|कला|की|बात"),
        ("कील कल", "कील|कल"),
        ("कला काल", "कला|काल"),
    ),
    "Bengali": (
        ("বাংলা ভাষা", "বাংলা|ভাষা"),
        ("আমার ভাষা, আমার বই", "আমার|ভাষা|আমার|বই"),
        ("ভাষ বাংল", "ভাষ|বাংল"),
        ("আমার ভাষা", "আমার|ভাষা"),
    ),
    "Tamil": (
        ("தமிழ் மொழி", "தமிழ்|மொழி"),
        ("என் மொழி தமிழ்", "என்|மொழி|தமிழ்"),
        ("தமிழ மொழ", "தமிழ|மொழ"),
        ("என் தமிழ்", "என்|தமிழ்"),
    ),
    "Hangul": (
        ("한국어 텍스트", "한국어|텍스트"),
        (unicodedata.normalize("NFD", "한국어를 읽다"), "한국어를|읽다"),
        ("한구어 텍스", "한구어|텍스"),
        ("한국어 읽다", "한국어|읽다"),
    ),
    "Han": (
        ("火山爆发。", "火山|山爆|爆发"),
        ("昨天火山爆发了", "昨天|天火|火山|山爆|爆发|发了"),
        ("火车上山", "火车|车上|上山"),
        ("火山爆发", "火山|山爆|爆发"),
    ),
    "Kana": (
        ("ぎんこうへいく", "ぎん|んこ|こう|うへ|へい|いく"),
        ("き\u3099んこう、えき", "ぎん|んこ|こう|えき"),
        ("きんこう", "きん|んこ|こう"),
        ("ぎんこう", "ぎん|んこ|こう"),
    ),
    "Thai": (
        ("ธนาคารเปิด", "ธน|นา|าค|คา|าร|รเ|เปิ|ปิด"),
        ("ไปที่ธนาคาร", "ไป|ปที่|ที่ธ|ธน|นา|าค|คา|าร"),
        ("ปิดปด", "ปิด|ดป|ปด"),
        ("ที่ธนาคาร", "ที่ธ|ธน|นา|าค|คา|าร"),
    ),
}


def parts(script):
    pairs = [(text, [unicodedata.normalize("NFC", word) for word in own.split("|")]) for text, own in SCRIPTS[script]]
    return [text for text, _ in pairs[:-1]], [own for _, own in pairs[:-1]], *pairs[-1]


def bm25(texts, query):
    """Robertson and Zaragoza 2009, (3.15), without the factor k1 + 1, and Lucene's idf."""
    mean = sum(map(len, texts)) / len(texts)

    def idf(word):
        having = sum(word in text for text in texts)
        return math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))

    return [
        sum(
            idf(word) * text.count(word) / (text.count(word) + K1 * (1 - B + B * len(text) / mean))
            for word in query
            if word in text
        )
        for text in texts
    ]


def cosines(texts, query, weight):
    """Of counts times `weight` of a word; words that no text has are left out."""

    def vector(own):
        return {
            word: count * weight(word) for word, count in Counter(own).items() if any(word in text for text in texts)
        }

    asked = vector(query)
    length = math.sqrt(sum(value**2 for value in asked.values()))
    found = []
    for text in texts:
        own = vector(text)
        product = sum(value * own.get(word, 0.0) for word, value in asked.items())
        found.append(product / length / math.sqrt(sum(value**2 for value in own.values())))
    return found


def smoothed(texts, query):
    """Jelinek and Mercer, as in Zhai and Lafferty 2004: log of the query's probability by a text and all texts mixed."""
    everything = [word for text in texts for word in text]
    return [
        sum(
            math.log((1 - LAMBDA) * text.count(word) / len(text) + LAMBDA * everything.count(word) / len(everything))
            for word in query
            if word in everything
        )
        for text in texts
    ]


@pytest.mark.parametrize("script", SCRIPTS)
def test_words_are_those_written_by_hand(script):
    texts, own, query, asked = parts(script)
    assert [words(text) for text in (*texts, query)] == [*own, asked]


@pytest.mark.parametrize("script", SCRIPTS)
def test_rankings_are_their_formulas(script):
    """Scores are kept in float32: they differ by its rounding, 1e-6 of their size."""
    texts, own, query, asked = parts(script)

    def idf(word):
        return math.log((1 + len(own)) / (1 + sum(word in text for text in own))) + 1

    for kind, expected in (
        ("bm25", bm25(own, asked)),
        ("bow", cosines(own, asked, lambda word: 1.0)),
        ("tfidf", cosines(own, asked, idf)),
        ("jm", smoothed(own, asked)),
    ):
        ranker = make_ranker(kind, texts)
        np.testing.assert_allclose(ranker.scores(query), expected, rtol=1e-6, atol=1e-7, err_msg=kind)
        found = ranker.pair_scores([query] * len(texts), np.arange(len(texts)))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7, err_msg=kind)


# Question and text of each row, as in public reports: signs within words, texts without spaces, accents written in two ways.
REPORTED = {
    "signs": (
        ("कला", "कला का संग्रहालय"),
        ("काल", "काल की गति"),
        ("कील", "दीवार में कील"),
        ("कल", "कल बारिश होगी"),
        ("كِتَاب", "هذا كِتَاب"),
        ("ที่", "บ้าน ที่ สวย"),
    ),
    "no spaces": (
        ("火山爆发", "昨天夜里火山爆发了。"),
        ("银行关门", "河边的银行关门了。"),
        ("ぎんこう", "わたしはぎんこうへいきます"),
        ("えきまえ", "えきまえにみせがあります"),
        ("ธนาคาร", "ฉันฝากเงินที่ธนาคาร"),
    ),
    "accents": (
        ("re\u0301sume\u0301 bre\u0300ve", "Une résumé brève"),
        ("Bru\u0308cke", "Die alte Brücke"),
        ("istanbul", "İstanbul yağmurlu"),
        ("İZMİR", "izmir limanı"),
        ("café", "Le Cafe\u0301 du coin"),
    ),
}


@pytest.mark.parametrize("kind", ["bm25", "tfidf", "bow", "jm"])
@pytest.mark.parametrize("report", REPORTED)
def test_each_reported_query_finds_its_own_text_first(report, kind):
    """Recall@1 is 1.0, and no other text has as high a score."""
    ranker = make_ranker(kind, [text for _, text in REPORTED[report]])
    for row, (query, _) in enumerate(REPORTED[report]):
        scores = ranker.scores(query)
        assert (scores[row] > np.delete(scores, row)).all(), query
