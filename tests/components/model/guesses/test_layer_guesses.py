"""Guesses at every token and layer: the numbers of plain transformers for every architecture that has a masked-LM head."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from components.errors import InputError, ModelError
from components.jobs import Stopped
from components.model.backend import Backend
from components.model.guesses import passes
from components.model.store import TraceStore
from tests.support import tiny
from tests.support.closeness import assert_close
from tests.support.plain_masked_lm import FINAL_NORMS, HEADS, Plain

TEXT, HIDDEN = "the cat sat on the river bank", (2, 4)
CLOSE = 1e-5  # of the largest number: float32 against float64


def assert_same(guesses, scores, tolerance=CLOSE):
    """Guesses equal scores [layer, token, vocabulary]; where two scores are as close as that, their order may differ."""
    probabilities = scores.softmax(-1).numpy()
    found = np.take_along_axis(probabilities, guesses.ids, axis=-1)
    assert_close(guesses.probabilities, found, tolerance, "probabilities")
    assert_close(found, -np.sort(-probabilities, axis=-1)[..., : found.shape[-1]], tolerance, "the best")
    known = guesses.true_ids >= 0
    true = np.maximum(guesses.true_ids, 0)[None, :, None]
    of_true = np.take_along_axis(probabilities, np.broadcast_to(true, (*found.shape[:2], 1)), axis=-1)
    assert_close(guesses.true_probabilities[:, known], of_true[:, known, 0], tolerance, "true")
    least = 1 + (probabilities > of_true + tolerance).sum(-1)
    most = (probabilities > of_true - tolerance).sum(-1)
    assert ((guesses.true_ranks >= least) & (guesses.true_ranks <= most))[:, known].all()
    assert (guesses.true_ranks[:, ~known] == 0).all()
    assert np.isnan(guesses.true_probabilities[:, ~known]).all()


def test_the_last_layer_is_the_library_s_own_output(each):
    backend, plain = each
    for hidden in ((), HIDDEN):
        guesses = backend.guesses(TEXT, hidden=hidden, k=7)
        assert guesses.layers == (0, 1, 2, 3)
        assert guesses.positions == tuple(range(len(guesses.sentence)))
        assert guesses.true_ids.tolist() == plain.inputs(TEXT)["input_ids"][0].tolist()
        scores = plain.scores(TEXT, hidden)
        last = backend.guesses(TEXT, hidden=hidden, k=7, layers=(3,))
        assert_same(last, scores[None])
        np.testing.assert_array_equal(guesses.ids[-1], last.ids[0])


def test_a_decoder_of_its_own_stays_apart_from_the_word_vectors(tmp_path):
    """transformers ties them only where the folder has one matrix, or two that are equal."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = tiny.save_tiny_masked_lm(tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    words = tensors["bert.embeddings.word_embeddings.weight"]
    own = torch.randn(words.shape, generator=torch.Generator().manual_seed(5))
    save_file(tensors | {"cls.predictions.decoder.weight": own}, folder / "model.safetensors", {"format": "pt"})
    whole = AutoModelForMaskedLM.from_pretrained(folder).eval()
    assert not torch.equal(whole.get_output_embeddings().weight, whole.get_input_embeddings().weight)
    with torch.inference_mode():
        inputs = AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")
        scores = whole.double()(**inputs).logits[0]
    assert_same(Backend.load(str(folder)).guesses(TEXT, k=5, layers=(3,)), scores[None])


def test_layers_below_are_the_head_on_their_vectors(each):
    """Where a norm follows the last block, behind that norm."""
    backend, plain = each
    if plain.architecture not in HEADS:
        assert plain.architecture == "nomic_bert"  # whose head is computed within its own forward pass
        return
    assert backend.structure.has_final_norm == (plain.architecture in FINAL_NORMS)
    assert_same(backend.guesses(TEXT, hidden=HIDDEN), plain.scores_by_layer(TEXT, HIDDEN))


def test_looking_left_no_guess_changes_when_later_tokens_do(each):
    backend, _ = each
    other = TEXT.replace("river bank", "bank river")
    first, second = (backend.guesses(text, hidden=(2,), only_left=True) for text in (TEXT, other))
    pieces = [[token.id for token in record.sentence.tokens] for record in (first, second)]
    shared = next(at for at, (one, two) in enumerate(zip(*pieces, strict=False)) if one != two)
    assert 3 < shared < min(map(len, pieces))
    for name in ("probabilities", "true_probabilities"):
        assert_close(getattr(first, name)[:, :shared], getattr(second, name)[:, :shared], CLOSE, name)
    free = [backend.guesses(text, hidden=(2,)).true_probabilities[-1, :shared] for text in (TEXT, other)]
    assert np.abs(free[0] - free[1]).max() > 1e-4
    assert first.only_left


def test_looking_left_equals_a_causal_mask_of_the_library(bert):
    backend, plain = bert
    inputs = plain.inputs(TEXT, (3,))
    tokens = inputs["input_ids"].shape[1]
    inputs["attention_mask"] = torch.full((tokens, tokens), -1e30, dtype=torch.float64).triu(1)[None, None]
    with torch.inference_mode():
        scores = plain.model(**inputs).logits
    assert_same(backend.guesses(TEXT, hidden=(3,), only_left=True, layers=(3,)), scores)


@pytest.mark.parametrize("written", ["[MASK]", "[mask]", "<mask>", "<MASK>"])
@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlm-roberta"])
def test_a_typed_mask_is_understood_in_every_spelling(written, architecture, tmp_path):
    folder = tiny.save_masked_lm_of(tmp_path, architecture)
    backend, plain = Backend.load(str(folder), device_name="cpu"), Plain.load(folder, architecture)
    own = f"the {plain.tokenizer.mask_token} sat"
    guesses = backend.guesses(f"the {written} sat", layers=(3,))
    assert guesses.sentence.text == own
    (mask,) = guesses.masks
    assert guesses.true_ids[mask] == -1
    assert np.isnan(guesses.true_bits[0, mask])
    assert_same(guesses, plain.scores(own)[None])


def test_pairs_and_pieces_of_words(bert):
    """A piece of a word is hidden, though no text with a mask in it would be split so."""
    backend, plain = bert
    guesses = backend.guesses("the cat walking", "a red hat", hidden=(4,), layers=(3,))
    assert guesses.sentence.tokens[4].piece == "##ing"
    assert_same(guesses, plain.scores("the cat walking", (4,), "a red hat")[None])


def test_only_what_is_asked_for_is_computed(bert):
    backend, _ = bert
    whole = backend.guesses(TEXT, hidden=HIDDEN)
    part = backend.guesses(TEXT, hidden=HIDDEN, positions=(4, 1), layers=(2, 0), k=3, asked=(9, -1, 5))
    assert part.ids.shape == (2, 2, 3)
    np.testing.assert_array_equal(part.ids, whole.ids[[2, 0]][:, [4, 1], :3])
    assert_close(part.true_bits, whole.true_bits[[2, 0]][:, [4, 1]])
    assert part.token(1) == 1
    with pytest.raises(IndexError, match="was not read"):
        part.token(2)
    assert np.isnan(part.asked_probabilities[..., 1]).all()
    everything = backend.guesses(TEXT, hidden=HIDDEN, k=10_000)
    assert_close(everything.probabilities.sum(-1), 1)
    assert (np.diff(everything.probabilities) <= 0).all()
    assert everything.ids.shape[-1] == backend.facts.vocabulary_size
    for column, number in ((0, 9), (2, 5)):
        places = (everything.ids == number).argmax(-1)[[2, 0]][:, [4, 1]]
        np.testing.assert_array_equal(part.asked_ranks[..., column], places + 1)


def test_memory_is_bounded_and_changes_no_number(bert, monkeypatch):
    backend, _ = bert
    whole, in_turn = backend.guesses(TEXT), backend.guesses_in_turn(TEXT)
    monkeypatch.setattr(passes, "SCORES", 100)
    monkeypatch.setattr(passes, "PASS_TOKENS", 20)
    seen = []
    rows = passes.kept
    monkeypatch.setattr(passes, "kept", lambda logits, *rest: (seen.append(logits.numel()), rows(logits, *rest))[1])
    backend.store.clear()
    parts, turns = backend.guesses(TEXT), backend.guesses_in_turn(TEXT)
    assert max(seen) <= 100
    for one, other in ((whole, parts), (in_turn, turns)):
        assert one is not other
        assert_close(one.probabilities, other.probabilities)
        np.testing.assert_array_equal(one.true_ranks, other.true_ranks)


def test_pairs_of_tokens_are_bounded_too(bert, monkeypatch):
    """In eager attention the scores of a block take tokens * tokens numbers in each head."""
    backend, _ = bert
    whole = backend.guesses_in_turn(TEXT)
    backend.store.clear()
    monkeypatch.setattr(passes, "PASS_PAIRS", 2 * len(whole.sentence) ** 2)
    passed = backend.forward_passes
    assert_close(backend.guesses_in_turn(TEXT).probabilities, whole.probabilities)
    assert backend.forward_passes - passed == -(-len(whole.positions) // 2)
    tokens = len(whole.sentence)
    monkeypatch.setattr(backend.store, "limit", 3 * 4 * backend.facts.heads * tokens**2)
    for call in (backend.guesses, backend.guesses_in_turn):
        with pytest.raises(InputError, match="This server keeps at most"):
            call(TEXT, k=1)


def test_it_is_kept_and_cannot_be_written(bert):
    backend, _ = bert
    first = backend.guesses(TEXT, hidden=[1, 2])
    passed = backend.forward_passes
    assert backend.guesses(TEXT, hidden=(2, 1, 2)) is first
    assert backend.forward_passes == passed
    assert backend.guesses(TEXT, hidden=(1,)) is not first
    assert first.nbytes == passes.Wanted(first.layers).size_in_bytes(len(first.positions))
    for field in fields(first):
        value = getattr(first, field.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[:] = 0


def test_words_beyond_the_vocabulary_can_be_guessed(tmp_path):
    """A table of word vectors that was padded to a round size."""
    folder = tiny.save_masked_lm_of(tmp_path, "bert", rows=64)
    backend, plain = Backend.load(str(folder), device_name="cpu"), Plain.load(folder, "bert")
    guesses = backend.guesses(TEXT, hidden=HIDDEN, k=64)
    assert_same(guesses, plain.scores_by_layer(TEXT, HIDDEN))
    assert guesses.ids.max() == 63
    assert len(backend.tokenization.vocabulary) < 64


def test_old_names_of_norms_are_read(tmp_path):
    """BERT's first checkpoints call weight and bias of a norm gamma and beta."""
    folder = tiny.save_masked_lm_of(tmp_path, "bert")
    before = Backend.load(str(folder), device_name="cpu").guesses(TEXT, hidden=HIDDEN)
    path = folder / "model.safetensors"
    weights = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in load_file(path).items()
    }
    assert "cls.predictions.transform.LayerNorm.gamma" in weights
    save_file(weights, path, metadata={"format": "pt"})
    after = Backend.load(str(folder), device_name="cpu").guesses(TEXT, hidden=HIDDEN)
    np.testing.assert_array_equal(before.ids, after.ids)
    np.testing.assert_array_equal(before.probabilities, after.probabilities)


def test_each_token_in_turn_is_hidden_alone(bert):
    backend, _ = bert
    backend.store.clear()
    seen = []
    in_turn = backend.guesses_in_turn(TEXT, progress=lambda done, total: seen.append((done, total)))
    assert in_turn.in_turn
    assert in_turn.positions == in_turn.hidden == tuple(range(1, 8))
    assert seen[-1] == (7, 7)
    for token, position in enumerate(in_turn.positions):
        alone = backend.guesses(TEXT, hidden=(position,), positions=(position,))
        assert_close(in_turn.probabilities[:, token], alone.probabilities[:, 0])
        np.testing.assert_array_equal(in_turn.true_ranks[:, token], alone.true_ranks[:, 0])
    with pytest.raises(Stopped):
        backend.guesses_in_turn("a dog", is_stopped=lambda: True)


def test_many_texts_are_read_at_their_masks(bert):
    backend, _ = bert
    texts = ["the [MASK] sat", "a [mask] ran on the [MASK] bank", "we put [MASK]", "no mask"]
    found = backend.guesses_at_masks(texts, k=4, asked=(9,))
    assert [record.positions for record in found] == [(2,), (2, 6), (3,), ()]
    for text, record in zip(texts, found, strict=True):
        alone = backend.guesses(text, positions=record.positions, layers=(3,), k=4, asked=(9,))
        np.testing.assert_array_equal(record.ids, alone.ids)
        assert_close(record.probabilities, alone.probabilities)
        assert_close(record.asked_probabilities, alone.asked_probabilities)
    passes = backend.forward_passes
    assert backend.guesses_at_masks(texts, k=4, asked=(9,)) is found
    assert backend.forward_passes == passes
    assert backend.guesses_at_masks(texts[:1], k=4, asked=(8,))[0].asked == (8,)


def test_guesses_at_many_masks_are_not_kept(bert, monkeypatch):
    backend, _ = bert
    monkeypatch.setattr("components.model.backend.KEPT_BYTES", 1)
    assert backend.guesses_at_masks(["the [MASK]"]) is not backend.guesses_at_masks(["the [MASK]"])


def test_what_cannot_be_guessed_is_refused(bert, tmp_path):
    backend, _ = bert
    with pytest.raises(InputError, match="special token"):
        backend.guesses(TEXT, hidden=(0,))
    for options in ({"hidden": (99,)}, {"positions": (99,)}, {"layers": (4,)}, {"positions": (-1,)}):
        with pytest.raises(IndexError):
            backend.guesses(TEXT, **options)
    with pytest.raises(ValueError, match="k is 0"):
        backend.guesses(TEXT, k=0)
    with pytest.raises(InputError):
        backend.guesses(" ")
    headless = Backend.load(str(tiny.save_tiny(tmp_path)), device_name="cpu")
    with pytest.raises(ModelError, match="no masked-LM head"):
        headless.guesses(TEXT)
    small = Backend.load(str(backend.loaded.folder), store=TraceStore(1_000), device_name="cpu")
    with pytest.raises(InputError, match="keeps at most"):
        small.guesses(TEXT)
