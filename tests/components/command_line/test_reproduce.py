"""`reproduce`: offline, with a hub on this machine, and with bad input."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import constants

from components.command_line.program import main
from tests.components.command_line.in_process import run
from tests.support.hub_server import HubServer, use_hub
from tests.support.places import ROOT

pytestmark = pytest.mark.usefixtures("loaded_once")

BERT, MSMARCO = "google-bert/bert-base-uncased", "sentence-transformers/msmarco-bert-base-dot-v5"
PAIRS = [
    ("A volcano erupted near the town on Monday.", "Volcano erupts"),
    ("The central bank raised its rates again.", "Bank raises rates"),
    ("A cat slept on the warm roof all day.", "Cat sleeps"),
]
SCORED = [
    ("A cat slept.", "A cat was asleep.", 4.5),
    ("A cat slept.", "A dog barked.", 1.5),
    ("Lava reached the sea.", "He bought a new car.", 0.0),
    ("Rain fell.", "It rained.", 5.0),
]


@pytest.fixture
def offline(monkeypatch, tmp_path) -> None:
    """An empty hub cache, no hub, and the environment of somebody who works offline."""
    go_offline(monkeypatch, tmp_path)


def go_offline(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    use_hub(monkeypatch, "http://127.0.0.1:9", cache)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # read at import, as a process of its own would


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    where = tmp_path_factory.mktemp("reproduce")
    (where / "pairs.jsonl").write_text(
        "".join(json.dumps({"sentence": text, "compressed": short}) + "\n" for text, short in PAIRS)
        + json.dumps({"sentence": "no query"})
        + "\n"
    )
    lines = [f'"{first}","{second}",{score}\n' for first, second, score in SCORED]
    (where / "scored.csv").write_text("sentence1,sentence2,score\n" + "".join(lines))
    (where / "alone.csv").write_text("sentence,other\nA text.,x\n")
    return where


@pytest.fixture
def hub(embedded_folder, tmp_path):
    """A hub with the data sets, and the embedded model's files in BERT base's place; the other model is not there."""
    pairs, sts = tmp_path / "pairs", tmp_path / "sts" / "data"
    pairs.mkdir()
    sts.mkdir(parents=True)
    lines = "".join(json.dumps({"set": pair}) + "\n" for pair in PAIRS)
    (pairs / "sentence-compression_compressed.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    table = pa.table(dict(zip(("sentence1", "sentence2", "score"), map(list, zip(*SCORED, strict=True)), strict=True)))
    for split in ("train", "validation", "test"):
        pq.write_table(table, sts / f"{split}-00000-of-00001.parquet")
    repositories = {
        BERT: embedded_folder,
        "datasets/embedding-data/sentence-compression": pairs,
        "datasets/sentence-transformers/stsb": sts.parent,
    }
    with HubServer(repositories) as server:
        yield server


def test_offline_the_embedded_model_runs_and_the_rest_is_left_out(folder, offline):
    pairs, scored = str(folder / "pairs.jsonl"), str(folder / "scored.csv")
    done = run("reproduce", "--pairs", pairs, "--sts", scored)
    assert done.returncode == 0, done.stderr
    assert "1 of 4 rows cannot be used" in done.stderr
    assert "6/6" in done.stderr  # the bar
    said = done.stdout
    assert f"compression pairs: 3 pairs of {pairs}" in said
    assert "Published values" not in said  # nothing to compare
    own, left_out = said.split("Ours, without a published value\n")[1].split("\nLeft out\n")
    lines = own.splitlines()
    assert lines[0].split() == ["model", "data", "pooling", "measure", "n", "ours"]
    assert lines[1].split()[:7] == ["all-MiniLM-L6-v2", "compression", "pairs", "Mean", "Recall@1", "3", "100.00"]
    assert lines[-1].split()[:6] == ["all-MiniLM-L6-v2", "STS-B", "validation", "Mean", "Spearman", "4"]
    assert left_out.count(f"{BERT} is not on this machine") == 1  # the reason once, under all its figures
    assert "  bert-base-uncased, Mean, STS-B validation\n" in left_out
    assert f"hf download {MSMARCO}" in left_out
    assert "fine-tuned on SNLI first" in left_out


def test_a_file_that_is_the_test_split_stands_beside_the_published_figure(folder, tmp_path, offline):
    out = tmp_path / "out.json"
    arguments = ("--sts", str(folder / "scored.csv"), "--sts-split", "test", "--json")
    done = run("reproduce", *arguments, str(out))
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text())
    (row,) = result["rows"]
    assert (row["model"], row["pooling"], row["measure"]) == (
        "sentence-transformers/all-MiniLM-L6-v2", "mean", "spearman",
    )  # fmt: skip
    assert row["published"] == 82.03
    assert row["difference"] == pytest.approx(row["ours"] - 82.03, abs=0.006)
    assert (row["n"], row["within"]) == (4, None)
    assert row["note"] == "not comparable: over 4 pairs, theirs over 1,379"
    assert row["source"]
    assert "not comparable: over 4 pairs, theirs over 1,379" in done.stdout
    assert "STS-B test: a published result" in done.stdout
    assert (result["tolerance"], result["precision"]) == (1.5, "float32")
    assert [sorted(one) for one in result["left_out"]] == [["figure", "why"]] * 6


def test_with_a_hub_models_and_data_are_fetched_and_one_missing_does_not_stop_the_rest(hub, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    use_hub(monkeypatch, hub.address, cache)
    done = run("reproduce", "--json", "-")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [one["n"] for one in result["data"]] == [3, 4, 4]
    beside = {(one["model"], one["pooling"], one["measure"]): one for one in result["rows"] if one["source"]}
    assert [key[0] for key in beside] == [BERT] * 11 + ["sentence-transformers/all-MiniLM-L6-v2"]
    assert beside[BERT, "cls", "recall@50"]["published"] == 32.72
    assert beside[BERT, "mean", "recall@1"] | {"source": "", "revision": "", "remarks": []} == {
        "source": "", "model": BERT, "revision": "", "task": "retrieval", "split": "test",
        "data": "embedding-data/sentence-compression", "layer": 6, "pooling": "mean", "measure": "recall@1",
        "published": 46.86, "ours": 100.0, "difference": 53.14, "n": 3, "within": None,
        "note": "not comparable: over 3 pairs, theirs over 36,000", "remarks": [],
    }  # fmt: skip
    assert beside[BERT, "mean", "recall@1"]["revision"] == hub.commit(BERT)
    # The same weights under both names give the same numbers.
    own = [one for one in result["rows"] if one["source"] is None]
    ours = {(one["data"], one["split"], one["pooling"], one["measure"]): one["ours"] for one in own}
    for one in beside.values():
        key = (one["data"], one["split"], one["pooling"], one["measure"])
        assert ours.get(key, one["ours"]) == one["ours"]
    assert {one["why"].split(". ")[0] for one in result["left_out"][:2]} == {f"The hub has no public model '{MSMARCO}'"}
    assert len(result["left_out"]) == 3
    assert "Fetching BERT base" in done.stderr
    hub.stop()
    go_offline(monkeypatch, cache)
    again = run("reproduce", "--json", "-")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["rows"] == result["rows"]  # all from the cache


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--pairs", "none.jsonl"), ("no file 'none.jsonl'",)),
        (("--sts", "none.csv"), ("no file 'none.csv'",)),
        (("--pairs", "{}/alone.csv"), ("sentence and compressed",)),
        (("--pairs", "{}/scored.csv"), ("no column 'sentence'",)),
        (("--sts", "{}/pairs.jsonl"), ("no column 'sentence1'",)),
        (("--sts", "{}/scored.csv", "--sts-split", "train"), ("train", "validation")),
        (("--sts-split", "test"), ("test was given without a file", "STSB=FILE")),
        (("--seed", "-1"), ("seed -1",)),
        (("--seed", "x"), ("'x'",)),
        ((), ("Nothing could be measured", "embedding-data/sentence-compression", "PAIRS=FILE")),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder, offline, arguments, words, capsys):
    status = main(["reproduce", *(argument.format(folder) for argument in arguments)])
    said = capsys.readouterr()
    assert status == 2
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert all(word in said.err for word in words)


def test_make_hands_its_variables_on():
    """What `make reproduce` would run; nothing is run or installed."""
    words = ["PAIRS=my pairs.jsonl", "STSB=test.csv", "STSB_SPLIT=test", "SEED=3", "JSON=out.json"]
    said = subprocess.run(
        ["make", "--no-print-directory", "-n", "reproduce", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    command = " ".join(said.stdout.split("-m components ")[1].replace("\\\n", " ").split())
    assert command == (
        'reproduce --pairs "my pairs.jsonl" --sts "test.csv" --sts-split "test" --seed "3" --json "out.json"'
    )
    said = subprocess.run(
        ["make", "--no-print-directory", "-n", "reproduce"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.split("-m components ")[1].replace("\\\n", " ").split() == ["reproduce"]
