import numpy as np
import pytest

from components.analysis.first_look.words import interest
from components.analysis.layer_zero import part_cosines, part_norms
from components.model.trace import EmbeddingParts, Trace
from tests.components.analysis.handmade import trace, words
from tests.support.closeness import assert_close

TEXTS = ("the cat sat on the bank", "a red hat")


def layer_norm(values: np.ndarray, layer: object) -> np.ndarray:
    """LayerNorm over the last axis, from its definition."""
    values = values.astype(np.float64)
    mean, variance = values.mean(-1, keepdims=True), values.var(-1, keepdims=True)
    scaled = (values - mean) / np.sqrt(variance + layer.eps)
    return scaled * layer.weight.detach().numpy() + layer.bias.detach().numpy()


@pytest.fixture
def by_hand() -> Trace:
    """[CLS] cat [SEP] and [CLS] dog [SEP], with parts of two dimensions."""
    bare = trace([words("cat"), words("dog")], np.zeros((1, 2, 3, 2)))
    hidden, word, position = np.zeros((1, 2, 3, 2)), np.zeros((2, 3, 2)), np.zeros((2, 3, 2))
    word[0, 1], word[1, 1] = [3, 4], [4, 3]
    position[0, 1], position[1, 1] = [0, 8], [6, 0]
    hidden[0, 0, 1], hidden[0, 1, 1] = [1, 0], [-2, 0]
    parts = EmbeddingParts(word.astype(np.float32), position.astype(np.float32), None)
    return Trace(
        "by hand",
        "0",
        bare.sentences,
        bare.input_ids.copy(),
        bare.attention_mask.copy(),
        None,
        hidden.astype(np.float32),
        embedding_parts=parts,
    )


def test_norms_worked_out_on_paper(by_hand):
    norms = part_norms(by_hand, 0)
    assert norms.names == ("word", "position", "sum", "layer 0")
    assert norms.values[:, 1] == pytest.approx([5, 8, np.hypot(3, 12), 1])
    assert part_norms(by_hand, 1).values[:, 1] == pytest.approx([5, 6, np.hypot(10, 3), 2])


def test_cosines_worked_out_on_paper(by_hand):
    cosines = part_cosines(by_hand, [1, 1], [(0, 1)])
    assert cosines.names == ("word", "position", "sum", "layer 0")
    # (3, 4).(4, 3) = 24 of 25; north and east; (3, 12).(10, 3) = 66; opposite.
    assert cosines.values[0] == pytest.approx([0.96, 0, 66 / (np.hypot(3, 12) * np.hypot(10, 3)), -1])


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "roberta"])
def test_the_sum_of_the_parts_after_layer_norm_is_layer_0(tiny_backends, architecture):
    backend = tiny_backends[architecture]
    run = backend.run(TEXTS)
    norm = backend.encoder.embeddings.LayerNorm
    np.testing.assert_allclose(layer_norm(run.embedding_parts.total, norm), run.hidden_states[0], atol=1e-5)
    for row, sentence in enumerate(run.sentences):
        norms = part_norms(run, row)
        assert norms.values.shape == (len(norms.names), len(sentence))
        parts = run.embedding_parts
        total = parts.word[row] + parts.position[row] + (0 if parts.segment is None else parts.segment[row])
        summed = np.linalg.norm(total.astype(np.float64), axis=-1)[: len(sentence)]
        assert_close(norms.values[norms.names.index("sum")], summed)
        first = np.linalg.norm(run.hidden_states[0, row].astype(np.float64), axis=-1)[: len(sentence)]
        assert_close(norms.values[norms.names.index("layer 0")], first)


def test_segments_are_a_part_only_where_the_architecture_has_them(tiny_backends):
    names = {name: part_norms(tiny_backends[name].run(TEXTS), 0).names for name in ("bert", "distilbert")}
    assert names == {
        "bert": ("word", "position", "segment", "sum", "layer 0"),
        "distilbert": ("word", "position", "sum", "layer 0"),
    }


def test_parts_of_another_size_than_the_hidden_states(tiny_backends):
    """ELECTRA projects the sum of its smaller parts, so only layer 0 has the hidden size."""
    run = tiny_backends["electra"].run(TEXTS)
    assert run.embedding_parts.word.shape[-1] != run.hidden_states.shape[-1]
    norms = part_norms(run, 0)
    expected = np.linalg.norm(run.hidden_states[0, 0], axis=-1)
    np.testing.assert_allclose(norms.values[norms.names.index("layer 0")], expected, rtol=1e-5)


def test_why_the_same_word_is_close_to_one_at_layer_0_but_not_one(bank_trace):
    positions = list(interest(bank_trace.sentences).positions)
    assert len(set(positions)) == 3
    cosines = part_cosines(bank_trace, positions, [(0, 1), (0, 2), (1, 2)])
    word, position, segment, _, first = cosines.values.T
    np.testing.assert_allclose(word, 1, atol=1e-12)
    np.testing.assert_allclose(segment, 1, atol=1e-12)
    assert (position < 0.99).all()
    np.testing.assert_allclose(first, [0.966, 0.988, 0.989], atol=0.002)


def test_one_word_at_one_position_has_one_vector_at_layer_0(embedded):
    run = embedded.trace(["the bank opened", "the bank of the river", "the dog barked"])
    cosines = part_cosines(run, [2, 2, 2], [(0, 1), (0, 2)])
    assert_close(cosines.values[0], 1)
    same_position = dict(zip(cosines.names, cosines.values[1], strict=True))
    assert same_position["position"] == pytest.approx(1, abs=1e-12)
    assert same_position["word"] < 0.9


def test_no_pairs_give_an_empty_table_with_its_columns(by_hand):
    assert part_cosines(by_hand, [1, 1], []).values.shape == (0, 4)


def test_a_trace_without_parts_is_refused():
    bare = trace([words("cat"), words("dog")], np.ones((1, 2, 3, 2)))
    with pytest.raises(ValueError, match="no embedding parts"):
        part_norms(bare, 0)
    with pytest.raises(ValueError, match="no embedding parts"):
        part_cosines(bare, [1, 1], [(0, 1)])


def test_a_word_at_the_same_position_has_the_same_layer_zero(embedded):
    trace = embedded.trace(["the bank closed early today", "a bank", "money in the bank"])
    np.testing.assert_array_equal(trace.hidden_states[0, 0, 2], trace.hidden_states[0, 1, 2])
    assert (trace.hidden_states[0, 0, 2] != trace.hidden_states[0, 2, 4]).any()
