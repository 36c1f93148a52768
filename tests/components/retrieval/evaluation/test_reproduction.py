"""Published figures measured again: what is judged, what is sampled, and that one failure does not stop the rest."""

from __future__ import annotations

import json

import numpy as np
import pytest

from components.errors import InputError, UserError
from components.model.backend import Backend
from components.retrieval.evaluation import reproduction
from components.retrieval.evaluation.published_figures import published_for
from components.retrieval.evaluation.reproduction import (
    ReproductionRow,
    Sources,
    pairs_data,
    reproduce,
    sample,
    sts_data,
)
from tests.support.hub_server import use_hub

PAIRS = [(f"The {name} opened a shop in {town}.", f"{name} opens {town} shop") for name in ("baker", "smith", "tailor")
         for town in ("Rome", "Lima")]  # fmt: skip


def row(ours, n, measure="spearman"):
    (theirs,) = published_for("similarity", "embedded")
    return ReproductionRow(theirs, "similarity", "test", "file", theirs.model, "r", 6, "mean", measure, ours, n)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    use_hub(monkeypatch, "http://127.0.0.1:9", tmp_path / "empty-cache")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def pairs_file(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps({"sentence": text, "compressed": short}) + "\n" for text, short in PAIRS))
    return path


@pytest.mark.parametrize(
    ("ours", "difference", "within"),
    [(82.03, 0.0, True), (80.53, -1.5, True), (83.54, 1.51, False), (None, None, None)],
)
def test_a_difference_is_ours_less_theirs_and_judged_by_one_and_a_half_points(ours, difference, within):
    assert (row(ours, 1_379).difference, row(ours, 1_379).within) == (difference, within)
    assert row(ours, 1_379).note == ""


def test_ours_over_another_number_of_pairs_is_shown_and_not_judged():
    found = row(82.0, 1_500)
    assert (found.published, found.difference, found.within) == (82.03, -0.03, None)
    assert found.note == "not comparable: over 1,500 pairs, theirs over 1,379"


def test_a_sample_is_seeded_in_order_and_of_different_rows():
    chosen = sample(1_000, 100, seed=3)
    assert chosen == sorted(set(chosen)) == sample(1_000, 100, seed=3)
    assert len(chosen) == 100
    assert chosen != sample(1_000, 100, seed=4)
    assert sample(5, 5, seed=0) == sample(5, 9, seed=1) == [0, 1, 2, 3, 4]


def test_pairs_stay_pairs_in_a_sample(pairs_file, monkeypatch):
    monkeypatch.setattr(reproduction, "MOST_PAIRS", 3)
    data = pairs_data([pairs_file], "pairs.jsonl", seed=1)
    assert (data.n, data.of) == (3, 6)
    assert set(zip(data.pairs.documents.texts, data.pairs.queries.texts, strict=True)) < set(PAIRS)


def test_lists_of_two_are_pairs_too(tmp_path, pairs_file):
    path = tmp_path / "sets.jsonl"
    path.write_text("".join(json.dumps({"set": pair}) + "\n" for pair in PAIRS))
    data, same = pairs_data([path], "sets.jsonl"), pairs_data([pairs_file], "pairs.jsonl")
    assert data.pairs.content_hash == same.pairs.content_hash


def test_unusable_rows_are_counted(tmp_path):
    path = tmp_path / "scored.csv"
    path.write_text("sentence1,sentence2,score\na cat,a dog,2\na cat,a pig,?\na cat,the cat,4\n")
    data = sts_data([path], "scored.csv", "test")
    assert (data.n, data.bad_rows, data.split) == (2, 1, "test")


def test_ours_are_the_recalls_of_a_plain_ranking(offline, pairs_file, embedded):
    outcome = reproduce(Sources(pairs=pairs_file))
    found = {(one.pooling, one.measure): one for one in outcome.rows}
    assert set(found) == {(pooling, f"recall@{k}") for pooling in ("mean", "cls") for k in (1, 5, 10, 20, 50)}
    options = embedded.embed_options((6,), ("mean",), precision="float32")
    vectors = embedded.embed([text for pair in zip(*PAIRS, strict=True) for text in pair], options=options)[0, 0]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[6:] @ unit[:6].T
    ranks = (cosines >= np.diag(cosines)[:, None] - 1e-6).sum(axis=1)
    for k in (1, 5):
        assert found["mean", f"recall@{k}"].ours == pytest.approx(100 * float((ranks <= k).mean()), abs=0.01)
    assert {(one.published, one.within, one.layer, one.n) for one in outcome.rows} == {(None, None, 6, 6)}


def test_offline_everything_else_is_left_out_with_its_reason(offline, pairs_file):
    outcome = reproduce(Sources(pairs=pairs_file))
    why = {one.figure: one.why for one in outcome.left_out}
    assert len(why) == 7  # every published result
    assert "HF_HUB_OFFLINE is set" in why["all-MiniLM-L6-v2, Mean, STS-B test"]
    assert "sentence-transformers/stsb" in why["bert-base-uncased, Mean, STS-B validation"]
    assert why["bert-base-uncased fine-tuned on SNLI, Mean, STS-B validation"] == (
        "The figure is for a model that was fine-tuned on SNLI first."
    )
    missing = why["msmarco-bert-base-dot-v5, [CLS], 36,000 test pairs of the sentence-compression corpus"]
    assert missing.startswith("sentence-transformers/msmarco-bert-base-dot-v5 is not on this machine")


def test_a_model_that_was_fine_tuned_is_measured_for_its_figure(offline, tmp_path, embedded, tiny_folder):
    scored = [("a cat", "a dog", 2), ("a cat", "a red hat", 1), ("the cat sat", "a cat sat", 5), ("money", "river", 0)]
    path = tmp_path / "dev.csv"
    path.write_text("sentence1,sentence2,score\n" + "".join(f"{a},{b},{score}\n" for a, b, score in scored))
    folder = str(tiny_folder("bert"))
    outcome = reproduce(Sources(sts=path, trained=folder))
    (row,) = [row for row in outcome.rows if row.theirs is not None and row.theirs.trained_on]
    assert (row.model, row.published, row.within) == (folder, 76.74, None)  # 4 pairs are not comparable with 1,500
    from scipy.stats import spearmanr
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(folder, device="cpu")  # a folder of transformers: mean pooling
    vectors = [plain.encode([pair[side] for pair in scored], normalize_embeddings=True) for side in (0, 1)]
    expected = spearmanr((vectors[0] * vectors[1]).sum(axis=1), [pair[2] for pair in scored]).statistic
    assert row.ours == pytest.approx(100 * expected, abs=0.01)
    assert not [figure for figure in outcome.left_out if figure.needs_training]
    with pytest.raises(UserError):
        reproduce(Sources(sts=path, trained=str(tmp_path / "missing")))


def test_a_fine_tuned_model_that_is_not_there_is_refused_before_anything_is_measured(
    offline, pairs_file, tmp_path, monkeypatch
):
    monkeypatch.setattr(reproduction, "_load", lambda *_: pytest.fail("a model was loaded"))
    with pytest.raises(InputError, match="does not exist"):
        reproduce(Sources(pairs=pairs_file, trained=str(tmp_path / "missing")))


def test_a_model_that_fails_does_not_stop_the_others(offline, pairs_file, embedded, monkeypatch):
    def load(model, bar):
        if model == "google-bert/bert-base-uncased":
            raise RuntimeError("out of memory:\n tried to allocate")
        return embedded

    monkeypatch.setattr(reproduction, "_load", load)
    outcome = reproduce(Sources(pairs=pairs_file))
    theirs = [one for one in outcome.rows if one.theirs is not None]
    assert {one.theirs.model for one in theirs} == {"sentence-transformers/msmarco-bert-base-dot-v5"}
    assert outcome.rows[: len(theirs)] == tuple(theirs)  # those with a published figure come first
    whys = {one.why for one in outcome.left_out if one.figure.startswith("bert-base-uncased, ")}
    assert "RuntimeError: out of memory: tried to allocate" in whys


def test_a_pass_that_fails_does_not_stop_the_others(offline, pairs_file, tmp_path, monkeypatch):
    scored = tmp_path / "scored.csv"
    scored.write_text("sentence1,sentence2,score\na cat,a dog,2\na cat,the cat,4\nrain,snow,1\n")

    def no_memory(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(reproduction.grid, "retrieval_runs", no_memory)
    outcome = reproduce(Sources(pairs=pairs_file, sts=scored, sts_split="test"))
    assert [(one.measure, one.published, one.n) for one in outcome.rows] == [("spearman", 82.03, 3)]
    assert any(
        one.figure == f"all-MiniLM-L6-v2 on {pairs_file}" and one.why == "MemoryError: no room"
        for one in outcome.left_out
    )


def test_no_model_is_loaded_without_data(offline, monkeypatch):
    loaded = []
    monkeypatch.setattr(Backend, "load", lambda *arguments, **_: loaded.append(arguments))
    outcome = reproduce(Sources())
    assert (outcome.rows, outcome.data, loaded) == ((), (), [])
    assert len(outcome.left_out) == 7


def test_a_bad_local_file_or_seed_ends_it(offline, tmp_path, pairs_file):
    with pytest.raises(InputError, match="no column 'sentence1'"):
        reproduce(Sources(sts=pairs_file))
    with pytest.raises(InputError, match="seed -1"):
        reproduce(Sources(pairs=pairs_file, seed=-1))
