"""Senses: the measures by hand and by scikit-learn, and the ready-made words on the embedded model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import silhouette_score
from sklearn.neighbors import KNeighborsClassifier

from components.analysis import word_senses
from components.analysis.maps import token_set
from components.analysis.word_senses import clusters, nearest_neighbour_accuracy, sense_curve
from components.arrays import unit
from components.jobs import Stopped
from components.retrieval.corpora.senses import meant_occurrences, read_senses
from tests.support.places import ASSETS

SENSES = ASSETS / "senses.jsonl"


@pytest.fixture
def two_senses() -> tuple[np.ndarray, list[str]]:
    """Mixed at layer 0, apart at layer 1; [layer, occurrence, dim]."""
    random = np.random.default_rng(2)
    labels = ["river"] * 8 + ["money"] * 12
    middle = np.where(np.array(labels)[:, None] == "river", 3.0, -3.0)
    noise = random.normal(size=(20, 6))
    return np.array([noise, noise + middle * np.eye(6)[0]], np.float32), labels


def test_the_curve_equals_scikit_learns(two_senses):
    vectors, labels = two_senses
    curve = sense_curve(vectors, labels)
    for layer, own in enumerate(vectors):
        assert curve.silhouette[layer] == pytest.approx(silhouette_score(own, labels, metric="cosine"), abs=1e-5)
        right = []
        for out in range(20):
            rest = [row for row in range(20) if row != out]
            model = KNeighborsClassifier(1, metric="cosine").fit(own[rest], np.array(labels)[rest])
            right.append(model.predict(own[[out]])[0] == labels[out])
        assert curve.accuracy[layer] == pytest.approx(np.mean(right))
    assert curve.majority == pytest.approx(0.6)
    assert curve.best == 1


def test_equal_neighbours_count_as_a_guess():
    same = unit(np.ones((4, 3), np.float32))
    assert nearest_neighbour_accuracy(same, np.array([0, 0, 1, 1])) == pytest.approx(1 / 3)


def test_of_equally_accurate_layers_the_clearest_is_best():
    curve = word_senses.SenseCurve(np.array([0.1, 0.4, 0.3], np.float32), np.array([0.5, 1, 1], np.float32), 0.5)
    assert curve.best == 1
    assert word_senses.SenseCurve(np.array([0.9, 0.4]), np.array([0.5, 1]), 0.5).best == 1  # accuracy comes first


@pytest.mark.parametrize("labels", [["a"] * 6, ["a", "b", "c"], ["a", "b", "c", "d", "e", "e"]])
def test_too_little_to_tell_senses_apart_is_refused(labels):
    with pytest.raises(ValueError, match="two senses"):
        sense_curve(np.ones((1, len(labels), 3), np.float32), labels)


def test_clusters_find_the_groups_and_their_most_typical(two_senses):
    vectors, labels = two_senses
    found = clusters(vectors[1])
    assert sorted(row for group in found for row in group.members) == list(range(20))
    assert [len(group.members) for group in found] == [12, 8]
    assert all(len({labels[row] for row in group.members}) == 1 for group in found)
    directions = unit(vectors[1])
    for group in found:
        middle = directions[group.members].mean(axis=0)
        cosines = directions[group.members] @ middle
        assert group.typical[0] == group.members[cosines.argmax()]
        assert set(group.typical) <= set(group.members)


def test_grouping_ends_between_two_numbers_of_groups(two_senses):
    asked = []

    def is_stopped():
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(Stopped):
        clusters(two_senses[0][1], is_stopped=is_stopped)
    assert len(asked) == 3


def test_clusters_of_identical_or_few_occurrences():
    assert [len(group.members) for group in clusters(np.ones((5, 3), np.float32))] == [5]
    with pytest.raises(ValueError, match="at least 4"):
        clusters(np.ones((3, 3), np.float32))


def test_the_ready_made_words_are_as_promised():
    found = read_senses(SENSES, "senses.jsonl")
    assert found.bad_rows == 0
    assert len(found.words) >= 12
    for word in found.words:
        rows = found.of(word)
        senses = {row.sense for row in rows}
        assert len(senses) >= 2
        assert all(sum(row.sense == sense for row in rows) >= 10 for sense in senses)
    sentences = [row.sentence for row in found.rows]
    assert len(set(sentences)) == len(sentences)
    # Varied wording: hardly any two begin with the same three words.
    openings = [" ".join(sentence.split()[:3]).casefold() for sentence in sentences]
    assert len(set(openings)) > 0.9 * len(openings)


def test_the_senses_of_the_ready_made_words_part_in_the_embedded_model(embedded):
    found = read_senses(SENSES, "senses.jsonl")
    gains, better = [], []
    for word in found.words:
        rows = found.of(word)
        texts = [row.sentence for row in rows]
        every = token_set.of_corpus(("test",), embedded.token_vectors(texts, word=word), texts, {})
        chosen, missing = meant_occurrences(rows, [(t.sentence, t.start, t.end) for t in every.tokens])
        assert missing == []
        curve = sense_curve(every.vectors[:, chosen], [rows[every.tokens[at].sentence].sense for at in chosen])
        gains.append(curve.accuracy[curve.best] - curve.majority)
        better.append(curve.accuracy[curve.best] > curve.accuracy[0])
    assert np.mean(gains) >= 0.15
    assert all(better)


def test_the_nearest_other_occurrence_and_ties_that_count_against() -> None:
    vectors = np.array([[1.0, 0.0], [0.99, 0.1], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    found = word_senses.nearest_other(vectors, ["a", "a", "b", "b", "a"])
    assert found.rows.tolist()[:2] == [1, 0]
    assert found.same.tolist() == [1.0, 1.0, 0.5, 0.5, 0.0]
    assert found.rows[2] == 4  # of two equally near ones that of another sense
    assert found.cosines[2] == pytest.approx(1.0)


def test_by_chance_is_the_share_of_a_random_other() -> None:
    assert word_senses.by_chance(["a"] * 10 + ["b"] * 10) == pytest.approx(9 / 19)
    assert word_senses.by_chance(["a", "b"]) == 0.0
    assert np.isnan(word_senses.by_chance(["a"]))
