"""Leave one out against a score that can be worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.leave_one_out import leave_one_out, without, words_of

QUERY, DOCUMENT = "The cat, unputdownable", "a cat (the red one) sat."


def points(queries, documents):
    """The letters of the first text plus ten times the words of the second."""
    return np.array([len(q) + 10 * len(d.split()) for q, d in zip(queries, documents, strict=True)], np.float32)


def test_words_are_the_tokenizers_without_punctuation(embedded):
    (pair,) = embedded.tokenize([QUERY], [DOCUMENT])
    words = words_of(pair)
    assert [word.text for word in words if not word.in_pair] == ["The", "cat", "unputdownable"]
    assert [word.text for word in words if word.in_pair] == ["a", "cat", "the", "red", "one", "sat"]
    for word in words:
        assert (DOCUMENT if word.in_pair else QUERY)[word.start : word.end] == word.text
    (truncated,) = embedded.tokenize([QUERY], [DOCUMENT], max_length=12)
    assert len(words_of(truncated)) < len(words)


def test_a_text_without_a_word_keeps_the_rest(embedded):
    (pair,) = embedded.tokenize([QUERY], [DOCUMENT])
    shown = [without(DOCUMENT if word.in_pair else QUERY, word) for word in words_of(pair)]
    assert shown == [
        "cat, unputdownable",
        "The , unputdownable",
        "The cat,",
        "cat (the red one) sat.",
        "a (the red one) sat.",
        "a cat ( red one) sat.",
        "a cat (the one) sat.",
        "a cat (the red ) sat.",
        "a cat (the red one) .",
    ]


def test_drops_are_differences_of_one_call(embedded):
    (pair,) = embedded.tokenize([QUERY], [DOCUMENT])
    calls = []

    def counted(queries, documents):
        calls.append(len(queries))
        return points(queries, documents)

    result = leave_one_out(pair, counted)
    assert calls == [1 + len(result.words)]
    assert result.score == len(QUERY) + 10 * 6
    expected = [4, 3, 14, 10, 10, 0, 10, 0, 0]
    assert result.drops.tolist() == expected
    (single,) = embedded.tokenize([QUERY])
    with pytest.raises(ValueError, match="pair"):
        leave_one_out(single, points)


def test_the_cross_encoders_drops_are_its_scores(embedded):
    from components.model.backend import Backend

    scorer = Backend.load("embedded-cross-encoder", device_name="cpu")
    (pair,) = scorer.tokenize(["a cat sleeps"], ["the cat is asleep"])
    result = leave_one_out(pair, scorer.score_pairs)
    plain = scorer.score_pairs(["a cat sleeps", "a sleeps"], ["the cat is asleep"] * 2)
    assert result.drops[1] == pytest.approx(plain[0] - plain[1], abs=1e-5)
    assert result.drops[1] > 0.1  # both are about the cat
