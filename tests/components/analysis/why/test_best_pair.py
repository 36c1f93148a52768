"""Which two sentences are compared first, on sentences that nobody had in view."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.why import best_pair as module
from components.analysis.why.best_pair import best_pair
from components.words.forms import are_forms, stems_of


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


def test_each_word_is_asked_for_its_stems_once_and_not_for_every_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(word: str) -> frozenset[str]:
        asked.append(word)
        return stems_of(word)

    monkeypatch.setattr(module, "stems_of", counted)
    rng = np.random.default_rng(0)
    texts = [" ".join("".join(rng.choice(list("aeiounrt"), 7)) for _ in range(45)) for _ in range(64)]
    best_pair(texts, rng.normal(size=(64, 8)))
    assert len(asked) <= 64 * 45


def test_two_texts_share_a_word_exactly_if_two_of_their_words_are_forms_of_one() -> None:
    texts = (
        "Banks made countries.",
        "He was making it.",
        "A country's glass",
        "swimming",
        "The swim",
        "Busy buses.",
        "hot",
    )
    words = [[word.strip(".").lower() for word in text.split()] for text in texts]
    stems = [module._stems_of(text) for text in texts]
    for a in range(len(texts)):
        for b in range(len(texts)):
            content = [[w for w in words[at] if not module.is_function_word(w)] for at in (a, b)]
            assert (not stems[a].isdisjoint(stems[b])) == any(
                are_forms(one, other) for one in content[0] for other in content[1]
            )
