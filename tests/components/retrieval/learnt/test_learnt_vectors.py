"""The vectors from which a ranking is learnt: against single passes, and as a file that is checked before it is used."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

from components.errors import InputError
from components.retrieval.corpora.texts import Texts
from components.retrieval.index.build import build_index
from components.retrieval.learnt import learnt_vectors
from components.retrieval.learnt.learnt_ranking import JudgedPairs, combined
from components.retrieval.learnt.learnt_vectors import check_fit, read_vectors, vectors_of, write_vectors

PAIRS = JudgedPairs(
    ("river bank", "a loan"),
    ("They sat by the water.", "The bank raised its rates.", "A dog barked."),
    np.array([0, 0, 1, 1]),
    np.array([0, 2, 1, 2]),
    np.array([2, 0, 1, 0]),
    np.array([True, True, True, False]),
    np.arange(2),
    np.arange(3),
)


@pytest.fixture(scope="module")
def apart(embedded):
    return vectors_of(embedded, PAIRS, "apart")


@pytest.fixture(scope="module")
def together(embedded):
    return vectors_of(embedded, PAIRS, "together", [0, 6])


def test_vectors_are_those_of_single_passes(embedded, apart, together):
    queries, documents = PAIRS.texts()
    assert apart.layers == tuple(range(7))
    for row, (query, document) in enumerate(zip(queries, documents, strict=True)):
        own = [embedded.trace([text]).hidden_states[:, 0] for text in (query, document)]  # [layer, token, dim]
        for layer in (0, 3, 6):
            for pooling, pooled in (("cls", lambda h: h[0]), ("mean", lambda h: h.mean(axis=0))):
                q, d = (pooled(states[layer]) for states in own)
                features = apart.features(PAIRS, layer, pooling, "both")[row]
                np.testing.assert_allclose(features, np.concatenate([np.abs(q - d), q * d]), atol=2e-5)
        joint = embedded.trace([query], [document]).hidden_states[:, 0]
        np.testing.assert_allclose(together.features(PAIRS, 6, "cls", "both")[row], joint[6, 0], atol=1e-5)
        np.testing.assert_allclose(together.features(PAIRS, 0, "mean", "both")[row], joint[0].mean(axis=0), atol=1e-5)
    assert np.ptp(apart.features(PAIRS, 0, "cls", "difference")) == 0  # [CLS] knows nothing of its text there


def test_vectors_out_of_indexes_are_the_same_and_cost_no_pass(embedded, apart, tmp_path):
    def index(name, texts, role, layers=range(7), poolings=("mean", "cls", "max")):
        options = embedded.embed_options(layers, poolings, precision="float32", role=role)
        return build_index(embedded, Texts(name, texts), tmp_path / name, options, "float32")

    # Of a collection with other texts, in another order.
    documents = index("documents", ("Something else.", *PAIRS.documents[::-1]), "document")
    queries = index("queries", ("another query", *PAIRS.queries), "query")
    pairs = replace(PAIRS, query_numbers=np.array([1, 2]), document_numbers=np.array([3, 2, 1]))
    before = embedded.forward_passes
    known = learnt_vectors.from_indexes(documents, queries, pairs)
    assert embedded.forward_passes == before
    for name, value in vars(apart).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(getattr(known, name), value, atol=2e-5)
        else:
            assert getattr(known, name) == value, name
    without = index("maximum", PAIRS.documents, "document", poolings=("max",))
    assert learnt_vectors.from_indexes(without, queries, PAIRS) is None


def test_cosines_are_of_all_documents(embedded, apart):
    options = embedded.embed_options([6], ["cls"], precision="float32")
    q, d = (embedded.embed(texts, options=options)[0, 0] for texts in (PAIRS.queries, PAIRS.documents))
    expected = (q @ d.T) / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(d, axis=1)
    np.testing.assert_allclose(apart.cosines(6, "cls", np.array([0, 1])), expected, atol=1e-5)
    np.testing.assert_allclose(
        combined(q[PAIRS.query_rows], d[PAIRS.document_rows], "product"),
        apart.features(PAIRS, 6, "cls", "product"),
        atol=1e-4,
    )


def test_the_expected_memory_is_the_memory(embedded, apart):
    assert learnt_vectors.needed_bytes(embedded, PAIRS, "apart") == apart.nbytes
    assert learnt_vectors.needed_bytes(embedded, PAIRS, "together") == vectors_of(embedded, PAIRS, "together").nbytes


@pytest.mark.parametrize("name", ["apart", "together"])
def test_a_file_gives_back_what_was_saved(name, request):
    vectors = request.getfixturevalue(name)
    again = read_vectors(write_vectors(vectors), "v.npz")
    for key, value in vars(vectors).items():
        np.testing.assert_array_equal(getattr(again, key), value)
    check_fit(again, PAIRS, "v.npz")


def test_vectors_of_other_texts_do_not_fit(apart):
    other_order = replace(PAIRS, document_rows=PAIRS.document_rows[::-1].copy())
    other_text = replace(PAIRS, documents=("They sat by the sea.", *PAIRS.documents[1:]))
    for pairs in (other_order, other_text):
        with pytest.raises(InputError, match="other texts"):
            check_fit(apart, pairs, "v.npz")
    check_fit(apart, replace(PAIRS, grades=np.zeros(4, np.int64)), "v.npz")  # no vector depends on the grades


def test_vectors_of_another_number_of_texts_do_not_fit(apart, together):
    for vectors, changes in (
        (apart, {"first": apart.first[:, :, :1]}),
        (apart, {"second": apart.second[:, :, :2]}),
        (together, {"first": together.first[:, :, :3]}),
        (together, {"second": together.first[:, :, :3]}),
    ):
        with pytest.raises(InputError, match="has the vectors of"):
            check_fit(replace(vectors, **changes), PAIRS, "v.npz")


def test_the_hash_is_of_the_numbers_too(apart):
    assert replace(apart).content_hash == apart.content_hash
    for changes in (
        {"first": 2 * apart.first},
        {"second": -apart.second},
        {"max_length": 7},
        {"layers": tuple(range(1, 8))},
    ):
        assert replace(apart, **changes).content_hash != apart.content_hash


def changed(vectors, **arrays) -> bytes:
    with np.load(io.BytesIO(write_vectors(vectors))) as saved:
        content = {name: saved[name] for name in saved.files} | arrays
    buffer = io.BytesIO()
    np.savez(buffer, **{name: array for name, array in content.items() if array is not None})
    return buffer.getvalue()


def test_damaged_and_foreign_files_are_refused(together):
    first = together.first
    not_finite = first.copy()
    not_finite[0, 0, 0, 0] = np.nan
    bad = {
        "not a file": b"nothing",
        "cut": write_vectors(together)[:-200],
        "other kind": changed(together, kind=np.array("runs")),
        "no hash": changed(together, pairs_hash=None),
        "pickled": changed(together, model=np.array([object()], dtype=object)),
        "shape": changed(together, first=first[:1]),
        "type": changed(together, first=first.astype(np.float64)),
        "lengths": changed(together, first=first[..., :100]),
        "not finite": changed(together, first=not_finite),
        "reading": changed(together, reading=np.array("aloud")),
        "pooling": changed(together, poolings=np.array(["mean", "own"])),
        "layers": changed(together, layers=np.array([6, 0])),
    }
    for name, content in bad.items():
        with pytest.raises(InputError, match=rf"{name}\.npz cannot be used"):
            read_vectors(content, f"{name}.npz")
    with pytest.raises(InputError, match="too many layers"):
        read_vectors(changed(together, layers=np.arange(2_000)), "v.npz")
    bomb = io.BytesIO()
    np.savez_compressed(bomb, first=np.zeros((1, 1, 1, 8_000_000), np.float32))
    assert len(bomb.getvalue()) < 100_000
    with pytest.raises(InputError, match="expands to more than 200 times"):
        read_vectors(bomb.getvalue(), "v.npz")
    with pytest.raises(InputError, match=r"takes 26.6 kB in memory, and at most 1.00 kB"):
        read_vectors(write_vectors(together), "v.npz", most_bytes=1_000)
