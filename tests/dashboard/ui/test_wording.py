"""The words for numbers: the labels of cells that hold several tokens."""

from __future__ import annotations

from components.model.trace import Token, TokenizedSentence
from dashboard.ui import wording
from tests.support.pages import backend


def test_cells_are_named_by_the_first_and_the_last_of_their_tokens() -> None:
    assert wording.cell_labels(7, 3) == ["0–2", "3–5", "6"]
    assert wording.cell_labels(3, 1) == ["0", "1", "2"]
    assert wording.first_to_last([4, 6, 9]) == "4–9"


def test_what_is_quoted_is_shown_as_typed_and_cut_with_an_ellipsis() -> None:
    assert wording.quoted("*b*") == r"“\*b\*”"
    assert wording.quoted("a" * 20) == f"“{'a' * 20}”"
    assert wording.quoted("a" * 21) == f"“{'a' * 19}…”"
    assert wording.quoted("_" * 5, most=3) == r"“\_\_…”"  # cut before it is escaped


def test_a_token_is_named_as_its_word_and_a_piece_with_the_word_that_it_belongs_to() -> None:
    sentence = backend().tokenize(["Das Krankenhaus."])[0]
    named = [wording.named(sentence, token.position).replace("\\", "") for token in sentence.tokens]
    assert named[:2] == ["“[CLS]”", "“Das”"]
    assert named[3].startswith("“##")
    assert named[3].endswith("” of “Krankenhaus”")
    # A piece of other vocabularies has the space before it in its spelling.
    pieces = [Token(0, "Ġbank", 5, 0, False, False, 0, 1, 5), Token(1, "Ġri", 6, 0, False, False, 1, 6, 8)]
    last = Token(2, "ver", 7, 0, False, False, 1, 8, 11)
    spaced = TokenizedSentence(" bank river", None, (*pieces, last), ())
    assert [wording.named(spaced, at) for at in (0, 2)] == ["“bank”", "“ver” of “river”"]


def test_a_long_text_is_cut_between_words_and_around_the_first_mark() -> None:
    far = f"{'nothing here ' * 100}the storm came. {'and then ' * 100}"
    shown = wording.with_shared_words("A storm", far)
    assert shown.startswith("… ")
    assert "<mark>storm</mark> came." in shown
    assert shown.endswith((" and …", " then …"))
    early = wording.with_shared_words("A storm", f"A storm. {'abcdefg ' * 100}")
    assert early.startswith("A <mark>storm</mark>. abcdefg ")
    assert early.endswith(" abcdefg …")
    assert wording.with_shared_words("storm", "Storm & sea") == "<mark>Storm</mark> &amp; sea"
    assert wording.with_shared_words("q", "字" * 700) == f"{'字' * 600} …"  # no space to cut at
    assert wording.beginning("some words", 7) == "some …"
    assert wording.beginning("some words", 10) == "some words"
