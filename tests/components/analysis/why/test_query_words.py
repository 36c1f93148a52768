"""The parts of a cosine by word, against the mean vectors themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.analysis.pooling import pool
from components.analysis.why.query_words import word_ledger, words_of
from components.arrays import cosine

TEXTS = ("Money in the riverbank, unbelievably!", "The bank.", "A cat sat on the mat by the old stone bridge.")


@pytest.mark.parametrize("layer", [0, 3, 6])
def test_the_parts_sum_to_the_cosine_of_the_mean_vectors(embedded: Any, layer: int) -> None:
    trace = embedded.trace(TEXTS)
    means = pool(trace, "mean")[layer]
    for second in (1, 2):
        ledger = word_ledger(trace, layer, 0, second)
        expected = float(cosine(means[0], means[second]))
        assert ledger.parts.shape == (len(ledger.first), len(ledger.second))
        assert ledger.cosine == pytest.approx(expected, abs=1e-6)
        assert ledger.by_first.sum() == pytest.approx(expected, abs=1e-6)
        mirrored = word_ledger(trace, layer, second, 0)
        assert np.allclose(mirrored.parts.T, ledger.parts)


def test_one_part_is_the_sum_over_its_pieces(embedded: Any) -> None:
    trace = embedded.trace(TEXTS)
    ledger = word_ledger(trace, 6, 0, 1)
    hidden = trace.hidden_states[6].astype(np.float64)
    lengths = [len(sentence) for sentence in trace.sentences]
    a, b = (hidden[row, : lengths[row]].mean(axis=0) for row in (0, 1))
    pieces = next(positions for text, positions in words_of(trace.sentences[0]) if text == "unbelievably")
    assert len(pieces) > 1
    bank = next(positions for text, positions in words_of(trace.sentences[1]) if text == "bank")
    expected = sum(float(hidden[0, i] @ hidden[1, j]) for i in pieces for j in bank)
    expected /= lengths[0] * lengths[1] * np.linalg.norm(a) * np.linalg.norm(b)
    row, column = ledger.first.index("unbelievably"), ledger.second.index("bank")
    assert ledger.parts[row, column] == pytest.approx(expected, abs=1e-9)
    assert (ledger.first[0], ledger.first[-1]) == ("[CLS]", "[SEP]")
