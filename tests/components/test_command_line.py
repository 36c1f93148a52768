"""The command line end to end, in a process of its own: results, and bad input in one line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from components.command_line.program import main

ROOT = Path(__file__).parents[2]
TEXTS = ["A volcano erupted near the town.", "The bank raised its rates.", "Lava reached the sea.", "A cat slept."]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "components", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    where = tmp_path_factory.mktemp("cli")
    (where / "news.csv").write_text("topic,text\n" + "".join(f'x,"{text}"\n' for text in TEXTS) + "bad\n")
    done = run(
        "index", str(where / "news.csv"), "--out", str(where / "idx"), "--layers", "all", "--poolings", "mean,cls",
        "--precision", "float32", "--json", str(where / "made.json"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 of 5 rows cannot be used (row 6: 1 fields instead of 2)." in done.stderr
    assert "4/4" in done.stderr  # the bar
    return where


def test_index_says_what_it_made(folder):
    made = json.loads((folder / "made.json").read_text())
    assert made["sentences"] == 4
    assert made["layers"] == list(range(7))
    assert made["poolings"] == ["mean", "cls"]
    assert made["bad_rows"] == 1
    assert made["bytes"] > 14 * 4 * 384 * 4


def test_search_gives_the_exact_ranking(folder, embedded):
    done = run("search", str(folder / "idx"), "a volcano erupts", "-k", "3", "--json", "-")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    vectors = embedded.embed([*TEXTS, "a volcano erupts"], options=embedded.embed_options(precision="float32"))[0, 0]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[:4] @ unit[4]
    order = np.argsort(-cosines)[:3]
    assert [hit["index"] for hit in results] == order.tolist()
    assert [hit["rank"] for hit in results] == [1, 2, 3]
    assert [hit["text"] for hit in results] == [TEXTS[at] for at in order]
    np.testing.assert_allclose([hit["score"] for hit in results], cosines[order], atol=1e-4)


def test_search_by_layer_pooling_and_dot_product_as_a_table(folder, embedded):
    done = run(
        "search", str(folder / "idx"), "bank", "-k", "1", "--layer", "3", "--pooling", "cls", "--similarity", "dot"
    )
    assert done.returncode == 0, done.stderr
    options = embedded.embed_options((3,), ("cls",), precision="float32")
    vectors = embedded.embed([*TEXTS, "bank"], options=options)[0, 0]
    scores = vectors[:4] @ vectors[4]
    rank, score, index, text = done.stdout.split(None, 3)
    assert (rank, int(index), text.strip()) == ("1", int(scores.argmax()), TEXTS[int(scores.argmax())])
    assert float(score) == pytest.approx(scores.max(), abs=1e-2)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("index", "none.txt", "--out", "{}/o"), "no file"),
        (("index", "{}/news.csv", "--out", "{}/o", "--text-column", "nope"), "no column 'nope'"),
        (("index", "{}/news.csv", "--out", "{}/o", "--layers", "0,9"), "layers 0 to 6"),
        (("index", "{}/news.csv", "--out", "{}/o", "--layers", "few"), "Numbers from 0 to 6"),
        (("index", "{}/news.csv", "--out", "{}/o", "--poolings", "median"), "median"),
        (("index", "{}/news.csv", "--out", "{}/o", "--dtype", "int8"), "int8"),
        (("index", "{}/news.csv", "--out", "{}/o", "--model", "/no/such/folder"), "no folder"),
        (("index", "{}/news.csv", "--out", "{}"), "no index"),
        (("index", "{}/news.csv"), "--out"),
        (("search", "{}", "x"), "no manifest.json"),
        (("search", "{}/idx", "x", "-k", "0"), "k = 0"),
        (("search", "{}/idx", " "), "Some text"),
        (("search", "{}/idx", "x", "-k", "many"), "many"),
        (("search", "{}/idx", "x", "--layer", "7"), "Layer 7"),
        (("search", "{}/idx", "x", "--pooling", "max"), "max pooling"),
        (("search", "{}/idx", "x", "--similarity", "far"), "far"),
        (("search", "{}/idx", "x", "--model", "other/model"), "made by embedded"),
        (("search", "{}/idx", "x", "--json", "/no/such/folder/x.json"), "could not be written"),
        (("dance",), "dance"),
        ((), "COMMAND"),
    ],
)
def test_bad_input_is_one_line_and_status_2(folder, arguments, word, capsys):
    status = main([argument.format(folder) for argument in arguments])
    lines = [line for line in capsys.readouterr().err.splitlines() if "rows cannot be used" not in line]
    assert status == 2
    assert len(lines) == 1
    assert word in lines[0]
    assert not (folder / "o").exists()


def test_a_process_gives_that_status_too_and_no_traceback(folder):
    done = run("search", str(folder), "x")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_help_is_quick_and_names_every_option():
    started = time.monotonic()
    done = run("index", "--help")
    assert time.monotonic() - started < 5  # torch alone would take seconds more
    assert done.returncode == 0
    for option in ("--out", "--text-column", "--layers", "--poolings", "--precision", "--model", "--json"):
        assert option in done.stdout


def test_the_cache_is_shown_and_cleared(tmp_path):
    (tmp_path / "indexes" / "old").mkdir(parents=True)
    (tmp_path / "indexes" / "old" / "layer.npy").write_bytes(b"x" * 1000)
    shown = run("cache", "--json", "-", BERT_INTERNALS_CACHE=str(tmp_path))
    assert json.loads(shown.stdout) | {"folder": "", "limit": 0} == {
        "folder": "", "indexes": 1, "bytes": 1000, "limit": 0, "freed": 0,
    }  # fmt: skip
    assert run("cache", "--clear", BERT_INTERNALS_CACHE=str(tmp_path)).returncode == 0
    assert [path for path in (tmp_path / "indexes").iterdir() if path.suffix != ".lock"] == []
