import json

import pytest
from tokenizers import decoders

from components.analysis.tokens import (
    DecodingLosses,
    TokenStatistics,
    losses,
    neighbour_words,
    position_at,
    statistics,
)
from components.model.tokenization import Tokenization
from components.model.trace import Dropped
from tests.components.analysis.handmade import UNKNOWN_ID, sentence, words
from tests.support.places import ASSETS
from tests.support.tiny import byte_level_tokenizer

SETS = json.loads((ASSETS / "sets.json").read_text(encoding="utf-8"))
SENTENCES_OF = {entry["key"]: entry["sentences"] for entry in SETS}


# Statistics


@pytest.fixture
def jumping_cats():
    """Two sentences, the second with a pair: 2 + 2 words, one of three pieces, two unknown pieces and an "!"."""
    return [
        sentence("cats jumping!", [("cats", 0, 0, 4), ("jump", 1, 5, 9), ("##ing", 1, 9, 12), ("!", 2, 12, 13)]),
        sentence(
            "☃ unbelievable",
            [("[UNK]", 0, 0, 1), ("un", 1, 2, 4), ("##bel", 1, 4, 7), ("##ievable", 1, 7, 14)],
            pair="☃ cats",
            pair_pieces=[("[UNK]", 0, 0, 1), ("cats", 1, 2, 6)],
        ),
    ]


def test_counts_of_sentences_made_by_hand(jumping_cats):
    counted = statistics(jumping_cats, UNKNOWN_ID)
    # 4 + 2 tokens and 4 + 2 + 3: [CLS] and [SEP] count as tokens, the words of a text and of its pair apart.
    assert counted == TokenStatistics(tokens=15, pieces=10, word_pieces=7, words=4, split_words=2, unknown=2)
    assert counted.pieces_per_word == 7 / 4
    assert counted.unknown_share == 0.2


def test_counts_add_up_over_sentences(jumping_cats):
    both, first, second = (statistics(part, UNKNOWN_ID) for part in (jumping_cats, jumping_cats[:1], jumping_cats[1:]))
    for name in ("tokens", "pieces", "word_pieces", "words", "split_words", "unknown"):
        assert getattr(both, name) == getattr(first, name) + getattr(second, name)


def test_a_vocabulary_without_an_unknown_token_knows_everything(jumping_cats):
    assert statistics(jumping_cats, None).unknown == 0


def test_no_text_gives_rates_of_zero():
    counted = statistics([sentence("\x01", [])], UNKNOWN_ID)
    assert (counted.tokens, counted.pieces, counted.words) == (2, 0, 0)
    assert (counted.pieces_per_word, counted.unknown_share) == (0, 0)
    assert statistics([], UNKNOWN_ID) == TokenStatistics(0, 0, 0, 0, 0, 0)


def test_counts_of_the_embedded_tokenizer(embedded):
    counted = statistics(embedded.tokenize(["The otorhinolaryngologist left.", "😀"]), embedded.tokenization.unknown_id)
    pieces = embedded.tokenize(["otorhinolaryngologist"])[0].tokens[1:-1]
    assert len(pieces) > 2
    assert counted == TokenStatistics(8 + len(pieces), 4 + len(pieces), 2 + len(pieces), 3, 1, 1)


# Losses. Each line says everything that is lost; what it does not name is not.

WORDPIECE_LOSSES = [
    ("hello world.", {}),
    ("Hello world.", {"case"}),
    ("I do not know.", {"case"}),
    ("NASA, USA!", {"case"}),
    ("the straße", {}),
    ("ΟΔΟΣ", {"case"}),  # Python's lower() makes the last Σ a ς, the tokenizer a σ: still only the case
    ("café", {"accents"}),
    ("cafe\u0301", {"accents"}),  # the accent as a character of its own
    ("Zażółć gęślą jaźń", {"case", "accents"}),
    ("İstanbul", {"case", "accents"}),
    ("smørrebrød", {}),  # ø is a letter, not an o with a mark
    ("が", {"accents"}),
    ("أهلا", {"accents"}),  # the hamza above the alef
    ("नमस्ते", {"accents"}),
    ("שָׁלוֹם", {"accents"}),
    ("שלום עולם", {}),
    ("مرحبا بالعالم", {}),
    ("안녕하세요", {}),  # comes back as single letters that make up the same syllables
    ("don't", {"spacing"}),
    ("mind-blowing", {"spacing"}),
    ("3.14", {"spacing"}),
    ("(a)", {"spacing"}),
    ("“quoted” text", {"spacing"}),
    ("so , what", {"spacing"}),
    ("so ,what", {"spacing"}),  # the space moves to the comma's other side: as many as before
    ("hello  world", {"spacing"}),
    ("hello\tworld", {"spacing"}),
    ("hello\u00a0world", {"spacing"}),  # a no-break space becomes an ordinary one
    ("北京", {"spacing"}),
    ("Yes, it's on the 3rd!", {"case", "spacing"}),
    ("L'été à 8:30", {"case", "accents", "spacing"}),
    (" hello ", {}),  # spaces around the text are not part of it
    ("hello\u200bworld", {"other"}),
    ("soft\u00adware", {"other"}),
    ("bell\x07", {"other"}),
    ("\x01", {"other"}),
    ("می\u200cخواهم", {"other"}),  # Persian's zero-width non-joiner
    ("♥\ufe0f", {"other"}),  # the heart is known, its colour selector is dropped
    ("the end\ufffd.", {"other"}),
    ("hello\u200b  world", {"other", "spacing"}),
    ("A bottle of [MASK] is on the table.", {"case"}),
    ("everyone likes [MASK].", {}),
    ("[MASK] isn't [SEP]", {"spacing"}),
]


def names_of(lost: DecodingLosses) -> set[str]:
    return {name for name in ("case", "accents", "spacing", "other", "unknown", "truncated") if getattr(lost, name)}


def lost_by(backend, text, pair=None, max_length=None, leave_out=False):
    """What is lost when decoding spells unknown and typed special tokens out, or leaves them out."""
    tokenization = backend.tokenization
    tokens = tokenization.tokenize(text, pair, max_length)
    own = [token.id for token in tokens.tokens if not token.special]
    return losses(tokens, tokenization.decode(own, skip_special=leave_out), tokenization.unknown_id)


@pytest.mark.parametrize(("text", "kinds"), WORDPIECE_LOSSES)
@pytest.mark.parametrize("leave_out", [True, False])
def test_losses_of_the_embedded_tokenizer(embedded, text, kinds, leave_out):
    assert names_of(lost_by(embedded, text, leave_out=leave_out)) == set(kinds)


@pytest.mark.parametrize(
    ("text", "unknown", "kinds"),
    [
        ("i love 😀 cats", ("😀",), {}),
        ("i like 😀.", ("😀",), {}),
        ("😀", ("😀",), {}),
        ("😀 cats 😀 dogs", ("😀",), {}),
        ("😀 🎉 cats", ("😀", "🎉"), {}),
        ("I love 😀 cats", ("😀",), {"case"}),
        ("naïve 😀", ("😀",), {"accents"}),
        ("it's 😀", ("😀",), {"spacing"}),
        ("a  b 😀", ("😀",), {"spacing"}),
        ("bell\x07 😀", ("😀",), {"other"}),
        ("😀A É😀 b", ("😀A", "É😀"), {}),  # what the unknown word had is lost with it, not besides
        ("i ❤\ufe0f you", ("❤",), {}),
        ("👨\u200d👩\u200d👧 ok", ("👨\u200d👩\u200d👧",), {}),
        ("i x😀y, z", ("x😀y",), {}),
        ("我爱北京", ("爱",), {"spacing"}),
        ("I ❤\ufe0f naïve cafés 😀", ("❤", "😀"), {"case", "accents"}),
        ("an [UNK] sign", ("[UNK]",), {}),
        ("𝔘nicode " * 2, ("𝔘nicode",), {}),
    ],
)
@pytest.mark.parametrize("leave_out", [True, False])
def test_unknown_characters_hide_no_other_loss_and_make_none_up(embedded, text, unknown, kinds, leave_out):
    lost = lost_by(embedded, text, leave_out=leave_out)
    assert lost.unknown == unknown
    assert names_of(lost) == {"unknown", *kinds}


def test_many_unknown_words_are_compared_in_no_time(embedded):
    text = "😀 " * 400 + "don't"
    lost = lost_by(embedded, text, max_length=512)
    assert names_of(lost) == {"unknown", "spacing"}


def test_what_truncation_cut_away_is_not_blamed_on_anything_else(embedded):
    text = "the cat sat on the mat. Don't  CAFÉ\u200b 😀"
    lost = lost_by(embedded, text, max_length=9)
    assert names_of(lost) == {"truncated"}
    assert lost.truncated == 5  # don ' t cafe [UNK]
    assert names_of(lost_by(embedded, text, max_length=10)) == {"truncated", "case"}


def test_both_texts_of_a_pair_are_compared(embedded):
    assert names_of(lost_by(embedded, "did you?", "yes, i did.")) == set()
    assert names_of(lost_by(embedded, "did you?", "Yes, i did.")) == {"case"}
    assert names_of(lost_by(embedded, "did you😀?", "it's é ☃")) == {"unknown", "accents", "spacing"}
    lost = lost_by(embedded, "did you enjoy the very long evening", "yes, i did.", max_length=11)
    assert (names_of(lost), lost.truncated) == ({"truncated"}, 4)


def test_a_byte_level_tokenizer_loses_nothing():
    tokenizer = byte_level_tokenizer()
    tokenizer.backend_tokenizer.decoder = decoders.ByteLevel()
    tokenization = Tokenization(tokenizer, 64, False)
    for text in ("Hello  world.", "don't", "Café 😀 北京", "\x07 a\tb", "👨\u200d👩 ♥\ufe0f"):
        tokens = tokenization.tokenize(text)
        decoded = tokenization.decode([token.id for token in tokens.tokens if not token.special])
        assert decoded == text
        assert names_of(losses(tokens, decoded, None)) == set()


def test_losses_made_by_hand():
    cut = Dropped("Rest", 8, 1, of_pair=False)
    kept = sentence("Über ☃  Rest", [("uber", 0, 0, 4), ("[UNK]", 1, 5, 6)], dropped=(cut,))
    assert losses(kept, "uber [UNK]", UNKNOWN_ID) == DecodingLosses(True, True, False, ("☃",), 1, False)
    assert losses(kept, "ober", UNKNOWN_ID) == DecodingLosses(True, True, False, ("☃",), 1, True)
    # Told that there is no unknown token, the snowman is a character that went missing.
    assert losses(kept, "uber", None) == DecodingLosses(True, True, True, (), 1, True)


# Words near a token


def test_neighbours_tell_the_sentences_apart():
    bank = [
        words("We will rob a bank next week !"),
        words("The children skipped stones by the bank of the river ."),
        words("I put money in the bank ."),
    ]
    assert neighbour_words(bank, (5, 7, 6)) == ("rob", "river", "money")  # stones and the river are equally far
    # Both have "red" and "cat", and the second has "red" twice.
    cats = [words("This is a red cat with a hat"), words("Red cats see my red cat")]
    assert neighbour_words(cats, (5, 6)) == ("hat", "see")
    dogs = [words("The dog bit the man"), words("The man bit the dog"), words("The man was bitten by the dog")]
    assert neighbour_words(dogs, (2, 5, 7)) == ("bit", "bit", "bitten")
    assert neighbour_words([words("the cat"), words("the cat")], (2, 2)) == ("", "")
    assert neighbour_words([words("the black cat")], (3,)) == ("black",)
    assert neighbour_words([], ()) == ()


def test_the_token_at_a_place_is_the_first_that_shares_a_character_with_it():
    text = sentence("embankment", [("em", 0, 0, 2), ("##bank", 0, 2, 6), ("##ment", 0, 6, 10)])
    assert [position_at(text, *span) for span in ((0, 2), (2, 6), (5, 7), (6, 10), (10, 12))] == [1, 2, 2, 3, None]
    assert position_at(text, 0, 2, in_pair=True) is None
