import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Pooling as ReferencePooling

from components.analysis.pooling import pool
from components.model.trace import POOLINGS
from tests.components.analysis.handmade import trace, words
from tests.support.closeness import assert_close

SENTENCES = (
    "the cat sat on the bank by the river . ",
    "a dog",
    "walking in , walked on ! the red hat",
)


@pytest.fixture
def by_hand():
    """[CLS] cat sat [SEP] and [CLS] dog [SEP] with padding that would win every maximum and move every mean."""
    hidden = np.zeros((2, 2, 4, 2))
    hidden[0, 0] = [[10, -1], [1, 5], [3, -7], [2, 3]]
    hidden[0, 1] = [[-4, -2], [-6, -9], [-5, -1], [1_000, 1_000]]
    hidden[1] = hidden[0] * 2 + [[[1, 0]]]
    return trace([words("cat sat"), words("dog")], hidden)


@pytest.mark.parametrize(
    ("pooling", "special", "first", "second"),
    [
        ("mean", True, [4, 0], [-5, -4]),
        ("mean", False, [2, -1], [-6, -9]),
        ("max", True, [10, 5], [-4, -1]),
        ("max", False, [3, 5], [-6, -9]),
        ("cls", True, [10, -1], [-4, -2]),
        ("cls", False, [10, -1], [-4, -2]),
    ],
)
def test_values_worked_out_on_paper(by_hand, pooling, special, first, second):
    pooled = pool(by_hand, pooling, special)
    assert pooled[0].tolist() == [first, second]
    # All three commute with x -> 2x + c, which is how layer 1 was made.
    assert pooled[1].tolist() == [[2 * first[0] + 1, 2 * first[1]], [2 * second[0] + 1, 2 * second[1]]]
    assert pooled.dtype == np.float32


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_values_never_count(by_hand, pooling):
    changed = by_hand.hidden_states.copy()
    changed[:, 1, 3] = -1e9
    other = trace(by_hand.sentences, changed)
    for special in (True, False):
        np.testing.assert_array_equal(pool(by_hand, pooling, special), pool(other, pooling, special))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_equals_sentence_transformers_at_every_layer(bank_trace, pooling):
    reference = ReferencePooling(bank_trace.hidden_states.shape[-1], pooling)
    ours = pool(bank_trace, pooling)
    assert not bank_trace.attention_mask.all()  # there is padding to get wrong
    for layer, hidden in enumerate(bank_trace.hidden_states):
        features = {
            "token_embeddings": torch.tensor(hidden),
            "attention_mask": torch.tensor(bank_trace.attention_mask),
        }
        theirs = reference(features)["sentence_embedding"].numpy()
        assert_close(ours[layer], theirs)


@pytest.mark.parametrize("special", [True, False])
def test_equals_a_plain_loop_over_tokens(tiny_backends, special):
    run = tiny_backends["bert"].run(SENTENCES)
    mean, largest = pool(run, "mean", special), pool(run, "max", special)
    for layer in range(run.n_layers + 1):
        for row, sentence in enumerate(run.sentences):
            kept = [token.position for token in sentence.tokens if special or not token.special]
            vectors = torch.stack([torch.tensor(run.hidden_states[layer, row, place]) for place in kept])
            assert_close(mean[layer, row], vectors.mean(dim=0))
            np.testing.assert_array_equal(largest[layer, row], vectors.max(dim=0).values)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_sentence_pools_alike_alone_and_in_a_batch(tiny_backends, pooling):
    backend = tiny_backends["bert"]
    together = pool(backend.run(SENTENCES), pooling)
    for row, text in enumerate(SENTENCES):
        np.testing.assert_allclose(together[:, [row]], pool(backend.run([text]), pooling), atol=5e-5)


def test_one_token_is_its_own_mean_and_maximum(tiny_backends):
    run = tiny_backends["bert"].run(["cat"])
    for pooling in ("mean", "max"):
        np.testing.assert_array_equal(pool(run, pooling, include_special=False), run.hidden_states[:, :, 1])


def test_a_sentence_with_nothing_left_is_nan_and_leaves_the_others_alone(embedded):
    run = embedded.run(["\x01", "a bank"])  # the tokenizer drops control characters: [CLS] [SEP]
    assert len(run.sentences[0]) == 2
    for pooling in ("mean", "max"):
        pooled = pool(run, pooling, include_special=False)
        assert np.isnan(pooled[:, 0]).all()
        assert np.isfinite(pooled[:, 1]).all()
        assert np.isfinite(pool(run, pooling)).all()
    assert np.isfinite(pool(run, "cls", include_special=False)).all()


def test_the_result_is_the_callers_own(by_hand):
    for pooling in POOLINGS:
        pool(by_hand, pooling)[:] = 7  # the trace's arrays are read-only and shared
    assert by_hand.hidden_states[0, 0, 0].tolist() == [10, -1]


def test_an_unknown_pooling_is_refused_by_name(by_hand):
    with pytest.raises(ValueError, match=r"'median'.*mean, cls, max"):
        pool(by_hand, "median")
