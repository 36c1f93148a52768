from itertools import pairwise

import pytest

from components.analysis.alignment import AlignedSpan, align, differing_words
from components.model.tokenization import Tokenization
from tests.components.analysis.handmade import sentence, words
from tests.support.tiny import byte_level_tokenizer

TEXTS = (
    "I put money in the bank.",
    "the cat  sat",
    "  bank ",
    "don't",
    "Zażółć é e\u0301 ñ",
    "I ❤\ufe0f naïve cafés 😀",
    "👨\u200d👩\u200d👧 ok",
    "你好,世界",
    "שלום עולם",
    "안녕 bank 안녕",
    "a\r\n\tb\u200bc\x07d",
    "fill the [MASK] with <mask> </s> [SEP]",
    "x" * 30 + " " + "bank " * 20,
)


@pytest.fixture(scope="module")
def byte_level():
    return Tokenization(byte_level_tokenizer(), 512, False)


def pieces_of(spans: tuple[AlignedSpan, ...]) -> list[tuple[str, str, str]]:
    return [
        (span.text, " ".join(t.piece for t in span.first), " ".join(t.piece for t in span.second)) for span in spans
    ]


def test_the_same_cuts_give_a_group_for_each_token():
    assert pieces_of(align(words("the cat"), words("the cat"))) == [("the", "the", "the"), ("cat", "cat", "cat")]


def test_a_word_cut_in_pieces_by_one_side_is_one_group():
    whole = words("my embankment")
    cut = sentence("my embankment", [("my", 0, 0, 2), ("em", 1, 3, 5), ("##bank", 1, 5, 9), ("##ment", 1, 9, 13)])
    assert pieces_of(align(whole, cut)) == [("my", "my", "my"), ("embankment", "embankment", "em ##bank ##ment")]
    assert pieces_of(align(cut, whole))[1] == ("embankment", "em ##bank ##ment", "embankment")


def test_groups_end_only_where_both_sides_cut():
    first = sentence("abcdef", [("ab", 0, 0, 2), ("cd", 0, 2, 4), ("ef", 0, 4, 6)])
    second = sentence("abcdef", [("a", 0, 0, 1), ("bcd", 0, 1, 4), ("e", 0, 4, 5), ("f", 0, 5, 6)])
    assert pieces_of(align(first, second)) == [("abcd", "ab cd", "a bcd"), ("ef", "ef", "e f")]


def test_overlaps_chain_until_a_common_cut():
    first = sentence("abcde", [("ab", 0, 0, 2), ("cd", 0, 2, 4), ("e", 0, 4, 5)])
    second = sentence("abcde", [("a", 0, 0, 1), ("bc", 0, 1, 3), ("de", 0, 3, 5)])
    assert pieces_of(align(first, second)) == [("abcde", "ab cd e", "a bc de")]


def test_characters_that_one_side_drops():
    kept = sentence("a\x07b", [("a", 0, 0, 1), ("\x07", 1, 1, 2), ("b", 2, 2, 3)])
    dropped = sentence("a\x07b", [("a", 0, 0, 1), ("b", 1, 2, 3)])
    assert pieces_of(align(dropped, kept)) == [("a", "a", "a"), ("\x07", "", "\x07"), ("b", "b", "b")]
    assert pieces_of(align(kept, dropped))[1] == ("\x07", "\x07", "")


def test_several_tokens_of_one_character_stay_together():
    one = sentence("é!", [("e", 0, 0, 1), ("!", 1, 1, 2)])
    bytes_of_it = sentence("é!", [("Ã", 0, 0, 1), ("©", 0, 0, 1), ("!", 1, 1, 2)])
    assert pieces_of(align(one, bytes_of_it)) == [("é", "e", "Ã ©"), ("!", "!", "!")]


def test_a_token_of_no_width_joins_the_group_it_touches():
    plain = words("a bc")
    before = sentence("a bc", [("a", 0, 0, 1), ("Ġ", 1, 2, 2), ("bc", 1, 2, 4)])
    after = sentence("a bc", [("a", 0, 0, 1), ("Ġ", 1, 1, 1), ("bc", 1, 2, 4)])
    assert pieces_of(align(plain, before)) == [("a", "a", "a"), ("bc", "bc", "Ġ bc")]
    assert pieces_of(align(plain, after)) == [("a", "a", "a Ġ"), ("bc", "bc", "bc")]


def test_a_token_of_no_width_amid_spaces_touches_nothing():
    spaced = sentence("a   b", [("a", 0, 0, 1), ("Ġ", 1, 2, 2), ("b", 2, 4, 5)])
    plain = sentence("a   b", [("a", 0, 0, 1), ("b", 1, 4, 5)])
    assert pieces_of(align(plain, spaced)) == [("a", "a", "a"), ("", "", "Ġ"), ("b", "b", "b")]


def test_only_the_first_text_of_a_pair_is_compared():
    pair = sentence("cat", [("cat", 0, 0, 3)], pair="dog", pair_pieces=[("dog", 0, 0, 3)])
    assert pieces_of(align(pair, words("cat"))) == [("cat", "cat", "cat")]


def test_text_cut_away_on_one_side_stays_in_view_on_the_other(embedded):
    long, short = (embedded.tokenize(["the cat sat on the mat"], max_length=limit)[0] for limit in (None, 5))
    assert pieces_of(align(long, short)) == [
        *((word, word, word) for word in ("the", "cat", "sat")),
        *((word, word, "") for word in ("on", "the", "mat")),
    ]


def test_different_texts_are_refused():
    with pytest.raises(ValueError, match="different texts"):
        align(words("the cat"), words("the dog"))


@pytest.mark.parametrize("text", TEXTS)
def test_wordpiece_beside_byte_level_pieces(embedded, byte_level, text):
    wordpiece, other = embedded.tokenize([text])[0], byte_level.tokenize(text)
    spans = align(wordpiece, other)
    for before, after in pairwise(spans):
        assert before.end <= after.start  # groups never overlap
    # Each token of the text is in one group, in its old order, and lies within it.
    for sentence_of, side in ((wordpiece, "first"), (other, "second")):
        grouped = [token for span in spans for token in getattr(span, side)]
        assert grouped == [token for token in sentence_of.tokens if not token.special]
        for span in spans:
            assert all(span.start <= token.start <= token.end <= span.end for token in getattr(span, side))
    for span in spans:
        assert span.text == text[span.start : span.end]
        # No group can be cut further: at every place within it some token goes across.
        for place in range(span.start + 1, span.end):
            assert any(token.start < place < token.end for token in (*span.first, *span.second))
    mirrored = align(other, wordpiece)
    assert [(span.text, span.second, span.first) for span in mirrored] == [
        (span.text, span.first, span.second) for span in spans
    ]


def test_a_sentence_in_both_tokenizations(embedded, byte_level):
    text = "the bank, é 😀"
    assert pieces_of(align(embedded.tokenize([text])[0], byte_level.tokenize(text))) == [
        ("the", "the", "t h e"),
        ("bank", "bank", "Ġbank"),
        (",", ",", ","),
        ("é", "e", "Ġ Ã ©"),
        ("😀", "[UNK]", "Ġ ð Ł ĺ Ģ"),
    ]


def test_groups_that_both_keep_as_one_piece_are_the_same():
    first = sentence("the embankment .", [("the", 0, 0, 3), ("embankment", 1, 4, 14), (".", 2, 15, 16)])
    second = sentence("the embankment .", [("the", 0, 0, 3), ("em", 1, 4, 6), ("##bankment", 1, 6, 14)])
    assert [span.is_the_same for span in align(first, first)] == [True, True, True]
    assert [span.is_the_same for span in align(first, second)] == [True, False, False]  # the full stop has no partner


def test_words_that_are_split_differently_are_named_as_typed():
    text = "Don't skip “2019” , ok"
    first = sentence(
        text,
        [
            ("don", 0, 0, 3),
            ("'t", 0, 3, 5),
            ("skip", 1, 6, 10),
            ("2019", 2, 12, 16),
            (",", 3, 18, 19),
            ("ok", 4, 20, 22),
        ],
    )
    second = sentence(
        text,
        [
            ("Don't", 0, 0, 5),
            ("Ġskip", 1, 5, 10),
            ("20", 2, 12, 14),
            ("19", 2, 14, 16),
            ("Ġ,", 3, 18, 19),
            ("ok", 4, 20, 22),
        ],
    )
    assert differing_words(text, align(first, second)) == (("Don't", "2019"), 4)
    assert differing_words(text, align(first, first)) == ((), 4)
    assert differing_words("", ()) == ((), 0)
    one, two = (
        sentence("火山", [("火", 0, 0, 1), ("山", 1, 1, 2)]),
        sentence("火山", [("火", 0, 0, 1), ("x", 1, 1, 2), ("y", 1, 1, 2)]),
    )
    assert differing_words("火山", align(one, two)) == (("山",), 2)  # and not the word that ends where it begins
