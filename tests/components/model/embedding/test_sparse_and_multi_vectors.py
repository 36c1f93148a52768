"""SPLADE's weights and ColBERT's token vectors against sentence-transformers' own classes, on tiny seeded models."""

from __future__ import annotations

import json
import shutil
import string

import numpy as np
import pytest
import torch

from components.errors import InputError, ModelError
from components.jobs import Stopped
from components.model.backend import Backend
from components.model.embedding import multi_vectors, sparse_vectors
from components.retrieval.search.rerank import late_interaction_scores
from tests.support.saved_models import save_multi, save_pylate, save_sparse

TEXTS = ["the cat sat on the bank", "money", "a red hat, we will walk by the river!", "dog 你 é", "walking " * 70, ""]


def change(folder, name, **values):
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.fixture(scope="module")
def sparse_folder(tmp_path_factory):
    return save_sparse(tmp_path_factory.mktemp("splade"))


@pytest.fixture(scope="module")
def multi_folder(tmp_path_factory):
    return save_multi(tmp_path_factory.mktemp("colbert"), skiplist_words=list(string.punctuation))


@pytest.mark.parametrize(("pooling", "activation"), [("max", "log1p_relu"), ("sum", "relu")])
def test_sparse_vectors_equal_sentence_transformers(tmp_path, pooling, activation):
    from sentence_transformers import SparseEncoder

    folder = save_sparse(tmp_path, pooling, activation, {"query": "the ", "document": ""})
    reference, ours = SparseEncoder(str(folder), device="cpu", local_files_only=True), Backend.load(str(folder))
    expected = reference.encode(TEXTS, convert_to_sparse_tensor=False).numpy()
    found = ours.sparse_vectors(TEXTS)
    assert (expected > 0).any(axis=1).all()
    assert 0 < (expected > 0).mean() < 1
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    of_queries = reference.encode_query(TEXTS, convert_to_sparse_tensor=False).numpy()
    np.testing.assert_allclose(ours.sparse_vectors(TEXTS, role="query"), of_queries, rtol=1e-5, atol=1e-5)
    assert not np.allclose(of_queries, expected)


def test_the_sparse_matrix_keeps_only_what_is_above_zero(sparse_folder, monkeypatch):
    ours = Backend.load(str(sparse_folder))
    dense, matrix = ours.sparse_vectors(TEXTS, role="document"), ours.sparse_matrix(TEXTS, role="document")
    np.testing.assert_array_equal(matrix.toarray(), dense)
    assert matrix.nnz == np.count_nonzero(dense)
    assert ours.sparse_matrix([]).shape == (0, dense.shape[1])
    monkeypatch.setattr(sparse_vectors, "MOST_WEIGHTS", matrix.nnz - 1)
    with pytest.raises(InputError, match="smaller corpus"):
        ours.sparse_matrix(TEXTS, role="document")


def test_each_text_keeps_its_weights_beyond_the_first_block(sparse_folder, monkeypatch):
    ours = Backend.load(str(sparse_folder))
    whole = ours.sparse_matrix(TEXTS).toarray()
    monkeypatch.setattr(sparse_vectors, "SENTENCES_PER_BLOCK", 2)
    np.testing.assert_allclose(ours.sparse_matrix(TEXTS).toarray(), whole, atol=1e-5)


def test_each_text_keeps_its_token_vectors_beyond_the_first_block(multi_folder, monkeypatch):
    ours = Backend.load(str(multi_folder))
    whole = ours.multi_vectors(TEXTS, "document")
    monkeypatch.setattr(multi_vectors, "SENTENCES_PER_BLOCK", 2)
    for found, expected in zip(ours.multi_vectors(TEXTS, "document"), whole, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_expanded_pieces_are_sorted_and_say_which_the_text_has(sparse_folder):
    from sentence_transformers import SparseEncoder

    ours = Backend.load(str(sparse_folder))
    reference = SparseEncoder(str(sparse_folder), device="cpu", local_files_only=True)
    found = ours.expanded_pieces("the cat sat")
    expected = reference.decode(reference.encode("the cat sat"), top_k=None)
    assert dict(zip(found.pieces, found.weights.tolist(), strict=True)) == pytest.approx(dict(expected), abs=1e-5)
    assert (np.diff(found.weights) <= 0).all()
    assert (found.weights > 0).all()
    own = {piece for piece, is_own in zip(found.pieces, found.in_text, strict=True) if is_own}
    assert own == {"the", "cat", "sat"} & set(found.pieces)
    assert {"[CLS]", "[SEP]"} <= set(found.pieces)  # which have a weight, but nobody wrote them
    assert not all(found.in_text)
    before = ours.forward_passes
    weights = ours.sparse_vectors(["the cat sat"])[0]
    again = ours.expanded_pieces("the cat sat", weights=weights)
    assert again.pieces == found.pieces
    assert ours.forward_passes == before + 1


def test_the_prompt_is_not_the_texts_own_and_what_is_cut_off_is_not_read(tmp_path):
    folder = save_sparse(tmp_path, prompts={"query": "red hat "})
    ours = Backend.load(str(folder))
    everything = np.ones_like(ours.sparse_vectors(["the"])[0])  # every piece has a weight

    def own(text, max_length=None):
        found = ours.expanded_pieces(text, role="query", max_length=max_length, weights=everything)
        return {piece for piece, is_own in zip(found.pieces, found.in_text, strict=True) if is_own}

    assert own("the cat sat") == {"the", "cat", "sat"}
    assert own("a red cat") == {"a", "red", "cat"}
    assert own("the cat sat", max_length=6) == {"the", "cat"}  # two special tokens, two of the prompt
    assert own("the cat sat", max_length=3) == set()
    assert own("") == set()


def test_a_published_number_of_weights_is_kept(tmp_path):
    from sentence_transformers import SparseEncoder

    folder = save_sparse(tmp_path, prompts={"query": "the ", "document": ""}, max_active_dims=4)
    reference, ours = SparseEncoder(str(folder), device="cpu", local_files_only=True), Backend.load(str(folder))
    assert reference.max_active_dims == 4
    expected = reference.encode_query(TEXTS, convert_to_sparse_tensor=False).numpy()
    np.testing.assert_allclose(ours.sparse_vectors(TEXTS, role="query"), expected, rtol=1e-5, atol=1e-5)
    assert (ours.sparse_matrix(TEXTS).getnnz(axis=1) == 4).all()
    change(folder, "config_sentence_transformers.json", max_active_dims=10_000)  # more than there are pieces
    assert (Backend.load(str(folder)).sparse_matrix(TEXTS).getnnz(axis=1) > 4).all()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"max_active_dims": 0}, "not valid"),
        ({"max_active_dims": True}, "not valid"),
        ({"max_active_dims": "8"}, "not valid"),
        ({"similarity_fn_name": "euclidean"}, "euclidean distance"),
        ({"similarity_fn_name": "manhattan"}, "manhattan distance"),
    ],
)
def test_settings_of_sparse_models_that_are_not_applied_are_refused(tmp_path, sparse_folder, values, reason):
    folder = shutil.copytree(sparse_folder, tmp_path / "changed")
    change(folder, "config_sentence_transformers.json", **values)
    with pytest.raises(ModelError, match=reason):
        Backend.load(str(folder)).sparse_vectors(["the cat"])


def test_progress_and_stopping_of_sparse_vectors(sparse_folder):
    ours, seen = Backend.load(str(sparse_folder)), []
    ours.sparse_vectors(TEXTS, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(TEXTS), len(TEXTS))
    with pytest.raises(Stopped):
        ours.sparse_vectors(TEXTS, is_stopped=lambda: True)
    with pytest.raises(InputError):
        ours.sparse_vectors(TEXTS, max_length=10_000)


def test_models_without_splade_are_refused(tmp_path, sparse_folder, multi_folder, embedded):
    for model in (embedded, Backend.load(str(multi_folder))):
        with pytest.raises(ModelError, match="does not give weights"):
            model.sparse_vectors(["the cat"])
    folder = shutil.copytree(sparse_folder, tmp_path / "changed")
    change(folder, "1_SpladePooling/config.json", pooling_strategy="median")
    with pytest.raises(ModelError, match="unknown here"):
        Backend.load(str(folder)).sparse_vectors(["the cat"])


@pytest.mark.parametrize(
    ("normalise", "mask"),
    [
        (True, {"skiplist_words": list(string.punctuation)}),
        (False, {"skiplist_words": ["the", "nowhere"], "skiplist_tasks": ["query", "document"]}),
        (True, {"keep_only_token_ids": [5, 6, 7, 8]}),
        (True, {}),
    ],
)
def test_token_vectors_and_maxsim_equal_sentence_transformers(tmp_path, normalise, mask):
    from sentence_transformers import MultiVectorEncoder

    folder = save_multi(tmp_path, normalise, **mask)
    reference, ours = MultiVectorEncoder(str(folder), device="cpu", local_files_only=True), Backend.load(str(folder))
    queries, documents = TEXTS[:3], [text for text in TEXTS if text]
    expected = {"query": reference.encode_query(queries), "document": reference.encode_document(documents)}
    found = {"query": ours.multi_vectors(queries, "query"), "document": ours.multi_vectors(documents, "document")}
    for role in ("query", "document"):
        for mine, theirs in zip(found[role], expected[role], strict=True):
            np.testing.assert_allclose(mine, np.asarray(theirs), atol=1e-5)
    scores = [
        [float((query @ document.T).max(axis=1).sum()) if len(document) else 0.0 for document in found["document"]]
        for query in found["query"]
    ]
    theirs = reference.similarity(expected["query"], expected["document"]).numpy()
    has_tokens = [len(document) > 0 for document in found["document"]]
    np.testing.assert_allclose(np.array(scores)[:, has_tokens], theirs[:, has_tokens], atol=1e-4)


def test_the_published_lengths_of_queries_and_documents_are_kept(tmp_path, multi_folder):
    from sentence_transformers import MultiVectorEncoder

    folder = shutil.copytree(multi_folder, tmp_path / "changed")
    change(folder, "sentence_bert_config.json", query_length=5, document_length=9)
    reference, ours = MultiVectorEncoder(str(folder), device="cpu", local_files_only=True), Backend.load(str(folder))
    for role, encode in (("query", reference.encode_query), ("document", reference.encode_document)):
        for mine, theirs in zip(ours.multi_vectors(TEXTS[:3], role), encode(TEXTS[:3]), strict=True):
            np.testing.assert_allclose(mine, np.asarray(theirs), atol=1e-5)
    assert len(ours.multi_vectors(TEXTS[:1], "query")[0]) == 5


def assert_equal_vectors(folder, texts=TEXTS[:5], max_length=None):
    """Our vectors and MaxSim are those of MultiVectorEncoder; gives the numbers of the queries' vectors, and our model."""
    from sentence_transformers import MultiVectorEncoder

    reference, ours = MultiVectorEncoder(str(folder), device="cpu", local_files_only=True), Backend.load(str(folder))
    queries, documents = ours.multi_vectors(texts, "query"), ours.multi_vectors(texts, "document")
    both = reference.encode_query(texts), reference.encode_document(texts)
    for mine, theirs in zip([*queries, *documents], [*both[0], *both[1]], strict=True):
        np.testing.assert_allclose(mine, np.asarray(theirs), atol=1e-5)
    theirs = reference.similarity(*both).numpy()
    for row, query in enumerate(texts):
        scores = late_interaction_scores(ours, query, texts, 0)
        np.testing.assert_allclose(scores, theirs[row], atol=1e-4)
    return [len(query) for query in queries], ours


@pytest.mark.parametrize(
    ("expansion", "attend", "lengths"),
    [
        ({"strategy": "fixed", "length": 12}, False, {12}),
        ({"strategy": "fixed", "length": 12}, True, {12}),
        ({"strategy": "min", "length": 12}, False, {12, 14, 64}),
        ({"strategy": "min", "length": 12, "token": "hat"}, True, {12, 14, 64}),
    ],
)
def test_query_expansion_equals_sentence_transformers(tmp_path, multi_folder, attend, expansion, lengths):
    folder = shutil.copytree(multi_folder, tmp_path / "changed")
    change(folder, "sentence_bert_config.json", query_expansion=expansion | {"attend": attend})
    counts, ours = assert_equal_vectors(folder)
    assert set(counts) == lengths
    assert len(ours.multi_vectors(TEXTS[:1], "query", max_length=5)[0]) == 12
    pieces, positions = ours.multi_vector_pieces("the cat", "query")
    added = expansion.get("token", "[MASK]")
    assert pieces == ("[CLS]", "red", "the", "cat", "[SEP]", *[added] * 7)
    assert positions == tuple(range(12))


NO_EXPANSION = {"do_query_expansion": False, "similarity_fn_name": "MaxSim", "prompts": {"query": "red "}}
NO_PREFIX = {"query_prefix": None, "document_prefix": None, "prompts": {"passage": "red ", "corpus": "hat "}}


@pytest.mark.parametrize(
    ("config", "length", "with_tokens"),
    [
        ({"attend_to_expansion_tokens": False, "skiplist_words": [".", "cat"]}, 16, True),
        ({"attend_to_expansion_tokens": True, "prompts": {"query": "[Q] ", "document": ""}}, 16, True),
        ({"attend_to_expansion_tokens": True, "prompts": {"query": "[Q] ", "document": ""}}, 16, False),
        (NO_EXPANSION, None, True),
        (NO_EXPANSION, None, False),
        ({"query_length": None, "similarity_fn_name": "meanmaxsim"}, 32, True),
        (NO_PREFIX, 16, True),
        (NO_PREFIX, 16, False),
        ({**NO_PREFIX, "prompts": {"query": "the ", "document": "red "}}, 16, True),
        ({"skiplist_words": "a.,"}, 16, False),
        ({"skiplist_words": ""}, 16, True),
    ],
)
def test_pylate_folders_equal_sentence_transformers(tmp_path, config, length, with_tokens):
    folder = save_pylate(tmp_path / "pylate", with_tokens=with_tokens, **config)
    counts, model = assert_equal_vectors(folder)
    assert set(counts) == {length} if length else len(set(counts)) > 1
    pieces, _ = model.multi_vector_pieces("the cat, sat.", "document")
    assert ("[D] " in pieces) == (with_tokens and "document_prefix" not in config)
    assert "," not in pieces or "skiplist_words" in config
    unused = [name for name in ("passage", "corpus") if name in config.get("prompts", {})]
    sentences = [sentence for sentence in model.not_applied if "prompt named" not in sentence]
    assert [sentence for sentence in model.not_applied if "prompt named" in sentence] == [
        f"It has a prompt named “{name}”, which sentence-transformers does not use for documents: it looks for “document”. "
        "This prompt is not applied."
        for name in unused
    ]
    (sentence,) = sentences
    assert "MaxSim, under Search, Diagnose and in the Laboratory, uses these vectors" in sentence


@pytest.mark.parametrize("words", [{"the": 1}, 5, True])
def test_a_skip_list_that_is_none_skips_nothing(tmp_path, words):
    folder = save_pylate(tmp_path / "pylate", skiplist_words=words)
    pieces, _ = Backend.load(str(folder)).multi_vector_pieces("the cat, sat.", "document")
    assert {"the", ",", "."} <= set(pieces)


def test_a_mask_before_the_normalising_module_is_read_too(tmp_path, multi_folder):
    folder = shutil.copytree(multi_folder, tmp_path / "changed")
    listed = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([listed[0], listed[1], listed[3], listed[2]]))
    assert_equal_vectors(folder)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("sentence_bert_config.json", {"query_expansion": {"strategy": "some", "length": 32}}, "unknown here"),
        ("sentence_bert_config.json", {"query_expansion": {"strategy": "fixed", "length": 900}}, "900 tokens"),
        ("sentence_bert_config.json", {"query_expansion": {"strategy": "min", "length": 9, "token": "qq"}}, "have"),
        ("1_Dense/config.json", {"module_input_name": "sentence_embedding"}, "not the tokens' vectors"),
    ],
)
def test_what_is_not_done_here_is_refused(tmp_path, multi_folder, name, values, reason):
    folder = shutil.copytree(multi_folder, tmp_path / "changed")
    change(folder, name, **values)
    model = Backend.load(str(folder))
    with pytest.raises(ModelError, match=f"no vectors for late interaction, because .*{reason}"):
        model.multi_vectors(["the cat"], "query")
    (sentence,) = model.not_applied
    assert "are not applied, because" in sentence


def test_a_dense_layer_without_safetensors_is_never_read_from_a_pickle(tmp_path, multi_folder):
    folder = shutil.copytree(multi_folder, tmp_path / "changed")
    (folder / "1_Dense" / "model.safetensors").unlink()
    torch.save({"linear.weight": torch.zeros(12, 32)}, folder / "1_Dense" / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickle"):
        Backend.load(str(folder)).multi_vectors(["the cat"], "query")


def test_models_without_late_interaction_are_refused(embedded, sparse_folder):
    for model in (embedded, Backend.load(str(sparse_folder))):
        with pytest.raises(ModelError, match="was not published for late interaction"):
            model.multi_vectors(["the cat"], "document")
