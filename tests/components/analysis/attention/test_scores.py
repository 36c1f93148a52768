"""The softmax of a head's scores is its attention, for every architecture; positions enter by distance alone."""

from __future__ import annotations

import numpy as np
import pytest

from components.analysis.attention import rotation
from components.analysis.attention.overview import attention_overview, attention_row
from components.analysis.attention.scores import head_scores, in_window, softmax
from components.model import inside
from components.model.loaded import numpy_of
from tests.support import tiny
from tests.support.closeness import assert_close
from tests.support.shared_models import shared_backend

TEXT, PAIR = "The cat sat on the bank, we put money in.", "a river"
ROTARY = ("modernbert", "nomic_bert", "eurobert")


@pytest.fixture(scope="module", params=tiny.ARCHITECTURES)
def backend(request, tiny_folder):
    return shared_backend(tiny_folder(request.param))


@pytest.fixture(scope="module", params=ROTARY)
def rotary(request, tiny_folder):
    return shared_backend(tiny_folder(request.param))


def test_the_softmax_of_the_sum_is_the_attention(backend):
    record = backend.inside(TEXT, PAIR, score_terms=True)
    for block, window in enumerate(backend.structure.windows):
        for head in range(backend.facts.heads):
            scores = head_scores(record, block, head, window)
            assert_close(scores.attention, record.attentions[block, head])
            np.testing.assert_allclose(scores.total, sum(scores.parts.values()), atol=1e-12)
    expected = {"deberta-v2": 3, "mpnet": 2}.get(backend.structure.architecture, 1)
    assert len(scores.parts) == expected


def test_a_window_by_hand():
    assert in_window(4, 1).tolist() == [
        [True, True, False, False],
        [True, True, True, False],
        [False, True, True, True],
        [False, False, True, True],
    ]
    assert in_window(3, None).all()
    assert softmax(np.array([[0.0, np.log(3), 9.0]]), np.array([[True, True, False]])).tolist() == [[0.25, 0.75, 0]]


def test_both_positions_may_move(rotary):
    """Queries and keys of the model, turned by the library's own angles at other positions: the products stay."""
    generator = np.random.default_rng(0)
    query, key = generator.normal(size=(2, 1, 8)).astype(np.float32)
    for block in range(3):
        cosines, sines = (numpy_of(part) for part in rotary.loaded.modules.rotations(64)[block])

        def at(vector, position, cosines=cosines, sines=sines):
            return inside.rotated(vector, cosines[position], sines[position])[0]

        products = [float(at(query, 9 + shift) @ at(key, 4 + shift)) for shift in (0, 1, 17, 54)]
        np.testing.assert_allclose(products, products[0], atol=1e-5)
        assert abs(float(at(query, 9) @ at(key, 5)) - products[0]) > 1e-3  # at another distance it is another score
        curve = rotation.score_by_distance(
            at(query, 9), at(key, 4), 5, rotary.rotation_speeds(block), np.arange(-9, 10), 0.5
        )
        expected = [0.5 * float(at(query, 20 + distance) @ at(key, 20)) for distance in range(-9, 10)]
        np.testing.assert_allclose(curve, expected, atol=1e-5)


def test_the_curve_has_the_score_of_the_text(rotary):
    record = rotary.inside(TEXT)
    for block in range(3):
        for query, key in ((6, 2), (1, 8)):
            curve = rotation.score_by_distance(
                *(record.queries[block, 1, query], record.keys[block, 1, key], query - key),
                *(rotary.rotation_speeds(block), np.array([query - key]), record.score_scale),
            )
            total = head_scores(record, block, 1).total
            assert curve[0] == pytest.approx(total[query, key], abs=1e-5)


def test_angles_and_base():
    speeds = 10_000.0 ** (-np.arange(32) / 32)
    turned = rotation.angles(speeds, 3)
    assert turned.shape == (3, 32)
    assert turned[0].tolist() == [0] * 32
    np.testing.assert_array_equal(turned[2], 2 * speeds)
    assert rotation.base_of(speeds) == pytest.approx(10_000)
    assert np.isnan(rotation.base_of(speeds[:1]))


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("factor", [1, 4, 7])
def test_an_overview_is_the_matrix_reduced(window, factor, monkeypatch):
    monkeypatch.setattr("components.analysis.attention.overview.MOST_BYTES", 8 * 50 * 10)  # ten rows at a time
    generator = np.random.default_rng(1)
    queries, keys = generator.normal(size=(2, 50, 8)).astype(np.float32)
    scores = (queries @ keys.T).astype(np.float64) * 0.7
    whole = softmax(scores, in_window(50, window))
    cells = -(-50 // factor)
    for how, function in (("max", np.max), ("mean", np.mean)):
        ours = attention_overview(queries, keys, 0.7, window, factor, how)
        expected = [
            [function(whole[i * factor : (i + 1) * factor, j * factor : (j + 1) * factor]) for j in range(cells)]
            for i in range(cells)
        ]
        assert_close(ours, expected)
    assert_close(attention_row(queries, keys, 0.7, window, 20), whole[20])


def test_an_overview_that_is_stopped():
    queries = np.ones((20, 4), np.float32)
    assert np.isnan(attention_overview(queries, queries, 1, None, 5, is_stopped=lambda: True)).all()


def test_an_overview_of_a_model_is_its_attention(rotary):
    trace, window = rotary.trace([TEXT], attentions=True), rotary.structure.windows[1]
    record = rotary.queries_and_keys(TEXT, None, 1)
    ours = attention_overview(record.queries[2], record.keys[2], record.score_scale, window, 1)
    # Both in float32, by products in another order: 3e-6 of a share of 0.3 on one chip.
    assert_close(ours, trace.attentions[1, 0, 2])
