"""The model to train: adapters on every architecture, merged when it is saved, and read alike by everybody."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from components.arrays import unit
from components.errors import ModelError
from components.model.backend import Backend
from components.training import model as models
from components.training.settings import TrainingSettings
from tests.support import decoder_models, static_models
from tests.support.closeness import assert_close
from tests.support.tiny import ARCHITECTURES, LIKE_BERT

TEXTS = ["the cat sat on the bank", "a red hat", "we will put money in the bank . " * 30]


def disturb(model, size: float = 0.1) -> None:
    """Give every trained parameter other values, as training would."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += size * torch.randn(parameter.shape, generator=generator).to(parameter.device)


def encode(model, texts=TEXTS):
    return model.encode(texts, show_progress_bar=False)


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch):
    monkeypatch.setenv("BERT_INTERNALS_DEVICE", "cpu")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_adapter_is_merged_into_every_architecture(architecture, tiny_folder, tmp_path):
    from sentence_transformers import SentenceTransformer

    settings = TrainingSettings(model=str(tiny_folder(architecture)), pooling="max", adapter_rank=4, adapter_alpha=6.0)
    torch.manual_seed(0)  # of the adapter's A
    model = models.build(settings, "encoder")
    untouched = encode(model)
    base = Backend.load(settings.model, device_name="cpu")
    options = base.embed_options(poolings=["max"], precision="float32")
    np.testing.assert_allclose(base.embed(TEXTS, options=options)[0, 0], untouched, atol=1e-5)  # B starts at zero
    trained, total = models.count_parameters(model)
    blocks = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert 0 < trained < total
    path = base.loaded.modules.blocks_path
    assert all(".lora_" in name and f".{path}." in name for name in blocks)
    # A and B of query, key, value, output, two of feed-forward; of fewer if some are one matrix, or blocks share theirs.
    linears = [part for part in base.encoder.get_submodule(path).modules() if isinstance(part, torch.nn.Linear)]
    assert len(blocks) == len(linears) * 2
    if architecture in LIKE_BERT:
        assert len(linears) == base.facts.layers * 6
    disturb(model, 0.03)  # with 0.1 float32 alone is 1e-5 from float64 for NomicBERT
    changed = encode(model.double())
    model.float()  # which gives back the same numbers
    assert np.abs(changed - untouched).max() > 0.01
    models.save(model, settings, tmp_path / "model", tmp_path / "adapter")
    saved = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    exact = encode(saved.double())
    assert_close(exact, changed)  # the merged weights are saved as float32
    backend = Backend.load(str(tmp_path / "model"), device_name="cpu")
    assert (backend.own_pooling, backend.own_max_length) == ("max", min(128, base.facts.max_positions))
    ours = backend.embed(TEXTS, options=backend.embed_options(precision="float32"))[0, 0]
    np.testing.assert_allclose(ours, exact, atol=1e-5)


def test_the_adapter_apart_is_peft_s_own(tiny_folder, tmp_path):
    """The base model with the saved adapter is the merged model."""

    settings = TrainingSettings(model=str(tiny_folder("bert")))
    model = models.build(settings, "encoder")
    disturb(model)
    changed = encode(model)
    models.save(model, settings, tmp_path / "model", tmp_path / "adapter")
    again = models.build(TrainingSettings(model=str(tiny_folder("bert")), adapter=False), "encoder")
    again.load_adapter(str(tmp_path / "adapter"))
    np.testing.assert_allclose(encode(again), changed, atol=1e-5)
    assert json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())["r"] == 8


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "roberta"])
def test_a_cross_encoder_keeps_its_new_classifier(architecture, tiny_folder, tmp_path):
    from sentence_transformers import CrossEncoder

    settings = TrainingSettings(model=str(tiny_folder(architecture)), objectives=("relevance",))
    torch.manual_seed(3)
    model = models.build(settings, "cross-encoder")
    disturb(model)
    pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[2])]
    scores = model.predict(pairs, activation_fn=torch.nn.Identity())
    models.save(model, settings, tmp_path / "model", tmp_path / "adapter")
    saved = CrossEncoder(str(tmp_path / "model"), device="cpu")
    np.testing.assert_allclose(saved.predict(pairs, activation_fn=torch.nn.Identity()), scores, atol=1e-5)
    assert Backend.load(str(tmp_path / "model"), device_name="cpu").is_cross_encoder
    assert saved.max_length == model.max_seq_length


def test_texts_longer_than_the_published_tokenizer_allows(embedded, tmp_path):
    """The included tokenizer.json carries a truncation to 128 of its own; the run's length counts, here and there."""
    from sentence_transformers import SentenceTransformer

    settings = TrainingSettings(max_length=200, adapter=False)
    model = models.build(settings, "encoder")
    models.save(model, settings, tmp_path / "model", tmp_path / "adapter")
    texts = ["A canoe drifted past the willows. " * 60, "A canoe."]
    published = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    vectors = encode(published, texts)
    options = embedded.embed_options(max_length=200, precision="float32")
    means = embedded.embed(texts, options=options)[0, 0]
    # The included model was published with Normalize, and the trained one has it too.
    np.testing.assert_allclose(vectors, unit(means), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    saved = Backend.load(str(tmp_path / "model"), device_name="cpu")
    own = saved.embed(texts, options=saved.embed_options(precision="float32"))[0, 0]
    np.testing.assert_allclose(own, means, atol=1e-5)
    assert not (tmp_path / "adapter").exists()


def test_all_weights_or_an_adapter(tiny_folder):
    whole = models.build(TrainingSettings(model=str(tiny_folder("bert")), adapter=False), "encoder")
    trained, total = models.count_parameters(whole)
    assert trained == total


def test_dropout_is_that_of_the_settings(tiny_folder):
    model = models.build(TrainingSettings(model=str(tiny_folder("bert")), dropout=0.35), "encoder")
    rates = {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.35}


def test_a_model_that_is_no_encoder_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match="is a 'gpt2' model"):
        models.build(TrainingSettings(model=str(tmp_path)), "encoder")


@pytest.mark.parametrize(
    ("save", "reason"),
    [(static_models.save_model2vec, "has no blocks"), (decoder_models.save_qwen3, "is a decoder")],
)
def test_models_that_only_give_vectors_are_refused(tmp_path, save, reason):
    with pytest.raises(ModelError, match=reason):
        models.build(TrainingSettings(model=str(save(tmp_path))), "encoder")


def test_trained_weights_of_another_model_are_refused(tiny_folder, tmp_path):
    small, large = (
        models.build(TrainingSettings(model=str(tiny_folder("bert")), adapter_rank=rank), "encoder") for rank in (2, 4)
    )
    models.write_trained(small, tmp_path / "trained.safetensors")
    with pytest.raises(ModelError, match="cannot be used"):
        models.read_trained(large, tmp_path / "trained.safetensors")


def test_damage_is_noise_on_the_matrices_of_the_blocks_alone(tiny_folder):
    """W' = W + damage * std(W) * noise of the seed; what is outside the blocks, and what is drawn later, stays the same."""
    settings = TrainingSettings(model=str(tiny_folder("bert")), adapter=False, projection=4, watch=())

    def built(**changes):
        torch.manual_seed(3)
        return models.build(replace(settings, **changes), "encoder").state_dict()

    whole, damaged = built(), built(damage=0.4)
    changed = {name for name in whole if not torch.equal(whole[name], damaged[name])}
    assert changed == {
        name for name in whole if ".layer." in name and name.endswith("weight") and whole[name].ndim == 2
    }
    noise = torch.cat([((damaged[name] - whole[name]) / whole[name].std()).flatten() for name in sorted(changed)])
    assert noise.mean().item() == pytest.approx(0.0, abs=0.01)
    assert noise.std().item() == pytest.approx(0.4, rel=0.02)
    again, other = built(damage=0.4), built(damage=0.4, seed=11)
    assert all(torch.equal(damaged[name], again[name]) for name in whole)
    assert all(not torch.equal(damaged[name], other[name]) for name in changed)


def test_an_adapter_names_the_folder_it_was_trained_from(tiny_folder, tmp_path):
    """Models are loaded from a copy that is gone afterwards."""
    settings = TrainingSettings(model=str(tiny_folder("bert")))
    models.save(models.build(settings, "encoder"), settings, tmp_path / "model", tmp_path / "adapter")
    named = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())["base_model_name_or_path"]
    assert named == settings.model
