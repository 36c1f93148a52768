"""Whether a model knows the language of a text: by hand, and by what the included model reads of sixteen languages."""

from __future__ import annotations

import json

import numpy as np
import pytest

from components.analysis.languages import known_letters as module
from components.analysis.languages.known_letters import KnownLetters, has_long_pieces, known_letters
from tests.components.analysis.handmade import sentence
from tests.support.places import ASSETS

# Ordinary sentences of languages whose words are mostly in the vocabulary's pieces, and of others.
KNOWN = {
    "German": (
        "Die Straßenbahn war überfüllt, deshalb gingen wir zu Fuß.",
        "Er trank einen Kaffee und las die Zeitung.",
    ),
    "French": ("La banque au bord de la rivière est fermée.", "Les élèves étudient l'histoire de la Révolution."),
    "Spanish": ("¿Dónde está la estación, por favor?", "Los niños juegan en el parque."),
    "Polish": ("Wczoraj wypłaciłem pieniądze z konta.",),
    "Turkish": ("Nehir kıyısındaki banka kapalı.", "Kız kardeşim keman öğreniyor."),
    "Vietnamese": ("Ngân hàng bên bờ sông đã đóng cửa.",),
    "codes": ("WKRP in Cincinnati plays E-23 and C++.", "qwrtzp", "a b c d e f", "5 € 😀 !"),
}
UNKNOWN = {
    "Greek": "Η τράπεζα δίπλα στο ποτάμι είναι κλειστή.",
    "Russian": "Банк на берегу реки закрыт.",
    "Hebrew": "הבנק ליד הנהר סגור.",
    "Arabic": "البنك بجانب النهر مغلق.",
    "Hindi": "नदी के किनारे का बैंक बंद है।",
    "Tamil": "ஆற்றங்கரையில் உள்ள வங்கி மூடப்பட்டுள்ளது.",
    "Korean": "강가에 있는 은행은 문을 닫았다.",
    "Chinese": "河边的银行关门了。",
    "Japanese": "川のそばの銀行は閉まっています。",
    "kana": "ぎんこうはえきのまえにあります",
    "Thai": "ธนาคารเปิดตอนเช้า",
}


def read(backend, text):
    return known_letters(backend.tokenization.tokenize(text), backend.tokenization.unknown_id)


@pytest.mark.parametrize("language", KNOWN)
def test_nothing_is_said_of_ordinary_sentences_in_latin_letters(embedded, language):
    assert not any(read(embedded, text).is_far_above for text in KNOWN[language])
    assert module.said_of({"them": KNOWN[language]}, embedded.tokenization, "It", is_included=True) == []


@pytest.mark.parametrize("language", UNKNOWN)
def test_other_scripts_are_far_above(embedded, language):
    found = read(embedded, UNKNOWN[language])
    assert found.is_far_above
    assert found.share > 0.6
    (said,) = module.said_of({"the query": [UNKNOWN[language]]}, embedded.tokenization, "It", is_included=True)
    assert said.startswith("It does not know the language of the query: ")
    assert f"{100 * found.share:.0f} %".replace(" ", "") in said.replace("\u202f", "").replace("\u00a0", "").replace(
        " ", ""
    )


def test_a_query_of_which_half_is_unknown_is_far_above(embedded):
    found = read(embedded, "火山爆发")  # two of four characters are [UNK], the others one piece each
    assert found == KnownLetters(4, 2)
    assert found.is_far_above


def test_the_usual_share_is_that_of_the_included_texts(embedded):
    rows = [json.loads(line) for line in (ASSETS / "demo_corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [read(embedded, row[column]) for row in rows for column in ("sentence", "compressed")]
    sentences = module.together(found[::2])
    assert sentences.share == pytest.approx(0.0023, abs=2e-4)
    assert 0.9 * module.USUAL < max(letters.share for letters in found if letters.letters >= 10) <= module.USUAL


def test_letters_are_counted_by_hand():
    """“kot” in letters, “bank” whole, an unknown word of four letters, a mark that no token has, a word of one letter."""
    text = "kot bank żółw a\u0301 i"
    pieces = [
        ("k", 0, 0, 1),
        ("##o", 0, 1, 2),
        ("##t", 0, 2, 3),
        ("bank", 1, 4, 8),
        ("[UNK]", 2, 9, 13),
        ("a", 3, 14, 15),
    ]
    read = sentence(text, [*pieces, ("i", 4, 17, 18)])
    unknown = next(token.id for token in read.tokens if token.piece == "[UNK]")
    # k, o, t, four of żółw, and the mark; "a" stands before a mark, and is part of its word.
    assert known_letters(read, unknown) == KnownLetters(14, 9)
    assert known_letters(read, unknown, is_long=False) == KnownLetters(14, 5)


def test_a_chinese_character_in_several_pieces_is_not_known():
    """As tokenizers of bytes read what their vocabulary lacks; a sign of a space before a character is no piece of it."""
    text = "我想买一张"
    bytes_of = [(piece, number, number, number + 1) for number in range(5) for piece in ("æ", "Ī", "ĳ")]
    assert known_letters(sentence(text, bytes_of), None) == KnownLetters(5, 5)
    assert known_letters(sentence(text, bytes_of), None, is_long=False) == KnownLetters(5, 5)
    whole = [("▁", 0, 0, 1), *((text[number], number, number, number + 1) for number in range(5))]
    assert known_letters(sentence(text, whole), None) == KnownLetters(5, 0)
    assert known_letters(sentence(text, [("▁我想", 0, 0, 2), *bytes_of[6:]]), None) == KnownLetters(5, 3)


def test_what_is_usual_is_said_of_the_included_model_alone():
    assert "(usual: up to 11" in module.in_words("It", 0.9, "the query", is_included=True)
    assert module.in_words("It", 0.9, "the query", is_included=False).endswith("are unknown or read one by one.")


def test_a_tokenizer_of_characters_reads_every_language_so():
    assert has_long_pieces(["bank", "##ing", "a", "[PAD]", "!", "▁der"])
    assert not has_long_pieces(["a", "b", "##a", "##b", "the", "銀行", "[UNK]"])


def test_a_corpus_is_looked_at_in_evenly_spaced_texts():
    texts = [f"text {number} " + "x" * 1_000 for number in range(1_001)]
    chosen = module.sample(texts)
    assert len(chosen) == module.MOST_TEXTS
    assert [text.split()[1] for text in chosen[:3]] == ["0", "5", "10"]
    assert chosen[-1].startswith("text 1000 ")
    # The second half of a corpus counts as much as the first.
    half = [int(text.split()[1]) for text in module.sample(texts[:399])]
    assert (len(half), half[0], half[-1], max(np.diff(half))) == (module.MOST_TEXTS, 0, 398, 2)
    assert module.sample([]) == []
    assert {len(text) for text in chosen} == {module.MOST_CHARACTERS}
    assert module.sample(["one"]) == ["one"]
