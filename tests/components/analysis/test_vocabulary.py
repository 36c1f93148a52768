import pytest

from components.analysis.vocabulary import Kinds, beginning_alike, kinds, search
from components.errors import InputError
from components.model.backend import Backend
from components.words.function import FUNCTION_WORDS

PIECES = ("[PAD]", "the", "The", "bank", "##bank", "banking", "", "river", "embankment", "Ġbank")


@pytest.mark.parametrize(
    ("mode", "text", "ids"),
    [
        ("begins with", "bank", (3, 5)),
        ("begins with", "BANK", (3, 5)),
        ("begins with", "  the ", (1, 2)),
        ("begins with", "##", (4,)),
        ("begins with", "[p", (0,)),
        ("begins with", "ġb", (9,)),  # upper and lower case alike, also for the byte-level space
        ("begins with", "zebra", ()),
        ("contains", "bank", (3, 4, 5, 8, 9)),
        ("contains", "##", (4,)),
        ("contains", ".*", ()),  # text, not a pattern
        ("id", "3", (3,)),
        ("id", " 3 ", (3,)),
        ("id", "0", (0,)),
        ("id", "2-4", (2, 3, 4)),
        ("id", "2 - 4", (2, 3, 4)),
        ("id", "8-999", (8, 9)),
        ("id", "9", (9,)),
        ("id", "10", ()),
        ("id", "4-2", ()),
        ("id", "5-7", (5, 7)),  # 6 is a gap: no piece has this id
        ("id", "6", ()),
    ],
)
def test_hits(mode, text, ids):
    hits = search(PIECES, text, mode)
    assert hits.ids == ids
    assert hits.pieces == tuple(PIECES[number] for number in ids)
    assert hits.total == len(ids)


@pytest.mark.parametrize("mode", ["begins with", "contains", "id"])
@pytest.mark.parametrize("text", ["", "   ", "\t\n"])
def test_empty_text_matches_nothing(mode, text):
    hits = search(PIECES, text, mode)
    assert (hits.ids, hits.pieces, hits.total) == ((), (), 0)


@pytest.mark.parametrize("text", ["bank", "-3", "3-", "-", "1-2-3", "3.5", "1e3", "0x10", "1,2", "²", "9" * 5_000])
def test_what_is_not_an_id_is_refused_with_what_was_expected(text):
    with pytest.raises(InputError) as caught:
        search(PIECES, text, "id")
    assert repr(text) in caught.value.problem
    assert "0 to 9" in caught.value.expected
    assert "beginning" in caught.value.fix


def test_the_limit_cuts_the_list_but_not_the_count():
    hits = search(PIECES, "bank", "contains", limit=2)
    assert hits.ids == (3, 4)
    assert hits.pieces == ("bank", "##bank")
    assert hits.total == 5


def test_the_embedded_vocabulary(embedded):
    vocabulary = embedded.tokenization.vocabulary
    assert len(vocabulary) == 30_522
    bank = search(vocabulary, "bank")
    assert bank.pieces[0] == "bank"
    assert all(piece.startswith("bank") for piece in bank.pieces)
    assert bank.total == sum(piece.startswith("bank") for piece in vocabulary)
    assert search(vocabulary, "100-103", "id").pieces == ("[UNK]", "[CLS]", "[SEP]", "[MASK]")
    everything = search(vocabulary, "0-40000", "id")
    assert len(everything.ids) == 200
    assert everything.total == 30_522


def test_what_begins_alike_is_what_a_search_finds_without_the_piece_itself(embedded: Backend) -> None:
    vocabulary = embedded.tokenization.vocabulary
    pieces = ["bank", "##able", "a", "[UNK]", "[CLS]", "un", "!"]
    for piece, alike in zip(pieces, beginning_alike(vocabulary, pieces), strict=True):
        found = search(vocabulary, piece, limit=100_000)
        others = [entry for entry in found.pieces if entry != piece]
        assert alike.total == found.total - 1 == len(others), piece
        assert list(alike.first) == others[:3]


def test_a_piece_that_is_not_there_and_one_in_two_forms() -> None:
    assert [(alike.total, alike.first) for alike in beginning_alike(PIECES, ["the", "bank", "zebra", ""], named=1)] == [
        (1, ("The",)),
        (1, ("banking",)),
        (0, ()),
        (0, ()),
    ]


def test_the_mark_of_most_pieces_says_which_begin_or_continue_a_word(embedded: Backend) -> None:
    vocabulary = embedded.tokenization.vocabulary
    words = sorted(vocabulary.index(word) for word in FUNCTION_WORDS if word in vocabulary)
    own = kinds(vocabulary)
    assert own == Kinds(
        "##",
        False,
        sum(p[:2] == "##" and len(p) > 2 for p in vocabulary),
        30_522,
        len(words),
        words[(len(words) - 1) // 2],
    )
    assert sum(number <= own.middle_id for number in words) * 2 >= len(words)
    assert kinds(["\u0120the", "\u0120a", "b", "", "##c"]) == Kinds("\u0120", True, 2, 4, 2, 0)
    within = ["the", "\u0120river", "\u0120the", "a", "\u0120a", "\u0120of"]  # "the" of "other" is not the word
    assert kinds(within) == Kinds("\u0120", True, 4, 6, 3, 4)
    assert kinds(["a", "b", "##"]) is None
