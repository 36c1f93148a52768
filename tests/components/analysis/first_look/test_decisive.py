"""What heads do anyway, and the head that looks most decisively: by plain loops over plain transformers."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.first_look.decisive import REACH, Habits, habits_of, most_decisive
from components.analysis.first_look.words import words_of
from components.model.backend import Backend
from tests.components.analysis.handmade import words
from tests.support import plain_encoder as plain

TEXTS = (
    "We caught the mouse in the pantry.",
    "It rains.",
    "The trophy does not fit in the suitcase because it is too big.",
)


def plain_habits(texts: tuple[str, ...]) -> np.ndarray:
    """By a loop over all pairs of tokens that are not special, [block, head, distance + REACH]."""
    total, count = np.zeros((6, 12, 2 * REACH + 1)), np.zeros(2 * REACH + 1)
    for text in texts:
        attention = plain.run(text).attention
        length = attention.shape[-1]
        for query in range(1, length - 1):
            for key in range(1, length - 1):
                if abs(key - query) <= REACH:
                    total[:, :, key - query + REACH] += attention[:, :, query, key]
                    count[key - query + REACH] += 1
    return total / np.maximum(count, 1)


def test_habits_are_the_mean_weights_by_distance(embedded: Backend) -> None:
    expected = plain_habits(TEXTS)
    found = habits_of([embedded.trace(TEXTS, attentions=True)])
    np.testing.assert_allclose(found.weights, expected, atol=2e-5)
    one_by_one = habits_of(embedded.trace([text], attentions=True) for text in TEXTS)
    np.testing.assert_allclose(one_by_one.weights, expected, atol=2e-5)
    np.testing.assert_array_equal(found.at(np.array([-999, 0])), found.weights[:, :, [0, REACH]])


def test_a_trace_without_attentions_is_refused(embedded: Backend) -> None:
    with pytest.raises(ValueError, match="no attentions"):
        habits_of([embedded.trace(TEXTS)])
    with pytest.raises(ValueError, match="no sentence"):
        habits_of([])


def test_the_most_decisive_head_by_a_loop_over_all(embedded: Backend) -> None:
    text, usual = TEXTS[2], plain_habits(TEXTS)
    reference = plain.run(text)
    trace = embedded.trace([text], attentions=True)
    found = words_of(trace.sentences)
    (word,) = [each for each in found if each.text == "it"]
    assert trace.attentions is not None
    look = most_decisive(trace.attentions[:, 0], word, found, habits_of([embedded.trace(TEXTS, attentions=True)]))
    assert look is not None
    query = reference.pieces.index("it")
    content = [reference.pieces.index(piece) for piece in ("trophy", "fit", "suitcase", "big")]
    best = max(
        (reference.attention[block, head, query, key] - usual[block, head, key - query + REACH], block, head, key)
        for block in range(6)
        for head in range(12)
        for key in content
    )
    assert (look.block, look.head, look.target) == best[1:]
    row = reference.attention[look.block, look.head, query]
    assert look.weight == pytest.approx(row[look.target], abs=1e-5)
    assert look.weight - look.usual == pytest.approx(best[0], abs=5e-5)
    assert [key for key, _ in look.strongest] == sorted(np.argsort(-row)[:5].tolist())
    assert look.rest + sum(weight for _, weight in look.strongest) == pytest.approx(1, abs=1e-5)


def test_the_target_is_named_though_others_are_stronger() -> None:
    sentence = words("bank sold two of the six boats")
    found = words_of([sentence])
    weights = np.full((1, 1, 9, 9), 0.01, np.float32)
    weights[0, 0, 1] = [0.3, 0.2, 0.02, 0.1, 0.1, 0.1, 0.1, 0.03, 0.05]
    flat = Habits(np.zeros((1, 1, 2 * REACH + 1), np.float32))
    look = most_decisive(weights, found[0], found, flat)
    assert look is not None
    assert sentence.tokens[look.target].piece in {"boats", "six", "two", "sold"}
    assert look.target in dict(look.strongest)
    assert len(look.strongest) == 5
    habit = np.zeros((1, 1, 2 * REACH + 1), np.float32)
    habit[0, 0, REACH + (look.target - 1)] = (
        0.5  # it always does so at this distance: another target is the decisive one
    )
    other = most_decisive(weights, found[0], found, Habits(habit))
    assert other is not None
    assert other.target != look.target


def test_a_word_alone_looks_at_none() -> None:
    sentence = words("bank")
    flat = Habits(np.zeros((1, 1, 2 * REACH + 1), np.float32))
    found = words_of([sentence])
    assert most_decisive(np.full((1, 1, 3, 3), 1 / 3, np.float32), found[0], found, flat) is None
