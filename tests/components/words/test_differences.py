"""In what two texts differ: the kind by the words alone, and what is marked."""

from __future__ import annotations

import pytest

from components.words.differences import Kind, difference, shared


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("The train was late.", "The train was not late.", "negation"),
        ("She doesn't smoke at home.", "She smokes at home.", "negation"),
        ("It is not never late.", "It is late.", "word"),  # two negations are none
        ("The dog chased the cat.", "The cat chased the dog.", "order"),
        ("Bake it at 150 degrees.", "Bake it at 230 degrees.", "number"),
        ("It costs two pounds.", "It costs twenty-one pounds.", "number"),
        ("The old VTR-90B gives ninety watts.", "The new VTR-09B gives forty-five watts.", "number"),
        ("Millions of birds cross.", "Thousands of birds cross.", "number"),
        ("In the first half of May.", "In the second half of May.", "number"),
        ("The first half was dull.", "The last half was dull.", "opposite"),
        ("Wait a second here.", "Wait a moment here.", "word"),
        ("We meet on Monday.", "We meet on Friday.", "day"),
        ("We meet on Monday.", "We meet on time.", "word"),
        ("He left before noon came.", "He left after noon came.", "opposite"),
        ("The box is too big.", "The box is too small.", "opposite"),
        ("They met in Madrid.", "They met in Oslo.", "word"),
        ("Snow delayed the train.", "A blizzard made the rail service late.", "wording"),
        ("He came, late.", "he came late", "marks"),
        ("", "word", "wording"),
    ],
)
def test_the_kind_of_a_difference(first: str, second: str, kind: Kind) -> None:
    assert difference(first, second).kind == kind
    assert difference(second, first).kind == kind


def test_the_pieces_are_the_texts_and_moved_words_are_marked_by_their_place() -> None:
    found = difference("The small company bought the large company.", "The large company bought the small company.")
    assert [piece.text for piece in found.first if piece.differs] == ["small", "large"]
    assert [piece.text for piece in found.second if piece.differs] == ["large", "small"]
    for text, pieces in (("The small company bought the large company.", found.first),):
        assert " ".join(piece.text for piece in pieces) == text
    found = difference("The dog chased the cat.", "The cat chased the dog.")
    assert [piece.text for piece in found.first if piece.differs] == ["dog", "cat."]
    found = difference("I met him today.", "I met him <b>tomorrow</b>.")
    assert [piece.text for piece in found.second if piece.differs] == ["<b>tomorrow</b>."]


def test_words_that_only_one_text_has_are_marked_wherever_the_others_stand() -> None:
    found = shared(difference("The dog chased the cat today.", "A cat chased the dog."))
    first, second = ([(piece.text, piece.differs) for piece in side] for side in (found.first, found.second))
    assert first == [("The dog chased the cat", False), ("today.", True)]
    assert second == [("A", True), ("cat chased the dog.", False)]


def test_vowel_signs_at_the_end_of_a_word_count():
    """The marks around a word are left out, but a vowel sign belongs to it."""
    assert difference("वह लड़का है", "वह लड़की है").kind == "word"
    assert difference("वह लड़का है।", "(वह) लड़का है").kind == "marks"
    assert difference("İstanbul e\u0301te\u0301", "istanbul été").kind == "marks"
