"""Sentences on one line: where it is divided, and that what is written is read back."""

from __future__ import annotations

import pytest

from components.words.lines import on_one_line, sentences_in


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("We will rob a bank! I put money in it.", ("We will rob a bank!", "I put money in it.")),
        ("Dr. Smith met J. Jones in St. Louis. He left.", ("Dr. Smith met J. Jones in St. Louis.", "He left.")),
        ("It costs 3.5 euros. 20 people paid.", ("It costs 3.5 euros.", "20 people paid.")),
        ("wait... what", ("wait... what",)),
        ("Hmmm. That is odd.", ("Hmmm.", "That is odd.")),
        ('"Why?" she said. "Because."', ('"Why?" she said.', '"Because."')),
        ("你好。我很好！再见", ("你好。", "我很好！", "再见")),
        ("a bank | the river", ("a bank", "the river")),
        ("one\n\ntwo", ("one", "two")),
        ("  ", ()),
        ("He came. élan won.", ("He came. élan won.",)),
        ("Prof. Smith teaches in the U.S. Army. We left.", ("Prof. Smith teaches in the U.S. Army.", "We left.")),
        ("Cities, e.g. Paris, grow. So do we.", ("Cities, e.g. Paris, grow.", "So do we.")),
    ],
)
def test_where_a_line_is_divided(line: str, expected: tuple[str, ...]) -> None:
    assert sentences_in(line) == expected


@pytest.mark.parametrize(
    "sentences",
    [
        ("The food was good.", "The food was not good."),
        ("a bank", "the river"),
        ("Dr.", "Who"),
        ("One.", "two"),
        ("x",),
        (),
    ],
)
def test_what_is_written_is_read_back(sentences: tuple[str, ...]) -> None:
    assert sentences_in(on_one_line(sentences)) == sentences
