"""The model's own vector: equal to sentence-transformers, at every layer, in the index, and refused with a reason."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from components.analysis.pooling import pool
from components.analysis.similarity.baseline import measure
from components.command_line.program import main
from components.errors import InputError, ModelError
from components.model.backend import Backend
from components.model.catalog import ModelSpec
from components.model.files import hub
from components.model.files.sources import find_files, folder_stamp
from components.retrieval.corpora.corpus import Corpus, ReadReport
from components.retrieval.index.build import build_index
from components.retrieval.index.folder import open_index
from components.retrieval.search.query import query_vectors
from tests.support.closeness import assert_close
from tests.support.hub_server import HubServer, use_hub
from tests.support.tiny import dense_module, pooling_module, publish, save_tiny

TEXTS = ["the cat sat", "a dog", "we will put money in the bank by the river .", "", "walking , walked"]
MEAN = pooling_module()
NORMALIZE = ("Normalize", {})


@pytest.fixture
def folder(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder("bert"), tmp_path / "model")


def vectors(backend, texts=TEXTS, layers=None, poolings=None, precision="float32"):
    return backend.embed(texts, options=backend.embed_options(layers, poolings, precision=precision))


@pytest.mark.parametrize("size", [16, 32, 48])
@pytest.mark.parametrize("mode", ["mean_tokens", "cls_token", "max_tokens"])
def test_it_equals_sentence_transformers(folder, size, mode):
    publish(folder, pooling_module(mode), dense_module(32, size))
    reference = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    backend = Backend.load(str(folder))
    assert backend.own_pooling == "own"
    assert backend.poolings == ("mean", "cls", "max", "own")
    assert backend.not_applied == ()
    found = vectors(backend)[0, 0]
    assert found.shape == (len(TEXTS), size)
    np.testing.assert_allclose(found, reference, atol=1e-5)


@pytest.mark.parametrize(
    "modules",
    [
        pytest.param([MEAN, dense_module(32, 8, "Identity", bias=False)], id="no bias"),
        pytest.param([MEAN, dense_module(32, 48, "GELU"), dense_module(48, 20, "ReLU")], id="two in a row"),
        pytest.param([MEAN, dense_module(32, 24), NORMALIZE], id="scaled to length 1"),
        pytest.param([MEAN, NORMALIZE, dense_module(32, 24, "Sigmoid")], id="scaled in between"),
        pytest.param([MEAN, ("Dropout", {"dropout": 0.5}), dense_module(32, 24, None)], id="activation left out"),
        pytest.param([MEAN, dense_module(32, 32, "SiLU", use_residual=True)], id="added to its input"),
    ],
)
def test_every_kind_of_head_equals_sentence_transformers(folder, modules):
    publish(folder, *modules)
    backend = Backend.load(str(folder))
    head = backend.loaded.head
    assert head is not None
    reference = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(vectors(backend)[0, 0][:, : head.size], reference, atol=1e-5)


def test_a_head_on_the_embedded_model_equals_sentence_transformers(embedded_folder, tmp_path):
    folder = shutil.copytree(embedded_folder, tmp_path / "model")
    shutil.rmtree(folder / "1_Pooling")
    publish(folder, pooling_module(size=384), dense_module(384, 512), NORMALIZE)
    backend = Backend.load(str(folder))
    texts = ["I put money in the bank.", "The river bank was muddy that year.", "unputdownable"]
    np.testing.assert_allclose(
        vectors(backend, texts)[0, 0], SentenceTransformer(str(folder), device="cpu").encode(texts), atol=1e-5
    )


def test_every_layer_and_pooling_equals_the_trace(folder):
    backend = Backend.load(str(publish(folder, MEAN, dense_module(32, 48))))
    found = vectors(backend, TEXTS[:3], range(4), backend.poolings)
    assert found.shape == (4, 4, 3, 48)
    trace = backend.trace(TEXTS[:3])
    assert trace.poolings == backend.poolings
    for at, pooling in enumerate(backend.poolings):
        expected = pool(trace, pooling)
        assert expected.shape[-1] == (48 if pooling == "own" else 32)
        np.testing.assert_allclose(found[:, at, :, : expected.shape[-1]], expected, atol=2e-5)
        assert not found[:, at, :, expected.shape[-1] :].any()
    # Special tokens always count in the model's own vector.
    np.testing.assert_array_equal(pool(trace, "own", include_special=False), pool(trace, "own"))


def test_poolings_asked_for_without_it_keep_the_hidden_size(folder):
    backend = Backend.load(str(publish(folder, MEAN, dense_module(32, 48))))
    assert vectors(backend, poolings=("mean", "cls")).shape[-1] == backend.vector_size(("mean", "cls")) == 32
    weights = np.ones(backend.facts.vocabulary_size, np.float32)
    assert backend.embed_weighted(TEXTS, weights, backend.embed_options()).shape[-1] == 32


def test_zeros_at_the_end_change_no_cosine(folder):
    backend = Backend.load(str(publish(folder, MEAN, dense_module(32, 8))))
    padded = vectors(backend)[0, 0]
    assert_close(padded @ padded.T, padded[:, :8] @ padded[:, :8].T)


def test_equal_vectors_give_equal_ones_in_any_batch(folder):
    """At layer 0 [CLS] is the same in every sentence: a tie, which rounding must not break."""
    backend = Backend.load(str(publish(folder, pooling_module("cls_token"), dense_module(32, 48))))
    options = backend.embed_options((0,), ("own",), precision="float32")
    found = backend.embed(TEXTS * 5, options=options, token_budget=40)[0, 0]
    assert (found == found[0]).all()


def test_bfloat16_keeps_directions(folder):
    backend = Backend.load(str(publish(folder, MEAN, dense_module(32, 16))))
    exact, rough = vectors(backend)[0, 0], vectors(backend, precision="bfloat16")[0, 0]
    cosines = (exact * rough).sum(1) / (np.linalg.norm(exact, axis=1) * np.linalg.norm(rough, axis=1))
    assert cosines.min() > 0.99


def test_a_baseline_has_it_too(folder):
    backend = Backend.load(str(publish(folder, MEAN, dense_module(32, 16))))
    found = measure([backend.run(TEXTS[:3])], pairs=20)
    assert ("own", True) in found.sentences
    assert found.sentences["own", True].centre.shape == (4, 16)


def test_a_model_without_a_head_refuses_it(embedded):
    assert embedded.poolings == ("mean", "cls", "max")
    with pytest.raises(InputError, match=r"own.*mean, cls, max"):
        embedded.embed_options(poolings=("own",))
    with pytest.raises(ValueError, match="unknown pooling 'own'"):
        pool(embedded.trace(["a bank"]), "own")


@pytest.mark.parametrize("size", [16, 48])
def test_an_index_keeps_it_and_is_searched_by_it(folder, tmp_path, size):
    publish(folder, MEAN, dense_module(32, size))
    backend = Backend.load(str(folder))
    corpus = Corpus("made up", tuple(TEXTS[:3]), {}, ReadReport(3, 3))
    options = backend.embed_options((0, 3), backend.poolings, precision="float32")
    build_index(backend, corpus, tmp_path / "index", options)
    index = open_index(tmp_path / "index")
    assert index.info.options.poolings == backend.poolings
    assert index.info.dim == max(32, size)
    query = query_vectors(backend, ["the dog sat"], index.info)[3, "own"][0]
    reference = SentenceTransformer(str(folder), device="cpu").encode(["the dog sat", *TEXTS[:3]])
    expected = reference[1:] @ reference[0] / np.linalg.norm(reference[1:], axis=1) / np.linalg.norm(reference[0])
    np.testing.assert_allclose(index.engine(3, "own").scores(query), expected, atol=1e-5)


def test_the_command_line_takes_it(folder, tmp_path):
    publish(folder, MEAN, dense_module(32, 16))
    (tmp_path / "texts.txt").write_text("the cat sat\na dog ran\n")
    made = tmp_path / "made.json"
    for poolings, expected in ((None, ["own"]), ("own,cls", ["cls", "own"]), ("all", ["mean", "cls", "max", "own"])):
        out = tmp_path / str(poolings)
        chosen = [] if poolings is None else ["--poolings", poolings]
        arguments = [
            "index",
            str(tmp_path / "texts.txt"),
            "--out",
            str(out),
            "--model",
            str(folder),
            "--json",
            str(made),
        ]
        assert main([*arguments, *chosen]) == 0
        assert json.loads(made.read_text())["poolings"] == expected


# --- What cannot be applied


def refused(folder, *modules):
    """The only sentence on a model published with these modules; it has no vector of its own."""
    if modules:
        publish(folder, *modules)
    backend = Backend.load(str(folder))
    assert backend.poolings == ("mean", "cls", "max")
    assert backend.own_pooling == "mean"
    (sentence,) = backend.not_applied
    assert "is not applied, because" in sentence
    return sentence


def test_a_pickle_is_never_read(folder):
    publish(folder, MEAN, dense_module(32, 16))
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    assert "pickle" in refused(folder)


def test_an_unknown_activation_is_not_looked_up(folder):
    module = dense_module(32, 16)
    module[1]["activation_function"] = "torch.nn.modules.activation.Softplus"
    assert "activation function torch.nn.modules.activation.Softplus" in refused(folder, MEAN, module)
    # Of what is not in torch nothing is looked up: Tanh, as sentence-transformers takes it.
    module[1]["activation_function"] = "os.system"
    (folder / "2_Dense" / "config.json").write_text(json.dumps(module[1]))
    backend = Backend.load(str(folder))
    assert backend.not_applied == ()
    assert backend.loaded.head is not None
    assert backend.loaded.head.step_names == ("dense layer, Tanh",)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda place: (place / "model.safetensors").write_bytes(b"nothing"), id="weights"),
        pytest.param(lambda place: (place / "config.json").write_text("{"), id="configuration"),
        pytest.param(lambda place: (place / "config.json").write_text('{"out_features": 7}'), id="sizes"),
    ],
)
def test_a_damaged_head_is_left_out(folder, damage):
    publish(folder, MEAN, dense_module(32, 16))
    damage(folder / "2_Dense")
    refused(folder)


def test_a_head_of_another_size_than_the_model_is_left_out(folder):
    assert "64 numbers" in refused(folder, MEAN, dense_module(64, 16))


def test_a_path_out_of_the_folder_is_not_followed(folder, tmp_path):
    publish(folder, MEAN, dense_module(32, 16))
    shutil.move(folder / "2_Dense", tmp_path / "outside")
    listed = (folder / "modules.json").read_text()
    (folder / "modules.json").write_text(listed.replace('"2_Dense"', '"../outside"'))
    refused(folder)


# --- Files


def test_another_head_is_another_revision(folder):
    publish(folder, MEAN, dense_module(32, 16))
    spec = ModelSpec(str(folder), "folder", "tiny")
    before, stamp = find_files(spec).revision, folder_stamp(spec)
    config = folder / "2_Dense" / "config.json"
    config.write_text(config.read_text().replace("Tanh", "ReLU"))
    assert find_files(spec).revision != before
    assert folder_stamp(spec) != stamp


def test_another_head_in_a_folder_of_any_name_is_another_revision(folder):
    publish(folder, MEAN, dense_module(32, 16))
    (folder / "modules" / "last").mkdir(parents=True)
    (folder / "2_Dense").rename(folder / "modules" / "last" / "dense")
    listed = (folder / "modules.json").read_text()
    (folder / "modules.json").write_text(listed.replace("2_Dense", "modules/last/dense"))
    spec = ModelSpec(str(folder), "folder", "tiny")
    before, stamp = find_files(spec).revision, folder_stamp(spec)
    weights = folder / "modules" / "last" / "dense" / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b" ")
    assert find_files(spec).revision != before
    assert folder_stamp(spec) != stamp


@pytest.mark.parametrize("path", ["../outside", "missing", "a\0b", "x" * 300, "."])
def test_the_revision_reads_no_module_outside_the_folder(folder, path):
    publish(folder, MEAN)
    listed = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(
        json.dumps([*listed, {"type": "sentence_transformers.models.Dense", "path": path}])
    )
    spec = ModelSpec(str(folder), "folder", "tiny")
    before, stamp = find_files(spec).revision, folder_stamp(spec)
    (folder.parent / "outside").mkdir()
    (folder.parent / "outside" / "config.json").write_text("{}")
    assert find_files(spec).revision == before
    assert folder_stamp(spec) == stamp != ()
    assert len({name for name, _, _ in stamp}) == len(stamp)


@pytest.fixture
def server(folder, monkeypatch, tmp_path):
    publish(folder, MEAN, dense_module(32, 16))
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"never fetched")
    with HubServer({"somebody/dense": folder}) as running:
        use_hub(monkeypatch, running.address, tmp_path / "cache")
        yield running


def test_the_hub_gives_the_head_and_no_pickle(server, folder):
    backend = Backend.load("somebody/dense", device_name="cpu")
    assert {"2_Dense/config.json", "2_Dense/model.safetensors"} <= set(server.fetched())
    assert not any(name.endswith(".bin") for name in server.fetched())
    np.testing.assert_array_equal(vectors(backend), vectors(Backend.load(str(folder), device_name="cpu")))


def test_a_head_that_was_never_fetched_is_fetched_later_and_missing_until_then(server, monkeypatch):
    cached = hub.download("somebody/dense")
    shutil.rmtree(cached / "2_Dense")  # as an older version of the dashboard left it
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (sentence,) = Backend.load("somebody/dense", device_name="cpu").not_applied
    assert "not on this machine" in sentence
    monkeypatch.delenv("HF_HUB_OFFLINE")
    assert Backend.load("somebody/dense", device_name="cpu").own_pooling == "own"


def test_weights_of_a_head_alone_are_no_model(server, folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError) as caught:
        Backend.load("somebody/dense", device_name="cpu")
    assert caught.value.kind == "no_safetensors"


def test_the_head_is_shared_and_never_changes(folder):
    backend = Backend.load(str(publish(folder, MEAN, dense_module(32, 16))))
    head = backend.loaded.head
    assert backend.trace(TEXTS[:2]).head is head
    assert head is not None
    assert not any(parameter.requires_grad for parameter in head.layers.parameters())
    before = [parameter.clone() for parameter in head.layers.parameters()]
    vectors(backend)
    assert all(torch.equal(*pair) for pair in zip(before, head.layers.parameters(), strict=True))


def test_architectures_of_every_kind_take_a_head(tmp_path):
    for architecture in ("distilbert", "roberta", "mpnet"):
        folder = publish(save_tiny(tmp_path / architecture, architecture), MEAN, dense_module(32, 16))
        reference = SentenceTransformer(str(folder), device="cpu").encode(TEXTS[:3])
        np.testing.assert_allclose(vectors(Backend.load(str(folder)), TEXTS[:3])[0, 0][:, :16], reference, atol=1e-5)
