"""The stored pictures hold what the included model gives, and what they show is there before a model is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashboard.jobs.stored import included_words
from dashboard.views.home import stored, whole
from tests.support import plain_encoder as plain


@pytest.fixture(scope="module")
def measured(embedded: Any) -> stored.StoredNumbers:
    return stored.measured(embedded)


def test_the_file_holds_what_the_included_model_gives(measured: stored.StoredNumbers) -> None:
    kept = stored.stored()
    assert kept.revision == measured.revision == whole.revision()
    assert (kept.model, kept.blocks, kept.heads, kept.parameters) == (
        measured.model,
        measured.blocks,
        measured.heads,
        measured.parameters,
    )
    assert (kept.senses.word, kept.senses.labels, kept.senses.sentences) == (
        measured.senses.word,
        measured.senses.labels,
        measured.senses.sentences,
    )
    np.testing.assert_allclose(kept.senses.accuracy, measured.senses.accuracy, atol=1e-5)
    np.testing.assert_allclose(np.abs(kept.senses.maps), np.abs(measured.senses.maps), atol=5e-3)  # mirrored or not
    for name in ("negations", "paraphrases"):
        np.testing.assert_allclose(getattr(kept.blindness, name), getattr(measured.blindness, name), atol=1e-4)
    for name in ("opposite", "paraphrase"):
        ours, theirs = getattr(kept.blindness, name), getattr(measured.blindness, name)
        assert (ours.first, ours.second) == (theirs.first, theirs.second)
        assert ours.cosine == pytest.approx(theirs.cosine, abs=1e-4)


def test_the_kept_habits_are_those_of_the_included_model(embedded: Any) -> None:
    measured_ones, kept = included_words.measured_habits(embedded), included_words.kept_habits(embedded)
    assert kept is not None
    np.testing.assert_allclose(kept.weights, measured_ones.weights, atol=2 / included_words.WHOLE)


def test_the_similarities_by_plain_transformers() -> None:
    for pair in (stored.stored().blindness.opposite, stored.stored().blindness.paraphrase):
        first, second = (plain.run(text).vectors[-1].mean(axis=0) for text in (pair.first, pair.second))
        assert pair.cosine == pytest.approx(float(plain.cosine(first, second)), abs=1e-4)


def test_the_strips_fit_their_axis_and_show_all_pairs() -> None:
    blindness = stored.stored().blindness
    assert (len(blindness.negations), len(blindness.paraphrases)) == (42, 44)
    assert all(0 <= cosine <= 1 for cosine in (*blindness.negations, *blindness.paraphrases))
    assert list(blindness.negations) == sorted(blindness.negations)
