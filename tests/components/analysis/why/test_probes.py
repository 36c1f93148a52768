"""The probe reads what is there and only that; its control task measures learning by heart."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from components.analysis.why import probes
from components.analysis.why.probes import control_labels, probe_layers, repeated_forms
from components.jobs import Stopped

PAIRS, DIM = 30, 60


@pytest.fixture(scope="module")
def vectors():
    """[layer 2, side, pair, dim]: topics that dwarf the rest; then also the side's own direction."""
    numbers = np.random.default_rng(1)
    topics = np.repeat(3 * numbers.standard_normal((1, PAIRS, DIM)), 2, axis=0)
    noise = topics + 0.3 * numbers.standard_normal((2, PAIRS, DIM))
    sided = noise.copy()
    sided[1] += 2 * numbers.standard_normal(DIM)
    return np.stack([noise, sided])


@pytest.fixture(scope="module")
def result(vectors):
    return probe_layers(vectors, [(f"a{n}", f"b{n}") for n in range(PAIRS)])


def test_a_direction_is_found_and_noise_is_not(result):
    assert result.accuracy[1] > 0.9
    assert result.accuracy[0] < 0.7
    assert result.right.shape == result.control.shape == (2, PAIRS)
    np.testing.assert_allclose(result.selectivity, result.accuracy - result.control_accuracy)


def test_the_folds_are_scikit_learns_cross_validation(vectors, result):
    """Both sentences of a pair are in one fold, and each fold is standardised by the others."""
    folds = np.random.default_rng(0).permutation(PAIRS) % probes.FOLDS
    model = make_pipeline(StandardScaler(), LogisticRegression(C=probes.C, max_iter=500))
    rows, labels = vectors[1].reshape(-1, DIM), np.repeat([False, True], PAIRS)
    predicted = cross_val_predict(model, rows, labels, cv=PredefinedSplit(np.tile(folds, 2)))
    expected = (predicted == labels).reshape(2, PAIRS).mean(axis=0)
    np.testing.assert_array_equal(result.right[1], expected)


def test_forms_that_come_again_can_be_learnt_by_heart():
    """Each form has a direction of its own: the control task is then as easy as the probe's, and selectivity is low."""
    numbers = np.random.default_rng(2)
    forms = [(f"yes{n % 3}", f"no{n % 3}") for n in range(PAIRS)]
    directions = {form: 3 * numbers.standard_normal(DIM) for both in forms for form in both}
    vectors = np.array([[directions[both[side]] for both in forms] for side in range(2)])
    vectors = vectors + 0.1 * numbers.standard_normal(vectors.shape)
    found = probe_layers(vectors[None], forms)
    assert found.repeated == 2 * PAIRS
    assert found.accuracy[0] == 1
    assert found.control_accuracy[0] > 0.95
    assert abs(found.selectivity[0]) < 0.05


def test_equal_vectors_are_read_by_chance():
    """As those of [CLS] at layer 0."""
    found = probe_layers(np.ones((1, 2, 20, 8)), [("is", "is not")] * 20)
    assert found.accuracy[0] == 0.5


def test_a_form_has_one_label_and_labels_are_balanced():
    forms = [(f"f{n % 7}", f"g{n}") for n in range(40)]
    labels = control_labels(forms, 3)
    assert labels.shape == (2, 40)
    by_form: dict[str, set[bool]] = {}
    for pair, both in enumerate(forms):
        for side, form in enumerate(both):
            by_form.setdefault(form, set()).add(bool(labels[side, pair]))
    assert all(len(own) == 1 for own in by_form.values())
    assert abs(labels.mean() - 0.5) < 0.1
    assert (labels == control_labels(forms, 3)).all()
    assert (labels != control_labels(forms, 4)).any()


def test_repeated_forms_count_sentences_of_different_pairs():
    assert repeated_forms([("is", "is not"), ("is", "was"), ("a", "a")]) == 2


def test_too_few_pairs_and_a_stop(vectors):
    with pytest.raises(ValueError, match="9 pairs"):
        probe_layers(vectors[:, :, :9], [("a", "b")] * 9)
    with pytest.raises(Stopped):
        probe_layers(vectors, [("a", "b")] * PAIRS, is_stopped=lambda: True)
