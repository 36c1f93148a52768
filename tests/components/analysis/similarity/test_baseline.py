import numpy as np
import pytest

from components.analysis.pooling import pool
from components.analysis.similarity.baseline import (
    ALL_PAIRS_OF,
    CHUNK,
    PAIRS,
    SEED,
    Band,
    draw_pairs,
    measure,
    measure_sample,
)
from components.model.trace import POOLINGS
from tests.components.analysis.handmade import trace, words
from tests.support.closeness import assert_close
from tests.support.places import ASSETS

SAMPLE = (ASSETS / "demo_sentences.txt").read_text(encoding="utf-8").splitlines()
TINY = ("the cat sat on the bank", "a dog ran by the river .", "the red hat", "we will put money in a bank !")


@pytest.fixture(scope="module")
def tiny_runs(tiny_backends):
    """Two traces of two sentences each, with padding."""
    backend = tiny_backends["bert"]
    return [backend.run(TINY[:2]), backend.run(TINY[2:])]


@pytest.fixture(scope="module")
def sample_baseline(embedded):
    return measure(embedded.run(SAMPLE[start : start + 50]) for start in range(0, len(SAMPLE), 50))


# Drawing pairs


def test_pairs_have_different_forms_and_different_owners():
    forms = list("aabbbcadd")
    owner = [0, 0, 0, 1, 1, 1, 2, 2, 3]
    first, second = draw_pairs(forms, owner, 500, seed=3)
    for one, other in zip(first, second, strict=True):
        assert forms[one] != forms[other]
        assert owner[one] != owner[other]
    allowed = {
        frozenset((one, other))
        for one in range(9)
        for other in range(9)
        if forms[one] != forms[other] and owner[one] != owner[other]
    }
    drawn = [frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)]
    assert set(drawn) == allowed  # none is left out
    assert len(drawn) == len(allowed)  # and none is drawn twice


@pytest.mark.parametrize("vectors", [200, ALL_PAIRS_OF + 1])
def test_no_pair_is_drawn_twice(vectors):
    first, second = draw_pairs([str(number) for number in range(vectors)], list(range(vectors)), 2_000, SEED)
    assert len({frozenset(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)}) == len(first) == 2_000
    assert len(set(first.tolist() + second.tolist())) > 0.9 * vectors  # from all of the sample


def test_the_seed_decides():
    forms, owner = [str(number) for number in range(40)], list(range(40))
    one, same, other = (draw_pairs(forms, owner, 100, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_rare_pairs_are_found():
    """One of 2,000 tokens differs: one in a thousand pairs will do."""
    first, second = draw_pairs(["same"] * 1_999 + ["other"], list(range(2_000)), 30, seed=0)
    assert len(first) == 30
    assert ((first == 1_999) ^ (second == 1_999)).all()


@pytest.mark.parametrize(
    ("forms", "owner"),
    [
        (["a", "a", "a"], [0, 1, 2]),  # one form only
        (["a", "b", "c"], [4, 4, 4]),  # one sentence only
        (["a"], [0]),
        ([], []),
    ],
)
def test_impossible_pairs_are_refused(forms, owner):
    with pytest.raises(ValueError, match="different forms in different sentences"):
        draw_pairs(forms, owner, 10, seed=0)


# The yardstick


def percentile(values: list[float], share: float) -> float:
    """Linear between the two values around that place, from its definition."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def assert_band_is(band: Band, cosines: list[list[float]], tolerance: float) -> None:
    for layer, values in enumerate(cosines):
        assert band.mean[layer] == pytest.approx(sum(values) / len(values), abs=tolerance)
        assert band.low[layer] == pytest.approx(percentile(values, 0.05), abs=tolerance)
        assert band.high[layer] == pytest.approx(percentile(values, 0.95), abs=tolerance)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def test_the_token_band_equals_a_direct_computation(tiny_runs):
    pairs, seed = 20, 5
    tokens = [  # (form, owner, vectors [layer, dim]) of each token that stands for text
        (token.piece.lower(), (number, row), run.hidden_states[:, row, token.position].astype(np.float64))
        for number, run in enumerate(tiny_runs)
        for row, sentence in enumerate(run.sentences)
        for token in sentence.tokens
        if not token.special
    ]
    owners = list(dict.fromkeys(owner for _, owner, _ in tokens))
    first, second = draw_pairs(
        [form for form, _, _ in tokens], [owners.index(owner) for _, owner, _ in tokens], pairs, seed
    )
    yardstick = measure(tiny_runs, pairs, seed).tokens
    assert (yardstick.pairs, yardstick.sample) == (pairs, len(tokens))

    centre = np.mean([vectors for _, _, vectors in tokens], axis=0)  # [layer, dim]
    assert_close(yardstick.centre, centre)
    chosen = [(tokens[a][2], tokens[b][2]) for a, b in zip(first, second, strict=True)]
    layers = range(len(centre))
    assert_band_is(yardstick.raw, [[cosine(a[at], b[at]) for a, b in chosen] for at in layers], 1e-9)
    shifted = [[cosine(a[at] - centre[at], b[at] - centre[at]) for a, b in chosen] for at in layers]
    assert_band_is(yardstick.centred, shifted, 1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("special", [True, False])
def test_the_sentence_bands_equal_a_direct_computation(tiny_runs, pooling, special):
    vectors = np.concatenate([pool(run, pooling, special) for run in tiny_runs], axis=1).astype(np.float64)
    first, second = draw_pairs(list("abcd"), list(range(4)), 30, SEED)
    yardstick = measure(tiny_runs, 30).sentences[pooling, special]
    assert (yardstick.pairs, yardstick.sample) == (6, 4)  # all there are
    assert_close(yardstick.centre, vectors.mean(axis=1))
    cosines = [[cosine(layer[a], layer[b]) for a, b in zip(first, second, strict=True)] for layer in vectors]
    assert_band_is(yardstick.raw, cosines, 1e-9)


def test_how_sentences_are_spread_over_traces_does_not_matter(tiny_backends, tiny_runs):
    split, whole = measure(tiny_runs, 50), measure([tiny_backends["bert"].run(TINY)], 50)
    for one, other in ((split.tokens, whole.tokens), (split.sentences["mean", True], whole.sentences["mean", True])):
        np.testing.assert_allclose(one.centre, other.centre, atol=5e-5)
        np.testing.assert_allclose(one.raw.mean, other.raw.mean, atol=1e-4)
        np.testing.assert_allclose(one.centred.low, other.centred.low, atol=1e-4)


def test_a_sample_is_measured_in_short_passes_of_texts_of_about_one_length(tiny_backends):
    texts = [f"the {word} sat by the river" for word in ("cat", "dog", "bank", "money", "hat")] * 12
    sample = [f"{text} {'and the dog ran ' * (number % 4)}" for number, text in enumerate(texts)]
    backend, passes = tiny_backends["bert"], []
    found = measure_sample(lambda texts: passes.append(list(texts)) or backend.run(list(texts)), sample)
    assert [text for texts in passes for text in texts] == sorted(sample, key=len)
    assert [len(texts) for texts in passes] == [CHUNK, CHUNK, 10]
    expected = measure(backend.run(sample[start : start + CHUNK]) for start in range(0, len(sample), CHUNK))
    assert found.sentences.keys() == expected.sentences.keys()
    for one, other in [
        (found.tokens, expected.tokens),
        *zip(found.sentences.values(), expected.sentences.values(), strict=True),
    ]:
        np.testing.assert_array_equal(one.first, other.first)  # the same pairs, of sentences in the sample's order
        np.testing.assert_array_equal(one.second, other.second)
        np.testing.assert_allclose(one.raw.cosines, other.raw.cosines, atol=1e-5)
        np.testing.assert_allclose(one.centred.cosines, other.centred.cosines, atol=1e-4)


def test_special_tokens_and_padding_are_not_in_the_sample():
    hidden = np.full((1, 2, 4, 2), 1e6)
    hidden[0, 0, 1], hidden[0, 0, 2], hidden[0, 1, 1] = [3, 4], [3, 4], [4, 3]
    yardstick = measure([trace([words("red cat"), words("dog")], hidden)], pairs=20).tokens
    assert yardstick.sample == 3
    for values in (yardstick.raw.mean, yardstick.raw.low, yardstick.raw.high):
        assert values == pytest.approx([0.96])
    np.testing.assert_allclose(yardstick.centre, [[10 / 3, 11 / 3]], rtol=1e-6)


def test_upper_and_lower_case_are_one_form():
    hidden = np.ones((1, 2, 3, 2))
    baselines = measure([trace([words("Cat"), words("cat")], hidden)])
    assert not baselines.tokens.is_measured
    assert np.isnan(baselines.tokens.raw.mean).all()
    assert baselines.tokens.centre.tolist() == [[1, 1]]
    assert baselines.sentences["mean", True].is_measured


@pytest.mark.parametrize("texts", [(), ("the cat sat",)])
def test_fewer_than_two_sentences_are_refused(tiny_backends, texts):
    with pytest.raises(ValueError, match="at least two sentences"):
        measure([tiny_backends["bert"].run([text]) for text in texts])


# The sample the dashboard uses


def test_the_sample_has_200_different_sentences():
    assert len(SAMPLE) == len(set(SAMPLE)) == 200
    assert all(line == line.strip() and len(line.split()) > 1 for line in SAMPLE)


def test_the_baseline_of_the_embedded_model(sample_baseline):
    tokens = sample_baseline.tokens
    assert tokens.pairs == PAIRS == 2_000
    assert tokens.centre.shape == (7, 384)
    assert set(sample_baseline.sentences) == {(pooling, special) for pooling in POOLINGS for special in (True, False)}
    for yardstick in (tokens, sample_baseline.sentences["mean", True]):
        for band in (yardstick.raw, yardstick.centred):
            assert (band.low < band.mean).all()
            assert (band.mean < band.high).all()
        # Without the common direction unrelated vectors are on average at right angles.
        np.testing.assert_allclose(yardstick.centred.mean, 0, atol=0.02)
    # The narrow cone: the cosine of unrelated tokens is above zero, most of all at layer 5.
    assert (tokens.raw.mean > 0.03).all()
    assert tokens.raw.mean.argmax() == 5
    assert tokens.raw.mean[5] > 0.2


@pytest.mark.parametrize("special", [True, False])
def test_cls_is_the_same_for_every_sentence_at_layer_0(sample_baseline, special):
    yardstick = sample_baseline.sentences["cls", special]
    for raw in (yardstick.raw.mean, yardstick.raw.low, yardstick.raw.high):
        assert raw[0] == pytest.approx(1, abs=1e-9)
    for moved in (yardstick.centred.mean, yardstick.centred.low, yardstick.centred.high):
        assert np.isnan(moved).tolist() == [True] + [False] * 6


def test_the_shared_arrays_cannot_be_changed(sample_baseline):
    for yardstick in (sample_baseline.tokens, *sample_baseline.sentences.values()):
        for band in (yardstick.raw, yardstick.centred):
            assert not any(array.flags.writeable for array in (band.mean, band.low, band.high))
        assert not yardstick.centre.flags.writeable


# Across a block


def test_tokens_of_other_sentences_across_a_block_equal_plain_cosines(tiny_backends):
    """All pairs of a small sample, in both orders: one before the block, the other after it."""
    run = tiny_backends["bert"].run(TINY)
    tokens = [
        (sentence, token.piece, run.hidden_states[:, sentence, token.position].astype(np.float64))
        for sentence, item in enumerate(run.sentences)
        for token in item.tokens
        if not token.special
    ]
    expected = np.mean(
        [
            np.sum(a[:-1] * b[1:], axis=1) / np.linalg.norm(a[:-1], axis=1) / np.linalg.norm(b[1:], axis=1)
            for one, form, a in tokens
            for other, other_form, b in tokens
            if one != other and form != other_form
        ],
        axis=0,
    )
    found = measure([run], pairs=100_000).tokens.across
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_across_a_block_is_not_the_same_as_at_a_layer(sample_baseline):
    """Block 5 turns the tokens' common direction: unrelated tokens are at 0.23 before it, and at 0.03 across it."""
    tokens = sample_baseline.tokens
    assert tokens.across.shape == (6,)
    assert tokens.raw.mean[5] > 0.2
    assert tokens.across[5] < 0.05
