"""The scales of a cross-encoder's outputs, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from components.analysis import pair_scales

LOGITS = np.array([[-800.0, 3, 0.5], [0, 0, 0], [2, 700, -5], [1e-9, -1e-9, 4]])


def test_sigmoid_and_softmax_are_scipys_also_for_large_logits():
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(pair_scales.on_scale(LOGITS, "sigmoid"), special.expit(LOGITS), rtol=1e-12)
        np.testing.assert_allclose(pair_scales.on_scale(LOGITS, "softmax"), special.softmax(LOGITS, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(pair_scales.on_scale(LOGITS, "logit"), LOGITS)


@pytest.mark.parametrize(("labels", "other"), [(1, "sigmoid"), (2, "softmax"), (3, "softmax")])
def test_no_scale_is_offered_that_is_always_one(labels, other):
    assert pair_scales.scales_for(labels) == ("logit", other)
    assert np.ptp(pair_scales.on_scale(np.array([[-1.0] * labels, [2.0] + [0] * (labels - 1)]), other)) > 0.1
