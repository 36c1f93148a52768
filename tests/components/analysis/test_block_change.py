import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity
from transformers import AutoModel, AutoTokenizer

from components.analysis.block_change import (
    TokenSimilarity,
    between_texts,
    block_change,
    diagonal,
    far_above,
    least_like_itself,
    means_of,
    positions_of,
    strongest_others,
    token_similarity,
)
from components.arrays import cosine
from tests.components.analysis.handmade import trace, words
from tests.support.closeness import assert_close

TEXTS = ("the cat sat on the bank", "a dog")


@pytest.fixture
def by_hand():
    """[CLS] cat [SEP] and [CLS] a dog [SEP] in two dimensions, two blocks; padding points nowhere real."""
    hidden = np.full((3, 2, 4, 2), 77.0)
    hidden[0, 0, :3] = [[1, 0], [0, 2], [3, 4]]
    hidden[1, 0, :3] = [[0, 5], [0, -1], [4, 3]]
    hidden[2, 0, :3] = [[2, 0], [1, 0], [4, 3]]
    hidden[0, 1] = [[1, 0], [1, 1], [0, 1], [-1, 0]]
    hidden[1, 1] = [[1, 0], [-1, 1], [0, 1], [0, 0]]
    hidden[2, 1] = [[1, 0], [1, -1], [0, -1], [1, 0]]
    return trace([words("cat"), words("a dog")], hidden)


@pytest.fixture(scope="module")
def run(tiny_backends):
    return tiny_backends["bert"].run(TEXTS)


# Before a block against after it


def test_a_block_worked_out_on_paper(by_hand):
    change = block_change(by_hand, 0, 0)
    np.testing.assert_allclose(change.matrix, [[0, 0, 0.8], [1, -1, 0.6], [0.8, -0.8, 0.96]], atol=1e-7)
    assert (change.positions, change.column_positions) == ((0, 1, 2), (0, 1, 2))
    np.testing.assert_allclose(block_change(by_hand, 0, 1).matrix[2], [0.8, 0.8, 1], atol=1e-7)


def test_without_special_tokens_the_rest_stays_as_it_was(by_hand):
    whole, part = (block_change(by_hand, 1, 1, include_special=special) for special in (True, False))
    assert part.positions == part.column_positions == (1, 2)
    np.testing.assert_array_equal(part.matrix, whole.matrix[1:3, 1:3])


@pytest.mark.parametrize("block", [0, 1, 2])
@pytest.mark.parametrize("special", [True, False])
def test_every_cell_equals_torch(run, block, special):
    change = block_change(run, 0, block, include_special=special)
    before = torch.tensor(run.hidden_states[block, 0, list(change.positions)], dtype=torch.float64)
    after = torch.tensor(run.hidden_states[block + 1, 0, list(change.positions)], dtype=torch.float64)
    theirs = cosine_similarity(before[:, None], after[None], dim=-1)
    np.testing.assert_allclose(change.matrix, theirs, atol=1e-12)


def test_a_block_that_does_nothing_gives_the_similarities_of_its_layer(run):
    hidden = run.hidden_states.copy()
    hidden[2] = 3 * hidden[1]  # longer, but in the same directions
    still = trace(run.sentences, hidden)
    assert_close(block_change(still, 0, 1).matrix, token_similarity(still, 1, 0).matrix)
    np.testing.assert_allclose(diagonal(still, 0).values[1], 1, atol=1e-12)


# The diagonal


@pytest.mark.parametrize("sentence", [0, 1])
@pytest.mark.parametrize("special", [True, False])
def test_the_curves_are_the_diagonals_of_all_blocks(run, sentence, special):
    curves = diagonal(run, sentence, include_special=special)
    changes = [block_change(run, sentence, block, include_special=special) for block in range(run.n_layers)]
    assert curves.positions == changes[0].positions
    np.testing.assert_allclose(curves.values, [np.diagonal(change.matrix) for change in changes], atol=1e-12)


def test_curves_worked_out_on_paper(by_hand):
    np.testing.assert_allclose(diagonal(by_hand, 0).values, [[0, -1, 0.96], [0, 0, 1]], atol=1e-7)


def test_a_zero_vector_has_no_direction(by_hand):
    assert diagonal(by_hand, 1).values[:, 3].tolist() == [0, 0]
    assert block_change(by_hand, 1, 0).matrix[:, 3].tolist() == [0] * 4


# Tokens against tokens at one layer


def test_a_layer_worked_out_on_paper(by_hand):
    both = token_similarity(by_hand, 0, 0, 1)
    diagonal_of_a_square = np.sqrt(0.5)
    np.testing.assert_allclose(
        both.matrix,
        [
            [1, diagonal_of_a_square, 0, -1],
            [0, diagonal_of_a_square, 1, 0],
            [0.6, 1.4 * diagonal_of_a_square, 0.8, -0.6],
        ],
        atol=1e-7,
    )
    assert (both.positions, both.column_positions) == ((0, 1, 2), (0, 1, 2, 3))


def test_similarity_within_a_sentence_is_symmetric_with_ones(run):
    for layer in range(run.n_layers + 1):
        matrix = token_similarity(run, layer, 0).matrix
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
        np.testing.assert_allclose(np.diagonal(matrix), 1, atol=1e-12)


def test_the_other_way_round_is_the_transpose(run):
    there, back = token_similarity(run, 2, 0, 1, False), token_similarity(run, 2, 1, 0, False)
    np.testing.assert_allclose(there.matrix, back.matrix.T, atol=1e-12)
    assert there.matrix.shape == (6, 2)


def test_the_same_word_at_layer_0_differs_by_its_place_only(bank_trace):
    """The two money banks of the set: high at layer 0, and higher there than with any other word."""
    matrix = token_similarity(bank_trace, 0, 0, 2, include_special=False).matrix
    first, second = (
        [token.piece for token in bank_trace.sentences[row].tokens if not token.special].index("bank") for row in (0, 2)
    )
    assert matrix[first, second] == pytest.approx(0.988, abs=0.002)
    assert matrix[first].argmax() == second
    assert matrix[:, second].argmax() == first


def test_a_pair_read_as_one_input_is_one_sentence(tiny_backends):
    run = tiny_backends["bert"].run(["the cat"], ["a dog ran"])
    assert block_change(run, 0, 0).positions == tuple(range(8))
    assert block_change(run, 0, 0, include_special=False).positions == (1, 2, 4, 5, 6)


# What is refused


def test_padding_has_no_place(run):
    assert positions_of(run, 1) == (0, 1, 2, 3)
    assert positions_of(run, 1, include_special=False) == (1, 2)


def test_blocks_layers_and_sentences_that_are_not_there(run):
    for block in (-1, 3):
        with pytest.raises(ValueError, match=r"block .* within 0..2"):
            block_change(run, 0, block)
    for layer in (-1, 4):
        with pytest.raises(ValueError, match=r"layer .* within 0..3"):
            token_similarity(run, layer, 0)
    for sentence in (-1, 2):
        with pytest.raises(IndexError, match=r"within 0..1"):
            diagonal(run, sentence)
        with pytest.raises(IndexError, match=r"within 0..1"):
            token_similarity(run, 0, 0, sentence)


def test_a_sentence_without_text_has_empty_results(embedded):
    empty = embedded.run(["\x01"])
    assert block_change(empty, 0, 0, include_special=False).matrix.shape == (0, 0)
    assert diagonal(empty, 0, include_special=False).values.shape == (6, 0)


def test_the_arrays_cannot_be_changed(run):
    for array in (block_change(run, 0, 0).matrix, diagonal(run, 0).values, token_similarity(run, 0, 0).matrix):
        assert not array.flags.writeable


def test_between_texts_equals_plain_transformers_on_the_tokenizers_pair(embedded, embedded_folder):
    first, second = "The bank by the river.", "A bank lends money."
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder)
    model = AutoModel.from_pretrained(embedded_folder).eval()
    inputs = tokenizer(first, second, return_tensors="pt")
    with torch.inference_mode():
        states = model(**inputs, output_hidden_states=True).hidden_states[4][0].numpy()
    kinds = inputs.sequence_ids(0)
    rows, columns = ([place for place, kind in enumerate(kinds) if kind == text] for text in (0, 1))
    found = between_texts(embedded.trace([first, "x"], [second, "y"]), 4, 0)
    assert (list(found.positions), list(found.column_positions)) == (rows, columns)
    np.testing.assert_allclose(found.matrix, cosine(states[rows][:, None], states[columns][None]), atol=1e-5)


def test_between_texts_of_a_text_without_a_pair_is_empty(embedded):
    assert between_texts(embedded.trace(["The bank."]), 1, 0).matrix.shape == (3, 0)
    with pytest.raises(ValueError, match="layer 9"):
        between_texts(embedded.trace(["The bank."]), 9, 0)


# A block in a few numbers


def test_means_and_extremes_worked_out_on_paper(by_hand):
    change = block_change(by_hand, 0, 0)  # [[0, 0, 0.8], [1, -1, 0.6], [0.8, -0.8, 0.96]]
    found = means_of(change, 0)
    assert (found.block, found.tokens, found.nearest) == (0, 3, 1)
    assert found.itself == pytest.approx((0 - 1 + 0.96) / 3)
    assert found.another == pytest.approx((0 + 0.8 + 1 + 0.6 + 0.8 - 0.8) / 6)
    assert strongest_others(change, 2) == ((1, 0), (0, 2)) or strongest_others(change, 2) == ((1, 0), (2, 0))
    assert len(strongest_others(change, 99)) == 6
    least = least_like_itself(change, [True, True, True])
    assert (least.token, least.other) == (1, 0)
    assert (least.itself, least.like_other) == pytest.approx((-1, 0))
    alone = least_like_itself(change, [False, True, False])
    assert (alone.token, alone.other) == (1, None)
    assert least_like_itself(change, [False, False, False]) is None
    # What comes out (a column) is compared with all that went in.
    cosines = np.array([[0.9, 0.95, 0.95], [0.1, 0.5, 0.1], [0.1, 0.1, 0.5]])
    assert means_of(TokenSimilarity(cosines, (0, 1, 2), (0, 1, 2)), 0).nearest == 1


def test_one_token_has_no_other(embedded):
    change = block_change(embedded.run(["bank"]), 0, 0, include_special=False)
    found = means_of(change, 0)
    assert (found.tokens, found.nearest) == (1, 1)
    assert np.isnan(found.another)
    assert strongest_others(change, 3) == ()


@pytest.mark.parametrize(
    ("longest", "tokens", "end"),
    [
        ([30, 8, 7], None, None),
        ([8, 33, 7], (1,), 8),
        ([5], None, None),
        ([0, 0], None, None),
        ([80, 90] + [5] * 16, (1, 0), 5),  # two of eighteen
        ([90, 80, 5], None, None),  # two of three are not few
    ],
)
def test_only_a_few_tokens_four_times_as_long_as_all_others_are_far_above(longest, tokens, end):
    found = far_above(np.array([longest, np.zeros(len(longest))], float))
    assert (found and found.tokens) == tokens
    assert found is None or found.limit == pytest.approx(1.06 * end)
