"""Cosines of minimal pairs and the share of draws, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from components.analysis.why import contrasts
from components.analysis.why.contrasts import (
    RESAMPLES,
    changed_forms,
    changed_spans,
    pair_cosines,
    separation,
    separations,
    shares_above,
)
from components.jobs import Stopped
from tests.support.closeness import assert_close

TEXTS = {f"{side} {number}": number for side in "ab" for number in range(11)}


def embed(texts, progress, is_stopped):
    """Vectors [layer 2, pooling 1, text, dim 3] that depend on the text alone."""
    progress(len(texts), len(texts))
    rows = [np.random.default_rng([ord(text[0]), TEXTS[text]]).standard_normal((2, 1, 3)) for text in texts]
    return np.stack(rows, axis=2).astype(np.float32)


@pytest.mark.parametrize("at_once", [4, 1_024])
def test_cosines_are_those_of_the_vectors_in_blocks_of_any_size(monkeypatch, at_once):
    monkeypatch.setattr(contrasts, "PAIRS_AT_ONCE", at_once)
    first, second = [f"a {n}" for n in range(11)], [f"b {n}" for n in range(11)]
    reports = []
    found = pair_cosines(embed, first, second, progress=lambda *report: reports.append(report))
    one, other = embed(first, lambda *_: None, None), embed(second, lambda *_: None, None)

    def cosines(left, right):
        return (left * right).sum(-1) / np.linalg.norm(left, axis=-1) / np.linalg.norm(right, axis=-1)

    assert_close(found.of_pairs, cosines(one, other))
    assert sorted(found.partners) == list(range(11))
    assert not (found.partners == np.arange(11)).any()
    assert_close(found.unrelated, cosines(one, other[:, :, found.partners]))
    assert reports[-1] == (22, 22)
    with pytest.raises(ValueError, match="read-only"):
        found.of_pairs[0] = 0


def test_a_pair_without_a_stranger_has_no_unrelated_cosine():
    found = pair_cosines(embed, ["a 1"], ["b 1"])
    assert np.isfinite(found.of_pairs).all()
    assert np.isnan(found.unrelated).all()
    same = pair_cosines(embed, ["a 1", "a 1"], ["b 1", "b 2"])  # one sentence with two changes
    assert np.isnan(same.unrelated).all()
    with pytest.raises(ValueError, match="no pair"):
        pair_cosines(embed, [], [])


def test_the_share_is_the_area_under_the_roc_curve():
    numbers = np.random.default_rng(0)
    paraphrases, changed = numbers.normal(0.7, 0.1, 30).round(2), numbers.normal(0.75, 0.1, 40).round(2)
    found = separation(paraphrases, changed)
    labels = [1] * 30 + [0] * 40
    assert found.value == pytest.approx(roc_auc_score(labels, [*paraphrases, *changed]))
    assert found.low < found.value < found.high
    # The standard error of Hanley and McNeil (1982), about.
    q1, q2 = found.value / (2 - found.value), 2 * found.value**2 / (1 + found.value)
    variance = found.value * (1 - found.value) + 29 * (q1 - found.value**2) + 39 * (q2 - found.value**2)
    assert (found.high - found.low) / 3.92 == pytest.approx(np.sqrt(variance / 1_200), rel=0.15)


def test_the_extremes_and_ties():
    low, high = np.array([0.1, 0.2]), np.array([0.8, 0.9])
    assert (separation(high, low).value, separation(low, high).value) == (1, 0)
    equal = separation(np.ones(3), np.ones(4) - 1e-15)  # cosines of equal vectors differ in their last digits
    assert (equal.value, equal.low) == (0.5, 0.5)
    with pytest.raises(ValueError, match="0 paraphrases"):
        separation(np.array([]), low)


@pytest.mark.parametrize(
    ("first", "second", "spans", "forms"),
    [
        ("It is hot.", "It is not hot.", ([], ["not"]), ("is", "is not")),
        ("Can we go?", "Why can we go?", ([], ["Why"]), ("can", "why can")),
        ("We always go.", "We never go.", (["always"], ["never"]), ("always", "never")),
        ("He can swim.", "He can't swim.", (["can"], ["can't"]), ("can", "can't")),
        ("It cost 1,500 euros.", "It cost 15.5 euros.", (["1,500"], ["15.5"]), ("1,500", "15.5")),
        ("The whole bottle", "Half the bottle", (["whole"], ["Half"]), ("whole", "half")),
        ("Same words", "same Words.", ([], []), ("", "")),
        ("बच्चा खेलता है", "बच्चे खेलते हैं", (["बच्चा", "खेलता", "है"], ["बच्चे", "खेलते", "हैं"]), ("बच्चा खेलता है", "बच्चे खेलते हैं")),
        ("I write C++.", "I write C.", (["C++"], ["C"]), ("c++", "c")),
        ("Good job 👍", "Good job 👎", (["👍"], ["👎"]), ("👍", "👎")),
        ("The Café is open.", "The Cafe\u0301 is shut.", (["open"], ["shut"]), ("open", "shut")),
        ("Die Straße ist lang.", "Die STRASSE ist kurz.", (["lang"], ["kurz"]), ("lang", "kurz")),
        ("銀行に行く", "川に行く", (["銀行に"], ["川に"]), ("銀行 行に", "川に")),
        ("He isn’t here.", "He isn't there.", (["here"], ["there"]), ("here", "there")),
    ],
)
def test_changed_words(first, second, spans, forms):
    found = changed_spans(first, second)
    assert tuple([text[a:b] for a, b in own] for text, own in zip((first, second), found, strict=True)) == spans
    assert changed_forms(first, second) == forms


@pytest.mark.parametrize(
    ("first", "second", "marked"),
    [
        (
            "The goat pushed the donkey away.",
            "The donkey pushed the goat away.",
            (["goat", "donkey"], ["donkey", "goat"]),
        ),
        ("The old man saw the old dog.", "The old dog saw the old man.", (["man", "dog"], ["dog", "man"])),
        ("Paris beat New York.", "New York beat Paris.", (["Paris", "New", "York"], ["New", "York", "Paris"])),
        ("Only he came.", "He only came.", (["Only", "he"], ["He", "only"])),
        ("Today he came.", "He came today.", (["Today"], ["today"])),  # one word has moved
        ("He saw her.", "She saw him.", (["He", "her"], ["She", "him"])),  # no word has changed places
    ],
)
def test_words_that_changed_places_are_marked_and_nothing_else(first, second, marked):
    found = changed_spans(first, second)
    assert tuple([text[a:b] for a, b in own] for text, own in zip((first, second), found, strict=True)) == marked


def test_all_layers_at_once_are_each_layer_alone():
    numbers = np.random.default_rng(1)
    paraphrases, changed = numbers.normal(0.7, 0.1, (3, 20)).round(2), numbers.normal(0.72, 0.1, (3, 15)).round(2)
    seen = []
    found = separations(paraphrases, changed, progress=lambda *count: seen.append(count))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert list(found) == [separation(one, other) for one, other in zip(paraphrases, changed, strict=True)]
    np.testing.assert_allclose(shares_above(paraphrases, changed), [share.value for share in found])
    # The same draws, with every pair compared with every other one.
    one, other = paraphrases[2][:, None], changed[2][None]
    wins = (one > other) + 0.5 * (one == other)
    generator = np.random.default_rng(0)
    drawn = [generator.multinomial(size, np.full(size, 1 / size), size=RESAMPLES) for size in wins.shape]
    shares = ((drawn[0] @ wins) * drawn[1]).sum(axis=1) / wins.size
    assert (found[2].low, found[2].high) == pytest.approx(tuple(np.quantile(shares, (0.025, 0.975))))
    with pytest.raises(Stopped):
        separations(paraphrases, changed, is_stopped=lambda: True)
