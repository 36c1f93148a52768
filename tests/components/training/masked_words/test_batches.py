"""Masks are whole words in the stated shares; units are drawn by their weights."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch

from components.training.masked_words import batches
from components.training.masked_words.units import Units
from tests.support.masked_words import tiny_units


def words_of(row, pieces):
    """The places of each word of a row, by a plain loop."""
    found: list[list[int]] = []
    for place, piece in enumerate(row):
        if pieces.is_special[piece]:
            continue
        if pieces.begins_word[piece] or place == 1:
            found.append([])
        if found:
            found[-1].append(place)
    return found


def test_words_are_hidden_whole():
    units, pieces, _ = tiny_units(200)
    rows = batches.padded(units, np.arange(200), pieces)
    chosen = batches.chosen_words(rows, pieces, np.random.default_rng(1))
    assert chosen.any()
    for row, picked in zip(rows, chosen, strict=True):
        words = words_of(row, pieces)
        assert [word for word in words if 0 < picked[word].sum() < len(word)] == []
        assert not picked[pieces.is_special[row]].any()


def test_as_many_as_stated():
    units, pieces, _ = tiny_units(4_000)
    rows = batches.padded(units, np.arange(4_000), pieces)
    chosen = batches.chosen_words(rows, pieces, np.random.default_rng(1))
    counts: Counter[tuple[bool, bool]] = Counter()
    for row, picked in zip(rows, chosen, strict=True):
        for word in words_of(row, pieces):
            counts[bool(pieces.is_common[row[word[0]]]), bool(picked[word[0]])] += 1
    for is_common, share in ((False, batches.SHARE), (True, batches.COMMON_SHARE)):
        total = counts[is_common, True] + counts[is_common, False]
        error = (share * (1 - share) / total) ** 0.5
        assert abs(counts[is_common, True] / total - share) < 4 * error
    batch = batches.masked(rows, pieces, np.random.default_rng(2))
    now = batch.pieces.flatten()[batch.places]
    shares = (now == pieces.mask).double().mean(), ((now != pieces.mask) & (now != batch.answers)).double().mean()
    assert abs(shares[0] - batches.AS_MASK) < 0.02
    assert abs(shares[1] - batches.AS_RANDOM) < 0.02
    others = torch.ones(batch.pieces.numel(), dtype=torch.bool)
    others[batch.places] = False
    assert torch.equal(batch.pieces.flatten()[others], torch.from_numpy(rows).flatten()[others])
    assert torch.equal(torch.from_numpy(rows).flatten()[batch.places], batch.answers)
    assert batch.tokens == int((rows != pieces.pad).sum())


def test_weights_say_how_often_a_unit_is_drawn():
    units, pieces, _ = tiny_units(30)
    drawn = [Counter(np.concatenate(batches.draw(units, pieces, 1, number).groups).tolist()) for number in range(400)]
    for unit, weight in enumerate(units.weights):
        times = [found[unit] for found in drawn]
        assert set(times) <= {int(weight), int(weight) + 1}
        assert abs(np.mean(times) - weight) < 0.12


def test_batches_hold_as_much_as_stated():
    units, pieces, _ = tiny_units(300)
    drawn = batches.draw(units, pieces, 1, 0, tokens=64)
    sizes = [batches.padded(units, group, pieces).size for group in drawn.groups]
    assert max(sizes) <= 64
    assert np.mean(sizes) > 48
    assert {len(group) for group in batches.draw(units, pieces, 1, 0, tokens=1).groups} == {1}


def test_a_batch_depends_on_seed_pass_and_number_alone():
    units, pieces, _ = tiny_units(300)
    once, again = batches.draw(units, pieces, 1, 3, 64), batches.draw(units, pieces, 1, 3, 64)
    once.batch(0)
    assert torch.equal(once.batch(2).pieces, again.batch(2).pieces)
    other = batches.draw(units, pieces, 2, 3, 64).batch(2)
    assert other.pieces.shape != once.batch(2).pieces.shape or not torch.equal(other.pieces, once.batch(2).pieces)


def test_padding_is_told():
    pieces = tiny_units()[1]
    units = Units(np.array([5, 6, 7, 8], np.int32), np.array([0, 1, 4]), np.ones(2, np.float32))
    batch = batches.masked(batches.padded(units, np.array([0, 1]), pieces), pieces, np.random.default_rng(0))
    assert batch.is_text is not None
    assert batch.is_text.tolist() == [[True, True, True, False, False], [True] * 5]
    assert (
        batches.masked(batches.padded(units, np.array([1]), pieces), pieces, np.random.default_rng(0)).is_text is None
    )
