"""A run goes on from its checkpoint as if it had not been interrupted, and the command writes head, card and checkpoint."""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest
import torch
from safetensors.torch import load_file

from components.errors import InputError
from components.model.files.sources import ModelFiles
from components.training.masked_words import __main__ as command
from components.training.masked_words import batches, sources, train
from components.training.masked_words.train import HeadTraining, Settings, pace
from tests.support.masked_words import tiny_encoder, tiny_units
from tests.support.tiny import save_tiny


@pytest.fixture
def encoder(tmp_path):
    return tiny_encoder(tmp_path / "model")


def new_run(encoder, tokens, **changes):
    units, pieces, _ = tiny_units(60)
    return HeadTraining(encoder, units, pieces, Settings(**{"rank": 2, "tokens": tokens, **changes}))


def test_a_run_goes_on_from_its_checkpoint(encoder, tmp_path, monkeypatch, one_thread):
    """Three steps, and then three more, over the end of a pass, equal six."""
    monkeypatch.setattr("components.training.masked_words.train.draw", lambda *given: DRAW(*given, tokens=400))
    whole = new_run(encoder, tokens=1_700)
    whole.train(lambda: None)
    assert whole.state.steps >= 5
    assert whole.state.pass_number >= 1
    assert float(whole.trained["encoder.layer.0.output.dense.lora_B"].detach().abs().max()) > 0

    class StoppedAfterThree(Exception):
        pass

    first = new_run(encoder, tokens=1_700)
    looked = []

    def look():
        looked.append(first.state.steps)
        first.write_checkpoint(tmp_path / "checkpoint.safetensors")
        if first.state.steps == 3:
            raise StoppedAfterThree

    with pytest.raises(StoppedAfterThree):
        first.train(look)
    assert looked == [1, 2, 3]
    second = new_run(encoder, tokens=1_700)
    second.go_on(tmp_path / "checkpoint.safetensors")
    assert second.state.steps == 3
    second.train(lambda: None)
    assert second.state.steps == whole.state.steps
    assert second.state.losses == whole.state.losses
    assert all(torch.equal(second.trained[name], value) for name, value in whole.trained.items())


def test_a_checkpoint_of_another_run_is_refused(encoder, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    new_run(encoder, tokens=1).write_checkpoint(path)
    new_run(encoder, tokens=9).go_on(path)  # longer is allowed
    for changes, name in (({"seed": 2}, "seed"), ({"rank": 3}, "rank")):
        with pytest.raises(InputError, match=f"another {name}"):
            new_run(encoder, tokens=1, **changes).go_on(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(InputError, match="cannot be used"):
        new_run(encoder, tokens=1).go_on(path)


def test_the_share_that_is_copied_is_that_of_a_plain_loop():
    units, pieces, names = tiny_units(60)
    batch = batches.draw(units, pieces, 1, 0, tokens=200).batch(1)
    assert len(batch.answers) > 5
    numbers = torch.Generator().manual_seed(0)
    logs = torch.randn(len(batch.answers), len(names), generator=numbers).log_softmax(-1)
    may = torch.from_numpy(~pieces.is_special & ~pieces.is_common)
    expected = []
    for place, answer, row in zip(batch.places.tolist(), batch.answers.tolist(), logs.exp(), strict=True):
        others = set(batch.pieces[place // batch.pieces.shape[1]].tolist()) - {answer}
        expected.append(sum(float(row[piece]) for piece in others if may[piece]))
    assert train.copied_share(logs, batch, may).tolist() == pytest.approx(expected, abs=1e-6)
    assert max(expected) > 0


def test_the_rate_rises_stays_and_falls():
    assert pace(0, 0.0) == pytest.approx(1 / 200)
    assert pace(100, 0.1) == pytest.approx(101 / 200)
    assert pace(500, 0.3) == pace(500, 0.6) == 1.0
    assert pace(500, 0.8) == pytest.approx(0.5)
    assert pace(500, 0.999) == pytest.approx(0.02)


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """A tiny model in place of the included one, a package with a small text, and sentences to measure with."""
    folder = save_tiny(tmp_path / "model")
    monkeypatch.setattr(command, "find_files", lambda spec: ModelFiles(folder, "tiny"))
    monkeypatch.setattr(sources, "OWN_TEXTS", tmp_path / "none.gz")
    package = tmp_path / "packages" / "dict-devil"
    package.mkdir(parents=True)
    text = "\n\n".join(f"the cat sat on a red hat {word} the river bank ." for word in ("in", "by", "x", "we", "put"))
    (package / "devil.dict.dz").write_bytes(gzip.compress(text.encode()))
    room = tmp_path / "room.json"
    room.write_text(json.dumps([{"sentence": "a red [MASK] ran .", "answers": ["dog", "cat"]}]))
    return [str(tmp_path / "packages"), str(tmp_path / "out"), "--classroom", str(room), "--rank", "2"]


def test_the_command_writes_head_card_and_checkpoint(prepared, tmp_path, caplog):
    assert command.main([*prepared, "--tokens", "120"]) == 0
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {"head.safetensors", "card.json", "checkpoint.safetensors"}
    card = json.loads((out / "card.json").read_text())
    assert card["head_sha256"] == hashlib.sha256((out / "head.safetensors").read_bytes()).hexdigest()
    assert (card["rank"], card["seed"]) == (2, 1)
    assert card["tokens"] >= 120
    assert [set(point) for point in card["curve"]] == [{"tokens", "loss", "room"}] * card["steps"]
    assert set(card["measured"]["room"]) == {"model", "unigram", "trigram"}
    assert card["measured"]["room"]["model"]["n"] == 1
    assert [row["name"] for row in card["sources"]] == ["Ambrose Bierce, The Devil's Dictionary"]
    head = load_file(out / "head.safetensors")
    assert head["encoder.layer.2.output.dense.lora_A"].shape == (2, 64)
    assert sum("wordnet-base" in record.message for record in caplog.records) == 1
    assert command.main([*prepared, "--tokens", "300"]) == 2
    assert "already exists" in caplog.records[-1].message
    assert command.main([*prepared, "--tokens", "300", "--continue"]) == 0
    longer = json.loads((out / "card.json").read_text())
    assert longer["steps"] > card["steps"]
    assert longer["curve"][: len(card["curve"])] == card["curve"]


@pytest.mark.parametrize("wrong", [["--tokens", "0"], ["--minutes", "-1"], ["--rank", "x"], ["--continue"], ["--what"]])
def test_bad_input_is_one_line(prepared, caplog, wrong):
    assert command.main([*prepared, *wrong]) == 2
    assert "\n" not in caplog.records[-1].message


def test_the_included_models_checksum_is_on_the_card():
    from components.model.catalog import EMBEDDED_SHA256

    assert command.EMBEDDED_SHA256 == EMBEDDED_SHA256


DRAW = train.draw
