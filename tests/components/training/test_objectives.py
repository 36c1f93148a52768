"""Each objective's loss and its gradients equal the formula written out in plain torch, on a tiny BERT."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertForSequenceClassification, BertModel

from components.errors import InputError
from components.training.data import TrainingData
from components.training.negatives import dataset_columns, training_rows
from components.training.objectives import OBJECTIVES, build_loss, check_objectives, objective
from components.training.settings import DISTANCES, SOFTMAX_PARTS, TrainingSettings

SETTINGS = TrainingSettings(scale=20.0, margin=0.4)
FIRST = ("the bank", "a cat sat", "the river bank", "the cat")
SECOND = ("a river", "the cat sat on the river bank", "a bank", "the river sat")
THIRD = ("the cat sat", "a bank", "cat", "on the bank")
BINARY = np.array([1, 0, 1, 0])
SCORES = np.array([0.9, 0.1, 0.5, 0.0], np.float32)
CLASSES = np.array([0, 2, 1, 0])


@pytest.fixture
def encoder(tiny_folder):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    transformer = modules.Transformer(str(tiny_folder("bert")))
    pooling = modules.Pooling(transformer.get_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[transformer, pooling], device="cpu").eval()


@pytest.fixture
def cross_encoder(tiny_folder):
    from sentence_transformers import CrossEncoder

    torch.manual_seed(3)
    return CrossEncoder(str(tiny_folder("bert")), num_labels=1, device="cpu").eval()


@pytest.fixture
def plain(tiny_folder):
    """The same encoder without sentence-transformers."""
    return BertModel.from_pretrained(tiny_folder("bert")).eval()


@pytest.fixture
def tokenizer(tiny_folder):
    return AutoTokenizer.from_pretrained(tiny_folder("bert"))


def vectors(plain, tokenizer, texts):
    """Mean-pooled vectors [text, dim]."""
    inputs = tokenizer(list(texts), padding=True, return_tensors="pt")
    hidden = plain(**inputs).last_hidden_state
    mask = inputs["attention_mask"][:, :, None].float()
    return (hidden * mask).sum(1) / mask.sum(1)


def cosines(u, v):
    return (u * v).sum(-1) / ((u * u).sum(-1).sqrt() * (v * v).sum(-1).sqrt())


def distances(name, u, v):
    if name == "cosine":
        return 1 - cosines(u, v)
    if name == "euclidean":
        return ((u - v + 1e-6) ** 2).sum(-1).sqrt()  # torch.pairwise_distance adds 1e-6, so that 0 has a gradient
    return (u - v + 1e-6).abs().sum(-1)


def ranking(u, v, scale):
    scores = scale * cosines(u[:, None], v[None])
    exponentials = scores.exp()
    return -(exponentials.diagonal() / exponentials.sum(1)).log().mean()


def tokens_of(model, columns):
    return [model.preprocess(list(texts)) for texts in columns]


def compare(library_value, expected_value, library_model, plain_model):
    """Values, and gradients of all parameters that both models have."""
    assert library_value.item() == pytest.approx(expected_value.item(), rel=1e-4, abs=1e-6)
    library_value.backward()
    expected_value.backward()
    expected = {
        name: parameter.grad for name, parameter in plain_model.named_parameters() if parameter.grad is not None
    }
    actual = {
        name: parameter.grad for name, parameter in library_model.named_parameters() if parameter.grad is not None
    }
    assert set(actual) == set(expected)
    assert len(expected) > 30
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    assert largest > 1e-4
    for name, gradient in expected.items():
        torch.testing.assert_close(actual[name], gradient, rtol=1e-3, atol=1e-5 * max(1.0, largest), msg=name)


def bert_of(model):
    return model[0].model if hasattr(model[0], "model") else model[0].auto_model


def test_multiple_negatives_ranking(encoder, plain, tokenizer):
    loss = build_loss(SETTINGS, "mnrl", encoder)
    value = loss(tokens_of(encoder, [FIRST, SECOND]), None)
    u, v = (vectors(plain, tokenizer, texts) for texts in (FIRST, SECOND))
    compare(value, ranking(u, v, 20.0), bert_of(encoder), plain)


def test_ranking_counts_the_hard_wrong_answers_too(encoder, plain, tokenizer):
    loss = build_loss(replace(SETTINGS, scale=5.0), "mnrl", encoder)
    value = loss(tokens_of(encoder, [FIRST, SECOND, THIRD]), None)
    u, v, w = (vectors(plain, tokenizer, texts) for texts in (FIRST, SECOND, THIRD))
    exponentials = (5.0 * cosines(u[:, None], torch.cat([v, w])[None])).exp()
    compare(value, -(exponentials.diagonal() / exponentials.sum(1)).log().mean(), bert_of(encoder), plain)


@pytest.mark.parametrize("distance", DISTANCES)
def test_contrastive(encoder, plain, tokenizer, distance):
    margin = {"cosine": 0.4, "euclidean": 8.0, "manhattan": 30.0}[distance]
    loss = build_loss(replace(SETTINGS, distance=distance, margin=margin), "contrastive", encoder)
    value = loss(tokens_of(encoder, [FIRST, SECOND]), torch.tensor(BINARY))
    u, v = (vectors(plain, tokenizer, texts) for texts in (FIRST, SECOND))
    d, y = distances(distance, u, v), torch.tensor(BINARY)
    expected = (0.5 * (y * d**2 + (1 - y) * (margin - d).clamp(min=0) ** 2)).mean()
    assert ((1 - y) * (margin - d).clamp(min=0)).max() > 0  # the margin is felt
    compare(value, expected, bert_of(encoder), plain)


@pytest.mark.parametrize("distance", DISTANCES)
def test_online_contrastive(encoder, plain, tokenizer, distance):
    margin = {"cosine": 0.9, "euclidean": 20.0, "manhattan": 90.0}[distance]
    loss = build_loss(replace(SETTINGS, distance=distance, margin=margin), "online-contrastive", encoder)
    value = loss(tokens_of(encoder, [FIRST, SECOND]), torch.tensor(1 - BINARY))
    u, v = (vectors(plain, tokenizer, texts) for texts in (FIRST, SECOND))
    d = distances(distance, u, v)
    right, wrong = d[BINARY == 0], d[BINARY == 1]
    hard_right = [x for x in right if x > wrong.min()]
    hard_wrong = [x for x in wrong if x < right.max()]
    assert hard_right
    assert hard_wrong
    zero = 0 * d.sum()
    expected = zero + sum(x**2 for x in hard_right) + sum((margin - x).clamp(min=0) ** 2 for x in hard_wrong)
    compare(value, expected, bert_of(encoder), plain)


def test_cosine_regression(encoder, plain, tokenizer):
    loss = build_loss(SETTINGS, "cosine", encoder)
    value = loss(tokens_of(encoder, [FIRST, SECOND]), torch.tensor(SCORES))
    u, v = (vectors(plain, tokenizer, texts) for texts in (FIRST, SECOND))
    compare(value, ((cosines(u, v) - torch.tensor(SCORES)) ** 2).mean(), bert_of(encoder), plain)


@pytest.mark.parametrize("parts", [parts for size in (1, 2, 3) for parts in combinations(SOFTMAX_PARTS, size)])
def test_softmax(encoder, plain, tokenizer, parts):
    torch.manual_seed(1)
    loss = build_loss(replace(SETTINGS, softmax_parts=parts), "softmax", encoder, label_count=3)
    value = loss(tokens_of(encoder, [FIRST, SECOND]), torch.tensor(CLASSES))
    u, v = (vectors(plain, tokenizer, texts) for texts in (FIRST, SECOND))
    seen = []
    if "u, v" in parts:
        seen += [u, v]
    if "|u-v|" in parts:
        seen += [(u - v).abs()]
    if "u*v" in parts:
        seen += [u * v]
    features = torch.cat(seen, 1)
    weight, bias = (parameter.detach().clone().requires_grad_() for parameter in loss.classifier.parameters())
    assert weight.shape == (3, features.shape[1])
    probabilities = (features @ weight.T + bias).exp()
    probabilities = probabilities / probabilities.sum(1, keepdim=True)
    expected = -probabilities[range(4), CLASSES].log().mean()
    compare(value, expected, bert_of(encoder), plain)
    torch.testing.assert_close(loss.classifier.weight.grad, weight.grad, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(loss.classifier.bias.grad, bias.grad, rtol=1e-3, atol=1e-5)


def test_softmax_needs_the_number_of_labels(encoder):
    with pytest.raises(ValueError, match="number of labels"):
        build_loss(SETTINGS, "softmax", encoder)


@pytest.mark.parametrize("distance", DISTANCES)
def test_triplet(encoder, plain, tokenizer, distance):
    margin = {"cosine": 0.3, "euclidean": 3.0, "manhattan": 12.0}[distance]
    loss = build_loss(replace(SETTINGS, distance=distance, margin=margin), "triplet", encoder)
    value = loss(tokens_of(encoder, [FIRST, SECOND, THIRD]), None)
    a, p, n = (vectors(plain, tokenizer, texts) for texts in (FIRST, SECOND, THIRD))
    expected = (distances(distance, a, p) - distances(distance, a, n) + margin).clamp(min=0).mean()
    assert expected.item() > 0
    compare(value, expected, bert_of(encoder), plain)


def test_simcse_encodes_each_sentence_twice_with_dropout(encoder, plain, tokenizer):
    rows = training_rows(SETTINGS, "simcse", TrainingData("sentences", "four", {"sentence": FIRST}))
    columns = dataset_columns(SETTINGS, "simcse", rows)
    assert list(columns.values()) == [list(FIRST), list(FIRST)]
    encoder.train()
    plain.train()
    loss = build_loss(SETTINGS, "simcse", encoder)
    torch.manual_seed(5)
    value = loss(tokens_of(encoder, columns.values()), None)
    torch.manual_seed(5)
    u, again = (vectors(plain, tokenizer, texts) for texts in (FIRST, FIRST))
    assert float((u - again).abs().max()) > 0.01
    compare(value, ranking(u, again, 20.0), bert_of(encoder), plain)


def test_tsdae_adds_the_gradients_of_encoder_and_decoder(encoder, plain, tokenizer):
    """The decoder has the encoder's weights: their gradients are the sum of both paths."""
    settings = TrainingSettings(objectives=("tsdae",), adapter=False, deleted_share=0.5)
    rows = training_rows(settings, "tsdae", TrainingData("sentences", "four", {"sentence": SECOND}))
    columns = dataset_columns(settings, "tsdae", rows)
    assert list(columns) == ["damaged", "sentence"]
    torch.manual_seed(7)  # cross-attention and the head of the decoder are new
    loss = build_loss(settings, "tsdae", encoder).eval()
    bert, decoder_bert = bert_of(encoder), loss.decoder.bert
    tied = [name for name, parameter in decoder_bert.named_parameters() if "crossattention" not in name]
    for name in tied:
        assert bert.get_parameter(name) is decoder_bert.get_parameter(name), name
    assert len(tied) > 40
    decoder = copy.deepcopy(loss.decoder)
    value = loss(tokens_of(encoder, columns.values()), None)

    u = vectors(plain, tokenizer, columns["damaged"])
    ids = tokenizer(columns["sentence"], padding=True, return_tensors="pt")["input_ids"]
    logits = decoder(input_ids=ids[:, :-1], encoder_hidden_states=u[:, None], use_cache=False).logits
    exponentials = (logits - logits.max(-1, keepdim=True).values).exp()
    probabilities = exponentials / exponentials.sum(-1, keepdim=True)
    wanted = ids[:, 1:]
    log_p = probabilities.gather(-1, wanted[:, :, None])[..., 0].log()
    expected = -log_p[wanted != tokenizer.pad_token_id].mean()
    assert value.item() == pytest.approx(expected.item(), rel=1e-4)
    value.backward()
    expected.backward()
    for name in tied:
        paths = [module.get_parameter(name).grad for module in (plain, decoder.bert)]
        both = sum(path for path in paths if path is not None)
        torch.testing.assert_close(bert.get_parameter(name).grad, both, rtol=1e-3, atol=1e-5, msg=name)


def test_tsdae_works_with_the_embedded_model(embedded_folder):
    """It has no masked-LM head: the decoder's head starts at random, and learns."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(embedded_folder), device="cpu")
    settings = TrainingSettings(objectives=("tsdae",), adapter=False)
    torch.manual_seed(0)
    loss = build_loss(settings, "tsdae", model)
    loss.train()
    columns = [["river the", "cat"], ["the river is wide", "a cat sat"]]
    optimizer = torch.optim.AdamW(loss.parameters(), lr=1e-3)
    values = []
    for _ in range(4):
        value = loss(tokens_of(model, columns), None)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(float(value))
    assert values[-1] < values[0] / 2


@pytest.mark.parametrize(("key", "labels"), [("relevance", BINARY), ("relevance", SCORES), ("regression", SCORES)])
def test_cross_encoder_objectives(cross_encoder, tiny_folder, tokenizer, key, labels):
    loss = build_loss(SETTINGS, key, cross_encoder)
    value = loss([list(FIRST), list(SECOND)], torch.tensor(labels))
    plain = BertForSequenceClassification.from_pretrained(tiny_folder("bert"), num_labels=1).eval()
    library = cross_encoder[0].model if hasattr(cross_encoder[0], "model") else cross_encoder.model
    plain.load_state_dict(library.state_dict())
    z = plain(**tokenizer(list(FIRST), list(SECOND), padding=True, return_tensors="pt")).logits[:, 0]
    y = torch.tensor(labels).float()
    if key == "relevance":
        p = 1 / (1 + (-z).exp())
        expected = -(y * p.log() + (1 - y) * (1 - p).log()).mean()
    else:
        expected = ((z - y) ** 2).mean()
    compare(value, expected, library, plain)


def test_every_objective_is_explained_and_has_a_loss(encoder, cross_encoder):
    assert list(OBJECTIVES) == [
        "mnrl",
        "contrastive",
        "online-contrastive",
        "cosine",
        "softmax",
        "triplet",
        "simcse",
        "tsdae",
        "relevance",
        "regression",
    ]
    for key, described in OBJECTIVES.items():
        assert described.key == key
        assert described.idea.count(". ") >= 1
        assert described.formula.count("{") == described.formula.count("}")
        assert described.takes
        model = encoder if described.models == "encoder" else cross_encoder
        assert isinstance(build_loss(SETTINGS, key, model, label_count=3), torch.nn.Module)


def test_unknown_and_mixed_objectives_are_refused():
    with pytest.raises(InputError, match="no objective 'loss'"):
        objective("loss")
    with pytest.raises(InputError, match="different kinds of model"):
        check_objectives(("mnrl", "relevance"))
    assert check_objectives(("mnrl", "contrastive")) == "encoder"
    assert check_objectives(("regression",)) == "cross-encoder"
