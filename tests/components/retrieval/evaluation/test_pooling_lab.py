"""The pooling and projection lab equals plain transformers, scikit-learn, and what can be worked out by hand."""

from __future__ import annotations

from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.random_projection import GaussianRandomProjection

from components.errors import InputError
from components.jobs import Stopped
from components.model.backend import Backend
from components.retrieval.evaluation.grid import retrieval_runs
from components.retrieval.evaluation.pooling_lab import (
    POOLINGS,
    TREATMENTS,
    LabVectors,
    dimension_sweep,
    idf_weights,
    lab_cells,
    lab_layers,
    most_pairs,
)
from components.retrieval.evaluation.ranks import gold_ranks
from components.retrieval.evaluation.sts import ScoredPairs, similarity_grid
from tests.support.closeness import assert_close
from tests.support.places import ASSETS
from tests.support.tiny import pooling_module, publish, save_tiny, tiny_model

DOCUMENTS = [
    "the cat sat on the red hat",
    "a dog ran by the river",
    "we put money in the bank",
    "will the dog walk ?",
    "the bank by the river",
    "a cat , a dog , a hat",
]
QUERIES = ["red hat cat", "dog river", "money bank", "dog walk", "river bank", "cat dog hat"]
PAIRS = ScoredPairs(
    ("the cat sat", "a dog ran", "we put money in", "the river bank"),
    ("a cat sat", "the red hat", "money in the bank", "a dog will walk"),
    (4.5, 0.5, 3.0, 1.0),
)


def lab_vectors(
    backend,
    documents,
    queries,
    scored_pairs,
    layer,
    max_length=None,
    progress=lambda done, total: None,
    is_stopped=lambda: False,
):
    """One layer's vectors, from no more layers than last4 takes."""
    backend.embed_options((layer,), precision="float32")  # refuses a layer the model does not have, and names it
    wanted = range(max(0, layer - 3), layer + 1)
    return lab_layers(backend, documents, queries, scored_pairs, wanted, max_length, progress, is_stopped).of(layer)


@pytest.fixture(scope="module")
def tiny(tiny_folder) -> Backend:
    return Backend.load(str(tiny_folder("bert")))


def handmade(
    count: int = 60, dim: int = 12, seed: int = 0, documents: np.ndarray | None = None, noise: float = 0.8
) -> LabVectors:
    """Vectors far from the origin, of unequal length, with directions of unequal variance."""
    random = np.random.default_rng(seed)
    if documents is None:
        documents = (2 + random.normal(size=(count, dim)) * np.linspace(3, 0.2, dim)).astype(np.float32)
    queries, first, second = (
        (documents[:rows] + noise * random.normal(size=(rows, documents.shape[1]))).astype(np.float32)
        for rows in (len(documents), min(20, len(documents)), min(20, len(documents)))
    )

    def each(vectors: np.ndarray) -> MappingProxyType:
        return MappingProxyType(dict.fromkeys(POOLINGS, vectors))

    return LabVectors("hand", "0", 3, each(documents), each(queries), each(first), each(second))


SCORES = tuple(np.random.default_rng(9).uniform(0, 5, 20).tolist())


# Poolings


@pytest.mark.parametrize(("layer", "layers"), [(3, (0, 1, 2, 3)), (2, (0, 1, 2)), (0, (0,))])
def test_every_pooling_equals_plain_transformers(tiny, layer, layers):
    model, tokenizer = tiny_model("bert")
    found = lab_vectors(tiny, DOCUMENTS, QUERIES, PAIRS, layer)
    assert (found.model, found.revision, found.layer) == (tiny.spec.key, tiny.revision, layer)
    ids = [tokenizer(text)["input_ids"] for text in DOCUMENTS]
    weights = [np.log(7 / (1 + sum(piece in row for row in ids))) + 1 for piece in range(len(tokenizer))]
    for side, texts in (
        (found.documents, DOCUMENTS),
        (found.queries, QUERIES),
        (found.first, PAIRS.first),
        (found.second, PAIRS.second),
    ):
        assert tuple(side) == POOLINGS
        for row, text in enumerate(texts):
            inputs = tokenizer(text, return_tensors="pt")
            with torch.inference_mode():
                states = [state[0].numpy() for state in model(**inputs, output_hidden_states=True).hidden_states]
            by_idf = np.array([weights[piece] for piece in inputs["input_ids"][0].tolist()])[:, None]
            averaged = sum(states[at] for at in layers) / len(layers)  # hidden states first, then the tokens
            expected = {
                "mean": states[layer].mean(axis=0),
                "cls": states[layer][0],
                "max": states[layer].max(axis=0),
                "last4": averaged.mean(axis=0),
                "idf": (states[layer] * by_idf).sum(axis=0) / by_idf.sum(),
            }
            for pooling in POOLINGS:
                assert side[pooling].dtype == np.float32
                np.testing.assert_allclose(side[pooling][row], expected[pooling], atol=2e-5)


def test_idf_by_hand(tiny):
    weights = idf_weights(tiny, ["the cat", "the the dog", "a cat sat"], tiny.embed_options(precision="float32"))
    pieces = {piece: at for at, piece in enumerate(tiny.tokenization.vocabulary)}
    expected = {
        "[CLS]": 1.0,  # in all three
        "[SEP]": 1.0,
        "the": np.log(4 / 3) + 1,  # in two, however often in one
        "cat": np.log(4 / 3) + 1,
        "dog": np.log(4 / 2) + 1,
        "river": np.log(4) + 1,  # in none
    }
    assert {piece: weights[pieces[piece]] for piece in expected} == pytest.approx(expected)
    assert weights.shape == (tiny.facts.vocabulary_size,)
    assert weights.min() == 1
    cut = idf_weights(tiny, ["the cat"], tiny.embed_options(max_length=3, precision="float32"))
    assert cut[pieces["cat"]] == pytest.approx(np.log(2) + 1)  # what is cut away is not counted


def test_prompts_length_passes_and_progress(tmp_path):
    folder = publish(save_tiny(tmp_path / "prompted"), pooling_module("mean_tokens"))
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "the cat ", "document": "a dog "}}'
    )
    prompted, told = Backend.load(str(folder)), []
    before = prompted.forward_passes
    found = lab_vectors(prompted, DOCUMENTS, QUERIES, PAIRS, 3, 8, lambda *counts: told.append(counts))
    assert told == sorted(told)
    assert told[-1] == (2 * (6 + 6 + 8), 2 * (6 + 6 + 8))
    assert prompted.forward_passes - before == len(told)  # batches, two passes over each text
    plain = Backend.load(str(save_tiny(tmp_path / "plain")))
    expected = lab_vectors(
        plain, [f"a dog {text}" for text in DOCUMENTS], [f"the cat {text}" for text in QUERIES], PAIRS, 3, 8
    )
    for pooling in POOLINGS:
        np.testing.assert_allclose(found.documents[pooling], expected.documents[pooling], atol=1e-5)
        np.testing.assert_allclose(found.queries[pooling], expected.queries[pooling], atol=1e-5)
        np.testing.assert_allclose(found.first[pooling], expected.first[pooling], atol=1e-5)


def test_vectors_cannot_be_changed_and_pairs_may_be_left_out(tiny):
    found = lab_vectors(tiny, DOCUMENTS, QUERIES, None, 3)
    assert found.first["idf"].shape == found.second["mean"].shape == (0, 32)
    with pytest.raises(ValueError, match="read-only"):
        found.documents["idf"][0] = 0
    cells = list(lab_cells(found, ()))
    assert {(cell.spearman, cell.pearson) for cell in cells} == {(None, None)}
    with pytest.raises(ValueError, match="read-only"):
        cells[0].ranks[0] = 0


def test_what_cannot_be_embedded_is_refused(tiny):
    with pytest.raises(InputError, match="layers 0 to 3"):
        lab_vectors(tiny, DOCUMENTS, QUERIES, PAIRS, 4)
    with pytest.raises(InputError, match="layers 0 to 3"):
        lab_vectors(tiny, DOCUMENTS, QUERIES, PAIRS, -1)
    with pytest.raises(InputError, match="1 document"):
        lab_vectors(tiny, DOCUMENTS[:1], QUERIES[:1], PAIRS, 3)


# All layers at once


@pytest.mark.parametrize("scored", [PAIRS, None])
def test_any_layer_of_all_equals_that_layer_alone(tiny, scored):
    layers = lab_layers(tiny, DOCUMENTS, QUERIES, scored)
    assert layers.layers == (0, 1, 2, 3)
    before = tiny.forward_passes
    found = [layers.of(layer) for layer in layers.layers]
    assert tiny.forward_passes == before
    for layer, one in enumerate(found):
        alone = lab_vectors(tiny, DOCUMENTS, QUERIES, scored, layer)
        assert (one.model, one.revision, one.layer) == (alone.model, alone.revision, layer)
        for side in ("documents", "queries", "first", "second"):
            assert tuple(getattr(one, side)) == POOLINGS
            for pooling in POOLINGS:
                vectors = getattr(one, side)[pooling]
                assert vectors.dtype == np.float32
                assert not vectors.flags.writeable
                assert_close(vectors, getattr(alone, side)[pooling])
    assert not np.allclose(found[3].documents["mean"], found[2].documents["mean"], atol=0.01)


def test_all_layers_take_two_passes_whose_progress_never_goes_back(tiny):
    told, before = [], tiny.forward_passes
    lab_layers(tiny, DOCUMENTS, QUERIES, PAIRS, progress=lambda *counts: told.append(counts))
    passes = tiny.forward_passes - before
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert {total for _, total in told} == {2 * (6 + 6 + 8)}
    assert told[-1][0] == told[-1][1]
    assert passes == len(told)  # a batch each
    before = tiny.forward_passes
    lab_vectors(tiny, DOCUMENTS, QUERIES, PAIRS, 0)
    assert tiny.forward_passes - before == passes  # one layer costs as much


def test_what_is_not_held_is_refused(tiny):
    layers = lab_layers(tiny, DOCUMENTS, QUERIES, PAIRS, (2, 3))
    for layer in (1, 3, 4, -1):  # last4 at layer 3 takes layer 0 too
        with pytest.raises(ValueError, match="not in tuple"):
            layers.of(layer)
    with pytest.raises(ValueError, match="read-only"):
        layers.documents["mean"][0] = 0


def test_most_pairs_is_what_fits_into_memory(tiny):
    def of(layers: int, dim: int, scored: ScoredPairs | None = None) -> int:
        return most_pairs(SimpleNamespace(facts=SimpleNamespace(layers=layers, hidden_size=dim)), scored)  # type: ignore

    assert of(6, 384) == 5_000
    assert of(12, 768) == (512 * 2**20 // (13 * 768 * 4 * 4)) // 2 == 1_680
    assert of(24, 1024) == 655
    assert of(12, 768, PAIRS) == 1_680 - len(PAIRS.first)
    assert of(96, 100_000) == 3  # two documents differ in one direction only
    layers = lab_layers(tiny, DOCUMENTS, QUERIES, PAIRS)
    held = sum(part.nbytes for side in (layers.documents, layers.queries, layers.pairs) for part in side.values())
    assert held == (6 + 6 + 8) * (4 * 4 * (tiny.facts.layers + 1) * tiny.facts.hidden_size)


# Treatments


def reference(treatment: str, documents: np.ndarray, dims: int, seed: int):
    """The same with scikit-learn alone."""
    if treatment in ("cosine", "dot"):
        return lambda vectors: vectors
    if treatment == "random":
        return GaussianRandomProjection(dims, random_state=seed).fit(documents).transform
    return PCA(dims, whiten=treatment == "whitened", svd_solver="full").fit(documents.astype(np.float64)).transform


@pytest.mark.parametrize("count", [60, 9])
def test_every_treatment_equals_scikit_learn(count):
    vectors = handmade(count)
    cells = list(lab_cells(vectors, SCORES[: len(vectors.first["mean"])], dims=7, seed=3))
    assert [(cell.pooling, cell.treatment) for cell in cells] == [(p, t) for p in POOLINGS for t in TREATMENTS]
    scores = SCORES[: len(vectors.first["mean"])]
    for cell in cells:
        treat = reference(cell.treatment, vectors.documents["mean"], 7, 3)
        documents, queries, first, second = (
            treat(side["mean"]).astype(np.float64)
            for side in (vectors.documents, vectors.queries, vectors.first, vectors.second)
        )
        assert cell.dims == documents.shape[1] == (12 if cell.treatment in ("cosine", "dot") else 7)
        products = queries @ documents.T
        predicted = (first * second).sum(axis=1)
        if cell.treatment != "dot":
            products /= np.linalg.norm(documents, axis=1)
            predicted /= np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        expected = 1 + (products > np.diag(products)[:, None]).sum(axis=1)
        np.testing.assert_array_equal(cell.ranks, expected)
        assert cell.spearman == pytest.approx(stats.spearmanr(predicted, scores).statistic, abs=1e-6)
        assert cell.pearson == pytest.approx(stats.pearsonr(predicted, scores).statistic, abs=1e-4)
        assert cell.mean("Recall@1") == pytest.approx((expected == 1).mean())
        assert cell.mean("Recall@10") == pytest.approx((expected <= 10).mean())
        assert cell.mean("MRR") == pytest.approx((1 / expected).mean())
        assert cell.mean("nDCG@10") == pytest.approx(np.where(expected <= 10, 1 / np.log2(1 + expected), 0).mean())


def test_whitened_documents_have_identity_covariance():
    from components.retrieval.evaluation import pooling_lab

    documents = handmade(200, 16).documents["mean"]
    axes = pooling_lab._fitted_axes(documents, 16, lambda: False)
    for count in (16, 5):
        whitened = axes.project(documents, count, True)
        assert whitened.dtype == np.float32
        np.testing.assert_allclose(whitened.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(np.cov(whitened.T), np.eye(count), atol=1e-5)
    placed = axes.project(documents, 16, False)
    np.testing.assert_allclose(np.cov(placed.T), np.diag(axes.spread**2), atol=1e-4)
    # All directions kept and only turned: distances stay what they were.
    distances = [np.linalg.norm(vectors[:50, None] - vectors[None, :50], axis=-1) for vectors in (placed, documents)]
    np.testing.assert_allclose(*distances, atol=1e-4)


def test_dims_are_clipped_to_what_is_possible_and_the_cell_says_so():
    few = {cell.treatment: cell.dims for cell in lab_cells(handmade(6), SCORES[:6], dims=128)}
    assert few == {"cosine": 12, "dot": 12, "random": 5, "pca": 5, "whitened": 5}
    many = {cell.treatment: cell.dims for cell in lab_cells(handmade(60), SCORES, dims=128)}
    assert set(many.values()) == {12}
    random = np.random.default_rng(0)
    flat = (3 + random.normal(size=(40, 3)) @ random.normal(size=(3, 12))).astype(np.float32)
    flat_cells = {cell.treatment: cell.dims for cell in lab_cells(handmade(documents=flat), SCORES, dims=8)}
    assert flat_cells == {"cosine": 12, "dot": 12, "random": 8, "pca": 3, "whitened": 3}  # rounding is no direction


def test_documents_that_are_all_the_same_find_nothing(tiny):
    """[CLS] at layer 0: whitening must not blow up rounding into a retrieval."""
    vectors = lab_vectors(tiny, DOCUMENTS, QUERIES, PAIRS, 0)
    cells = [cell for cell in lab_cells(vectors, PAIRS.scores) if cell.pooling == "cls"]
    assert len(cells) == 5
    for cell in cells:
        assert cell.ranks.tolist() == [6] * 6
        assert cell.spearman is None
        assert cell.dims == (0 if cell.treatment in ("pca", "whitened") else 5 if cell.treatment == "random" else 32)


def test_the_size_of_dot_products_does_not_matter():
    vectors = handmade()
    large = handmade(documents=vectors.documents["mean"])
    scaled = [MappingProxyType({name: 1e4 * found for name, found in side.items()}) for side in (
        large.documents, large.queries, large.first, large.second
    )]  # fmt: skip
    small = {cell.treatment: cell for cell in lab_cells(large, SCORES)}
    for cell in lab_cells(LabVectors("hand", "0", 3, *scaled), SCORES):
        np.testing.assert_array_equal(cell.ranks, small[cell.treatment].ranks)
        assert cell.spearman == pytest.approx(small[cell.treatment].spearman)


def test_the_seed_decides_the_random_projection_and_nothing_else():
    vectors = handmade()

    def ranks(seed: int) -> dict[str, list[int]]:
        return {cell.treatment: cell.ranks.tolist() for cell in lab_cells(vectors, SCORES, dims=4, seed=seed)}

    assert ranks(1) == ranks(1)
    changed = {treatment for treatment in TREATMENTS if ranks(1)[treatment] != ranks(2)[treatment]}
    assert changed == {"random"}


# The sweep


@pytest.mark.parametrize("count", [60, 9])
def test_the_sweep_gives_the_cells_of_each_number_of_dims(count):
    vectors = handmade(count)
    scores = SCORES[: len(vectors.first["mean"])]
    found = list(dimension_sweep(vectors, "max", scores, (6, 2, 12, 4, 64), seed=2))
    possible = (2, 4, 6, 12) if count == 60 else (2, 4, 6)
    assert [(cell.treatment, cell.dims) for cell in found] == [
        (treatment, dims) for treatment in ("random", "pca", "whitened") for dims in possible
    ]
    for dims in possible:
        single = {cell.treatment: cell for cell in lab_cells(vectors, scores, dims, seed=2) if cell.pooling == "max"}
        for cell in (cell for cell in found if cell.dims == dims):
            np.testing.assert_array_equal(cell.ranks, single[cell.treatment].ranks)
            assert cell.pooling == "max"
            assert cell.spearman == pytest.approx(single[cell.treatment].spearman)


def test_the_sweep_leaves_out_what_cannot_be():
    random = np.random.default_rng(0)
    flat = (3 + random.normal(size=(40, 3)) @ random.normal(size=(3, 12))).astype(np.float32)
    found = dimension_sweep(handmade(documents=flat), "mean", SCORES, (2, 8))
    assert [(cell.treatment, cell.dims) for cell in found] == [
        ("random", 2),
        ("random", 8),
        ("pca", 2),
        ("pca", 3),  # all there are
        ("whitened", 2),
        ("whitened", 3),
    ]
    same = np.ones((40, 12), np.float32)
    assert {cell.treatment for cell in dimension_sweep(handmade(documents=same), "cls", SCORES, (2,))} == {"random"}
    assert list(dimension_sweep(handmade(), "mean", SCORES, (64, 128))) == []


# Long runs


def test_progress_counts_queries_over_all_cells():
    vectors, told = handmade(), []
    cells = list(lab_cells(vectors, SCORES, progress=lambda *counts: told.append(counts)))
    assert told == [(60 * (at + 1), 60 * 25) for at in range(len(cells))]
    told.clear()
    cells = list(dimension_sweep(vectors, "cls", SCORES, (2, 4), progress=lambda *counts: told.append(counts)))
    assert told == [(60 * (at + 1), 60 * 6) for at in range(len(cells))]


def test_a_stop_is_heard(tiny):
    with pytest.raises(Stopped):
        lab_vectors(tiny, DOCUMENTS, QUERIES, PAIRS, 3, is_stopped=lambda: True)
    told: list[tuple[int, int]] = []
    with pytest.raises(Stopped):
        lab_vectors(
            tiny, DOCUMENTS, QUERIES, PAIRS, 3, progress=lambda *c: told.append(c), is_stopped=lambda: len(told) > 1
        )
    assert 0 < told[-1][0] < told[-1][1]
    vectors, stopped = handmade(), False
    running = lab_cells(vectors, SCORES, is_stopped=lambda: stopped)
    assert next(running).treatment == "cosine"
    stopped = True
    with pytest.raises(Stopped):
        next(running)
    with pytest.raises(Stopped):
        list(lab_cells(vectors, SCORES, is_stopped=lambda: True))
    with pytest.raises(Stopped):
        list(dimension_sweep(vectors, "mean", SCORES, is_stopped=lambda: True))


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="19 scores of 20 pairs"):
        list(lab_cells(handmade(), SCORES[:19]))
    with pytest.raises(ValueError, match="at least 1"):
        list(lab_cells(handmade(), SCORES, dims=0))
    with pytest.raises(ValueError, match="at least 1"):
        list(dimension_sweep(handmade(), "mean", SCORES, (4, 0)))


# The embedded model


def test_layer_normalisation_and_dead_numbers_leave_fewer_directions(embedded):
    """It takes the mean away before it scales and shifts: divided by the scale, all token vectors sum to one number."""
    words = (ASSETS / "demo_sentences.txt").read_text(encoding="utf-8").split()
    documents = [" ".join(words[at : at + 5]) for at in range(0, 2000, 5)]
    expected = {
        5: {"mean": 383, "cls": 383, "idf": 383, "max": 384, "last4": 384},  # no one scale fits four layers
        6: {"mean": 381, "cls": 381, "idf": 381, "max": 381, "last4": 384},
    }
    layers = lab_layers(embedded, documents, ["one"] * len(documents), None, range(2, 7))  # queries have no say in this
    for layer, dims in expected.items():
        vectors = layers.of(layer)
        scale = embedded.encoder.encoder.layer[layer - 1].output.LayerNorm.weight.detach().numpy().astype(np.float64)
        for pooling, count in dims.items():
            if count == 383:
                assert np.ptp((vectors.documents[pooling] / scale).sum(axis=1)) < 0.01
            cells = list(dimension_sweep(vectors, pooling, (), (384,)))
            assert [cell.dims for cell in cells] == [384, count, count]
    assert np.count_nonzero(np.ptp(vectors.documents["mean"], axis=0) < 1e-6) == 3


def test_cosine_cells_are_the_runs_of_the_evaluation(embedded):
    random = np.random.default_rng(0)
    words = ("river", "bank", "money", "cat", "violin", "rain", "court", "bread", "goal", "planet", "fever", "road")
    documents = [" ".join(random.choice(words, 7)) for _ in range(60)]
    queries = [" ".join(text.split()[2:6]) for text in documents]
    vectors = lab_vectors(embedded, documents, queries, PAIRS, 5)
    cells = {(cell.pooling, cell.treatment): cell for cell in lab_cells(vectors, PAIRS.scores, dims=32)}
    options = embedded.embed_options((5,), ("mean", "cls", "max"), precision="float32")
    runs = {pooling: ranks for _, pooling, ranks in retrieval_runs(embedded, documents, queries, gold_ranks, options)}
    similar = similarity_grid(embedded, PAIRS, options)
    for pooling in ("mean", "cls", "max"):
        cell = cells[pooling, "cosine"]
        np.testing.assert_array_equal(cell.ranks, runs[pooling])
        assert cell.spearman == pytest.approx(similar.spearman.of(5, pooling))
        assert cell.pearson == pytest.approx(similar.pearson.of(5, pooling), abs=1e-5)
        dot = gold_ranks(vectors.queries[pooling], vectors.documents[pooling], cosine=False)
        np.testing.assert_array_equal(cells[pooling, "dot"].ranks, dot)
