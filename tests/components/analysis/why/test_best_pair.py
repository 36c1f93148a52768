"""Which two sentences are compared first, on sentences that nobody had in view."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.why.best_pair import best_pair


def vectors_of(*angles: float) -> np.ndarray:
    return np.array([[np.cos(angle), np.sin(angle)] for angle in angles])


@pytest.mark.parametrize(
    ("texts", "angles", "pair"),
    [
        (["Hello"], [0.0], (0, 0)),
        ([], [], (0, 0)),
        (["same text", "same text"], [0.0, 0.0], (0, 1)),  # two equal sentences, and no others
        (["A dog barks.", "A dog barks.", "Dogs sleep."], [0.0, 0.0, 0.9], (0, 2)),  # equal texts are no pair
        (["The bank fell.", "A cloud.", "My bank won."], [0.0, 0.1, 1.0], (0, 2)),  # a shared word before the nearest
        (["A bat flew.", "It rained.", "Two bats sat."], [0.0, 0.1, 1.0], (0, 2)),  # in another form
        (["Rain fell.", "Snow melted.", "Wind blew."], [0.0, 0.8, 1.0], (1, 2)),  # nothing shared: the most similar
        (["It is the one.", "It is the two.", "A cat."], [0.0, 0.9, 0.1], (0, 2)),  # words of grammar do not count
        (["Der Hund schläft.", "Ein Hund bellt.", "Die Katze."], [0.0, 0.5, 0.1], (0, 1)),
        ([" ".join(["word"] * 60), "word", "else"], [0.0, 1.0, 0.0], (0, 1)),
        (["!!!", "???", "..."], [0.0, 0.5, 0.6], (1, 2)),
        (["bank a", "bank b", "bank c"], [0.0, 0.0, 0.0], (0, 1)),  # a tie: the first ones
    ],
)
def test_two_that_share_a_word_or_else_the_most_similar(
    texts: list[str], angles: list[float], pair: tuple[int, int]
) -> None:
    assert best_pair(texts, vectors_of(*angles)) == pair
