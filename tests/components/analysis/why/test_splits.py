"""Splits of a score: each sums to the cosine that plain torch gives, for every architecture, layer and pooling."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from components.analysis.pooling import pool
from components.analysis.why import ledger as ledger_module
from components.analysis.why.integrated_jacobians import integrated_ledger, split_to_words
from components.analysis.why.residual_split import residual_split, split_along
from components.analysis.why.token_ledger import pooled_pair, token_ledger, token_weights
from components.model.backend import Backend
from components.model.contributions.path_products import DEFAULT_STEPS
from components.model.store import TraceStore
from tests.support import tiny
from tests.support.closeness import assert_close
from tests.support.shared_models import shared_backend

A, B = "The cat is walking on the bank!", "the dog ran in the river"


@pytest.fixture(scope="module", params=tiny.ARCHITECTURES)
def backend(request, tiny_folder):
    return shared_backend(tiny_folder(request.param))


@pytest.fixture(scope="module")
def states(backend):
    return plain_states(backend)


@pytest.fixture(scope="module")
def with_head(tmp_path_factory):
    folder = tiny.save_tiny(tmp_path_factory.mktemp("head"))
    tiny.publish(folder, tiny.pooling_module(), tiny.dense_module(32, 8))
    return Backend.load(str(folder), store=TraceStore(4 << 20), device_name="cpu")


def plain_states(backend, texts=(A, B)):
    """The hidden states of each text, [layer, token, dim], by torch alone: no padding, no record of ours."""
    found = []
    for text in texts:
        ids = torch.tensor([[token.id for token in backend.tokenize([text])[0].tokens]])
        with torch.inference_mode():
            found.append(torch.cat(backend.encoder(input_ids=ids, output_hidden_states=True).hidden_states))
    return found


def plain_cosine(states, layer, pooling):
    """The cosine of two texts from their hidden states."""
    vectors = [
        {"mean": hidden.mean(0), "cls": hidden[0], "max": hidden.amax(0)}[pooling]
        for hidden in (text[layer] for text in states)
    ]
    return float(torch.cosine_similarity(*vectors, dim=0))


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_pairs_of_tokens_sum_to_the_cosine(backend, states, pooling):
    trace = backend.trace([A, B])
    for layer in range(trace.n_layers + 1):
        split = token_ledger(trace, layer, pooling)
        assert split.contributions.shape == tuple(len(sentence) for sentence in trace.sentences)
        assert split.contributions.sum() == pytest.approx(plain_cosine(states, layer, pooling), abs=1e-5)
        assert_close(split.left_over, 0)
        assert split.terms == ()


def test_one_cell_is_the_product_of_two_tokens(backend):
    trace = backend.trace([A, B])
    split = token_ledger(trace, 2, "mean", first=1, second=0)
    first, second = trace.hidden_states[2, 1, 3], trace.hidden_states[2, 0, 1]
    sizes = [len(sentence) for sentence in trace.sentences]
    expected = first @ second / (sizes[0] * sizes[1] * split.lengths[0] * split.lengths[1])
    assert split.contributions[3, 1] == pytest.approx(float(expected), rel=1e-4)
    assert split.dot_product == pytest.approx(float(pool(trace, "mean")[2, 0] @ pool(trace, "mean")[2, 1]), rel=1e-4)


def test_cls_pooling_has_one_cell(backend):
    split = token_ledger(backend.trace([A, B]), 3, "cls")
    assert np.count_nonzero(split.contributions) == 1
    assert split.contributions[0, 0] == pytest.approx(split.cosine)
    assert split.top(3) == ()
    assert split.lowest() is None


def test_a_maximum_belongs_to_the_token_that_has_it(backend):
    trace = backend.trace([A, B])
    vectors, weights = token_weights(trace, 1, "max", 0)
    assert_close((vectors * weights).sum(0), pool(trace, "max")[1, 0])
    assert (weights.sum(0) == 1).all()


def test_what_dense_layers_change_is_a_term(with_head):
    trace = with_head.trace([A, B])
    split = token_ledger(trace, 3, "own")
    own = pool(trace, "own")[3].astype(float)
    assert_close(split.cosine, own[0] @ own[1] / np.linalg.norm(own[0]) / np.linalg.norm(own[1]))
    assert split.contributions.sum() == pytest.approx(plain_cosine(plain_states(with_head), 3, "mean"), abs=1e-5)
    assert len(split.terms) == 1
    assert abs(split.terms[0].value) > 1e-3
    assert_close(split.left_over, 0)


def test_a_layer_or_pooling_that_does_not_exist(backend):
    for layer, pooling in ((4, "mean"), (-1, "mean"), (1, "own")):
        with pytest.raises(ValueError, match="does not exist"):
            token_ledger(backend.trace([A, B]), layer, pooling)


# Of the other architectures, each text's part is held in tests/components/model/contributions/test_path_products.py; what
# joins two texts' parts does not know the architecture. Here: both kinds of tokenizer, and both numbers of steps.
@pytest.mark.parametrize(
    "architecture", ["bert", "roberta", "albert", pytest.param("modernbert", marks=pytest.mark.rare)]
)
def test_the_words_as_typed_sum_to_the_cosine(tiny_folder, architecture):
    backend = shared_backend(tiny_folder(architecture))
    texts = (A, B) if architecture == "albert" else ("the river", "a bank")
    first, second = backend.tokenize(texts)
    # How many steps are enough depends on how quickly a tiny model's random vectors turn on the way from the reference.
    result = split_to_words(backend, first, second, 3, "mean", steps=50 if backend.structure.normalises_first else 30)
    split = result.ledger
    assert split.cosine == pytest.approx(plain_cosine(plain_states(backend, texts), 3, "mean"), abs=1e-5)
    assert split.contributions.sum() + sum(term.value for term in split.terms) + split.left_over == pytest.approx(
        split.cosine, abs=1e-9
    )
    assert abs(split.left_over) < 1e-3
    assert np.abs(split.contributions).max() > 0.01
    assert result.reference == min(result.reference_sizes, key=lambda name: result.reference_sizes[name])


@pytest.mark.rare
def test_the_words_as_typed_in_the_embedded_model(embedded):
    first, second = embedded.tokenize(["A dog runs.", "The puppy is running."])
    seen = []
    result = split_to_words(embedded, first, second, 6, "mean", progress=lambda *count: seen.append(count))
    assert abs(result.ledger.left_over) < 1e-4
    assert seen == [(done, 2 * DEFAULT_STEPS) for done in range(1, 2 * DEFAULT_STEPS + 1)]
    words = result.ledger.by_word(first, second)
    assert {words.top(1)[0].first.text, words.top(1)[0].second.text} in ({"dog", "puppy"}, {"runs", "running"})
    with pytest.raises(ValueError, match="one layer"):
        integrated_ledger(
            embedded.path_products(first, "mask", 6, "mean", 1), embedded.path_products(second, "mask", 5, "mean", 1)
        )


def test_each_token_s_vector_is_the_sum_of_its_parts(backend):
    """Along every axis of the space, at every layer."""
    record, norms = backend.inside(A), backend.block_norms()
    dim = backend.facts.hidden_size
    for layer in range(record.n_blocks + 1):
        for axis in (0, 5, dim - 1):
            directions = np.zeros((len(record.sentence), dim))
            directions[:, axis] = 1
            embeddings, heads, feed_forward, constants = split_along(record, norms, layer, directions)
            total = embeddings + heads.sum((1, 2)) + feed_forward.sum(1) + constants.sum(1)
            np.testing.assert_allclose(total, record.hidden_states[layer, :, axis], atol=1e-4)


def test_a_head_s_share_is_what_plain_torch_gives_with_the_norms_held(tiny_folder):
    """The last block of BERT: its feed-forward part goes through one LayerNorm only, a head through two."""
    backend = shared_backend(tiny_folder("bert"))
    record, norms = backend.inside(A), backend.block_norms()
    block = backend.encoder.encoder.layer[2]
    directions = np.zeros((len(record.sentence), 32))
    directions[2, 7] = 1
    _, heads, feed_forward, _ = split_along(record, norms, 3, directions)

    def held(norm, before, part):
        """A part through a LayerNorm whose denominator is that of `before`."""
        deviation = torch.sqrt(before.var(unbiased=False) + norm.eps)
        return (part - part.mean()) / deviation * norm.weight

    with torch.inference_mode():
        after = torch.tensor(record.after_attention[2, 2])
        output = block.output.dense(torch.nn.functional.gelu(block.intermediate.dense(after)))
        assert float(held(block.output.LayerNorm, after + output, output)[7]) == pytest.approx(
            float(feed_forward[2, 2]), abs=1e-5
        )
        mixed = torch.zeros(32)
        mixed[8:16] = torch.tensor(record.attentions[2, 1, 2] @ record.values[2, 1])  # head 1's numbers
        head = mixed @ block.attention.output.dense.weight.T
        before = torch.tensor(record.hidden_states[2, 2] + record.attention_output[2, 2])
        passed = held(block.output.LayerNorm, after + output, held(block.attention.output.LayerNorm, before, head))
        assert float(passed[7]) == pytest.approx(float(heads[2, 2, 1]), abs=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_blocks_and_heads_sum_to_the_cosine(backend, states, pooling):
    trace = backend.trace([A, B])
    for layer in (0, 1, 3):
        before, final = pooled_pair(trace, layer, pooling, 0, 1)
        np.testing.assert_array_equal(before, final)
        _, weights = token_weights(trace, layer, pooling, 0)
        split = residual_split(backend.inside(A), backend.block_norms(), layer, weights, tuple(before))
        assert split.total == pytest.approx(plain_cosine(states, layer, pooling), abs=1e-4)
        assert split.left_over == pytest.approx(0, abs=1e-4)
        assert split.heads.shape == (layer, backend.facts.heads)
        assert split.matrix.shape[1] == len(split.columns())
        assert split.by_block().sum() == pytest.approx(split.total)


def test_the_largest_parts_come_first(backend):
    trace = backend.trace([A, B])
    before, _ = pooled_pair(trace, 3, "mean", 0, 1)
    _, weights = token_weights(trace, 3, "mean", 0)
    split = residual_split(backend.inside(A), backend.block_norms(), 3, weights, tuple(before), final_cosine=0.5)
    values = [part.contribution for part in split.top(100)]
    assert values == sorted(values, reverse=True)
    assert min(values) > 0
    assert sum(values) == pytest.approx(split.matrix[:, :-1].clip(0).sum() + max(split.embeddings, 0))
    lowest = split.lowest()
    least = min(float(split.matrix[:, :-1].min()), split.embeddings)
    assert (0.0 if lowest is None else lowest.contribution) == pytest.approx(min(0.0, least))
    assert split.terms[0].value == pytest.approx(0.5 - split.total, abs=1e-4)


def test_wrong_records_are_refused(backend):
    record, directions = backend.inside(A, attentions=False), np.zeros((len(backend.tokenize([A])[0]), 32))
    with pytest.raises(ValueError, match="attentions"):
        split_along(record, backend.block_norms(), 1, directions)
    with pytest.raises(ValueError, match="layer 4"):
        split_along(backend.inside(A), backend.block_norms(), 4, directions)


def test_words_sum_their_pieces(tiny_folder):
    backend = shared_backend(tiny_folder("bert"))
    trace = backend.trace([A, B])
    tokens = token_ledger(trace, 3, "mean")
    words = tokens.by_word(*trace.sentences)
    assert [(part.text, part.kind) for part in words.first] == [
        *(("[CLS]", "special"), ("The", "word"), ("cat", "word"), ("is", "word"), ("walking", "word"), ("on", "word")),
        *(("the", "word"), ("bank", "word"), ("!", "punctuation"), ("[SEP]", "special")),
    ]
    assert [trace.sentences[0].text[part.start : part.end] for part in words.first[1:-1]] == [
        part.text for part in words.first[1:-1]
    ]
    walking = [token.position for token in trace.sentences[0].tokens if token.piece in {"walk", "##ing"}]
    assert len(walking) == 2
    np.testing.assert_allclose(words.contributions[4].sum(), tokens.contributions[walking].sum())
    assert words.contributions.sum() == pytest.approx(tokens.contributions.sum())
    of_a, of_b = words.part_scores()
    assert (len(of_a), len(of_b)) == (10, 8)
    assert of_a.sum() == pytest.approx(of_b.sum()) == pytest.approx(tokens.cosine)
    inner = words.contributions[1:8, 1:7].sum()  # no special token, no "!"
    assert_close(words.outside_words(), words.cosine - inner)
    with pytest.raises(ValueError, match="not of these texts"):
        tokens.by_word(trace.sentences[1], trace.sentences[0])


def test_words_as_typed_sum_their_pieces_and_punctuation(tiny_folder):
    backend = shared_backend(tiny_folder("bert"))
    trace = backend.trace(["The cat's bank (is) – walking on!", "The bank 看看 is."])
    tokens = token_ledger(trace, 3, "mean")
    words = tokens.by_typed_word(*trace.sentences)
    assert [(part.text, part.kind) for part in words.first] == [
        *(("The", "word"), ("cat's", "word"), ("bank", "word"), ("is", "word"), ("–", "punctuation")),
        *(("walking", "word"), ("on", "word"), ("[CLS] [SEP]", "special")),
    ]
    # A run of letters that may have no spaces between words stays in the tokenizer's words.
    assert [part.text for part in words.second] == ["The", "bank", "看", "看", "is", "[CLS] [SEP]"]
    positions = sorted(position for part in words.first for position in part.positions)
    assert positions == list(range(len(trace.sentences[0])))
    cats = [token.position for token in trace.sentences[0].tokens if 4 <= token.start < 9]
    assert len(cats) > 2
    np.testing.assert_allclose(words.contributions[1].sum(), tokens.contributions[cats].sum())
    assert words.contributions.sum() == pytest.approx(tokens.cosine)


def test_a_bounded_ledger_still_sums():
    rng = np.random.default_rng(0)
    parts = tuple(ledger_module.LedgerPart(f"w{number}", "word", (number,)) for number in range(30))
    contributions = rng.normal(size=(30, 30))
    contributions[7] += 9
    contributions[:, 11] -= 9  # negative ones are kept too
    split = ledger_module.Ledger(parts, parts, contributions, (), float(contributions.sum()), (1.0, 1.0), 0, "mean")
    bounded = split.bounded(8)
    assert bounded.contributions.shape == (8, 8)
    assert (bounded.first[-1].text, bounded.first[-1].kind) == ("23 others", "rest")
    assert parts[7] in bounded.first
    assert parts[11] in bounded.second
    assert [part.positions for part in bounded.first[:-1]] == sorted(part.positions for part in bounded.first[:-1])
    assert sorted(position for part in bounded.first for position in part.positions) == list(range(30))
    assert bounded.contributions.sum() == pytest.approx(contributions.sum())
    assert split.bounded(30).first == parts
    np.testing.assert_array_equal(split.bounded(30).contributions, contributions)
    best = split.top(1)[0]
    assert best.contribution == pytest.approx(contributions.max())
    assert (best.first, best.second) == tuple(parts[n] for n in np.unravel_index(contributions.argmax(), (30, 30)))


def test_words_of_other_scripts_are_whole_and_pieces_where_there_are_no_spaces(embedded: Backend) -> None:
    """A word of Hindi has no upper and lower case either, and is one part; kana are divided into the tokenizer's pieces."""
    hindi, kana = embedded.tokenize(["हिन्दी भाषा", "えきのまえ in a bank."])
    assert [part.text for part in ledger_module.typed_parts(hindi)][:2] == ["हिन्दी", "भाषा"]
    assert [part.text for part in ledger_module.typed_parts(kana)][:-1] == [*"えきのまえ", "in", "a", "bank"]
