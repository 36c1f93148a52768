"""The words for numbers, times, texts and blocks, and the labels of cells that hold several tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 s"),
        (12.4, "12 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (200, "3 min"),
        (5_340, "89 min"),
        (5_400, "1 h 30 min"),
        (8_000, "2 h 13 min"),
    ],
)
def test_a_time_is_said_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert wording.duration(seconds) == said


def test_a_text_is_shortened_to_one_line_with_an_ellipsis() -> None:
    assert wording.shortened("two\n lines", 9) == "two lines"
    assert wording.shortened("two  lines ", 8) == "two line…"
    assert wording.shortened("two lines", 4) == "two…"


def test_what_a_block_of_local_attention_sees() -> None:
    of: Any = SimpleNamespace(windows=(None, 4, 4, None))
    assert wording.window_of(of, 0, 9) == "Block 0 is global: each token sees all others. Global blocks: 0, 3."
    local = "Block 1 is local: each token sees 4 tokens on either side."
    assert wording.window_of(of, 1, 6) == f"{local} Global blocks: 0, 3."  # the sixth token is 5 away from the first
    hidden = "This text has only 5 tokens, so that the window hides nothing here."
    assert wording.window_of(of, 1, 5) == f"{local} {hidden} Global blocks: 0, 3."
    assert wording.window_of(SimpleNamespace(windows=(4, 4)), 0, 9).endswith("No block sees all tokens.")  # type: ignore[arg-type]
    assert wording.window_of(SimpleNamespace(windows=(None, None)), 0, 9) == ""  # type: ignore[arg-type]
