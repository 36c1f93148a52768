"""The word that names a sentence: one that only it has, nearest to the mean of its tokens by plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.first_look.telling import names_of, telling_words
from tests.support.pages import backend

BANK = [
    "We will rob a bank next week!",
    "The children skipped stones by the bank of the river.",
    "I put money in the bank.",
]


def test_of_the_words_that_only_a_sentence_has_the_nearest_to_its_mean_is_taken() -> None:
    trace = backend().trace(BANK)
    found = telling_words(trace)
    assert len(found) == 3
    for row, (sentence, name) in enumerate(zip(trace.sentences, found, strict=True)):
        hidden = trace.hidden_states[-1, row, : len(sentence)].astype(np.float64)
        mean = hidden[[not token.special for token in sentence.tokens]].mean(axis=0)
        cosines = {
            token.piece: float(
                hidden[token.position] @ mean / np.linalg.norm(hidden[token.position]) / np.linalg.norm(mean)
            )
            for token in sentence.tokens
            if token.piece in ("rob", "week", "next", "children", "skipped", "stones", "river", "put", "money")
        }
        own = cosines[name.lower()]
        content = {piece: value for piece, value in cosines.items() if piece != "next"}
        assert own == pytest.approx(max(content.values()), abs=1e-5)
    assert "bank" not in found


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (["A cat sat.", "A cat sat."], ("", "")),  # two equal sentences
        (["A vote.", "Many votes."], ("", "")),  # forms of one word
        (["!!!", "Rain fell on it."], ("", None)),
        (["Der Hund bellt.", "Der Hund schläft."], ("bellt", "schläft")),
    ],
)
def test_sentences_without_a_word_of_their_own_have_none(
    sentences: list[str], expected: tuple[str | None, ...]
) -> None:
    found = telling_words(backend().trace(sentences))
    for name, wanted in zip(found, expected, strict=True):
        assert name == wanted if wanted is not None else name


def test_names_are_words_or_numbers() -> None:
    assert names_of(("river", "", "money")) == ("1", "2", "3")
